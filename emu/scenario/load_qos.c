/* SPDX-License-Identifier: BSD-3-Clause */

// QoS profiles, in SONiC's words. The starting point is SONiC's AZURE set (sonic-buildimage
// files/build_templates/qos_config.j2); keys then change single entries of the maps.

#include <string.h>

#include "emu/scenario/loader.h"

void qos_azure(struct qos_in *q)
{
	static const uint8_t dot1p[SC_PRIOS] = {1, 0, 2, 3, 4, 5, 6, 7};
	static const uint8_t pg[SC_PRIOS] = {0, 0, 0, 3, 4, 0, 0, 7};

	memset(q->q.dscp_to_tc, 1, sizeof(q->q.dscp_to_tc));
	for (unsigned i = 0; i < SC_DSCPS; i++)
		q->q.bounce[i] = (uint8_t)i;
	q->q.dscp_to_tc[3] = 3;
	q->q.dscp_to_tc[4] = 4;
	q->q.dscp_to_tc[5] = 2;
	q->q.dscp_to_tc[8] = 0;
	q->q.dscp_to_tc[46] = 5;
	q->q.dscp_to_tc[48] = 6;
	memcpy(q->q.pcp_to_tc, dot1p, sizeof(dot1p));
	memcpy(q->q.tc_to_pg, pg, sizeof(pg));
	q->q.pfc_tx = q->q.pfc_rx = 1 << 3 | 1 << 4;
	schema_defaults(&sec_pfc_wd, &q->q.wd);
	for (unsigned i = 0; i < SC_PRIOS; i++) {
		struct sc_queue *queue = &q->q.queue[i];

		q->q.tc_to_queue[i] = (uint8_t)i;
		schema_defaults(&sec_pg, &q->pg[i]);
		q->pg[i].lossless = SC_UNSET;
		schema_defaults(&sec_queue, queue);
		schema_defaults(&sec_wred, queue);
		queue->dynamic = true;
		queue->dynamic_th = 3;
		queue->static_th = SC_AUTO;
		if (i == 3 || i == 4)
			queue->weight = 15;
		if (i == 7)
			queue->sched = SC_SCHED_STRICT;
	}
}

// ---- maps -------------------------------------------------------------------------------------

static bool read_map(
	struct loader *l, const struct ynode *v, uint8_t *map, unsigned limit, unsigned values)
{
	uint64_t mask;
	int64_t to;

	if (v->kind != Y_MAP) {
		diag_at(&l->d, v, "is %s, expected a mapping such as {3: 3, 5-7: 2}",
			ynode_kind_name(v));
		return false;
	}
	for (uint32_t i = 0; i < v->n; i++) {
		if (!read_number_set(l, v->pairs[i].key, v->pairs[i].key->text, limit, &mask) ||
			!schema_number(l, v->pairs[i].value, Q_COUNT, 0, values - 1, &to))
			return false;
		for (unsigned n = 0; n < limit; n++)
			if (mask >> n & 1)
				map[n] = (uint8_t)to;
	}
	return true;
}

bool read_dscp_to_tc(struct loader *l, struct ynode *v, void *object)
{
	return read_map(l, v, ((struct qos_in *)object)->q.dscp_to_tc, SC_DSCPS, SC_PRIOS);
}

bool read_bounce(struct loader *l, struct ynode *v, void *object)
{
	return read_map(l, v, ((struct qos_in *)object)->q.bounce, SC_DSCPS, SC_DSCPS);
}

bool read_pcp_to_tc(struct loader *l, struct ynode *v, void *object)
{
	return read_map(l, v, ((struct qos_in *)object)->q.pcp_to_tc, SC_PRIOS, SC_PRIOS);
}

bool read_tc_to_pg(struct loader *l, struct ynode *v, void *object)
{
	return read_map(l, v, ((struct qos_in *)object)->q.tc_to_pg, SC_PRIOS, SC_PRIOS);
}

bool read_tc_to_queue(struct loader *l, struct ynode *v, void *object)
{
	return read_map(l, v, ((struct qos_in *)object)->q.tc_to_queue, SC_PRIOS, SC_PRIOS);
}

bool read_pfc_tx(struct loader *l, struct ynode *v, void *object)
{
	return read_prio_mask(l, v, &((struct qos_in *)object)->q.pfc_tx);
}

bool read_pfc_rx(struct loader *l, struct ynode *v, void *object)
{
	return read_prio_mask(l, v, &((struct qos_in *)object)->q.pfc_rx);
}

bool read_pfc_enable(struct loader *l, struct ynode *v, void *object)
{
	struct qos_in *q = object;

	if (!read_pfc_tx(l, v, q))
		return false;
	q->q.pfc_rx = q->q.pfc_tx;
	return true;
}

bool read_pfcwd_sw_enable(struct loader *l, struct ynode *v, void *object)
{
	struct qos_in *q = object;

	q->wd_prios_set = true;
	return read_prio_mask(l, v, &q->q.wd_prios);
}

bool read_pfc_wd(struct loader *l, struct ynode *v, void *object)
{
	struct sc_pfc_wd *wd = &((struct qos_in *)object)->q.wd;

	wd->enabled = true;
	if (!schema_apply(l, &sec_pfc_wd, v, wd))
		return false;
	if (wd->poll_interval <= wd->detection_time && wd->poll_interval <= wd->restoration_time)
		return true;
	diag_at(&l->d, v,
		"poll_interval exceeds %s, expected no more than detection_time and "
		"restoration_time",
		wd->poll_interval > wd->detection_time ? "detection_time" : "restoration_time");
	return false;
}

// ---- priority groups and queues ---------------------------------------------------------------

static bool read_dynamic(struct loader *l, struct ynode *v, bool *dynamic, int *th)
{
	char *end = NULL;
	long n = v->kind == Y_SCALAR ? strtol(v->text, &end, 10) : 0;

	if (end == NULL || end == v->text || *end != '\0' || n < -8 || n > 7) {
		diag_at(&l->d, v, "expected a whole number from -8 to 7 (the exponent of alpha)");
		return false;
	}
	if (ynode_get(v->parent, "static_th") != NULL) {
		diag_at(&l->d, v, "is given together with static_th, expected one of them");
		return false;
	}
	*dynamic = true;
	*th = (int)n;
	return true;
}

static bool read_static(struct loader *l, struct ynode *v, bool *dynamic, uint64_t *th)
{
	int64_t n;

	*dynamic = false;
	*th = SC_AUTO;
	if (v->kind == Y_SCALAR && strcmp(v->text, "none") == 0)
		return true;
	if (!schema_number(l, v, Q_SIZE, 0, INT64_C(1) << 40, &n))
		return false;
	*th = (uint64_t)n;
	return true;
}

bool read_pg_dynamic_th(struct loader *l, struct ynode *v, void *object)
{
	struct pg_in *p = object;

	p->th_set = true;
	return read_dynamic(l, v, &p->pg.dynamic, &p->pg.dynamic_th);
}

bool read_pg_static_th(struct loader *l, struct ynode *v, void *object)
{
	struct pg_in *p = object;

	p->th_set = true;
	return read_static(l, v, &p->pg.dynamic, &p->pg.static_th);
}

bool read_pg_lossless(struct loader *l, struct ynode *v, void *object)
{
	struct pg_in *p = object;
	bool b;

	if (v->kind == Y_SCALAR && strcmp(v->text, "auto") == 0) {
		p->lossless = SC_UNSET;
		return true;
	}
	if (!schema_bool(l, v, &b))
		return false;
	p->lossless = b;
	return true;
}

bool read_queue_dynamic_th(struct loader *l, struct ynode *v, void *object)
{
	struct sc_queue *q = object;
	return read_dynamic(l, v, &q->dynamic, &q->dynamic_th);
}

bool read_queue_static_th(struct loader *l, struct ynode *v, void *object)
{
	struct sc_queue *q = object;
	return read_static(l, v, &q->dynamic, &q->static_th);
}

bool read_wred(struct loader *l, struct ynode *v, void *object)
{
	struct sc_queue *q = object;

	q->ecn = true;
	if (!schema_apply(l, &sec_wred, v, q))
		return false;
	if (q->kmin > q->kmax) {
		diag_at(&l->d, v, "kmin is above kmax, expected kmin <= kmax");
		return false;
	}
	if (q->wred_drop && q->mark_at_dequeue) {
		diag_at(&l->d, v, "drop with mark_at: dequeue, expected drop at enqueue or none");
		return false;
	}
	return true;
}

static bool for_each_number(struct loader *l, const struct ynode *v, const struct section *sec,
	char *objects, size_t size)
{
	uint64_t mask;
	bool ok = true;

	if (v->kind != Y_MAP) {
		diag_at(&l->d, v, "is %s, expected a mapping such as {3-4: {...}}",
			ynode_kind_name(v));
		return false;
	}
	for (uint32_t i = 0; i < v->n; i++) {
		const struct ypair *p = &v->pairs[i];
		bool one = read_number_set(l, p->key, p->key->text, SC_PRIOS, &mask);

		for (unsigned n = 0; one && n < SC_PRIOS; n++)
			if (mask >> n & 1)
				one = schema_apply(l, sec, p->value, objects + n * size);
		ok = ok && one;
	}
	return ok;
}

bool read_pgs(struct loader *l, struct ynode *v, void *object)
{
	struct qos_in *q = object;
	return for_each_number(l, v, &sec_pg, (char *)q->pg, sizeof(q->pg[0]));
}

bool read_queues(struct loader *l, struct ynode *v, void *object)
{
	struct qos_in *q = object;
	return for_each_number(l, v, &sec_queue, (char *)q->q.queue, sizeof(q->q.queue[0]));
}

// ---- profiles ---------------------------------------------------------------------------------

static bool finish_pg(struct loader *l, const struct ynode *at, struct qos_in *q, unsigned p)
{
	struct pg_in *in = &q->pg[p];
	bool sends = q->q.pfc_tx >> p & 1;

	in->pg.lossless = in->lossless == SC_UNSET ? sends : in->lossless;
	if (!in->th_set) {
		in->pg.dynamic = true;
		in->pg.dynamic_th = in->pg.lossless ? 0 : 3;
	}
	q->q.pg[p] = in->pg;
	if (in->pg.lossless && in->pg.xoff == 0) {
		diag_key(&l->d, at, "pg",
			"lossless PG %u has no headroom, expected xoff above 0 or auto", p);
		return false;
	}
	if (in->pg.lossless && !sends) {
		diag_key(&l->d, at, "pg",
			"PG %u is lossless but nothing pauses for it, expected "
			"priority %u in pfc_enable",
			p, p);
		return false;
	}
	return true;
}

static bool finish_wd(struct loader *l, const struct ynode *at, struct qos_in *q)
{
	uint8_t alone = q->q.wd_prios & (uint8_t)~q->q.pfc_rx;

	if (!q->q.wd.enabled) {
		q->q.wd_prios = 0;
		return true;
	}
	if (!q->wd_prios_set)
		q->q.wd_prios = q->q.pfc_rx;
	else if (alone != 0) {
		diag_key(&l->d, at, "pfcwd_sw_enable",
			"priority %d obeys no PFC, expected it in pfc_enable too",
			__builtin_ctz(alone));
		return false;
	}
	return true;
}

// `at`: the profile's map, or the root when there is none.
static bool finish_qos(struct loader *l, const struct ynode *at, struct qos_in *q)
{
	bool ok = true;

	for (unsigned p = 0; p < SC_PRIOS; p++) {
		bool used = false;

		if (!finish_pg(l, at, q, p))
			ok = false;
		for (unsigned tc = 0; tc < SC_PRIOS; tc++)
			used |= q->q.tc_to_pg[tc] == p;
		if ((q->q.pfc_tx >> p & 1) && !used) {
			diag_key(&l->d, at, "pfc_enable",
				"priority %u pauses but no traffic class maps to PG %u, expected "
				"one in tc_to_pg",
				p, p);
			ok = false;
		}
	}
	uint64_t reserved = 0;
	for (unsigned p = 0; p < SC_PRIOS; p++)
		reserved += q->q.pg[p].size;
	if (reserved > q->q.buffer) {
		diag_key(&l->d, at, "pg",
			"the PGs of one port reserve %llu bytes, the buffer has %llu",
			(unsigned long long)reserved, (unsigned long long)q->q.buffer);
		ok = false;
	}
	return ok;
}

static bool add_profile(struct loader *l, const char *name, struct ynode *map,
	const struct qos_in *base, struct qos_in *q)
{
	const struct ynode *at = map != NULL && map->kind == Y_MAP ? map : l->root;

	*q = *base;
	if (map != NULL && !schema_apply(l, &sec_qos, map, q))
		return false;
	if (map == NULL || map->kind != Y_MAP) {
		const struct ynode *defaults = ynode_get(ynode_get(l->root, "defaults"), "qos");
		if (defaults != NULL && defaults->kind == Y_MAP)
			at = defaults;
	}
	if (!finish_qos(l, at, q) || !finish_wd(l, at, q))
		return false;
	q->q.name = name;
	q->q.pos = pos_of(map);
	l->s->qos = arena_grow(l->a, l->s->qos, l->s->n_qos, sizeof(*l->s->qos));
	names_add(&l->qos_names, name, l->s->n_qos);
	l->s->qos[l->s->n_qos++] = q->q;
	return true;
}

bool load_qos(struct loader *l, struct ynode *qos)
{
	struct qos_in *base = arena_alloc(l->a, sizeof(*base));
	struct qos_in *other = arena_alloc(l->a, sizeof(*other));
	bool ok = true;

	if (qos != NULL && qos->kind != Y_MAP && !ynode_is_null(qos)) {
		diag_at(&l->d, qos, "is %s, expected a mapping of profiles by name",
			ynode_kind_name(qos));
		return false;
	}
	// the default profile first: the others start from it
	if (!add_profile(l, "default", ynode_get(qos, "default"), &l->def.qos, base))
		return false;
	for (uint32_t i = 0; qos != NULL && qos->kind == Y_MAP && i < qos->n; i++) {
		const struct ypair *p = &qos->pairs[i];

		if (strcmp(p->key->text, "default") == 0)
			continue;
		if (!check_name(l, p->key, p->key->text) ||
			!add_profile(l, p->key->text, p->value, base, other))
			ok = false;
	}
	return ok;
}
