/* SPDX-License-Identifier: BSD-3-Clause */
// DCQCN in the built-in NIC: CNPs for packets that come marked, and what they do to their sender.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nic_seen.h"

#define CNP_LEN  74 // Ethernet 14, IPv4 20, UDP 8, BTH 12, 16 more, ICRC 4
#define CNP_PRIO 6

// Marks requests as a congested switch would.
static bool marking(struct rig *r, enum rig_side from, struct frame *f)
{
	if (from == RIG_A && f->kind == FRAME_IP && f->payload_len != 0)
		ip_set_ce(frame_data(f) + f->l3_off);
	return f->kind == FRAME_IP ? record(r, from, f) : true;
}

static struct nic_config dcqcn(void)
{
	struct nic_config cfg = nic_config_default();

	cfg.cc.algorithm = CC_DCQCN;
	cfg.np.enable = true;
	return cfg;
}

static struct rig *marked(const struct nic_config *cfg, uint32_t bytes)
{
	struct rig *r = tapped(cfg);
	struct nic_flow_config flow = rig_flow(5, bytes);

	r->on_frame = marking;
	add(r, &flow);
	rig_start(r);
	return r;
}

static unsigned cnps_seen(unsigned *first)
{
	unsigned n = 0;

	for (unsigned i = n_seen; i-- > 0;)
		if (seen[i].p.opcode == 0x81) {
			n++;
			*first = i;
		}
	return n;
}

static uint64_t counter(struct rig *r, enum rig_side side, const char *name)
{
	uint64_t v = 0;

	assert_true(nic_counter_by_name(r->nic[side], name, &v));
	return v;
}

// RoCEv2 annex A17.9.3: opcode 0x81, BECN, 16 zero bytes, to the queue pair the data came from.
static void a_cnp_is_complete_on_the_wire(void **state)
{
	struct nic_config cfg = dcqcn();
	struct rig *r = marked(&cfg, 1024);
	static const uint8_t zero[16];
	unsigned i = 0;

	rig_run(r, 10 * SIM_US);
	assert_int_equal(cnps_seen(&i), 1);
	const struct pkt *p = &seen[i].p;
	const uint8_t *bth = p->data + p->bth_off;
	assert_true(seen[i].icrc_ok);
	assert_int_equal(seen[i].from, RIG_B);
	assert_int_equal(seen[i].tc, CNP_PRIO);
	assert_int_equal(p->end, CNP_LEN);
	assert_int_equal(p->dscp, 48);
	assert_int_equal(p->ecn, ECN_NOT_ECT);
	assert_int_equal(bth[4], BTH_BECN);
	assert_memory_equal(bth + 12, zero, sizeof(zero));
	for (unsigned k = 0; k < n_seen; k++)
		if (seen[k].from == RIG_B && seen[k].p.opcode == 0x11) // the ACK
			assert_int_equal(p->dest_qp, seen[k].p.dest_qp);
	assert_true(i < n_seen - 1); // ahead of the ACK that became due with it
	end(r);
}

// All packets are marked, and the sender is slowed down: a CNP for each interval of 4 us in which
// some came, at least so far after the one before, less what the first may have waited for the
// wire.
static void cnps_are_spaced(void **state)
{
	struct nic_config cfg = dcqcn();
	struct rig *r = marked(&cfg, 200 * 1024);
	simtime_t last = 0;
	unsigned n = 0;

	rig_run(r, 100 * SIM_MS);
	for (unsigned i = 0; i < n_seen; i++) {
		if (seen[i].p.opcode != 0x81)
			continue;
		assert_true(last == 0 || seen[i].at - last >= 4 * SIM_US - 100 * SIM_NS);
		last = seen[i].at;
		n++;
	}
	assert_in_range(n, 4, 1000);
	assert_int_equal(counter(r, RIG_B, "np_cnp_sent"), n);
	assert_int_equal(counter(r, RIG_B, "cc_tx_cnp_pkts"), n);
	assert_int_equal(counter(r, RIG_B, "cc_rx_ce_pkts"), 200);
	assert_int_equal(counter(r, RIG_A, "cc_rx_cnp_pkts"), n);
	assert_int_equal(
		counter(r, RIG_A, "rp_cnp_handled") + counter(r, RIG_A, "rp_cnp_ignored"), n);
	end(r);
}

// The first CNP halves the rate: from then on the packets are two packet times apart, each 1024
// bytes of payload, 58 of headers and ICRC, 24 of FCS, preamble and gap.
static void a_cnp_paces_packet_by_packet(void **state)
{
	struct nic_config cfg = dcqcn();

	cfg.np.min_time_between_cnps = SIM_S;
	cfg.cc.dcqcn.initial_alpha_value = 1024;
	cfg.cc.dcqcn.rpg_time_reset = SIM_S / 10;
	cfg.cc.dcqcn.rpg_byte_reset = 0;
	struct rig *r = marked(&cfg, 200 * 1024);
	simtime_t last = 0, step = 2 * (1024 + 58 + 24) * RIG_BYTE;

	rig_run(r, SIM_MS);
	for (unsigned i = 0; i < n_seen; i++) {
		if (seen[i].from != RIG_A)
			continue;
		if (i < n_seen - 10 && seen[i].at > 6 * SIM_US)
			assert_in_range(seen[i].at - last, step - 2, step + 2);
		last = seen[i].at;
	}
	struct nic_flow_result res = result(r, 5);
	assert_true(res.done);
	assert_int_equal(res.cnps, 1);
	assert_int_equal(res.cc_rate_bps, RIG_RATE / 2);
	assert_int_equal(res.cc_min_rate_bps, RIG_RATE / 2);
	end(r);
}

static void without_np_nothing_is_said_and_without_cc_nothing_heard(void **state)
{
	struct nic_config cfg = dcqcn();
	unsigned first;

	cfg.np.enable = false;
	struct rig *r = marked(&cfg, 50 * 1024);
	rig_run(r, SIM_MS);
	assert_int_equal(cnps_seen(&first), 0);
	assert_int_equal(result(r, 5).cc_rate_bps, RIG_RATE);
	end(r);

	cfg.np.enable = true;
	cfg.cc.algorithm = CC_NONE;
	r = marked(&cfg, 50 * 1024);
	rig_run(r, SIM_MS);
	assert_int_equal(counter(r, RIG_A, "rp_cnp_handled"), 0);
	assert_true(counter(r, RIG_A, "rp_cnp_ignored") >= 1);
	assert_int_equal(result(r, 5).cc_rate_bps, 0);
	end(r);
}

// The sender pauses class 3: ACKs wait, CNPs do not. It pauses class 6: CNPs wait.
static void only_its_own_class_stops_a_cnp(void **state)
{
	struct nic_config cfg = dcqcn();
	struct rig *r = marked(&cfg, 1024);
	unsigned first;

	nic_pause_storm(r->nic[RIG_A], 0, 1 << 3, 100 * SIM_US);
	rig_run(r, 50 * SIM_US);
	assert_int_equal(cnps_seen(&first), 1);
	assert_int_equal(counter(r, RIG_B, "acks_sent"), 0);
	rig_run(r, SIM_MS);
	assert_int_equal(counter(r, RIG_B, "acks_sent"), 1);
	end(r);

	r = marked(&cfg, 1024);
	nic_pause_storm(r->nic[RIG_A], 0, 1 << CNP_PRIO, 100 * SIM_US);
	rig_run(r, 50 * SIM_US);
	assert_int_equal(cnps_seen(&first), 0);
	assert_int_equal(counter(r, RIG_B, "acks_sent"), 1);
	rig_run(r, SIM_MS);
	assert_int_equal(cnps_seen(&first), 1);
	end(r);
}

// The data of a READ comes from the responder: it gets the CNPs and slows down.
static void read_responses_are_controlled_at_the_responder(void **state)
{
	struct nic_config cfg = dcqcn();
	struct rig *r = tapped(&cfg);
	struct nic_flow_config flow = rig_flow(5, 100 * 1024);

	flow.op = WR_READ;
	r->on_frame = marking;
	flow.src_port = 0;
	assert_int_equal(nic_add_flow(r->nic[RIG_B], r->nic[RIG_A], &flow), 0);
	rig_start(r);
	rig_run(r, SIM_MS);
	struct nic_flow_result res;
	assert_int_equal(nic_flow_result(r->nic[RIG_B], 5, &res), 0);
	assert_true(res.done);
	assert_true(counter(r, RIG_A, "rp_cnp_handled") >= 1);
	assert_true(res.cc_min_rate_bps <= RIG_RATE / 2 + RIG_RATE / 100);
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cnp_is_complete_on_the_wire),
		cmocka_unit_test(cnps_are_spaced),
		cmocka_unit_test(a_cnp_paces_packet_by_packet),
		cmocka_unit_test(without_np_nothing_is_said_and_without_cc_nothing_heard),
		cmocka_unit_test(only_its_own_class_stops_a_cnp),
		cmocka_unit_test(read_responses_are_controlled_at_the_responder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
