/* SPDX-License-Identifier: BSD-3-Clause */
// Connection management seen on the way (IBTA vol. 1, 12.6): a REQ names the caller's queue pair
// and the PSN from which the callee will send to it, a REP the callee's and the PSN from which the
// caller will. Together they pair two flows before the first data packet, with the PSNs that come.
#include "pcap/check_priv.h"
#include "pcap/mad.h"

#define MTU_MIN_LOG 7 // path MTU 1 is 256 bytes

static void remember(struct check *c, const struct sight *s, const struct cm_req *req)
{
	struct cm_request *r = &c->cm[c->n_cm++ % CM_PENDING];
	const struct pkt *p = s->p;

	*r = (struct cm_request){.used = true,
		.tap = s->tap,
		.comm_id = req->local_comm_id,
		.qpn = req->local_qpn,
		.psn = req->starting_psn,
		.path_mtu = req->path_mtu};
	memcpy(r->src, p->data + p->src_off, p->addr_bytes);
	memcpy(r->dst, p->data + p->dst_off, p->addr_bytes);
}

static void connect(
	struct check *c, const struct sight *s, struct cm_request *r, const struct cm_rep *rep)
{
	const struct pkt *p = s->p;
	bool roce1 = p->kind == PKT_ROCE1;
	struct flow *call =
		flow_lookup(c, r->tap, r->src, r->dst, p->addr_bytes, roce1, rep->local_qpn, true);
	struct flow *back =
		flow_lookup(c, r->tap, r->dst, r->src, p->addr_bytes, roce1, r->qpn, true);

	if (call == NULL || back == NULL)
		return;
	if (call->f.pairing == CHECK_BY_CM && call->f.peer == back->index)
		return; // the REP again
	if (r->path_mtu >= 1 && r->path_mtu <= 5)
		call->f.mtu = back->f.mtu = 1u << (MTU_MIN_LOG + r->path_mtu);
	flow_link(c, call, back, CHECK_BY_CM);
	seq_end(c, call);
	seq_end(c, back);
	seq_start(call, rep->starting_psn);
	seq_start(back, r->psn);
	call->q.msn_known = back->q.msn_known = false;
	r->used = false;
}

void check_cm(struct check *c, const struct sight *s)
{
	const struct pkt *p = s->p;
	struct cm_mad mad;

	if (s->frame->caplen < (uint32_t)p->payload_off + p->payload_len ||
		cm_mad_parse(p->data + p->payload_off, p->payload_len, &mad) != MAD_OK)
		return;
	if (mad.hdr.attr_id == CM_ATTR_REQ && mad.req.transport == CM_RC)
		remember(c, s, &mad.req);
	if (mad.hdr.attr_id != CM_ATTR_REP)
		return;
	for (unsigned i = 0; i < CM_PENDING; i++) {
		struct cm_request *r = &c->cm[i];
		if (r->used && r->tap == s->tap && r->comm_id == mad.rep.remote_comm_id &&
			memcmp(r->src, p->data + p->dst_off, p->addr_bytes) == 0 &&
			memcmp(r->dst, p->data + p->src_off, p->addr_bytes) == 0) {
			connect(c, s, r, &mad.rep);
			return;
		}
	}
}
