/* SPDX-License-Identifier: BSD-3-Clause */

// Congestion control of NICs: presets, and parameters that contradict each other.

#include "emu/scenario/loader.h"

#define ACK_EVERY 16 // where congestion control does not need more

static bool check_dcqcn(struct loader *l, const struct ynode *v, const struct dcqcn_params *p)
{
	uint64_t max = p->rpg_max_rate;

	if (max == 0 || p->rpg_min_rate <= max)
		return true;
	diag_key(&l->d, v, ynode_get(v, "rpg_min_rate") != NULL ? "rpg_min_rate" : "rpg_max_rate",
		"rpg_min_rate is above rpg_max_rate, expected rpg_min_rate <= rpg_max_rate");
	return false;
}

// The preset counts first, wherever it stands.
bool read_dcqcn(struct loader *l, struct ynode *v, void *object)
{
	struct sc_nic *nic = object;
	const struct ynode *preset = ynode_get(v, "preset");

	if (preset != NULL && preset->kind == Y_SCALAR) {
		const struct word *w = word_by_name(dcqcn_preset_words, preset->text);
		if (w != NULL)
			nic->cc.dcqcn = dcqcn_preset((enum dcqcn_preset)w->value);
	}
	return schema_apply(l, &sec_dcqcn, v, nic) && check_dcqcn(l, v, &nic->cc.dcqcn);
}

bool read_attach_dcqcn(struct loader *l, struct ynode *v, void *object)
{
	return read_dcqcn(l, v, &((struct sc_attach *)object)->nic);
}

void resolve_attach_cc(struct sc_attach *a)
{
	resolve_cc(&a->nic);
	if (a->ect0 == SC_UNSET)
		a->ect0 = a->nic.cc.algorithm != CC_NONE;
}

void resolve_cc(struct sc_nic *nic)
{
	if (nic->np_enable == SC_UNSET)
		nic->np_enable = nic->cc.algorithm == CC_DCQCN;
	nic->np.enable = nic->np_enable;
	if (nic->ack_every == 0)
		nic->ack_every =
			cc_ops_of(nic->cc.algorithm)->needs & CC_NEEDS_EACH ? 1 : ACK_EVERY;
	if (nic->np.min_time_between_cnps == NP_INTERVAL_AUTO)
		nic->np.min_time_between_cnps = dcqcn_preset_cnp_interval(nic->dcqcn_preset);
}

// NULL: nothing is wrong.
static const char *problem_of(const struct sc_nic *nic)
{
	const struct cc_params *p = &nic->cc;

	if (cc_ops_of(p->algorithm)->needs & CC_NEEDS_EACH && nic->ack_every != 1)
		return "needs an ACK for each packet, expected ack_every: 1 or auto";
	switch (p->algorithm) {
	case CC_DCTCP:
		return p->dctcp.min_window > p->dctcp.initial_window
			       ? "has min_window above initial_window, expected min_window <= "
				 "initial_window"
			       : NULL;
	case CC_TIMELY:
		return p->timely.t_low > p->timely.t_high
			       ? "has t_low above t_high, expected t_low <= t_high"
			       : NULL;
	case CC_SWIFT:
		if (p->swift.fs_min_cwnd >= p->swift.fs_max_cwnd)
			return "has fs_min_cwnd not below fs_max_cwnd, expected fs_min_cwnd < "
			       "fs_max_cwnd";
		return p->swift.min_cwnd > 1000 * (uint64_t)p->swift.initial_cwnd ||
				       1000 * (uint64_t)p->swift.initial_cwnd > p->swift.max_cwnd
			       ? "has initial_cwnd out of range, expected min_cwnd <= initial_cwnd "
				 "<= max_cwnd"
			       : NULL;
	default:
		return NULL;
	}
}

static bool check_nic(struct loader *l, const struct sc_host *h)
{
	const char *problem = h->kind == SC_HOST_NIC ? problem_of(&h->nic) : NULL;

	if (problem == NULL)
		return true;
	diag_key(&l->d, l->root, "defaults", "the NIC of %s: cc %s %s", l->s->nodes[h->node].name,
		cc_name(h->nic.cc.algorithm), problem);
	return false;
}

// The telemetry of a port says its rate by a code.
static bool check_int_rates(struct loader *l)
{
	const struct scenario *s = l->s;
	bool wanted = false;

	for (uint32_t i = 0; i < s->n_hosts && !wanted; i++)
		wanted = s->hosts[i].kind == SC_HOST_NIC &&
			 cc_ops_of(s->hosts[i].nic.cc.algorithm)->needs & CC_NEEDS_INT;
	for (uint32_t i = 0; i < s->n_links && wanted; i++) {
		const struct sc_link *k = &s->links[i];
		if (int_rate_known(k->rate_bps))
			continue;
		char text[QUANTITY_MAX];
		diag_key(&l->d, l->root, "links",
			"the link %s to %s has rate %s, which HPCC's telemetry has no code for, "
			"expected "
			"100Mbps, 1, 2.5, 5, 10, 20, 25, 40, 50, 56, 100, 200, 400, 800 or "
			"1600Gbps",
			s->nodes[k->end[0].node].name, s->nodes[k->end[1].node].name,
			quantity_format(Q_RATE, (int64_t)k->rate_bps, text));
		return false;
	}
	return true;
}

bool check_cc(struct loader *l)
{
	for (uint32_t i = 0; i < l->s->n_hosts; i++)
		if (!check_nic(l, &l->s->hosts[i]))
			return false;
	return check_int_rates(l);
}
