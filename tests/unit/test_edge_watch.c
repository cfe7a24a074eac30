/* SPDX-License-Identifier: BSD-3-Clause */
// What an edge counts of its endpoint's queue pairs: scripts of packets, with each count by hand.
// `out` is what the endpoint sends, `in` what it gets. Its queue pair is 0x21, the peer's 0x11.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "pcap/build.h"
#include "pcap/icrc.h"
#include "pipelines/edge_priv.h"

#define MY_IP   0x0a000001
#define PEER_IP 0x0a000002
#define MY_QP   0x21
#define PEER_QP 0x11

static struct node *node;
static uint8_t ecn;

static unsigned no_rx(void *port, struct rte_mbuf **m, unsigned n)
{
	return 0;
}

static unsigned no_tx(void *port, struct rte_mbuf **m, unsigned n)
{
	return 0;
}

static int setup(void **state)
{
	static const struct edge_ops ops = {.rx = no_rx, .tx = no_tx};
	struct edge_port_config port = {.ops = &ops, .mtu = 4200};
	struct edge_config cfg = {.name = "guest",
		.ports = &port,
		.n_ports = 1,
		.roce_dscp = EDGE_NO_DSCP,
		.counters = true};

	ecn = 0;
	return edge_create(&cfg, &node);
}

static int teardown(void **state)
{
	edge_destroy(node);
	return 0;
}

static const struct edge_counters *seen(void)
{
	return edge_counters(node, 0);
}

// `value`: the AETH of an answer, or the length that a READ asks for.
static void packet(bool out, uint32_t qpn, uint8_t opcode, uint32_t psn, uint32_t value)
{
	uint8_t bytes[256] = {0}, payload = roce_opcodes[opcode].payload ? 64 : 0;
	const uint8_t *ext = roce_opcodes[opcode].ext;
	uint16_t roce = (uint16_t)(roce_header_bytes(opcode) + payload + ICRC_BYTES);
	struct pkt p;

	uint8_t *at = eth_put(bytes, (const uint8_t[6]){2}, (const uint8_t[6]){2}, ETHERTYPE_IPV4);
	at = ipv4_put(at, ecn, IPV4_HEADER_BYTES + UDP_HEADER_BYTES + roce, 1, 64, IP_PROTO_UDP,
		out ? MY_IP : PEER_IP, out ? PEER_IP : MY_IP);
	at = udp_put(at, 0xc001, ROCE_UDP_PORT, UDP_HEADER_BYTES + roce);
	uint8_t *bth = at;
	bth_put(bth, opcode, BTH_MIG, 0, qpn, false, psn & PSN_MASK);
	if (ext[ROCE_EXT_AETH])
		put_be32(bth + ext[ROCE_EXT_AETH], value);
	if (ext[ROCE_EXT_RETH])
		put_be32(bth + ext[ROCE_EXT_RETH] + 12, value);
	uint16_t len = (uint16_t)(bth + roce - bytes);
	assert_int_equal(pkt_parse(bytes, len, &p), PKT_OK);
	if (out)
		edge_watch_sent((struct edge *)node, 0, &p);
	else
		edge_watch_arrives((struct edge *)node, 0, &p);
}

static void out(uint8_t opcode, uint32_t psn, uint32_t value)
{
	packet(true, PEER_QP, opcode, psn, value);
}

static void in(uint8_t opcode, uint32_t psn, uint32_t value)
{
	packet(false, MY_QP, opcode, psn, value);
}

#define ACK (0x1fu << 24)
#define NAK ((uint32_t)AETH_NAK_PSN_SEQ << 24)
#define RNR ((uint32_t)AETH_RNR_NAK << 24)

// 10 11 [12 lost] 13 14 | NAK 12 | 12 13 14; then 12 once more: a duplicate. Two messages.
static void responder_counts_gaps_and_duplicates(void **state)
{
	in(ROCE_WRITE_ONLY, 10, 0);
	in(ROCE_WRITE_FIRST, 11, 0);
	in(ROCE_WRITE_MIDDLE, 13, 0);
	in(ROCE_WRITE_LAST, 14, 0);
	out(ROCE_ACK, 12, NAK);
	in(ROCE_WRITE_MIDDLE, 12, 0);
	in(ROCE_WRITE_MIDDLE, 13, 0);
	in(ROCE_WRITE_LAST, 14, 0);
	in(ROCE_WRITE_MIDDLE, 12, 0);
	assert_int_equal(seen()->out_of_sequence, 2);
	assert_int_equal(seen()->duplicate_request, 1);
	assert_int_equal(seen()->seq_naks_sent, 1);
	assert_int_equal(seen()->rx_write_requests, 2);
	assert_int_equal(seen()->rdma_rx_packets, 8);
	assert_int_equal(seen()->rdma_rx_bytes, 8 * 64);
	assert_int_equal(seen()->rdma_tx_packets, 1);
}

static void responder_counts_messages_by_kind(void **state)
{
	in(ROCE_SEND_ONLY, 0xffffff, 0);
	in(ROCE_SEND_FIRST, 0, 0);
	in(ROCE_SEND_LAST_IMM, 1, 0);
	in(ROCE_SEND_ONLY_INV, 2, 0);
	in(ROCE_WRITE_ONLY_IMM, 3, 0);
	in(ROCE_CMP_SWAP, 4, 0);
	in(ROCE_FETCH_ADD, 5, 0);
	in(ROCE_READ_REQUEST, 6, 4096);
	assert_int_equal(seen()->rdma_recvs, 4); // 3 SENDs, and the WRITE with immediate
	assert_int_equal(seen()->rx_write_requests, 1);
	assert_int_equal(seen()->rx_atomic_requests, 2);
	assert_int_equal(seen()->rx_read_requests, 1);
	assert_int_equal(seen()->out_of_sequence + seen()->duplicate_request, 0);
}

// A READ of 4096 bytes takes 1 PSN at a path MTU of 4096, 16 at 256. Any next one of those is in
// order, the 17th after it is a gap.
static void a_read_leaves_the_next_psn_open(void **state)
{
	in(ROCE_READ_REQUEST, 100, 4096);
	in(ROCE_WRITE_ONLY, 104, 0);
	in(ROCE_WRITE_ONLY, 105, 0);
	in(ROCE_READ_REQUEST, 106, 4096);
	in(ROCE_WRITE_ONLY, 123, 0);
	assert_int_equal(seen()->out_of_sequence, 1);
	assert_int_equal(seen()->rx_write_requests, 2);
	in(ROCE_WRITE_ONLY, 122, 0);
	assert_int_equal(seen()->rx_write_requests, 3);
	assert_int_equal(seen()->duplicate_request, 0);
}

// The endpoint's NAKs of other kinds.
static void refusals_are_counted_by_their_codes(void **state)
{
	in(ROCE_SEND_ONLY, 1, 0);
	out(ROCE_ACK, 1, RNR);
	out(ROCE_ACK, 1, (uint32_t)AETH_NAK_REM_ACCESS << 24);
	out(ROCE_WRITE_ONLY, 50, 0);
	in(ROCE_ACK, 50, RNR);
	in(ROCE_ACK, 50, (uint32_t)AETH_NAK_REM_ACCESS << 24);
	in(ROCE_ACK, 50, (uint32_t)AETH_NAK_INVALID_REQ << 24);
	assert_int_equal(seen()->out_of_buffer, 1);
	assert_int_equal(seen()->resp_remote_access_errors, 1);
	assert_int_equal(seen()->rnr_nak_retry_err, 1);
	assert_int_equal(seen()->req_remote_access_errors, 1);
	assert_int_equal(seen()->req_remote_invalid_request, 1);
	assert_int_equal(seen()->seq_naks_sent + seen()->packet_seq_err, 0);
}

// 1 2 3 | NAK 2 | 2 3 | silence | 2 3: went back twice, once by itself.
static void requester_goes_back_by_nak_or_by_its_timer(void **state)
{
	for (uint32_t psn = 1; psn <= 3; psn++)
		out(ROCE_SEND_MIDDLE, psn, 0);
	in(ROCE_ACK, 1, ACK); // tells whose answers these are
	in(ROCE_ACK, 2, NAK);
	out(ROCE_SEND_MIDDLE, 2, 0);
	out(ROCE_SEND_MIDDLE, 3, 0);
	assert_int_equal(seen()->edge_qps_paired, 1);
	assert_int_equal(seen()->packet_seq_err, 1);
	assert_int_equal(seen()->go_backs, 1);
	assert_int_equal(seen()->local_ack_timeout_err, 0);
	out(ROCE_SEND_MIDDLE, 2, 0);
	out(ROCE_SEND_MIDDLE, 3, 0);
	out(ROCE_SEND_LAST, 4, 0);
	assert_int_equal(seen()->go_backs, 2);
	assert_int_equal(seen()->local_ack_timeout_err, 1);
	assert_int_equal(seen()->rdma_sends, 1);
}

// An RNR NAK asks for it too, but is no retry.
static void waiting_for_a_receive_is_no_retry(void **state)
{
	out(ROCE_SEND_ONLY, 1, 0);
	out(ROCE_SEND_ONLY, 2, 0);
	in(ROCE_ACK, 1, RNR);
	out(ROCE_SEND_ONLY, 1, 0);
	assert_int_equal(seen()->rnr_nak_retry_err, 1);
	assert_int_equal(seen()->go_backs + seen()->local_ack_timeout_err, 0);
	assert_int_equal(seen()->rdma_sends, 2);
}

// Before any answer fits, the NAK counts for whoever it may be meant for.
static void a_nak_of_an_unknown_queue_pair_counts(void **state)
{
	packet(true, PEER_QP, ROCE_WRITE_MIDDLE, 7, 0);
	packet(true, PEER_QP + 1, ROCE_WRITE_MIDDLE, 7, 0);
	in(ROCE_ACK, 7, NAK); // of the first or the second
	packet(true, PEER_QP, ROCE_WRITE_MIDDLE, 8, 0);
	packet(true, PEER_QP, ROCE_WRITE_MIDDLE, 7, 0);
	assert_int_equal(seen()->go_backs, 1);
	assert_int_equal(seen()->local_ack_timeout_err, 0);
}

// Responses 20 21 [22 lost] 23 24: one hole. The READ is asked for again from 22: not by the timer.
static void a_hole_in_responses_is_an_implied_nak(void **state)
{
	out(ROCE_READ_REQUEST, 20, 5 * 256);
	in(ROCE_READ_RESP_FIRST, 20, ACK);
	in(ROCE_READ_RESP_MIDDLE, 21, 0);
	in(ROCE_READ_RESP_MIDDLE, 23, 0);
	in(ROCE_READ_RESP_LAST, 24, ACK);
	assert_int_equal(seen()->implied_nak_seq_err, 1);
	out(ROCE_WRITE_ONLY, 25, 0);
	out(ROCE_READ_REQUEST, 22, 3 * 256);
	assert_int_equal(seen()->go_backs, 1);
	assert_int_equal(seen()->local_ack_timeout_err, 0);
	in(ROCE_READ_RESP_FIRST, 22, ACK);
	in(ROCE_READ_RESP_MIDDLE, 23, 0);
	in(ROCE_READ_RESP_LAST, 24, ACK);
	assert_int_equal(seen()->implied_nak_seq_err, 1);
}

// A queue pair set up anew begins anywhere.
static void a_far_psn_is_another_connection(void **state)
{
	in(ROCE_SEND_ONLY, 10, 0);
	in(ROCE_SEND_ONLY, 0x600000, 0);
	out(ROCE_SEND_ONLY, 0x300000, 0);
	out(ROCE_SEND_ONLY, 5, 0);
	assert_int_equal(seen()->out_of_sequence + seen()->duplicate_request, 0);
	assert_int_equal(seen()->go_backs, 0);
	assert_int_equal(seen()->rdma_recvs, 2);
	assert_int_equal(seen()->rdma_sends, 2);
}

static void datagrams_and_uc_have_no_order(void **state)
{
	in(ROCE_UD | ROCE_SEND_ONLY, 10, 0);
	in(ROCE_UD | ROCE_SEND_ONLY, 5, 0);
	in(ROCE_UC | ROCE_SEND_ONLY, 10, 0);
	in(ROCE_UC | ROCE_SEND_ONLY, 12, 0);
	assert_int_equal(seen()->rdma_rx_packets, 4);
	assert_int_equal(seen()->out_of_sequence + seen()->duplicate_request, 0);
	assert_int_equal(seen()->rdma_recvs, 4);
}

// Without congestion control too.
static void marks_are_counted(void **state)
{
	ecn = ECN_CE;
	in(ROCE_SEND_ONLY, 1, 0);
	in(ROCE_UD | ROCE_SEND_ONLY, 10, 0);
	assert_int_equal(seen()->edge_ce_seen, 2);
	assert_int_equal(seen()->edge_cnp_sent, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(responder_counts_gaps_and_duplicates),
		T(responder_counts_messages_by_kind),
		T(a_read_leaves_the_next_psn_open),
		T(refusals_are_counted_by_their_codes),
		T(requester_goes_back_by_nak_or_by_its_timer),
		T(waiting_for_a_receive_is_no_retry),
		T(a_nak_of_an_unknown_queue_pair_counts),
		T(a_hole_in_responses_is_an_implied_nak),
		T(a_far_psn_is_another_connection),
		T(datagrams_and_uc_have_no_order),
		T(marks_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
