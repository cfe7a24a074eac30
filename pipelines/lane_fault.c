/* SPDX-License-Identifier: BSD-3-Clause */
// Faults as a box in the wire, at its sending end.
//
//	sender --- lane (its wire time) --> [ rules | hold | bit errors ] --- propagation -->
// receiver
//
// A frame takes its time on the sender's wire whatever happens to it then. The box lets it through
// without delay (its last bit leaves at the instant it comes), in order, never two at once: a frame
// leaves at
//
//	max(when its last bit came or its time in the box is over, end of the frame before + own
//	wire time)
//
// so frames that come back from the hold push those behind them, by their own length and no more,
// as a middlebox with one output would. A duplicate takes wire time of its own, and holds the
// sender back for as long: a lane on which all is duplicated carries half.
//
// Held frames wait here in the order of their time, each with a timer of the sending node
// (NODE_TIMER_LANE), so they are as deterministic as all it does, and what leaves the box leaves
// after now, as the windows of the engine ask. A reordered frame leaves when so many later frames
// of its rule have passed, at the latest when its time is over. A link that goes down loses what is
// held.
//
// Every rule sees every frame as the sender sent it. Of what they say, a drop ends the frame and is
// the only one done; else all is done to it, of several times to wait the first.
//
// While held, frame.note is when it may leave, frame.cells how many frames may still pass it
// (HOLD_TIME: only time counts), frame.in_port the rule's index on this lane.

#include "pipelines/lane_fault.h"

#include <errno.h>
#include <stdlib.h>

#include "emu/core/observe.h"
#include "pipelines/lane_fault_frame.h"

#define HOLD_TIME       UINT16_MAX
#define RULE_EVENTS_MAX 64 // of a rule and lane; the rest is only counted
#define RULE_STREAM     (UINT64_C(0xfa017) << 40)
#define FEC_STREAM      (UINT64_C(0xfec) << 40)

struct lane_rule {
	struct fault_state st;
	uint64_t applied;
	uint32_t index;
	uint32_t n_held; // reordered frames that wait for others to pass
};

struct lane_fault {
	struct lane_hook hook; // first
	struct lane *lane;
	const struct endpoint_table *endpoints;
	struct frame *held, *last; // by note
	uint64_t n_held;
	uint64_t seed;
	struct fec fec;
	uint32_t n_rules;
	struct lane_rule rule[];
};

// What the rules say of a frame.
struct decision {
	struct lane_rule *hit[FAULT_ACTION_COUNT]; // the first of each kind
	struct lane_rule *first;
	struct fault_packet p;
};

static void applied(struct node *n, unsigned port, struct lane_rule *r, uint32_t psn)
{
	if (r->applied++ < RULE_EVENTS_MAX)
		node_event(n, port, EV_FAULT, r->index, psn);
}

// ---- out ---------------------------------------------------------------------------------------

static void leave(
	struct lane_fault *lf, struct node *n, unsigned port, struct frame *f, simtime_t ready)
{
	struct lane *l = lf->lane;
	simtime_t wire = lane_wire_time(l, frame_wire_bytes(f));
	simtime_t end = simtime_max(ready, lf->hook.free_at + wire);

	lf->hook.free_at = end;
	if (lf->fec.on) {
		uint64_t pos =
			((uint64_t)simtime_max(end - wire, 0) << BYTE_TIME_SHIFT) / l->byte_time;
		// The gap carries nothing that could be damaged.
		if (fec_damaged(&lf->fec, pos, frame_wire_bytes(f) - ETH_IFG_BYTES))
			f->flags |= FRAME_F_CORRUPT;
	}
	node_carry(n, port, f, end);
}

// ---- holding -----------------------------------------------------------------------------------

static void hold(struct lane_fault *lf, struct node *n, unsigned port, struct frame *f,
	struct lane_rule *r, simtime_t until)
{
	bool reorder = r->st.rule->action == FAULT_REORDER;
	struct frame **at = &lf->held;

	f->note = (uint64_t)until;
	f->cells = reorder ? (uint16_t)r->st.rule->packets : HOLD_TIME;
	f->in_port = (uint16_t)(r - lf->rule);
	r->n_held += reorder;
	if (lf->last != NULL && lf->last->note <= f->note)
		at = &lf->last->next; // as when all are delayed alike
	while (*at != NULL && (*at)->note <= f->note)
		at = &(*at)->next;
	f->next = *at;
	*at = f;
	if (f->next == NULL)
		lf->last = f;
	lf->n_held++;
	node_timer(n, until, NODE_TIMER_LANE, port);
}

static struct frame *unlink_held(struct lane_fault *lf, struct frame **at)
{
	struct frame *f = *at;

	*at = f->next;
	if (f == lf->last)
		lf->last = at == &lf->held ? NULL : container_of(at, struct frame, next);
	lf->n_held--;
	if (f->cells != HOLD_TIME)
		lf->rule[f->in_port].n_held--;
	f->note = 0;
	f->cells = 0;
	return f;
}

static void on_timer(struct lane_hook *h, struct node *n, unsigned port)
{
	struct lane_fault *lf = (struct lane_fault *)h;

	while (lf->held != NULL && (simtime_t)lf->held->note <= n->now)
		leave(lf, n, port, unlink_held(lf, &lf->held), n->now);
}

// A frame of the rules in `passed` has gone by: those that waited for it may follow.
static void let_follow(struct lane_fault *lf, struct node *n, unsigned port, uint64_t passed,
	const struct frame *self, simtime_t end)
{
	for (struct frame **at = &lf->held; *at != NULL;) {
		struct frame *f = *at;
		if (f == self || f->cells == HOLD_TIME || !(passed >> f->in_port & 1) ||
			--f->cells != 0)
			at = &f->next;
		else
			leave(lf, n, port, unlink_held(lf, at), end);
	}
}

static uint64_t count_held(const struct lane_hook *h)
{
	return ((const struct lane_fault *)h)->n_held;
}

static struct frame *take_held(struct lane_hook *h)
{
	struct lane_fault *lf = (struct lane_fault *)h;

	return lf->held != NULL ? unlink_held(lf, &lf->held) : NULL;
}

// ---- in ----------------------------------------------------------------------------------------

// Asks all rules; the rules that have frames waiting for this one to pass, as bits.
static uint64_t decide(
	struct lane_fault *lf, const struct frame *f, simtime_t start, struct decision *d)
{
	uint64_t passed = 0;

	*d = (struct decision){0};
	if (lf->n_rules == 0)
		return 0;
	d->p = lane_fault_look(lf->endpoints, f);
	d->p.at = start;
	for (uint32_t i = 0; i < lf->n_rules; i++) {
		struct lane_rule *r = &lf->rule[i];
		enum fault_answer answer = fault_see(&r->st, &d->p);

		if (answer == FAULT_MISS)
			continue;
		passed |= (uint64_t)(r->n_held != 0) << i;
		if (answer != FAULT_HIT)
			continue;
		enum fault_action action = r->st.rule->action;
		if (d->hit[action] == NULL)
			d->hit[action] = r;
		if (d->first == NULL || (action == FAULT_DROP && d->first != d->hit[FAULT_DROP]))
			d->first = d->hit[action];
	}
	return passed;
}

// Does to the frame's bytes what was decided. NULL: it is gone.
static struct frame *change(
	struct node *n, unsigned port, struct frame *f, const struct decision *d)
{
	struct lane_rule *r;
	bool done;

	if ((r = d->hit[FAULT_ECN]) != NULL && lane_fault_mark(f))
		applied(n, port, r, d->p.psn);
	if ((r = d->hit[FAULT_CORRUPT]) != NULL) {
		f = lane_fault_corrupt(n, port, f, &r->st.rng, &done);
		if (f == NULL)
			return NULL;
		applied(n, port, r, d->p.psn);
	}
	if ((r = d->hit[FAULT_TRUNCATE]) != NULL) {
		f = lane_fault_truncate(n, port, f, r->st.rule->length, &done);
		if (f == NULL)
			return NULL;
		if (done)
			applied(n, port, r, d->p.psn);
	}
	if ((r = d->hit[FAULT_FCS]) != NULL) {
		f->flags |= FRAME_F_CORRUPT;
		applied(n, port, r, d->p.psn);
	}
	return f;
}

static void send_copy(struct lane_fault *lf, struct node *n, unsigned port, struct frame *copy,
	struct lane_rule *r, uint32_t psn, simtime_t end)
{
	if (copy == NULL)
		return;
	applied(n, port, r, psn);
	leave(lf, n, port, copy, end);
	lf->lane->free_at = simtime_max(lf->lane->free_at, lf->hook.free_at);
}

static void on_send(struct lane_hook *h, struct node *n, unsigned port, struct frame *f,
	simtime_t start, simtime_t end, int what, uint64_t a, uint64_t b)
{
	struct lane_fault *lf = (struct lane_fault *)h;
	struct frame *copy = NULL, *waiting = NULL;
	struct decision d;
	uint64_t passed = decide(lf, f, start, &d);

	if (unlikely(d.first != NULL)) {
		what = OBS_FAULT;
		a = d.first->index;
		b = d.first->st.rule->action;
	}
	node_observe(n, port, OBSERVE_TX, f, start, (enum observe_what)what, a, b);
	if (d.hit[FAULT_DROP] != NULL) {
		applied(n, port, d.hit[FAULT_DROP], d.p.psn);
		node_lose(n, port, f, DROP_FAULT);
	} else if ((f = change(n, port, f, &d)) != NULL) {
		struct lane_rule *late =
			d.hit[FAULT_DELAY] != NULL ? d.hit[FAULT_DELAY] : d.hit[FAULT_REORDER];
		if (d.hit[FAULT_DUPLICATE] != NULL)
			copy = lane_fault_copy(n, port, f);
		if (late != NULL) {
			applied(n, port, late, d.p.psn);
			hold(lf, n, port, f, late, end + late->st.rule->delay);
			waiting = f;
		} else {
			leave(lf, n, port, f, end);
		}
		send_copy(lf, n, port, copy, d.hit[FAULT_DUPLICATE], d.p.psn, end);
	}
	if (unlikely(passed != 0))
		let_follow(lf, n, port, passed, waiting, end);
}

// ---- life --------------------------------------------------------------------------------------

int lane_fault_create(struct lane *l, const struct lane_fault_config *cfg)
{
	if (cfg->n_rules > 64)
		return -EINVAL;
	struct lane_fault *lf = calloc(1, sizeof(*lf) + cfg->n_rules * sizeof(lf->rule[0]));
	if (lf == NULL)
		return -ENOMEM;

	lf->hook = (struct lane_hook){
		.send = on_send, .timer = on_timer, .held = count_held, .take = take_held};
	lf->lane = l;
	lf->endpoints = cfg->endpoints;
	lf->seed = cfg->seed;
	l->hook = &lf->hook;
	lane_update(l);
	for (uint32_t i = 0; i < cfg->n_rules; i++) {
		const struct lane_fault_rule *r = &cfg->rules[i];
		uint64_t stream = RULE_STREAM ^ mix64((uint64_t)(r->index + 1) << 32 | l->id);
		int rc = fault_init(&lf->rule[i].st, r->rule, rng_stream(cfg->seed, stream));

		if (rc < 0) {
			lane_fault_destroy(l);
			return rc;
		}
		lf->rule[i].index = r->index;
		lf->n_rules++;
	}
	return 0;
}

void lane_fault_destroy(struct lane *l)
{
	struct lane_fault *lf = (struct lane_fault *)l->hook;

	if (lf == NULL)
		return;
	for (uint32_t i = 0; i < lf->n_rules; i++)
		fault_fini(&lf->rule[i].st);
	free(lf);
	l->hook = NULL;
	lane_update(l);
}

void lane_fault_set_ber(struct lane *l, enum fec_code code, double ber)
{
	struct lane_fault *lf = (struct lane_fault *)l->hook;

	fec_init(&lf->fec, code, ber, mix64(lf->seed ^ mix64(FEC_STREAM + l->id)));
}

bool lane_fault_result(const struct lane *l, uint32_t i, struct lane_fault_result *out)
{
	const struct lane_fault *lf = (const struct lane_fault *)l->hook;

	if (lf == NULL || i >= lf->n_rules)
		return false;
	*out = (struct lane_fault_result){
		.index = lf->rule[i].index,
		.matched = lf->rule[i].st.matched,
		.applied = lf->rule[i].applied,
		.unknown = lf->rule[i].st.unknown,
	};
	return true;
}
