/* SPDX-License-Identifier: BSD-3-Clause */

// What of a flow's operation, transport and RoCE version goes with each other and with the settings
// of the NICs at both ends.

#include "emu/scenario/loader.h"

// What each transport carries (IBTA vol. 1, table 38).
bool transport_carries(struct loader *l, const struct ynode *at, const struct sc_flow *f)
{
	bool send = f->op == WR_SEND || f->op == WR_SEND_IMM;

	if (f->transport == QP_RC || send || (f->transport == QP_UC && !wr_is_rd_atomic(f->op)))
		return true;
	diag_key(&l->d, at, "op", "%s is not carried by %s, expected %s", wr_op_word(f->op),
		qp_transport_name(f->transport),
		f->transport == QP_UC ? "WRITE, WRITE_IMM, SEND or SEND_IMM" : "SEND or SEND_IMM");
	return false;
}

static bool keeps_early(const struct sc_nic *nic)
{
	return nic->recovery == SC_SELECTIVE_REPEAT || nic->ooo != 0;
}

// NULL: nothing is wrong.
static const char *problem_of(
	const struct sc_flow *f, const struct sc_nic *src, const struct sc_nic *dst)
{
	bool keeps = keeps_early(src) || keeps_early(dst);

	if (f->transport == QP_UD && f->bytes > src->payload)
		return "more `bytes` than a UD packet carries, expected at most the NIC's `mtu`";
	if (wr_is_rd_atomic(f->op) && keeps)
		return "READ and atomics with `ooo` or selective-repeat, expected neither";
	if (wr_is_rd_atomic(f->op) && src->max_rd_atomic > dst->max_rd_atomic)
		return "a larger `max_rd_atomic` at src than at dst, expected one not above it";
	// Whose data it is decides.
	unsigned needs = cc_ops_of((f->op == WR_READ ? dst : src)->cc.algorithm)->needs;
	if (needs & CC_NEEDS_ACK && (f->transport != QP_RC || f->op == WR_READ))
		return "a congestion control that works by acknowledgements, which this flow's "
		       "data has "
		       "none of, expected cc none or dcqcn, or RC SEND or WRITE";
	if (needs & CC_NEEDS_INT && f->roce1)
		return "RoCE v1 with cc hpcc, expected another or v2";
	if (f->roce1 && src->recovery == SC_SELECTIVE_REPEAT)
		return "RoCE v1 with selective-repeat, expected go-back-N";
	return NULL;
}

static bool check_flow(struct loader *l, const struct sc_flow *f)
{
	const struct scenario *s = l->s;
	uint32_t src = s->endpoints[f->src].node, dst = s->endpoints[f->dst].node;
	const char *problem = problem_of(f, &sc_host_of(s, src)->nic, &sc_host_of(s, dst)->nic);

	if (problem == NULL)
		return true;
	diag_key(&l->d, workload_map(l), l->work_list[f->workload], "%s to %s has %s",
		s->nodes[src].name, s->nodes[dst].name, problem);
	return false;
}

bool check_transport(struct loader *l)
{
	bool ok = true;

	for (uint32_t i = 0; i < l->s->n_hosts; i++) {
		const struct sc_host *h = &l->s->hosts[i];
		if (h->kind != SC_HOST_NIC || !h->nic.adaptive ||
			h->nic.recovery != SC_SELECTIVE_REPEAT)
			continue;
		diag_key(&l->d, l->root, "defaults",
			"%s has adaptive_retrans and recovery selective-repeat, expected one",
			l->s->nodes[h->node].name);
		return false;
	}
	for (uint32_t i = 0; i < l->s->n_flows && ok; i++)
		ok = check_flow(l, &l->s->flows[i]);
	return ok;
}
