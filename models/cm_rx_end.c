/* SPDX-License-Identifier: BSD-3-Clause */
// Messages that come in and end something: REJ, DREQ, DREP. Protocol and invariants: cm.c.
#include "models/cm_priv.h"

// A timeout may come from a peer that never learnt our ID: it names itself and its own.
static struct cm_id *find_rejected(
	struct cm *cm, const struct cm_source *from, const struct cm_rej *j)
{
	if (j->reason == CM_REJ_TIMEOUT && j->info_length >= 8) {
		struct cm_id *id = cm_find_remote(cm, get_be64(j->info), j->local_comm_id);
		if (id != NULL)
			return id;
	}
	// Until the REP, we do not know the peer's.
	struct cm_id *id = cm_find_question(cm, from, j->remote_comm_id);
	return id != NULL ? id : cm_find_both(cm, from, j->remote_comm_id, j->local_comm_id);
}

void cm_rx_rej(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	const struct cm_rej *j = &m->rej;
	struct cm_id *id = find_rejected(cm, from, j);
	enum cm_event_type type = CM_EV_REJECTED;

	if (id == NULL)
		return;
	switch (id->state) {
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		type = CM_EV_DISCONNECTED;
		break;
	case CM_REQ_SENT:
	case CM_MRA_REQ_RCVD:
	case CM_REQ_RCVD:
	case CM_MRA_REQ_SENT:
	case CM_REP_SENT:
	case CM_MRA_REP_RCVD:
		break;
	default:
		cm->counters.rx_duplicates++;
		return;
	}
	struct cm_event *e = cm_tell(cm, id, type, j->reason);
	cm_tell_private(e, j->private_data, sizeof(j->private_data));
	if (type == CM_EV_DISCONNECTED || cm_has_accepted(id))
		cm_enter_timewait(id, from->now);
	else
		cm_enter_idle(id);
}

// ---- DREQ, DREP -------------------------------------------------------------------------------

// Nothing left to end here, and so the peer need not wait.
static void agree(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	struct cm_mad answer;

	cm_mad_init(&answer, CM_ATTR_DREP, m->hdr.tid);
	answer.drep.local_comm_id = m->dreq.remote_comm_id;
	answer.drep.remote_comm_id = m->dreq.local_comm_id;
	cm_send(cm, &answer, from->dst_gid, from->src_gid);
}

void cm_rx_dreq(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	const struct cm_dreq *d = &m->dreq;
	struct cm_id *id = cm_find_both(cm, from, d->remote_comm_id, d->local_comm_id);
	struct cm_mad answer;

	if (id == NULL || id->state == CM_IDLE || id->state == CM_TIMEWAIT) {
		cm->counters.rx_duplicates += id != NULL;
		agree(cm, from, m);
		return;
	}
	if (d->remote_qpn != id->conn.local_qpn ||
		!(cm_has_accepted(id) || id->state == CM_ESTABLISHED ||
			id->state == CM_DREQ_SENT)) {
		cm->counters.rx_unmatched++;
		return;
	}
	id->tid = m->hdr.tid;
	cm_format_drep(id, &answer);
	cm_send_id(cm, id, &answer);
	struct cm_event *e = cm_tell(cm, id, CM_EV_DISCONNECTED, 0);
	cm_tell_private(e, d->private_data, sizeof(d->private_data));
	cm_enter_timewait(id, from->now);
}

void cm_rx_drep(struct cm *cm, const struct cm_source *from, const struct cm_mad *m)
{
	struct cm_id *id = cm_find_both(cm, from, m->drep.remote_comm_id, m->drep.local_comm_id);

	if (id == NULL)
		return;
	if (id->state != CM_DREQ_SENT) {
		cm->counters.rx_duplicates++;
		return;
	}
	struct cm_event *e = cm_tell(cm, id, CM_EV_DISCONNECTED, 0);
	cm_tell_private(e, m->drep.private_data, sizeof(m->drep.private_data));
	cm_enter_timewait(id, from->now);
}
