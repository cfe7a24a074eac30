/* SPDX-License-Identifier: BSD-3-Clause */

// Congestion control of NICs: presets, and parameters that contradict each other.

#include "emu/scenario/loader.h"

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
	if (nic->np.min_time_between_cnps == NP_INTERVAL_AUTO)
		nic->np.min_time_between_cnps = dcqcn_preset_cnp_interval(nic->dcqcn_preset);
}
