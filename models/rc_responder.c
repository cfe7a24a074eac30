/* SPDX-License-Identifier: BSD-3-Clause */
// Responder of the reliable connected transport: what it takes, after IBTA vol. 1 chapter 9 (9.7.4
// receiving, 9.7.5 acknowledging, 9.9.3 errors, 9.4 operations). What it says is in rc_respond.c.
//
// It takes only the expected PSN. A packet from the future is dropped and reported once per gap.
// One from the past is a duplicate: SEND and WRITE are acknowledged again with the newest PSN
// taken, a READ is executed again for the part asked for, an atomic is answered with what it gave
// the first time, and what is older than the resources remember is a ghost and dropped.
//
// A packet must fit, in this order:
//   the message in progress: its opcode may follow the one before;      else NAK invalid request
//   lengths: FIRST and MIDDLE are full, LAST has 1..MTU bytes, ONLY 0..MTU, and a WRITE's packets
//     make up its RETH's length;                                        else NAK invalid request
//   a free resource, for READ and atomics; 8-byte alignment of atomics; else NAK invalid request
//   the memory: key, bounds, permission; none is asked for zero bytes;  else NAK remote access
//   error a receive for a SEND (first packet) and WRITE with immediate (last): else RNR NAK the
//   receive's length;                                               else NAK invalid request
// After a NAK other than RNR and sequence error it takes nothing more and says nothing more.
// After an RNR NAK the packet is expected again, and what follows it is dropped silently
// (9.7.5.2.8).
//
// A responder without memory, receives and `strict` takes all SENDs and WRITEs that are in message
// order: the inline path, for flows whose both ends are ours.
//
// Simplified: no receive buffers of several segments; SEND with invalidate of an unknown key is an
// invalid request; a QP whose application works on memory an RDMA changes does not exist here.
#include "models/rc_responder.h"
#include "models/rc_responder_internal.h"

#define RULE(before, after, place, op)                                                        \
	{                                                                                     \
		RC_IN_##before, RC_IN_##after, true,                                          \
			WR_##op <= WR_SEND_IMM || WR_##op == WR_SEND_INV, RC_##place, WR_##op \
	}

const struct rc_opcode_rule rc_opcode_rules[32] = {
	[ROCE_SEND_FIRST] = RULE(NONE, SEND, FIRST, SEND),
	[ROCE_SEND_MIDDLE] = RULE(SEND, SEND, MIDDLE, SEND),
	[ROCE_SEND_LAST] = RULE(SEND, NONE, LAST, SEND),
	[ROCE_SEND_LAST_IMM] = RULE(SEND, NONE, LAST, SEND_IMM),
	[ROCE_SEND_ONLY] = RULE(NONE, NONE, ONLY, SEND),
	[ROCE_SEND_ONLY_IMM] = RULE(NONE, NONE, ONLY, SEND_IMM),
	[ROCE_WRITE_FIRST] = RULE(NONE, WRITE, FIRST, WRITE),
	[ROCE_WRITE_MIDDLE] = RULE(WRITE, WRITE, MIDDLE, WRITE),
	[ROCE_WRITE_LAST] = RULE(WRITE, NONE, LAST, WRITE),
	[ROCE_WRITE_LAST_IMM] = RULE(WRITE, NONE, LAST, WRITE_IMM),
	[ROCE_WRITE_ONLY] = RULE(NONE, NONE, ONLY, WRITE),
	[ROCE_WRITE_ONLY_IMM] = RULE(NONE, NONE, ONLY, WRITE_IMM),
	[ROCE_READ_REQUEST] = RULE(NONE, NONE, ONLY, READ),
	[ROCE_CMP_SWAP] = RULE(NONE, NONE, ONLY, CMP_SWAP),
	[ROCE_FETCH_ADD] = RULE(NONE, NONE, ONLY, FETCH_ADD),
	[ROCE_SEND_LAST_INV] = RULE(SEND, NONE, LAST, SEND_INV),
	[ROCE_SEND_ONLY_INV] = RULE(NONE, NONE, ONLY, SEND_INV),
};

void rc_responder_init(struct rc_responder *r, const struct rc_responder_config *cfg)
{
	*r = (struct rc_responder){
		.epsn = cfg->psn & PSN_MASK,
		.ack_every = cfg->ack_every,
		.checked = cfg->strict || cfg->memory != NULL || cfg->rq != NULL,
		.memory = cfg->memory,
		.rq = cfg->rq,
		.resources = cfg->resources,
		.payload = cfg->payload,
		.n_resources = cfg->max_dest_rd_atomic,
		.min_rnr_timer = cfg->min_rnr_timer,
		.credits = cfg->credits && cfg->rq != NULL && !cfg->rq->shared,
	};
	for (unsigned i = 0; i < r->n_resources; i++)
		r->resources[i] = (struct rc_resource){0};
}

// ---- errors ----------------------------------------------------------------------------------

int rc_rx_fatal(struct rc_responder *r, uint8_t syndrome, enum rc_rx_result result)
{
	r->failed = true;
	r->nak = syndrome;
	r->ack_due = true;
	return result | RC_RX_RESPOND | RC_RX_FAILED;
}

int rc_rx_invalid(struct rc_responder *r)
{
	return r->failed ? RC_RX_INVALID : rc_rx_fatal(r, AETH_NAK_INVALID_REQ, RC_RX_INVALID);
}

static int not_ready(struct rc_responder *r)
{
	r->nak = AETH_RNR_NAK | r->min_rnr_timer;
	r->nak_sent = true;
	r->ack_due = true;
	return RC_RX_NOT_READY | RC_RX_RESPOND;
}

void rc_responder_error(struct rc_responder *r)
{
	r->failed = true;
	r->nak = 0;
	r->ack_due = false;
	r->sending = 0;
}

bool rc_flush_recv(struct rc_responder *r, struct rc_recv *out)
{
	if (r->has_recv) {
		r->has_recv = false;
		*out = r->recv;
		return true;
	}
	return r->rq != NULL && !r->rq->shared && rc_rq_take(r->rq, out);
}

// ---- the past and the future -----------------------------------------------------------------

static int unexpected(struct rc_responder *r, const struct rc_packet *p)
{
	const struct rc_opcode_rule *rule = &rc_opcode_rules[p->opcode];

	if (r->failed)
		return RC_RX_INVALID;
	if (psn_diff(p->psn, r->epsn) < 0) {
		if (!rule->plain)
			return rc_duplicate_rd_atomic(r, p, (enum wr_op)rule->op);
		r->ack_due = true;
		return RC_RX_DUPLICATE | RC_RX_RESPOND;
	}
	if (r->nak_sent || r->keeps)
		return RC_RX_GAP;
	r->nak_sent = true;
	r->nak = AETH_NAK_PSN_SEQ;
	r->ack_due = true;
	return RC_RX_GAP | RC_RX_RESPOND;
}

// ---- SEND and WRITE --------------------------------------------------------------------------

static bool length_fits(const struct rc_responder *r, const struct rc_packet *p, uint8_t place)
{
	if (!(place & RC_LAST))
		return p->payload == r->payload;
	return p->payload <= r->payload && (place & RC_FIRST || p->payload != 0);
}

// What a WRITE is about: its RETH, or what is left of it. Returns 0 or how it fails.
static int check_write(struct rc_responder *r, const struct rc_packet *p, uint8_t place)
{
	if (place & RC_FIRST) {
		if (p->dma_len > RC_MESSAGE_MAX)
			return rc_rx_invalid(r);
		if (r->memory != NULL && !rc_mr_allows(r->memory, p->rkey, p->remote_addr,
						 p->dma_len, ACCESS_REMOTE_WRITE))
			return rc_rx_fatal(r, AETH_NAK_REM_ACCESS, RC_RX_ACCESS);
		r->addr = p->remote_addr;
		r->length = p->dma_len;
		r->offset = 0;
	}
	uint64_t got = (uint64_t)r->offset + p->payload;
	return (place & RC_LAST ? got == r->length : got < r->length) ? 0 : rc_rx_invalid(r);
}

// The receive a packet needs, and whether it is long enough. Returns 0 or how it fails.
static int check_receive(struct rc_responder *r, const struct rc_packet *p,
	const struct rc_opcode_rule *rule, struct rc_accept *out)
{
	bool send = rule->op != WR_WRITE && rule->op != WR_WRITE_IMM;

	if (send && rule->place & RC_FIRST)
		r->offset = 0;
	if (r->rq == NULL)
		return 0;
	if (send ? rule->place & RC_FIRST : rule->op == WR_WRITE_IMM) {
		// UC keeps that of a message dropped.
		if (!r->has_recv && !rc_rq_take(r->rq, &r->recv))
			return not_ready(r);
		r->has_recv = true;
		if (send) {
			r->addr = r->recv.addr;
			r->length = r->recv.length;
		}
	}
	if (!send || (uint64_t)r->offset + p->payload <= r->length)
		return 0;
	*out = (struct rc_accept){
		.wr_id = r->recv.wr_id, .wc_op = WR_SEND, .wc_status = WC_LOC_LEN_ERR};
	r->has_recv = false;
	return rc_rx_fatal(r, AETH_NAK_INVALID_REQ, RC_RX_LENGTH) | RC_RX_RECV_DONE;
}

// A message has ended: the receive it took, if it took one.
static int receive_done(struct rc_responder *r, const struct rc_packet *p,
	const struct rc_opcode_rule *rule, struct rc_accept *out)
{
	out->byte_len = r->offset;
	out->imm = p->imm;
	out->wc_op = rule->op == WR_WRITE_IMM ? WR_WRITE_IMM : WR_SEND;
	out->with_imm = rule->op == WR_WRITE_IMM || rule->op == WR_SEND_IMM;
	out->with_inv = rule->op == WR_SEND_INV;
	out->solicited = p->solicited;
	out->wc_status = WC_SUCCESS;
	if (!r->has_recv || !wr_needs_recv((enum wr_op)rule->op))
		return 0;
	out->wr_id = r->recv.wr_id;
	r->has_recv = false;
	return RC_RX_RECV_DONE;
}

static int expected(
	struct rc_responder *r, simtime_t now, const struct rc_packet *p, struct rc_accept *out)
{
	const struct rc_opcode_rule *rule = &rc_opcode_rules[p->opcode];
	bool write = rule->op == WR_WRITE || rule->op == WR_WRITE_IMM;
	int error;

	if (rule->op == WR_READ)
		return rc_read_request(r, p);
	if (!rule->plain)
		return rc_atomic_request(r, p, (enum wr_op)rule->op, out);
	if (!length_fits(r, p, rule->place))
		return rc_rx_invalid(r);
	if (write && (error = check_write(r, p, rule->place)) != 0)
		return error;
	if (rule->op == WR_SEND_INV && r->memory != NULL && !rc_mr_find(r->memory, p->imm))
		return rc_rx_invalid(r);
	if ((error = check_receive(r, p, rule, out)) != 0)
		return error;

	int result = RC_RX_IN_ORDER | RC_RX_DATA;
	out->addr = r->addr + r->offset;
	r->offset += p->payload;
	r->epsn = psn_add(p->psn, 1);
	r->nak_sent = false;
	r->in_msg = rule->after;
	r->bytes += p->payload;
	r->last_at = now;
	if (rule->after == RC_IN_NONE) {
		r->messages++;
		r->msn = psn_add(r->msn, 1);
		if (rule->op == WR_SEND_INV && r->memory != NULL)
			rc_mr_invalidate(r->memory, p->imm);
		result |= RC_RX_MESSAGE | receive_done(r, p, rule, out);
	}
	if (p->ack_req | (++r->since_ack >= r->ack_every)) {
		r->ack_due = true;
		result |= RC_RX_RESPOND;
	}
	return result;
}

int rc_rx_other(
	struct rc_responder *r, simtime_t now, const struct rc_packet *p, struct rc_accept *out)
{
	if (p->psn != r->epsn)
		return unexpected(r, p);
	if (rc_opcode_rules[p->opcode].before != r->in_msg || r->failed)
		return rc_rx_invalid(r);
	return expected(r, now, p, out);
}
