/* SPDX-License-Identifier: BSD-3-Clause */
// Congestion control in the NIC: what models/cc.h and models/np.h decide, done to frames.
//
// Sender. A queue pair under congestion control is paced packet by packet: after each, the next may
// go when the packet's bytes on the wire have passed at its rate. A flow's own rate is kept beside
// it; the later of the two counts. A window goes into the transport, which has one anyway. While
// the algorithm limits nothing, the pacing costs a call per packet and no timer.
//
// The algorithm's timer runs while packets go: when none was sent since it came last it is not
// armed again, and what was due is made up for before the next packet. So a queue pair with nothing
// to send costs nothing, and a run ends when its flows do.
//
// Receiver. A packet with CE makes the notification point's CNP due: the queue pair waits in a FIFO
// of its port, and the CNP is made when it goes, ahead of ACKs and data and stopped only by a pause
// of its own class.

#include <errno.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pipelines/nic_internal.h"

int nic_cc_init(struct nic *nic)
{
	for (unsigned i = 0; i < nic->node.n_ports && nic->cfg.np.enable; i++) {
		nic->ports[i].np = malloc(sizeof(struct np));
		if (nic->ports[i].np == NULL)
			return -ENOMEM;
		np_init(nic->ports[i].np, &nic->cfg.np);
	}
	return 0;
}

void nic_cc_fini(struct nic *nic)
{
	for (unsigned i = 0; i < nic->node.n_ports; i++)
		free(nic->ports[i].np);
}

int nic_cc_make(struct nic *nic, struct nic_qp *qp, bool sends)
{
	if (nic->cfg.np.enable) {
		qp->np = aligned_alloc(alignof(struct nic_np), sizeof(*qp->np));
		if (qp->np == NULL)
			return -ENOMEM;
		memset(qp->np, 0, sizeof(*qp->np));
	}
	if (nic->cfg.cc.algorithm == CC_NONE || !sends)
		return 0;
	qp->cc = calloc(1, sizeof(*qp->cc));
	if (qp->cc == NULL)
		return -ENOMEM;
	qp->cc->timer_at = SIMTIME_NEVER;
	qp->cc->needs = cc_ops_of(nic->cfg.cc.algorithm)->needs;
	qp->paced = true;
	if (!(qp->cc->needs & CC_NEEDS_ACK))
		return 0;
	qp->ack_tells = true;
	if (qp->cc->needs & CC_NEEDS_RTT)
		qp->cc->probes = calloc(NIC_PROBES, sizeof(*qp->cc->probes));
	return qp->cc->needs & CC_NEEDS_RTT && qp->cc->probes == NULL ? -ENOMEM : 0;
}

unsigned nic_cc_feedback(const struct nic *sender, const struct nic_flow_config *flow)
{
	if (flow->transport != QP_RC || wr_is_rd_atomic(flow->op))
		return 0;
	return cc_ops_of(sender->cfg.cc.algorithm)->needs & CC_NEEDS_ACK;
}

void nic_cc_free(struct nic_qp *qp)
{
	if (qp->cc != NULL)
		free(qp->cc->probes);
	free(qp->cc);
	free(qp->np);
	free(qp->echo);
	qp->echo = NULL;
	qp->cc = NULL;
	qp->np = NULL;
}

void nic_cc_drain(struct nic *nic)
{
	for (unsigned i = 0; i < nic->node.n_ports; i++) {
		nic->ports[i].cnp_due = false;
		nic->ports[i].cnps = (struct nic_qp_fifo){0};
	}
	for (uint32_t i = 0; i < nic->n_qps; i++)
		if (nic->qps[i].np != NULL)
			nic->qps[i].np->queued = false;
}

// ---- sender ----------------------------------------------------------------------------------

// The lanes are there when the run starts, not when queue pairs are made.
void nic_cc_start(struct nic *nic)
{
	for (uint32_t i = 0; i < nic->n_qps; i++) {
		struct nic_qp *qp = &nic->qps[i];
		if (qp->cc == NULL)
			continue;
		uint64_t line = nic->node.ports[qp->port].out->rate_bps;
		cc_init(&qp->cc->cc, &nic->cfg.cc, line, nic->cfg.payload, 0);
		qp->cc->rate_bps = line;
		nic_cc_obey(nic, qp);
	}
}

static void set_window(const struct nic *nic, struct nic_qp *qp, uint64_t bytes)
{
	uint64_t packets = bytes / qp->req.payload;

	if (bytes == 0 || packets > nic->cfg.window)
		packets = nic->cfg.window;
	rc_set_window(&qp->req, packets == 0 ? 1 : (uint32_t)packets);
}

void nic_cc_obey(struct nic *nic, struct nic_qp *qp)
{
	struct nic_cc *c = qp->cc;

	if (c->cc.rate_bps != c->rate_bps) {
		c->rate_bps = c->cc.rate_bps;
		c->byte_time = cc_unlimited(&c->cc) ? 0 : byte_time_fp(c->rate_bps);
	}
	if (c->cc.window_bytes != c->window_bytes) {
		c->window_bytes = c->cc.window_bytes;
		set_window(nic, qp, c->window_bytes);
	}
	if (c->cc.deadline < c->timer_at) {
		c->timer_at = c->cc.deadline;
		node_timer(&nic->node, c->timer_at, NIC_TIMER_CC, (uint32_t)(qp - nic->qps));
	}
}

void nic_cc_timer(struct nic *nic, struct nic_qp *qp)
{
	struct nic_cc *c = qp->cc;

	if (nic->node.now != c->timer_at) // one that was armed for a later time than needed
		return;
	c->timer_at = SIMTIME_NEVER;
	if (!c->sent)
		return;
	c->sent = false;
	cc_timer(&c->cc, nic->node.now);
	nic_cc_obey(nic, qp);
}

// The schedule is kept however late the port was, but for no more than one packet.
static simtime_t next_at(
	simtime_t at, uint32_t *frac, uint64_t byte_time, uint32_t bytes, simtime_t now)
{
	return simtime_max(at + serialization_step(byte_time, bytes, frac), now);
}

void nic_cc_pace(struct nic *nic, struct nic_qp *qp, uint32_t payload, struct frame *f)
{
	simtime_t now = nic->node.now;
	struct nic_cc *c = qp->cc;

	if (c == NULL) {
		qp->pace_at = next_at(qp->pace_at, &qp->pace_frac, qp->pace_time, payload, now);
		return;
	}
	uint32_t wire = frame_wire_bytes(f);
	cc_timer(&c->cc, now);
	cc_sent(&c->cc, now, wire);
	c->sent = true;
	if (frame_has_tail(f))
		memset(frame_tail(f), 0, FRAME_TAIL_BYTES);
	nic_cc_obey(nic, qp);
	c->pace_at = next_at(c->pace_at, &c->pace_frac, c->byte_time, wire, now);
	c->app_at = next_at(c->app_at, &qp->pace_frac, qp->pace_time, payload, now);
	qp->pace_at = simtime_max(c->pace_at, c->app_at);
}

void nic_cc_cnp(struct nic *nic, struct nic_qp *qp)
{
	struct nic_cc *c = qp->cc;

	nic->ctr.cc_rx_cnp_pkts++;
	if (c == NULL || !(c->cc.ops->needs & CC_NEEDS_CNP) || qp->ended) {
		nic->ctr.rp_cnp_ignored++;
		return;
	}
	nic->ctr.rp_cnp_handled++;
	c->cnps++;
	cc_timer(&c->cc, nic->node.now);
	cc_cnp(&c->cc, nic->node.now);
	nic_cc_obey(nic, qp);
}

// ---- receiver --------------------------------------------------------------------------------

void nic_cc_ce(struct nic *nic, unsigned port, struct nic_qp *qp)
{
	struct nic_port *p = &nic->ports[port];
	struct nic_np *np = qp->np;

	nic->ctr.cc_rx_ce_pkts++;
	if (np == NULL || np->queued || !np_ce(p->np, &np->clock, qp->peer_ip, nic->node.now))
		return;
	np->queued = true;
	np->next_cnp = NULL;
	if (p->cnps.head == NULL)
		p->cnps.head = qp;
	else
		p->cnps.tail->np->next_cnp = qp;
	p->cnps.tail = qp;
	p->cnp_due = true;
}

void nic_cc_send_cnp(struct nic *nic, unsigned port, struct frame *f)
{
	struct nic_port *p = &nic->ports[port];
	struct nic_qp *qp = p->cnps.head;
	struct nic_np *np = qp->np;

	p->cnps.head = np->next_cnp;
	p->cnp_due = p->cnps.head != NULL;
	np->queued = false;
	memcpy((uint8_t *)f + NIC_FRAME_OFFSET, np->cnp.frame, NIC_FRAME_BYTES);
	memcpy(frame_data(f), np->cnp.head, NIC_TEMPLATE_BYTES);
	memset(frame_data(f) + np->psn_off + 4, 0, CNP_RESERVED_BYTES);
	nic->ctr.np_cnp_sent++;
	nic->ctr.cc_tx_cnp_pkts++;
	nic->ctr.rdma_tx_packets++;
	node_send(&nic->node, port, f);
}
