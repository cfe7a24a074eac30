/* SPDX-License-Identifier: BSD-3-Clause */
// The built-in NIC and PFC: what it obeys, per priority and to the picosecond, and the storm it can
// make. The peer's PFC frames are sent by the tap between the two NICs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "nic_rig.h"

#define QUANTUM (512 * 10 * SIM_PS) // 512 bit times at 100 Gb/s: 5.12 ns

// A WRITE_ONLY or FIRST of 1024 bytes is 1122 byte times on the wire, a PFC frame 84.
#define FIRST_PS (1122 * RIG_BYTE)
#define PFC_PS   (84 * RIG_BYTE)

static simtime_t data_at[2][PRIO_COUNT][4096]; // arrival at the tap
static unsigned n_data[2][PRIO_COUNT];
static unsigned n_acks[2];

struct heard {
	struct pfc pfc;
	simtime_t at;
};
static struct heard heard[64];
static unsigned n_heard;

static bool record(struct rig *r, enum rig_side from, struct frame *f)
{
	struct pkt p;

	assert_int_equal(pkt_parse_head(frame_data(f), f->head_len, f->len, &p), PKT_OK);
	if (p.kind == PKT_PFC) {
		assert_int_equal(f->len, 60);
		heard[n_heard++] = (struct heard){pfc_parse(&p), r->tap.now};
	} else if (f->opcode == ROCE_ACK) {
		n_acks[from]++;
	} else {
		data_at[from][f->tc][n_data[from][f->tc]++] = r->tap.now;
	}
	return true;
}

// Two NICs with the tap; endless flows a -> b, one on each class of `classes`.
static struct rig *setup(uint8_t classes, uint8_t enabled, simtime_t response)
{
	struct nic_port_config ports[2] = {rig_port(RIG_A), rig_port(RIG_B)};
	struct nic_config cfg = nic_config_default();

	for (unsigned i = 0; i < 2; i++) {
		ports[i].pfc_enable = enabled;
		ports[i].pfc_response = response;
	}
	cfg.ports = ports;
	struct rig *r = rig_new(&cfg, true);
	r->on_frame = record;
	memset(n_data, 0, sizeof(n_data));
	memset(n_acks, 0, sizeof(n_acks));
	n_heard = 0;
	for (unsigned tc = 0; tc < PRIO_COUNT; tc++) {
		struct nic_flow_config flow = rig_flow(tc, 1024);
		if (!(classes >> tc & 1))
			continue;
		flow.messages = 0;
		flow.tc = (uint8_t)tc;
		assert_int_equal(nic_add_flow(r->nic[0], r->nic[1], &flow), 0);
	}
	rig_start(r);
	return r;
}

// The tap sends PFC to a side at r->now; its last bit arrives PFC_PS + RIG_DELAY later if the lane
// is idle, at the time returned.
static simtime_t say(struct rig *r, enum rig_side to, uint8_t classes, uint16_t quanta)
{
	struct frame *f = node_new_frame(&r->tap, to);
	uint16_t q[8] = {0};

	for (unsigned i = 0; i < 8; i++)
		q[i] = classes >> i & 1 ? quanta : 0;
	pfc_build(frame_data(f), (const uint8_t[6]){2, 0, 0, 0, 0, 9}, classes, q);
	f->kind = FRAME_CONTROL;
	f->len = f->head_len = 60;
	node_send(&r->tap, to, f);
	return r->lane[to == RIG_A ? 1 : 3].free_at + RIG_DELAY;
}

static void end(struct rig *r)
{
	char why[200];

	if (!rig_end(r, why, sizeof(why)))
		fail_msg("%s", why);
}

// When the frame seen at the tap had left a: its first bit.
static simtime_t left(simtime_t at)
{
	return at - RIG_DELAY - FIRST_PS;
}

// Last frame of a class that left before `t`, and the first that left at or after it.
static void around(unsigned tc, simtime_t t, simtime_t *before, simtime_t *after)
{
	*before = 0;
	*after = SIMTIME_NEVER;
	for (unsigned i = 0; i < n_data[RIG_A][tc]; i++) {
		simtime_t l = left(data_at[RIG_A][tc][i]);
		if (l < t)
			*before = l;
		else if (*after == SIMTIME_NEVER)
			*after = l;
	}
}

static unsigned count_between(unsigned tc, simtime_t from, simtime_t to)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_data[RIG_A][tc]; i++) {
		simtime_t l = left(data_at[RIG_A][tc][i]);
		n += l >= from && l < to;
	}
	return n;
}

static void xoff_stops_its_priority_only(void **state)
{
	struct rig *r = setup(1 << 3 | 1 << 4, 0xff, 0);

	rig_run(r, 10 * SIM_US);
	simtime_t off = say(r, RIG_A, 1 << 3, 65535);
	rig_run(r, 50 * SIM_US);
	simtime_t on = say(r, RIG_A, 1 << 3, 0);
	rig_run(r, 80 * SIM_US);

	assert_int_equal(count_between(3, off, on), 0);
	// Class 4 then has the whole line: a frame every 1122 byte times.
	assert_in_range(
		count_between(4, off, on), (on - off) / FIRST_PS - 1, (on - off) / FIRST_PS + 1);
	// Before and after they alternate.
	assert_in_range(count_between(3, 0, off) * 2, off / FIRST_PS - 3, off / FIRST_PS + 3);
	simtime_t before, after;
	around(3, on, &before, &after);
	assert_in_range(after - on, 0, 2 * FIRST_PS);
	assert_int_equal(r->nic[0]->ports[0].ctr->rx_pause[3], 2);
	assert_int_equal(r->nic[0]->ports[0].ctr->rx_pauses.duration[3], on - off);
	assert_int_equal(r->nic[0]->ports[0].ctr->rx_pauses.duration[4], 0);
	struct nic_flow_result res;
	nic_flow_result(r->nic[0], 3, &res);
	assert_int_equal(res.paused, on - off);
	nic_flow_result(r->nic[0], 4, &res);
	assert_int_equal(res.paused, 0);
	end(r);
}

static void a_pause_ends_by_itself_after_its_quanta(void **state)
{
	struct rig *r = setup(1 << 3, 0xff, 0);

	rig_run(r, 10 * SIM_US);
	simtime_t off = say(r, RIG_A, 1 << 3, 1000);
	rig_run(r, 80 * SIM_US);
	simtime_t before, after;
	around(3, off, &before, &after);
	assert_int_equal(after, off + 1000 * QUANTUM);
	assert_int_equal(r->nic[0]->ports[0].ctr->rx_pauses.duration[3], 1000 * QUANTUM);
	end(r);
}

static void a_refresh_extends_the_pause(void **state)
{
	struct rig *r = setup(1 << 3, 0xff, 0);
	simtime_t first = 0, last = 0;

	for (unsigned i = 0; i < 10; i++) { // each lasts 5.12 us, one every 4 us
		rig_run(r, (10 + 4 * i) * SIM_US);
		last = say(r, RIG_A, 1 << 3, 1000);
		first = i == 0 ? last : first;
	}
	rig_run(r, 100 * SIM_US);
	simtime_t before, after;
	around(3, first, &before, &after);
	assert_int_equal(after, last + 1000 * QUANTUM);
	end(r);
}

static void a_pause_takes_effect_after_the_response_time(void **state)
{
	struct rig *r = setup(1 << 3, 0xff, 500 * SIM_NS);

	rig_run(r, 10 * SIM_US);
	simtime_t off = say(r, RIG_A, 1 << 3, 65535) + 500 * SIM_NS;
	rig_run(r, 20 * SIM_US);
	simtime_t on = say(r, RIG_A, 1 << 3, 0) + 500 * SIM_NS;
	rig_run(r, 30 * SIM_US);
	simtime_t before, after;
	around(3, off, &before, &after);
	assert_in_range(before, off - FIRST_PS, off - 1); // it kept sending until then
	assert_int_equal(after, on);
	end(r);
}

static void pfc_for_a_priority_not_enabled_is_ignored(void **state)
{
	struct rig *r = setup(1 << 3, 0xf7, 0);

	rig_run(r, 10 * SIM_US);
	simtime_t off = say(r, RIG_A, 0xff, 65535);
	rig_run(r, 50 * SIM_US);
	assert_in_range(count_between(3, off, 40 * SIM_US), 300, 400);
	assert_int_equal(r->nic[0]->ports[0].ctr->rx_pause_ignored, 1);
	assert_int_equal(r->nic[0]->ports[0].ctr->rx_pause[3], 1);
	end(r);
}

static void global_pause_is_counted_and_not_obeyed(void **state)
{
	struct rig *r = setup(1 << 3, 0xff, 0);

	rig_run(r, 10 * SIM_US);
	struct frame *f = node_new_frame(&r->tap, 0);
	pause_build(frame_data(f), (const uint8_t[6]){2, 0, 0, 0, 0, 9}, 65535);
	f->kind = FRAME_CONTROL;
	f->len = f->head_len = 60;
	node_send(&r->tap, 0, f);
	rig_run(r, 50 * SIM_US);
	assert_in_range(count_between(3, 20 * SIM_US, 40 * SIM_US), 200, 300);
	assert_int_equal(r->nic[0]->ports[0].ctr->rx_global_pause, 1);
	end(r);
}

static void acknowledgements_wait_for_their_priority_and_merge(void **state)
{
	struct rig *r = setup(1 << 3, 0xff, 0);

	rig_run(r, 10 * SIM_US);
	simtime_t off = say(r, RIG_B, 1 << 3, 65535);
	rig_run(r, off + 3 * SIM_US); // ACKs on their way have passed
	unsigned before = n_acks[RIG_B];
	rig_run(r, 50 * SIM_US);
	assert_int_equal(n_acks[RIG_B], before);
	nic_flow_stop(r->nic[0], 3);
	rig_run(r, 60 * SIM_US);
	say(r, RIG_B, 1 << 3, 0);
	rig_run(r, 80 * SIM_US);
	assert_int_equal(n_acks[RIG_B], before + 1); // one for all that came meanwhile
	struct nic_flow_result res;
	nic_flow_result(r->nic[0], 3, &res);
	assert_int_equal(res.completed_messages, res.sent_packets);
	assert_int_equal(res.delivered_messages, res.sent_packets);
	end(r);
}

static void a_link_that_goes_down_forgets_pauses(void **state)
{
	struct rig *r = setup(1 << 3, 0xff, 0);

	rig_run(r, 10 * SIM_US);
	say(r, RIG_A, 1 << 3, 65535);
	rig_run(r, 20 * SIM_US);
	unsigned before = n_data[RIG_A][3];
	r->nic[0]->ops->link(r->nic[0], 0, false);
	rig_run(r, 30 * SIM_US);
	assert_int_equal(n_data[RIG_A][3], before); // down: nothing is sent
	r->nic[0]->ops->link(r->nic[0], 0, true);
	rig_run(r, 40 * SIM_US);
	assert_true(n_data[RIG_A][3] > before + 50);
	end(r);
}

// ---- storms -----------------------------------------------------------------------------------

static void a_storm_lasts_exactly_its_time(void **state)
{
	struct rig *r = setup(0, 0xff, 0);

	rig_run(r, 10 * SIM_US);
	assert_int_equal(nic_pause_storm(r->nic[1], 0, 1 << 3, 1000 * SIM_US), 0);
	rig_run(r, 2 * SIM_MS);
	// XOFF lasts 65535 quanta = 335.5392 us and is repeated at half of that: at 10 us + k x
	// 167.7696 us for k = 0..5, then XON at 1010 us.
	assert_int_equal(n_heard, 7);
	for (unsigned k = 0; k < 7; k++) {
		simtime_t sent = k < 6 ? 10 * SIM_US + k * (65535 * QUANTUM / 2) : 1010 * SIM_US;
		assert_int_equal(heard[k].at, sent + PFC_PS + RIG_DELAY);
		assert_int_equal(heard[k].pfc.classes, 1 << 3);
		assert_int_equal(heard[k].pfc.quanta[3], k < 6 ? 65535 : 0);
	}
	const struct port_counters *c = r->nic[1]->ports[0].ctr;
	assert_int_equal(c->tx_pause[3], 7);
	assert_int_equal(c->tx_pauses.duration[3], 1000 * SIM_US);
	// The other NIC was paused for as long.
	assert_int_equal(r->nic[0]->ports[0].ctr->rx_pauses.duration[3], 1000 * SIM_US);
	end(r);
}

static void a_second_storm_replaces_the_first(void **state)
{
	struct rig *r = setup(0, 0xff, 0);

	nic_pause_storm(r->nic[1], 0, 1 << 3, 100 * SIM_US);
	rig_run(r, 50 * SIM_US);
	nic_pause_storm(r->nic[1], 0, 1 << 4 | 1 << 5, 100 * SIM_US);
	rig_run(r, SIM_MS);
	assert_int_equal(n_heard, 3);
	assert_int_equal(heard[1].at, 50 * SIM_US + PFC_PS + RIG_DELAY);
	assert_int_equal(heard[1].pfc.classes, 1 << 3 | 1 << 4 | 1 << 5);
	assert_int_equal(heard[1].pfc.quanta[3], 0);
	assert_int_equal(heard[1].pfc.quanta[4], 65535);
	assert_int_equal(heard[2].at, 150 * SIM_US + PFC_PS + RIG_DELAY);
	assert_int_equal(heard[2].pfc.classes, 1 << 4 | 1 << 5);
	assert_int_equal(heard[2].pfc.quanta[5], 0);
	end(r);
}

static void a_storm_sends_between_data_frames_and_is_heard_while_paused(void **state)
{
	struct rig *r = setup(1 << 3, 0xff, 0);

	rig_run(r, 10 * SIM_US);
	say(r, RIG_A, 1 << 3, 65535); // a is paused itself
	rig_run(r, 20 * SIM_US);
	nic_pause_storm(r->nic[0], 0, 1 << 3, 10 * SIM_US);
	rig_run(r, 25 * SIM_US);
	assert_int_equal(n_heard, 1);
	say(r, RIG_A, 1 << 3, 0);
	rig_run(r, 60 * SIM_US);
	assert_int_equal(n_heard, 2);
	// XON waits for at most the data frame on the wire.
	assert_in_range(heard[1].at, 30 * SIM_US + PFC_PS + RIG_DELAY,
		30 * SIM_US + FIRST_PS + PFC_PS + RIG_DELAY);
	end(r);
}

static void a_storm_without_end_goes_on(void **state)
{
	struct rig *r = setup(0, 0xff, 0);

	nic_pause_storm(r->nic[1], 0, 1 << 3, SIMTIME_NEVER);
	rig_run(r, 5 * SIM_MS);
	assert_int_equal(n_heard, 5 * SIM_MS / (65535 * QUANTUM / 2) + 1);
	assert_int_equal(nic_pause_storm(r->nic[1], 1, 1 << 3, SIM_MS), -EINVAL);
	assert_int_equal(nic_pause_storm(r->nic[1], 0, 0, SIM_MS), -EINVAL);
	assert_int_equal(nic_pause_storm(r->nic[1], 0, 1, 0), -EINVAL);
	end(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xoff_stops_its_priority_only),
		cmocka_unit_test(a_pause_ends_by_itself_after_its_quanta),
		cmocka_unit_test(a_refresh_extends_the_pause),
		cmocka_unit_test(a_pause_takes_effect_after_the_response_time),
		cmocka_unit_test(pfc_for_a_priority_not_enabled_is_ignored),
		cmocka_unit_test(global_pause_is_counted_and_not_obeyed),
		cmocka_unit_test(acknowledgements_wait_for_their_priority_and_merge),
		cmocka_unit_test(a_link_that_goes_down_forgets_pauses),
		cmocka_unit_test(a_storm_lasts_exactly_its_time),
		cmocka_unit_test(a_second_storm_replaces_the_first),
		cmocka_unit_test(a_storm_sends_between_data_frames_and_is_heard_while_paused),
		cmocka_unit_test(a_storm_without_end_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
