/* SPDX-License-Identifier: BSD-3-Clause */
// What acknowledgements tell congestion control: round-trip times, CE, and the telemetry of
// switches.
//
// Round-trip time. A packet that asks for an acknowledgement is remembered with the time it was
// sent; the ACK of exactly that packet gives a sample. ACKs that answer several such packets count
// for the newest (acknowledgements merge while the other end's port is busy), and packets sent
// again are not timed (Karn).
//
// CE. A receiver whose sender needs it sets BECN in an acknowledgement when a packet since the last
// was marked. It is BTH's counterpart of TCP's ECE.
//
// Telemetry. A data packet carries a trailer that switches write into (pcap/int.h), an
// acknowledgement a copy of that of the newest packet received.

#include <errno.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pcap/int.h"
#include "pipelines/nic_internal.h"

// ---- receiver --------------------------------------------------------------------------------

int nic_echo_make(struct nic_qp *qp, unsigned feedback)
{
	if (!(feedback & (CC_NEEDS_ECHO | CC_NEEDS_INT)))
		return 0;
	qp->echo = calloc(1, sizeof(*qp->echo));
	return qp->echo == NULL ? -ENOMEM : 0;
}

void nic_echo_take(struct nic_qp *qp, const struct frame *f)
{
	memcpy(qp->echo->tail, frame_tail(f), FRAME_TAIL_BYTES);
}

void nic_echo_put(struct nic_qp *qp, struct frame *f, uint8_t *bth)
{
	if (frame_has_tail(f))
		memcpy(frame_tail(f), qp->echo->tail, FRAME_TAIL_BYTES);
	if (qp->echo->ce)
		bth[4] |= BTH_BECN;
	qp->echo->ce = false;
}

// ---- sender ----------------------------------------------------------------------------------

void nic_probe_sent(struct nic_qp *qp, uint64_t seq, simtime_t now)
{
	struct nic_cc *c = qp->cc;

	if (c == NULL || c->probes == NULL || c->newest - c->oldest == NIC_PROBES)
		return;
	c->probes[c->newest++ % NIC_PROBES] = (struct nic_probe){.seq = seq, .at = now};
}

// Forgets the probes that `una` answers; the round-trip time if the last of them is what it answers
// last, else 0.
static simtime_t take_rtt(struct nic_cc *c, uint64_t una, simtime_t now)
{
	simtime_t rtt = 0;

	if (c->probes == NULL)
		return 0;
	while (c->oldest != c->newest) {
		const struct nic_probe *p = &c->probes[c->oldest % NIC_PROBES];
		if (p->seq >= una)
			break;
		rtt = p->seq + 1 == una ? now - p->at : 0;
		c->oldest++;
	}
	return rtt;
}

// Switches that a frame has passed, from the TTL that the NICs of a flow begin with.
static uint8_t hops_of(const struct nic *nic, const struct nic_qp *qp, const struct frame *f)
{
	const uint8_t *ip = frame_data(f) + f->l3_off;
	uint8_t left = qp->ipv6 || qp->roce1 ? ip[7] : ip[8];

	return left < qp->cc->ttl ? (uint8_t)(qp->cc->ttl - left) : 0;
}

void nic_cc_acked(struct nic *nic, struct nic_qp *qp, const struct frame *f, const uint8_t *bth,
	uint64_t before, int result)
{
	simtime_t now = nic->node.now;
	const struct rc_requester *q = &qp->req;
	struct nic_cc *c = qp->cc;
	struct int_trailer telemetry;
	struct cc_ack a = {
		.acked_bytes =
			(q->una - before) * q->payload, // a message's last packet as a whole one
		.acked_to = q->una,
		.sent_to = q->max,
		.rtt = take_rtt(c, q->una, now),
		.hops = hops_of(nic, qp, f),
		.ce = bth[4] & BTH_BECN,
	};

	if (f->kind == FRAME_INT_ECHO) {
		int_get(frame_tail(f), &telemetry);
		a.telemetry = &telemetry;
	}
	cc_timer(&c->cc, now);
	cc_ack(&c->cc, now, &a);
	if (result & RC_ACK_REWOUND && !(result & RC_ACK_RNR)) {
		c->oldest = c->newest;
		cc_loss(&c->cc, now, q->max, false);
	}
	nic_cc_obey(nic, qp);
}

void nic_cc_timed_out(struct nic *nic, struct nic_qp *qp)
{
	struct nic_cc *c = qp->cc;

	if (c == NULL || !(c->needs & CC_NEEDS_ACK))
		return;
	c->oldest = c->newest;
	cc_timer(&c->cc, nic->node.now);
	cc_loss(&c->cc, nic->node.now, qp->req.max, true);
	nic_cc_obey(nic, qp);
}
