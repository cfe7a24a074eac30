/* SPDX-License-Identifier: BSD-3-Clause */
// The responder against the kernel's: the requests of every RC connection in the captures of two
// rxe 6.1 endpoints go through rc_rx_request(), and what it answers must be what the kernel
// answered: opcode, PSN, MSN, syndrome and length of each response, in order.
//
// Both may let one ACK stand for several. In these captures the kernel never does: it answers every
// request that asks for it, as our responder does when each response is sent at once. A
// connection's starting PSN is that of its first request; the captures begin before the connections
// do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "models/rc.h"
#include "models/uc.h"
#include "pcap/codec.h"
#include "pcap/reader.h"

#define CONNS_MAX   128
#define WAITING_MAX 512

struct conn {
	uint8_t src[4], dst[4]; // of the requests
	uint32_t to_qp;         // of the requests
	uint32_t from_qp;       // of the responses, 0: none came yet
	struct rc_responder r;
	struct rc_resource res[16];
	uint64_t counter; // what stands for its memory
	struct rc_response waiting[WAITING_MAX];
	unsigned n;
};

struct world {
	struct conn conn[CONNS_MAX];
	unsigned n;
	uint64_t requests, responses, merged;
};

static struct conn *conn_of(struct world *w, const struct pkt *p, uint16_t mtu)
{
	for (unsigned i = 0; i < w->n; i++) {
		struct conn *c = &w->conn[i];
		if (c->to_qp == p->dest_qp && memcmp(c->src, p->data + p->src_off, 4) == 0 &&
			memcmp(c->dst, p->data + p->dst_off, 4) == 0)
			return c;
	}
	assert_in_range(w->n, 0, CONNS_MAX - 1);
	struct conn *c = &w->conn[w->n++];
	struct rc_responder_config cfg = {
		.psn = p->psn,
		.ack_every = UINT32_MAX,
		// ibv_rc_pingpong chooses a path MTU of its own: a FIRST is full.
		.payload = p->opcode == ROCE_SEND_FIRST ? p->payload_len : mtu,
		.strict = true,
		.resources = c->res,
		.max_dest_rd_atomic = 16,
	};
	*c = (struct conn){.to_qp = p->dest_qp};
	memcpy(c->src, p->data + p->src_off, 4);
	memcpy(c->dst, p->data + p->dst_off, 4);
	rc_responder_init(&c->r, &cfg);
	return c;
}

static struct rc_packet packet_of(const struct pkt *p)
{
	const uint8_t *reth = pkt_ext(p, ROCE_EXT_RETH), *atomic = pkt_ext(p, ROCE_EXT_ATOMIC);
	struct rc_packet out = {.opcode = p->opcode,
		.ack_req = p->ack_req,
		.psn = p->psn,
		.payload = p->payload_len};

	if (reth != NULL) {
		out.remote_addr = get_be64(reth);
		out.rkey = get_be32(reth + 8);
		out.dma_len = get_be32(reth + 12);
	}
	if (atomic != NULL) {
		out.remote_addr = get_be64(atomic);
		out.rkey = get_be32(atomic + 8);
	}
	return out;
}

static void request(struct world *w, const struct pkt *p, uint16_t mtu)
{
	struct conn *c = conn_of(w, p, mtu);
	struct rc_packet in = packet_of(p);
	struct rc_accept a;
	int res = rc_rx_request(&c->r, 0, &in, &a);

	w->requests++;
	assert_int_not_equal(res & RC_RX_RESULT, RC_RX_INVALID);
	if (res & RC_RX_ATOMIC)
		rc_atomic_done(&c->r, c->counter++);
	while (rc_resp_pending(&c->r) != RC_RESP_NONE) {
		assert_in_range(c->n, 0, WAITING_MAX - 1);
		rc_tx_response(&c->r, &c->waiting[c->n++]);
	}
}

// The connection whose response this is; the first one is known by its PSN.
static struct conn *answered(struct world *w, const struct pkt *p)
{
	struct conn *first = NULL;

	for (unsigned i = 0; i < w->n; i++) {
		struct conn *c = &w->conn[i];
		if (memcmp(c->dst, p->data + p->src_off, 4) != 0 ||
			memcmp(c->src, p->data + p->dst_off, 4) != 0)
			continue;
		if (c->from_qp == p->dest_qp)
			return c;
		for (unsigned k = 0; c->from_qp == 0 && k < c->n; k++)
			if (c->waiting[k].psn == p->psn)
				first = c;
	}
	assert_non_null(first);
	first->from_qp = p->dest_qp;
	return first;
}

static void response(struct world *w, const struct pkt *p)
{
	struct conn *c = answered(w, p);
	const uint8_t *aeth = pkt_ext(p, ROCE_EXT_AETH);
	unsigned i = 0;

	w->responses++;
	while (i < c->n && c->waiting[i].opcode == ROCE_ACK && c->waiting[i].psn != p->psn)
		i++;
	w->merged += i;
	assert_in_range(i, 0, c->n - 1);
	const struct rc_response *r = &c->waiting[i];
	assert_int_equal(p->opcode, r->opcode);
	assert_int_equal(p->psn, r->psn);
	assert_int_equal(p->payload_len, r->payload);
	if (aeth != NULL) {
		assert_int_equal(aeth[0], r->syndrome);
		assert_int_equal(get_be24(aeth + 1), r->msn);
	}
	c->n -= i + 1;
	memmove(c->waiting, r + 1, c->n * sizeof(*r));
}

static void replay(struct world *w, const char *file, uint16_t mtu, uint64_t responses)
{
	struct reader *r;
	struct reader_frame f;
	char err[256];

	memset(w, 0, sizeof(*w));
	assert_int_equal(reader_open(&r, file, "udp port 4791", err, sizeof(err)), 0);
	while (reader_next(r, &f) == 1) {
		struct pkt p;
		if (pkt_parse(f.data, f.len, &p) != PKT_OK || p.opcode >= 32)
			continue;
		if (rc_is_request(p.opcode))
			request(w, &p, mtu);
		else
			response(w, &p);
	}
	reader_close(r);
	assert_int_equal(w->responses, responses);
	assert_int_equal(w->merged, 0);
	for (unsigned i = 0; i < w->n; i++)
		assert_int_equal(w->conn[i].n, 0); // nothing said that the kernel did not
}

static void the_kernels_answers_are_ours(void **state)
{
	static struct world w;

	// Counted with tshark -Y 'infiniband.bth.opcode >= 13 && infiniband.bth.opcode <= 18'.
	replay(&w, TEST_DATA "/rxe-mtu1024.pcap", 1024, 836);
	replay(&w, TEST_DATA "/rxe-mtu4096.pcap", 4096, 420);
}

// What ibv_uc_pingpong sends: 10 messages of 3000 bytes each way, from 10.0.0.1 and 10.0.0.2.
static void the_kernels_uc_messages_arrive_whole(void **state)
{
	struct uc_responder u[2];
	bool known[2] = {false};
	struct reader *r;
	struct reader_frame f;
	char err[256];

	assert_int_equal(
		reader_open(&r, TEST_DATA "/rxe-mtu1024.pcap", "udp port 4791", err, sizeof(err)),
		0);
	while (reader_next(r, &f) == 1) {
		struct pkt p;
		struct rc_accept a;
		if (pkt_parse(f.data, f.len, &p) != PKT_OK || !uc_is_request(p.opcode))
			continue;
		unsigned i = p.data[p.src_off + 3] - 1u;
		assert_in_range(i, 0, 1);
		struct rc_responder_config cfg = {.psn = p.psn, .payload = 1024, .strict = true};
		if (!known[i])
			uc_responder_init(&u[i], &cfg);
		known[i] = true;
		struct rc_packet in = packet_of(&p);
		int res = uc_rx_request(&u[i], 0, &in, &a);
		assert_int_equal(res & RC_RX_RESULT, RC_RX_IN_ORDER);
	}
	reader_close(r);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(known[i]);
		assert_int_equal(u[i].r.messages, 10);
		assert_int_equal(u[i].r.bytes, 30000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernels_answers_are_ours),
		cmocka_unit_test(the_kernels_uc_messages_arrive_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
