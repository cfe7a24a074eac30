/* SPDX-License-Identifier: BSD-3-Clause */
// Which frames a fault rule picks, after Lumina (SIGCOMM 2023), where a fault is bound to (QP, PSN,
// ITER), and netem's loss models.
//
// A rule first *matches*: kind or opcode, source and destination, flow, priority, queue pair. Queue
// pairs of real endpoints have numbers nobody knows beforehand, so they are told by order: qp n is
// the n-th that appears on this lane among the frames that fit the rest of the rule. A queue pair
// here is one direction of one: source and destination address and destination QP.
//
// Of the matching frames it then *picks* one, some or all:
//
//	nth, every      counted per queue pair if the rule tells them apart, else all together
//	psn             n after the first PSN seen of the queue pair
//	packet          packet p of message m, both from 1: known from the first packets of messages
//	                (SEND or WRITE FIRST or ONLY, ...) as they pass for the first time
//	probability     a draw for each
//	Gilbert-Elliott (Elliott 1963; netem's `gemodel`) two states, a transition after each frame:
//
//	                  p: good -> bad, r: bad -> good, loss in bad 1-h, in good 1-k
//	                  stationary loss = (1-k) r/(p+r) + (1-h) p/(p+r);  h = 0, k = 1: p/(p+r)
//
//	                starting in the good state; the frame is judged by the state it finds
//
// `iter` narrows this to the iter-th time the same PSN passes: 1 is the first transmission, 2 the
// first repetition. (Lumina counts rounds of the whole connection, which is the same for go-back-N
// as long as one packet at a time is lost.) How often a PSN passed is kept for the newest
// FAULT_PSN_WINDOW PSNs of a queue pair, more than any sender's window here; older ones never
// match.
//
// Invariants: queue pairs, first PSNs and messages are noted from the start of the run, `from` or
// not, so that the binding does not depend on when a rule wakes; what nth and every count, and what
// is drawn, only between `from` and `until`. A rule sees what the sender sent, whatever other rules
// do to it: two rules can lose a packet and its repetition. All draws come from the state's own
// stream, a fixed number for each frame that comes that far.
//
// Simplified: a message whose first packet was lost before this lane is not counted.

#include "models/fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/psn.h"
#include "pcap/roce.h"

#define FAULT_PSN_WINDOW (1u << 14)
#define SENT_MAX         UINT8_MAX

static const struct {
	const char *name, *done;
} actions[] = {
#define X(id, name, done, help) [FAULT_##id] = {name, done},
	FAULT_ACTIONS(X)
#undef X
};

static const struct {
	const char *name, *help;
} kinds[] = {
#define X(id, name, help) [FAULT_KIND_##id] = {name, help},
	FAULT_KINDS(X)
#undef X
};

const char *fault_action_name(enum fault_action a)
{
	return a < FAULT_ACTION_COUNT ? actions[a].name : NULL;
}

const char *fault_action_done(enum fault_action a)
{
	return a < FAULT_ACTION_COUNT ? actions[a].done : NULL;
}

const char *fault_kind_name(enum fault_kind k)
{
	return k < FAULT_KIND_COUNT ? kinds[k].name : NULL;
}

const char *fault_kind_help(enum fault_kind k)
{
	return k < FAULT_KIND_COUNT ? kinds[k].help : NULL;
}

enum fault_kind fault_kind_of(uint8_t opcode, uint8_t syndrome)
{
	if (opcode == ROCE_OP_CNP)
		return FAULT_KIND_CNP;
	switch (opcode & 0x1f) {
	case ROCE_READ_REQUEST:
		return FAULT_KIND_READ_REQUEST;
	case ROCE_READ_RESP_FIRST:
	case ROCE_READ_RESP_MIDDLE:
	case ROCE_READ_RESP_LAST:
	case ROCE_READ_RESP_ONLY:
		return FAULT_KIND_READ_RESPONSE;
	case ROCE_CMP_SWAP:
	case ROCE_FETCH_ADD:
		return FAULT_KIND_ATOMIC;
	case ROCE_ATOMIC_ACK:
		return FAULT_KIND_ATOMIC_ACK;
	case ROCE_ACK:
		if ((syndrome & AETH_TYPE_MASK) == AETH_ACK)
			return FAULT_KIND_ACK;
		return (syndrome & AETH_TYPE_MASK) == AETH_RNR_NAK ? FAULT_KIND_RNR
								   : FAULT_KIND_NAK;
	case ROCE_SEND_LAST_INV:
	case ROCE_SEND_ONLY_INV:
		return FAULT_KIND_DATA;
	default:
		return (opcode & 0x1f) <= ROCE_WRITE_ONLY_IMM ? FAULT_KIND_DATA
							      : FAULT_KIND_OTHER_ROCE;
	}
}

static bool valid(const struct fault_rule *r)
{
	if (r->qp != FAULT_QP_EACH && r->qp > FAULT_QPS_MAX)
		return false;
	if (fault_needs_qp(r) && r->qp == FAULT_QP_ALL)
		return false;
	if ((r->pick == FAULT_NTH || r->pick == FAULT_EVERY) && r->n == 0)
		return false;
	return r->pick != FAULT_PACKET || (r->message != 0 && r->packet != 0);
}

int fault_init(struct fault_state *s, const struct fault_rule *rule, struct rng rng)
{
	*s = (struct fault_state){.rule = rule, .rng = rng};
	if (!valid(rule))
		return -EINVAL;
	s->cap_qps = rule->qp == FAULT_QP_ALL    ? 1
		     : rule->qp == FAULT_QP_EACH ? FAULT_QPS_MAX
						 : rule->qp;
	s->qps = calloc(s->cap_qps, sizeof(*s->qps));
	if (rule->iter != 0)
		s->sent = calloc(s->cap_qps, FAULT_PSN_WINDOW);
	if (s->qps == NULL || (rule->iter != 0 && s->sent == NULL)) {
		fault_fini(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; s->sent != NULL && i < s->cap_qps; i++)
		s->qps[i].sent = s->sent + (size_t)i * FAULT_PSN_WINDOW;
	return 0;
}

void fault_fini(struct fault_state *s)
{
	free(s->qps);
	free(s->sent);
	s->qps = NULL;
	s->sent = NULL;
}

static bool in_range(uint32_t first, uint32_t n, uint32_t x)
{
	return n == 0 || x - first < n;
}

static bool fits(const struct fault_rule *r, const struct fault_packet *p)
{
	return r->kinds >> p->kind & 1 &&
	       (r->opcode == FAULT_NO_OPCODE || r->opcode == p->opcode) &&
	       (r->flow == FAULT_ANY || r->flow == p->flow) &&
	       (r->qpn == FAULT_ANY || r->qpn == p->qpn) && (r->prios & p->prios) != 0 &&
	       in_range(r->src, r->n_src, p->src) && in_range(r->dst, r->n_dst, p->dst);
}

// The state of the frame's queue pair; NULL if the rule is not for it.
static struct fault_qp *find_qp(struct fault_state *s, const struct fault_packet *p)
{
	uint32_t qp = s->rule->qp;

	if (qp == FAULT_QP_ALL)
		return &s->qps[0];
	if (p->qp_key == 0)
		return NULL;
	for (uint32_t i = 0; i < s->n_qps; i++)
		if (s->qps[i].key == p->qp_key)
			return qp == FAULT_QP_EACH || i == qp - 1 ? &s->qps[i] : NULL;
	if (s->n_qps == s->cap_qps) {
		s->unknown += qp == FAULT_QP_EACH;
		return NULL;
	}
	struct fault_qp *q = &s->qps[s->n_qps++];
	q->key = p->qp_key;
	return qp == FAULT_QP_EACH || s->n_qps == qp ? q : NULL;
}

// Forgets how often PSNs up to `psn` were seen a window ago.
static void advance(struct fault_qp *q, uint32_t psn, int32_t ahead)
{
	if ((uint32_t)ahead >= FAULT_PSN_WINDOW)
		memset(q->sent, 0, FAULT_PSN_WINDOW);
	else
		for (int32_t i = 1; i <= ahead; i++)
			q->sent[(q->top + (uint32_t)i) % FAULT_PSN_WINDOW] = 0;
}

// Notes the frame; how often its PSN has passed, this time included (0: no longer known).
static unsigned note(const struct fault_rule *r, struct fault_qp *q, const struct fault_packet *p)
{
	int32_t ahead = psn_diff(p->psn, q->top);
	bool fresh = !q->started || ahead > 0;

	if (!q->started) {
		q->started = true;
		q->first_psn = p->psn;
	} else if (ahead > 0 && q->sent != NULL) {
		advance(q, p->psn, ahead);
	}
	if (fresh)
		q->top = p->psn;
	if (fresh && p->opens) {
		q->messages++;
		q->message_psn = p->psn;
		if (q->messages == r->message) {
			q->target = psn_add(p->psn, r->packet - 1);
			q->target_known = true;
		}
	}
	if (q->sent == NULL || (!fresh && (uint32_t)-ahead >= FAULT_PSN_WINDOW))
		return 0;
	uint8_t *sent = &q->sent[p->psn % FAULT_PSN_WINDOW];
	*sent = (uint8_t)(*sent + (*sent < SENT_MAX));
	return *sent;
}

static bool gilbert(struct fault_state *s)
{
	const struct fault_rule *r = s->rule;
	bool was_bad = s->bad;
	bool lost = rng_hit(&s->rng, was_bad ? r->loss_bad_q32 : r->loss_good_q32);

	if (rng_hit(&s->rng, was_bad ? r->r_q32 : r->p_q32))
		s->bad = !was_bad;
	return lost;
}

static bool picks(struct fault_state *s, struct fault_qp *q, const struct fault_packet *p)
{
	const struct fault_rule *r = s->rule;

	switch (r->pick) {
	case FAULT_ALL:
		return true;
	case FAULT_NTH:
		return ++q->n == r->n;
	case FAULT_EVERY:
		return ++q->n % r->n == 0;
	case FAULT_PSN:
		return p->psn == psn_add(q->first_psn, r->n);
	case FAULT_PACKET:
		return q->target_known && p->psn == q->target;
	case FAULT_PROBABILITY:
		return rng_hit(&s->rng, r->p_q32);
	case FAULT_GILBERT:
		return gilbert(s);
	}
	return false;
}

enum fault_answer fault_see(struct fault_state *s, const struct fault_packet *p)
{
	const struct fault_rule *r = s->rule;

	if (!fits(r, p))
		return FAULT_MISS;
	struct fault_qp *q = find_qp(s, p);
	if (q == NULL)
		return FAULT_MISS;
	unsigned times = note(r, q, p);
	if (p->at < r->from || p->at >= r->until)
		return FAULT_MISS;
	s->matched++;
	if ((r->iter != 0 && times != r->iter) || !picks(s, q, p))
		return FAULT_MATCH;
	if (r->count != 0 && s->picked == r->count)
		return FAULT_MATCH;
	s->picked++;
	return FAULT_HIT;
}
