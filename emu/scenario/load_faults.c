/* SPDX-License-Identifier: BSD-3-Clause */

// Fault rules, of `faults:` and of events: what models/fault.h calls a rule, with names resolved,
// and the lanes it is on.

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "emu/scenario/loader.h"
#include "pcap/roce.h"

#define NAME_BYTES 32

bool read_fault_prio(struct loader *l, struct ynode *v, void *object)
{
	return read_prio_mask(l, v, &((struct fault_in *)object)->r.prios);
}

bool read_fault_qp(struct loader *l, struct ynode *v, void *object)
{
	struct fault_in *in = object;
	int64_t n;

	if (v->kind == Y_SCALAR && strcmp(v->text, "each") == 0) {
		in->r.qp = FAULT_QP_EACH;
		return true;
	}
	if (!schema_number(l, v, Q_COUNT, 1, FAULT_QPS_MAX, &n))
		return false;
	in->r.qp = (uint32_t)n;
	return true;
}

// ---- op ----------------------------------------------------------------------------------------

static int kind_by_name(const char *name)
{
	for (int i = 0; i < FAULT_KIND_COUNT; i++)
		if (strcmp(name, fault_kind_name((enum fault_kind)i)) == 0)
			return i;
	return -1;
}

// "RC_WRITE_LAST": as in pcap/roce.h, with one underscore for the blank.
static int opcode_by_name(const char *name)
{
	char text[NAME_BYTES];

	for (int op = 0; op < 256; op++) {
		if (roce_opcodes[op].name == NULL)
			continue;
		snprintf(text, sizeof(text), "%s", roce_opcodes[op].name);
		for (char *c = text; *c != '\0'; c++)
			*c = *c == ' ' ? '_' : *c;
		if (strcasecmp(text, name) == 0)
			return op;
	}
	return -1;
}

static void bad_op(struct loader *l, const struct ynode *v)
{
	char names[256] = "";
	size_t at = 0;

	for (int i = 0; i < FAULT_KIND_COUNT && at < sizeof(names); i++)
		at += (size_t)snprintf(
			names + at, sizeof(names) - at, " %s", fault_kind_name((enum fault_kind)i));
	diag_at(&l->d, v,
		"'%.40s' is no kind of frame, expected any, an opcode such as RC_WRITE_LAST, or of"
		"%s",
		v->kind == Y_SCALAR ? v->text : "", names);
}

static bool read_op(struct loader *l, struct ynode *v, struct fault_rule *r)
{
	r->kinds = 0;
	for (uint32_t i = 0; i < list_count(v); i++) {
		const struct ynode *item = list_item(v, i);
		const char *name = item->kind == Y_SCALAR ? item->text : "";
		int kind = kind_by_name(name);

		if (kind >= 0) {
			r->kinds |= UINT32_C(1) << kind;
		} else if (strcmp(name, "any") == 0) {
			r->kinds = FAULT_KIND_ANY;
		} else if (list_count(v) == 1 && opcode_by_name(name) >= 0) {
			r->kinds =
				FAULT_KIND_ANY & ~(1u << FAULT_KIND_PFC | 1u << FAULT_KIND_OTHER);
			r->opcode = opcode_by_name(name);
		} else {
			bad_op(l, item);
			return false;
		}
	}
	if (r->kinds == 0)
		diag_at(&l->d, v, "is empty, expected at least one kind of frame");
	return r->kinds != 0;
}

// ---- whom --------------------------------------------------------------------------------------

static bool read_host(struct loader *l, const struct ynode *v, uint32_t *first, uint32_t *n)
{
	uint32_t e = v != NULL ? ref_endpoint(l, v) : SC_NONE;

	if (v == NULL)
		return true;
	if (e == SC_NONE)
		return false;
	bool one = strchr(v->text, ':') != NULL;
	uint32_t node = l->s->endpoints[e].node;
	*first = one ? e : sc_host_of(l->s, node)->first_endpoint;
	*n = one ? 1 : l->s->nodes[node].n_ports;
	return true;
}

static bool read_flow(struct loader *l, const struct ynode *v, struct fault_rule *r)
{
	if (v == NULL)
		return true;
	r->flow = v->kind == Y_SCALAR ? names_find(&l->flow_names, v->text) : SC_NONE;
	if (r->flow != SC_NONE)
		return true;
	diag_at(&l->d, v,
		"no flow '%.60s', expected a flow of workloads: (a workload of several "
		"flows names them NAME-SRC-DST)",
		v->kind == Y_SCALAR ? v->text : "");
	return false;
}

// ---- which -------------------------------------------------------------------------------------

static bool read_gilbert(struct loader *l, struct ynode *v, struct fault_rule *r)
{
	struct gilbert_in in = {0};
	const uint64_t one = UINT64_C(1) << 32;

	schema_defaults(&sec_gilbert, &in);
	if (!schema_apply(l, &sec_gilbert, v, &in) || !schema_require(l, &sec_gilbert, v))
		return false;
	r->pick = FAULT_GILBERT;
	r->p_q32 = in.p;
	r->r_q32 = in.r;
	r->loss_bad_q32 = one - in.h;
	r->loss_good_q32 = one - in.k;
	return true;
}

static bool read_pick(struct loader *l, struct ynode *v, struct fault_in *in)
{
	struct fault_rule *r = &in->r;
	const struct {
		const char *key;
		enum fault_pick pick;
		uint64_t n;
	} picks[] = {{"nth", FAULT_NTH, in->nth}, {"every", FAULT_EVERY, in->every},
		{"psn", FAULT_PSN, in->psn}, {"packet", FAULT_PACKET, 0},
		{"probability", FAULT_PROBABILITY, 0}, {"gilbert", FAULT_GILBERT, 0}};
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(picks) / sizeof(picks[0]); i++) {
		if (ynode_get(v, picks[i].key) == NULL)
			continue;
		r->pick = picks[i].pick;
		r->n = picks[i].n;
		n++;
	}
	if (n > 1) {
		diag_at(&l->d, v,
			"picks frames in %u ways, expected at most one of nth, every, psn, "
			"packet, probability, gilbert",
			n);
		return false;
	}
	if (ynode_get(v, "message") != NULL && r->pick != FAULT_PACKET) {
		diag_key(&l->d, v, "message", "needs packet, which one of the message");
		return false;
	}
	r->message = in->message;
	r->packet = in->packet;
	r->p_q32 = in->probability;
	if (in->gilbert != NULL && !read_gilbert(l, in->gilbert, r))
		return false;
	if (fault_needs_qp(r) && r->qp == FAULT_QP_ALL)
		r->qp = FAULT_QP_EACH;
	return true;
}

static bool check_action(struct loader *l, struct ynode *v, const struct fault_rule *r)
{
	static const struct {
		const char *key;
		uint32_t actions; // that have it
		uint32_t needed;  // that must have it
	} keys[] = {{"delay", 1u << FAULT_DELAY | 1u << FAULT_REORDER, 1u << FAULT_DELAY},
		{"packets", 1u << FAULT_REORDER, 0},
		{"length", 1u << FAULT_TRUNCATE, 1u << FAULT_TRUNCATE}};
	const char *action = fault_action_name(r->action);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		bool given = ynode_get(v, keys[i].key) != NULL;
		if (given && !(keys[i].actions >> r->action & 1)) {
			diag_key(&l->d, v, keys[i].key, "means nothing to action %s", action);
			return false;
		}
		if (!given && keys[i].needed >> r->action & 1) {
			diag_at(&l->d, v, "action %s needs %s", action, keys[i].key);
			return false;
		}
	}
	if (r->prios == 0) {
		diag_key(&l->d, v, "priority", "is empty, expected at least one priority");
		return false;
	}
	if (r->from < r->until)
		return true;
	diag_key(&l->d, v, "until", "is not after the rule's start");
	return false;
}

// ---- where -------------------------------------------------------------------------------------

static uint32_t rules_on(const struct scenario *s, const struct sc_end *lane)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_faults; i++)
		for (uint32_t k = 0; k < s->faults[i].n_lanes; k++)
			n += s->faults[i].lanes[k].node == lane->node &&
			     s->faults[i].lanes[k].port == lane->port;
	return n;
}

static bool read_lanes(struct loader *l, const struct lanes_in *in, struct sc_fault *f)
{
	struct link_ref *refs;
	struct sc_end *lanes = NULL;
	uint32_t n;

	if (!ref_links_from(l, in->link, &refs, &n))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t ends = ref_ends(&refs[i], in->dir);
		for (unsigned e = 0; e < 2; e++) {
			if (!(ends >> e & 1))
				continue;
			lanes = arena_grow(l->a, lanes, f->n_lanes, sizeof(*lanes));
			lanes[f->n_lanes] = l->s->links[refs[i].link].end[e];
			if (rules_on(l->s, &lanes[f->n_lanes++]) == FAULT_RULES_MAX) {
				diag_at(&l->d, in->link, "has more than %u rules in one direction",
					FAULT_RULES_MAX);
				return false;
			}
		}
	}
	f->lanes = lanes;
	return true;
}

// ---- the rule ----------------------------------------------------------------------------------

static bool push_fault(struct loader *l, const struct ynode *v, struct sc_fault *f)
{
	struct scenario *s = l->s;

	if (s->n_faults == EVENTS_MAX) {
		diag_at(&l->d, v, "more than %u fault rules", EVENTS_MAX);
		return false;
	}
	if (f->name == NULL)
		f->name = arena_printf(l->a, "fault%u", s->n_faults + 1);
	if (!names_add(&l->fault_names, f->name, s->n_faults)) {
		diag_at(&l->d, v, "a fault rule is named '%.60s' already", f->name);
		return false;
	}
	s->faults = arena_grow(l->a, s->faults, s->n_faults, sizeof(*s->faults));
	s->faults[s->n_faults++] = *f;
	return true;
}

bool load_fault(struct loader *l, struct ynode *v, simtime_t from)
{
	struct fault_in in = {0};
	struct sc_fault f = {.pos = pos_of(v)};

	schema_defaults(&sec_fault, &in);
	in.r.kinds = FAULT_KIND_ANY;
	in.r.opcode = FAULT_NO_OPCODE;
	in.r.flow = in.r.qpn = FAULT_ANY;
	in.r.prios = 0xff;
	if (!schema_apply(l, &sec_fault, v, &in) || !schema_require(l, &sec_fault, v))
		return false;
	if (ynode_get(v, "qpn") == NULL)
		in.r.qpn = FAULT_ANY;
	in.r.from = simtime_max(in.r.from, from);
	if ((in.name != NULL && !check_name(l, v, in.name)) ||
		(in.op != NULL && !read_op(l, in.op, &in.r)) || !read_flow(l, in.flow, &in.r) ||
		!read_host(l, in.src, &in.r.src, &in.r.n_src) ||
		!read_host(l, in.dst, &in.r.dst, &in.r.n_dst) || !read_pick(l, v, &in) ||
		!check_action(l, v, &in.r) || !read_lanes(l, &in.at, &f))
		return false;
	f.name = in.name;
	f.rule = in.r;
	return push_fault(l, v, &f);
}

bool load_faults(struct loader *l, struct ynode *faults)
{
	bool ok = true;

	if (faults == NULL || ynode_is_null(faults))
		return true;
	if (faults->kind != Y_LIST) {
		diag_at(&l->d, faults, "is %s, expected a list of rules", ynode_kind_name(faults));
		return false;
	}
	for (uint32_t i = 0; i < faults->n && !diag_full(&l->d); i++)
		ok = load_fault(l, faults->items[i], 0) && ok;
	return ok;
}
