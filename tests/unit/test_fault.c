/* SPDX-License-Identifier: BSD-3-Clause */
// Which packets a rule picks, packet by packet.

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "models/fault.h"
#include "pcap/psn.h"
#include "pcap/roce.h"

#define A UINT64_C(0xa)
#define B UINT64_C(0xb)

static struct fault_rule any_rule(void)
{
	return (struct fault_rule){
		.action = FAULT_DROP,
		.kinds = FAULT_KIND_ANY,
		.opcode = FAULT_NO_OPCODE,
		.qpn = FAULT_ANY,
		.flow = FAULT_ANY,
		.prios = 0xff,
		.until = SIMTIME_NEVER,
	};
}

static struct fault_state state_of(const struct fault_rule *r)
{
	struct fault_state s;

	assert_int_equal(fault_init(&s, r, rng_stream(1, 2)), 0);
	return s;
}

static enum fault_answer write_packet(struct fault_state *s, uint64_t qp, uint32_t psn, bool opens)
{
	struct fault_packet p = {.qp_key = qp,
		.psn = psn,
		.kind = FAULT_KIND_DATA,
		.opcode = opens ? ROCE_WRITE_FIRST : ROCE_WRITE_MIDDLE,
		.src = 1,
		.dst = 2,
		.flow = 7,
		.prios = 1 << 3,
		.opens = opens};

	return fault_see(s, &p);
}

static bool hits(struct fault_state *s, uint64_t qp, uint32_t psn)
{
	return write_packet(s, qp, psn, false) == FAULT_HIT;
}

static void nth_picks_one_frame_of_the_stream(void **state)
{
	struct fault_rule r = any_rule();

	r.pick = FAULT_NTH;
	r.n = 3;
	struct fault_state s = state_of(&r);
	for (uint32_t i = 1; i <= 10; i++)
		assert_int_equal(hits(&s, i % 2 ? A : B, i), i == 3);
	assert_int_equal(s.matched, 10);
	assert_int_equal(s.picked, 1);
	fault_fini(&s);
}

static void every_counts_each_queue_pair_by_itself_if_asked(void **state)
{
	struct fault_rule r = any_rule();
	unsigned a = 0, b = 0;

	r.pick = FAULT_EVERY;
	r.n = 4;
	r.qp = FAULT_QP_EACH;
	struct fault_state s = state_of(&r);
	// 3 of B between the packets of A: together the 4th, 8th, ... would all be A's.
	for (uint32_t i = 0; i < 12; i++) {
		a += hits(&s, A, i);
		b += hits(&s, B, 3 * i) + hits(&s, B, 3 * i + 1) + hits(&s, B, 3 * i + 2);
	}
	assert_int_equal(a, 3); // 12 / 4
	assert_int_equal(b, 9); // 36 / 4
	fault_fini(&s);
}

static void queue_pairs_are_told_by_order_of_appearance(void **state)
{
	struct fault_rule r = any_rule();

	r.qp = 2;
	struct fault_state s = state_of(&r);
	assert_int_equal(write_packet(&s, B, 5, true), FAULT_MISS); // the first
	assert_int_equal(write_packet(&s, A, 9, true), FAULT_HIT);  // the second
	assert_int_equal(write_packet(&s, 0xc, 1, true), FAULT_MISS);
	assert_int_equal(write_packet(&s, B, 6, true), FAULT_MISS);
	assert_int_equal(write_packet(&s, A, 10, true), FAULT_HIT);
	assert_int_equal(s.matched, 2);
	fault_fini(&s);
}

static void a_psn_is_counted_from_the_queue_pairs_first_across_the_wrap(void **state)
{
	struct fault_rule r = any_rule();

	r.pick = FAULT_PSN;
	r.n = 4;
	r.qp = 1;
	struct fault_state s = state_of(&r);
	for (uint32_t i = 0; i < 8; i++) // 0xfffffe, 0xffffff, 0, 1, 2: the fifth is PSN 2
		assert_int_equal(hits(&s, A, psn_add(0xfffffe, i)), i == 4);
	fault_fini(&s);
}

static void iter_tells_first_transmissions_from_repetitions(void **state)
{
	struct fault_rule first = any_rule();

	first.pick = FAULT_PSN;
	first.n = 4;
	first.qp = 1;
	first.iter = 1;
	struct fault_rule second = first;
	second.iter = 2;
	struct fault_state s1 = state_of(&first), s2 = state_of(&second);
	unsigned n1[3] = {0}, n2[3] = {0};
	// 0..9, back to 4, again back to 4: PSN 4 passes three times.
	for (unsigned round = 0; round < 3; round++)
		for (uint32_t psn = round == 0 ? 0 : 4; psn < 10; psn++) {
			n1[round] += hits(&s1, A, psn);
			n2[round] += hits(&s2, A, psn);
		}
	assert_int_equal(n1[0], 1);
	assert_int_equal(n1[1] + n1[2], 0);
	assert_int_equal(n2[1], 1);
	assert_int_equal(n2[0] + n2[2], 0);
	fault_fini(&s1);
	fault_fini(&s2);
}

static void iter_one_with_all_picks_every_psn_once(void **state)
{
	struct fault_rule r = any_rule();
	unsigned n = 0;

	r.iter = 1;
	r.qp = FAULT_QP_EACH;
	struct fault_state s = state_of(&r);
	// Three passes over 40,000 PSNs (beyond the window of 16,384), going back 100 each 1,000.
	for (uint32_t psn = 0; psn < 40000; psn++) {
		n += hits(&s, A, psn);
		if (psn % 1000 == 999)
			for (uint32_t back = psn - 99; back <= psn; back++)
				assert_false(hits(&s, A, back));
	}
	assert_int_equal(n, 40000);
	assert_int_equal(s.matched, 44000);
	// A PSN that old could be its first or tenth time: not known, so not picked.
	assert_false(hits(&s, A, 40000 - 16385));
	fault_fini(&s);
}

static void a_packet_of_a_message_is_found_again_when_repeated(void **state)
{
	struct fault_rule r = any_rule();

	r.pick = FAULT_PACKET;
	r.message = 3;
	r.packet = 2;
	r.qp = 1;
	struct fault_state s = state_of(&r);
	// Messages of 4 packets from PSN 100: message 3 begins at 108, its packet 2 is 109.
	for (uint32_t psn = 100; psn < 116; psn++)
		assert_int_equal(write_packet(&s, A, psn, psn % 4 == 0) == FAULT_HIT, psn == 109);
	// Go-back-N over all of it: the repeated first packets are no new messages.
	for (uint32_t psn = 100; psn < 116; psn++)
		assert_int_equal(write_packet(&s, A, psn, psn % 4 == 0) == FAULT_HIT, psn == 109);
	fault_fini(&s);
}

static void only_frames_that_fit_are_matched(void **state)
{
	struct fault_rule rules[] = {
		any_rule(), any_rule(), any_rule(), any_rule(), any_rule(), any_rule(), any_rule()};

	rules[0].kinds = 1u << FAULT_KIND_ACK;
	rules[1].opcode = ROCE_WRITE_LAST;
	rules[2].flow = 8;
	rules[3].prios = 1 << 4;
	rules[4].src = 2;
	rules[4].n_src = 3;
	rules[5].dst = 0;
	rules[5].n_dst = 2;
	rules[6].qpn = 17;
	for (unsigned i = 0; i < 7; i++) {
		struct fault_state s = state_of(&rules[i]);
		assert_int_equal(write_packet(&s, A, 1, false), FAULT_MISS);
		fault_fini(&s);
	}
	struct fault_rule fits = any_rule();
	fits.kinds = 1u << FAULT_KIND_DATA;
	fits.opcode = ROCE_WRITE_MIDDLE;
	fits.flow = 7;
	fits.prios = 1 << 3;
	fits.src = 0;
	fits.n_src = 2;
	fits.dst = 2;
	fits.n_dst = 1;
	fits.qpn = 0;
	struct fault_state s = state_of(&fits);
	assert_int_equal(write_packet(&s, A, 1, false), FAULT_HIT);
	fault_fini(&s);
}

static void count_and_times_bound_what_is_picked(void **state)
{
	struct fault_rule r = any_rule();

	r.count = 2;
	r.from = 10;
	r.until = 20;
	r.qp = 1;
	r.pick = FAULT_ALL;
	struct fault_state s = state_of(&r);
	for (simtime_t t = 0; t < 30; t++) {
		struct fault_packet p = {.at = t,
			.qp_key = A,
			.psn = (uint32_t)t,
			.prios = 1,
			.kind = FAULT_KIND_DATA};
		assert_int_equal(fault_see(&s, &p) == FAULT_HIT, t == 10 || t == 11);
	}
	assert_int_equal(s.matched, 10);         // 10..19
	assert_int_equal(s.qps[0].first_psn, 0); // bound from the start
	fault_fini(&s);
}

static void probability_hits_as_often_as_it_says(void **state)
{
	struct fault_rule r = any_rule();
	unsigned n = 0;

	r.pick = FAULT_PROBABILITY;
	r.p_q32 = UINT64_C(1) << 30; // 1/4
	struct fault_state s = state_of(&r);
	for (uint32_t i = 0; i < 40000; i++)
		n += hits(&s, A, i);
	// Binomial: mean 10000, sigma = sqrt(40000 * 1/4 * 3/4) = 86.6; 5 sigma
	assert_in_range(n, 10000 - 433, 10000 + 433);
	fault_fini(&s);
}

static uint64_t q32(double p)
{
	return (uint64_t)(p * 4294967296.0 + 0.5);
}

static void gilbert_elliott_loses_its_stationary_share(void **state)
{
	static const struct {
		double p, r, h, k;
	} chains[] = {{0.01, 0.2, 0, 1}, {0.05, 0.3, 0.5, 0.99}, {0.002, 0.05, 0, 1}};

	for (unsigned i = 0; i < 3; i++) {
		double p = chains[i].p, r = chains[i].r, h = chains[i].h, k = chains[i].k;
		struct fault_rule rule = any_rule();
		double n = 400000, lost = 0;

		rule.pick = FAULT_GILBERT;
		rule.p_q32 = q32(p);
		rule.r_q32 = q32(r);
		rule.loss_bad_q32 = q32(1 - h);
		rule.loss_good_q32 = q32(1 - k);
		struct fault_state s = state_of(&rule);
		for (uint32_t psn = 0; psn < n; psn++)
			lost += hits(&s, A, psn);
		double want = (1 - k) * r / (p + r) + (1 - h) * p / (p + r);
		// The binomial standard error, widened for the chain's memory: with the correlation
		// l = 1 - p - r of one frame to the next the variance of a mean grows by
		// (1 + l) / (1 - l) at most. 5 sigma.
		double l = 1 - p - r;
		double sigma = sqrt(want * (1 - want) / n * (1 + l) / (1 - l));
		assert_true(fabs(lost / n - want) < 5 * sigma);
		fault_fini(&s);
	}
}

static void gilbert_losses_come_in_bursts_of_mean_one_over_r(void **state)
{
	struct fault_rule rule = any_rule();
	unsigned bursts = 0, lost = 0;
	bool before = false;

	rule.pick = FAULT_GILBERT;
	rule.p_q32 = q32(0.01);
	rule.r_q32 = q32(0.25);
	rule.loss_bad_q32 = UINT64_C(1) << 32;
	struct fault_state s = state_of(&rule);
	for (uint32_t psn = 0; psn < 400000; psn++) {
		bool now = hits(&s, A, psn);
		bursts += now && !before;
		lost += now;
		before = now;
	}
	// Geometric with mean 4, sigma sqrt(1 - r) / r = 3.46; over about 400000/104 = 3846 bursts
	// the mean's sigma is 0.056; 5 sigma.
	assert_true(fabs((double)lost / bursts - 4) < 0.28);
	fault_fini(&s);
}

static void kinds_follow_opcode_and_syndrome(void **state)
{
	assert_int_equal(fault_kind_of(ROCE_RC | ROCE_WRITE_LAST_IMM, 0), FAULT_KIND_DATA);
	assert_int_equal(fault_kind_of(ROCE_UC | ROCE_SEND_ONLY, 0), FAULT_KIND_DATA);
	assert_int_equal(fault_kind_of(ROCE_SEND_LAST_INV, 0), FAULT_KIND_DATA);
	assert_int_equal(fault_kind_of(ROCE_READ_RESP_MIDDLE, 0), FAULT_KIND_READ_RESPONSE);
	assert_int_equal(fault_kind_of(ROCE_ACK, 0x1f), FAULT_KIND_ACK);
	assert_int_equal(fault_kind_of(ROCE_ACK, 0x60), FAULT_KIND_NAK);
	assert_int_equal(fault_kind_of(ROCE_ACK, 0x2e), FAULT_KIND_RNR);
	assert_int_equal(fault_kind_of(ROCE_OP_CNP, 0), FAULT_KIND_CNP);
	assert_int_equal(fault_kind_of(ROCE_FETCH_ADD, 0), FAULT_KIND_ATOMIC);
}

static void rules_that_contradict_themselves_are_refused(void **state)
{
	struct fault_rule r[4] = {any_rule(), any_rule(), any_rule(), any_rule()};
	struct fault_state s;

	r[0].pick = FAULT_PSN; // of which queue pair?
	r[1].pick = FAULT_NTH; // n is 0
	r[2].qp = FAULT_QPS_MAX + 1;
	r[3].pick = FAULT_PACKET;
	r[3].qp = 1; // message 0
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(fault_init(&s, &r[i], rng_stream(1, 1)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nth_picks_one_frame_of_the_stream),
		cmocka_unit_test(every_counts_each_queue_pair_by_itself_if_asked),
		cmocka_unit_test(queue_pairs_are_told_by_order_of_appearance),
		cmocka_unit_test(a_psn_is_counted_from_the_queue_pairs_first_across_the_wrap),
		cmocka_unit_test(iter_tells_first_transmissions_from_repetitions),
		cmocka_unit_test(iter_one_with_all_picks_every_psn_once),
		cmocka_unit_test(a_packet_of_a_message_is_found_again_when_repeated),
		cmocka_unit_test(only_frames_that_fit_are_matched),
		cmocka_unit_test(count_and_times_bound_what_is_picked),
		cmocka_unit_test(probability_hits_as_often_as_it_says),
		cmocka_unit_test(gilbert_elliott_loses_its_stationary_share),
		cmocka_unit_test(gilbert_losses_come_in_bursts_of_mean_one_over_r),
		cmocka_unit_test(kinds_follow_opcode_and_syndrome),
		cmocka_unit_test(rules_that_contradict_themselves_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
