/* SPDX-License-Identifier: BSD-3-Clause */
// The built-in NIC when things go wrong: lost and repeated frames, frames from outside, an empty
// pool, a link that goes down.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nic_rig.h"
#include "pcap/icrc.h"
#include "pipelines/materialise.h"

#define T_ACK (8192 * SIM_NS) // timeout exponent 1: 4.096 us * 2

// What the tap loses: bit i of a mask for the i-th data frame or ACK it sees.
static uint64_t lose_data, lose_acks, mark_data;
static unsigned n_data, n_acks;
static simtime_t data_at[128];
static uint32_t last_dest_qp;

static bool lossy(struct rig *r, enum rig_side from, struct frame *f)
{
	bool ack = f->opcode == ROCE_ACK;
	unsigned *n = ack ? &n_acks : &n_data;
	unsigned i = (*n)++;

	if (!ack && i < 128)
		data_at[i] = r->tap.now;
	if (!ack)
		last_dest_qp = get_be24(frame_data(f) + f->l4_off + 8 + 5);
	if (!ack && i < 64 && mark_data >> i & 1)
		ip_set_ce(frame_data(f) + f->l3_off);
	return i >= 64 || !((ack ? lose_acks : lose_data) >> i & 1);
}

static struct nic_config short_timeout(void)
{
	struct nic_config cfg = nic_config_default();

	cfg.timeout = 1;
	cfg.retry_cnt = 2;
	return cfg;
}

// Two NICs with a lossy tap and one flow a -> b of `packets` packets.
static struct rig *setup(struct nic_config cfg, unsigned packets)
{
	struct nic_flow_config flow = rig_flow(0, packets * 1024);
	struct rig *r = rig_new(&cfg, true);

	lose_data = lose_acks = mark_data = 0;
	n_data = n_acks = 0;
	r->on_frame = lossy;
	assert_int_equal(nic_add_flow(r->nic[0], r->nic[1], &flow), 0);
	rig_start(r);
	return r;
}

static struct nic_flow_result result(struct rig *r)
{
	struct nic_flow_result res;

	assert_int_equal(nic_flow_result(r->nic[0], 0, &res), 0);
	return res;
}

static void end(struct rig *r)
{
	char why[200];

	if (!rig_end(r, why, sizeof(why)))
		fail_msg("%s", why);
}

static const struct event *event_of(const struct node *n, enum event_kind kind)
{
	for (uint32_t i = 0; i < n->log.n; i++)
		if (n->log.ev[i].kind == kind)
			return &n->log.ev[i];
	return NULL;
}

static void a_lost_packet_is_asked_for_and_repeated(void **state)
{
	struct rig *r = setup(short_timeout(), 20);

	lose_data = 1 << 5;
	rig_run(r, SIM_MS);
	struct nic_flow_result res = result(r);
	assert_true(res.done);
	assert_int_equal(res.delivered_bytes, 20 * 1024);
	assert_int_equal(res.naks, 1);
	assert_int_equal(res.timeouts, 0);
	// All 20 were out (1.8 us) before the NAK came back (after 2 x 2 us): 5..19 go again.
	assert_int_equal(res.retransmitted_packets, 15);
	assert_int_equal(res.sent_packets, 35);
	assert_int_equal(nic_counters(r->nic[1])->out_of_sequence, 14);
	assert_int_equal(nic_counters(r->nic[1])->naks_sent, 1);
	assert_int_equal(nic_counters(r->nic[0])->packet_seq_err, 1);
	end(r);
}

static void a_lost_last_packet_waits_for_its_timeout(void **state)
{
	struct rig *r = setup(short_timeout(), 5);

	lose_data = 1 << 4;
	rig_run(r, SIM_MS);
	struct nic_flow_result res = result(r);
	assert_true(res.done);
	assert_int_equal(res.timeouts, 1);
	assert_int_equal(res.retransmitted_packets, 1);
	assert_int_equal(nic_counters(r->nic[0])->local_ack_timeout_err, 1);
	// The timer ran from the ACK of packet 3. From a to the tap: FIRST is 1122 bytes on the
	// wire and 1 us away; behind the tap FIRST and three of 1106 follow each other without a
	// gap; the ACK (86) comes back over two lanes.
	simtime_t acked = (1122 + 1122 + 3 * 1106 + 2 * 86) * RIG_BYTE + 4 * RIG_DELAY;
	// Packet 4 again: out at once, 1106 and 1 us to the tap.
	assert_int_equal(data_at[5], acked + T_ACK + 1106 * RIG_BYTE + RIG_DELAY);
	end(r);
}

static void a_dead_path_ends_with_retry_exceeded(void **state)
{
	struct rig *r = setup(short_timeout(), 5);

	lose_data = UINT64_MAX;
	rig_run(r, SIM_MS);
	struct nic_flow_result res = result(r);
	assert_false(res.done);
	assert_int_equal(res.status, WC_RETRY_EXC_ERR);
	assert_int_equal(res.delivered_bytes, 0);
	assert_int_equal(res.fct, SIMTIME_NEVER);
	assert_int_equal(res.timeouts, 3);
	assert_int_equal(n_data, 15); // retry_cnt 2: three times five packets
	const struct event *e = event_of(r->nic[0], EV_QP_ERROR);
	assert_non_null(e);
	assert_int_equal(e->at, 3 * T_ACK);
	assert_int_equal(e->b, 12);
	assert_int_equal(nic_counters(r->nic[0])->req_transport_retries_exceeded, 1);
	assert_int_equal(nic_open_flows(r->nic[0]), 0);
	end(r);
}

static void lost_acknowledgements_make_duplicates(void **state)
{
	struct rig *r = setup(short_timeout(), 3);

	lose_acks = 7;
	rig_run(r, SIM_MS);
	struct nic_flow_result res = result(r);
	assert_true(res.done);
	assert_int_equal(res.delivered_bytes, 3 * 1024); // once
	assert_int_equal(res.delivered_messages, 1);
	// The first repeated packet is acknowledged with the newest PSN: the rest may be out too.
	assert_in_range(nic_counters(r->nic[1])->duplicate_request, 1, 3);
	assert_int_equal(res.timeouts, 1);
	end(r);
}

static void congestion_marks_are_counted(void **state)
{
	struct rig *r = setup(short_timeout(), 10);

	mark_data = 1 << 2 | 1 << 7;
	rig_run(r, SIM_MS);
	assert_int_equal(nic_counters(r->nic[1])->np_ecn_marked_roce_packets, 2);
	assert_int_equal(r->nic[1]->ports[0].ctr->ce_seen[3], 2);
	end(r);
}

static void a_full_pool_is_waited_for(void **state)
{
	struct rig *r = setup(short_timeout(), 20);
	static void *taken[RIG_POOL];
	unsigned n = 0;

	while (rte_mempool_get(r->pool, &taken[n]) == 0)
		n++;
	rig_run(r, 5 * SIM_US);
	assert_int_equal(n_data, 0);
	assert_in_range(nic_counters(r->nic[0])->pool_waits, 5, 6); // at 0, 1, .. 5 us
	assert_non_null(event_of(r->nic[0], EV_POOL_EMPTY));
	rte_mempool_put_bulk(r->pool, taken, n);
	rig_run(r, SIM_MS);
	assert_true(result(r).done);
	assert_int_equal(result(r).delivered_bytes, 20 * 1024);
	end(r);
}

static void a_link_that_comes_back_carries_on(void **state)
{
	struct rig *r = setup(short_timeout(), 200);

	rig_run(r, 5 * SIM_US);
	for (unsigned i = 0; i < 2; i++)
		r->lane[i].up = false;
	r->nic[0]->ops->link(r->nic[0], 0, false);
	rig_run(r, 10 * SIM_US);
	// Nothing was sent into the dead link.
	assert_int_equal(r->nic[0]->ports[0].ctr->drops[DROP_LINK_DOWN], 0);
	for (unsigned i = 0; i < 2; i++)
		r->lane[i].up = true;
	r->nic[0]->ops->link(r->nic[0], 0, true);
	rig_run(r, SIM_MS);
	assert_true(result(r).done);
	assert_int_equal(result(r).delivered_bytes, 200 * 1024);
	end(r);
}

// ---- frames from outside ----------------------------------------------------------------------

// What the outside says: SEND_ONLY with 64 bytes to `qpn`, 122 bytes, ICRC and all valid.
static struct frame *outside(
	struct rig *r, uint32_t src, uint32_t dst, uint8_t opcode, uint32_t qpn)
{
	const struct nic_port_config to = rig_port(RIG_B);
	struct frame *f = node_new_frame(&r->tap, 1);
	uint8_t *data = frame_data(f), *p;

	p = eth_put(data, to.mac, to.next_hop_mac, ETHERTYPE_IPV4);
	p = ipv4_put(p, 0, 20 + 8 + 12 + 64 + 4, 1, 64, IP_PROTO_UDP, src, dst);
	p = udp_put(p, 0xc000, ROCE_UDP_PORT, 8 + 12 + 64 + 4);
	p = bth_put(p, opcode, BTH_MIG, 0, qpn, true, 0x123456);
	memset(p, 0x5a, 64);
	f->len = f->head_len = 122;
	icrc_put(data + 118, icrc_compute(data, 14, 42, 118));
	return f;
}

static void finish_outside(struct rig *r, struct frame *f)
{
	node_send(&r->tap, 1, f);
	rig_run(r, r->now + 10 * SIM_US);
}

// Drops at b by reason so far.
static uint64_t drops(struct rig *r, enum drop_reason reason)
{
	return r->nic[1]->ports[0].ctr->drops[reason];
}

static void frames_from_outside_are_verified(void **state)
{
	struct rig *r = setup(short_timeout(), 1);

	rig_run(r, SIM_MS); // the flow is through: its queue pair exists
	uint32_t qpn = last_dest_qp;
	uint64_t delivered = r->nic[1]->delivered;

	// Valid, but its PSN is far away: reaches the queue pair, which sees a gap or a duplicate.
	finish_outside(r, outside(r, RIG_A_IP, RIG_B_IP, 0x04, qpn));
	assert_int_equal(r->nic[1]->delivered, delivered + 1);
	assert_int_equal(nic_counters(r->nic[1])->out_of_sequence +
				 nic_counters(r->nic[1])->duplicate_request,
		1);

	struct frame *f = outside(r, RIG_A_IP, RIG_B_IP, 0x04, qpn);
	frame_data(f)[100] ^= 1;
	finish_outside(r, f);
	assert_int_equal(drops(r, DROP_BAD_ICRC), 1);
	assert_int_equal(nic_counters(r->nic[1])->rx_icrc_encapsulated, 1);

	finish_outside(r, outside(r, RIG_A_IP, RIG_B_IP + 1, 0x04, qpn));
	assert_int_equal(drops(r, DROP_NOT_FOR_US), 1);
	f = outside(r, RIG_A_IP, RIG_B_IP, 0x04, qpn);
	frame_data(f)[5] ^= 1; // another's MAC
	finish_outside(r, f);
	assert_int_equal(drops(r, DROP_NOT_FOR_US), 2);

	finish_outside(r, outside(r, RIG_A_IP + 1, RIG_B_IP, 0x04, qpn)); // not the QP's peer
	finish_outside(r, outside(r, RIG_A_IP, RIG_B_IP, 0x04, qpn + 1));
	finish_outside(r, outside(r, RIG_A_IP, RIG_B_IP, 0x04, qpn - 1));
	assert_int_equal(drops(r, DROP_NO_QP), 3);

	finish_outside(r, outside(r, RIG_A_IP, RIG_B_IP, 0x18, qpn)); // no operation
	finish_outside(r, outside(r, RIG_A_IP, RIG_B_IP, 0x24, qpn)); // UC
	assert_int_equal(drops(r, DROP_UNSUPPORTED), 2);
	f = outside(r, RIG_A_IP, RIG_B_IP, 0x04, qpn);
	frame_data(f)[14 + 9] = IP_PROTO_TCP;
	ipv4_set_checksum(frame_data(f) + 14, 20);
	finish_outside(r, f);
	assert_int_equal(drops(r, DROP_UNSUPPORTED), 3);
	assert_int_equal(r->nic[1]->delivered, delivered + 1);
	end(r);
}

static void malformed_frames_are_counted_by_what_is_wrong(void **state)
{
	struct rig *r = setup(short_timeout(), 1);

	rig_run(r, SIM_MS);
	uint64_t dropped = r->nic[1]->dropped, consumed = r->nic[1]->consumed;
	for (uint16_t len = 1; len < 122; len++) { // cut at every byte
		struct frame *f = outside(r, RIG_A_IP, RIG_B_IP, 0x04, last_dest_qp);
		f->len = f->head_len = len;
		finish_outside(r, f);
	}
	assert_int_equal(r->nic[1]->dropped, dropped + 121);
	assert_int_equal(drops(r, DROP_MALFORMED_ETH), 13);
	assert_int_equal(drops(r, DROP_MALFORMED_IP), 108); // the IP length says more

	struct frame *f = outside(r, RIG_A_IP, RIG_B_IP, 0x04, last_dest_qp);
	frame_data(f)[14 + 8]--; // TTL without checksum
	finish_outside(r, f);
	assert_int_equal(drops(r, DROP_IP_CHECKSUM), 1);

	// ARP for us is not for the NIC to answer here, but no error either.
	f = outside(r, RIG_A_IP, RIG_B_IP, 0x04, last_dest_qp);
	put_be16(frame_data(f) + 12, ETHERTYPE_ARP);
	put_be64(frame_data(f) + 14, 0x0001080006040001); // Ethernet, IPv4, request
	f->kind = FRAME_LOCAL;
	finish_outside(r, f);
	assert_int_equal(r->nic[1]->consumed, consumed + 1);
	end(r);
}

static void a_frame_for_another_endpoint_is_not_ours(void **state)
{
	struct rig *r = setup(short_timeout(), 1);
	struct nic_port_config to = rig_port(RIG_B);

	// As a switch that knows the headers would deliver it by mistake.
	struct frame *f = outside(r, RIG_A_IP, RIG_B_IP, 0x04, 0x100);
	f->flags = FRAME_F_PARSED | FRAME_F_SYNTH | FRAME_F_ROCE;
	f->dst = to.endpoint + 1;
	f->l3_off = 14;
	f->l4_off = 34;
	finish_outside(r, f);
	assert_int_equal(drops(r, DROP_NOT_FOR_US), 1);
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_packet_is_asked_for_and_repeated),
		cmocka_unit_test(a_lost_last_packet_waits_for_its_timeout),
		cmocka_unit_test(a_dead_path_ends_with_retry_exceeded),
		cmocka_unit_test(lost_acknowledgements_make_duplicates),
		cmocka_unit_test(congestion_marks_are_counted),
		cmocka_unit_test(a_full_pool_is_waited_for),
		cmocka_unit_test(a_link_that_comes_back_carries_on),
		cmocka_unit_test(frames_from_outside_are_verified),
		cmocka_unit_test(malformed_frames_are_counted_by_what_is_wrong),
		cmocka_unit_test(a_frame_for_another_endpoint_is_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
