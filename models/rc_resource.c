/* SPDX-License-Identifier: BSD-3-Clause */
// READs and atomics at the responder (IBTA vol. 1, 9.4.4, 9.4.5, 9.7.4.1.5, 9.7.7.1): a ring of the
// newest max_dest_rd_atomic of them. A request takes the oldest slot, which must have been
// answered: else the peer has more outstanding than was agreed, an invalid request. Until a slot is
// taken again a duplicate finds its request there: a READ, or its rest, is answered anew from
// memory, if key and range lie in the first request's; an atomic with the value it gave. What no
// slot knows is a ghost.
//
// Answers wait in the slots, [next, until) of each; rc_respond.c sends them, the oldest slot first.
#include "models/rc_responder.h"
#include "models/rc_responder_internal.h"

static uint32_t packets_of(const struct rc_responder *r, uint32_t bytes)
{
	return bytes == 0 ? 1 : (bytes - 1) / r->payload + 1;
}

// Lets the answer [from, until) of resource i be sent, the oldest resource first.
static void answer(
	struct rc_responder *r, unsigned i, uint32_t from, uint32_t until, uint32_t bytes)
{
	struct rc_resource *res = &r->resources[i];
	// Resources are a ring: the one at `newest` is the oldest of all.
	unsigned age = (i + r->n_resources - r->newest) % r->n_resources;
	unsigned oldest = (r->oldest + r->n_resources - r->newest) % r->n_resources;

	if (r->sending == 0 || age < oldest)
		r->oldest = (uint8_t)i;
	if (res->next == res->until)
		r->sending++;
	res->from = res->next = from;
	res->until = until;
	res->last_payload = (uint16_t)(bytes - (until - from - 1) * r->payload);
}

// The slot for a new READ or atomic; NULL if the peer has more outstanding than agreed.
static struct rc_resource *new_resource(struct rc_responder *r)
{
	if (r->n_resources == 0)
		return NULL;

	struct rc_resource *res = &r->resources[r->newest];
	if (res->next != res->until) {
		if (!res->answered)
			return NULL;
		// The peer has got the first answer and does not wait for the repetition.
		res->next = res->until;
		r->sending--;
	}
	return res;
}

static int rd_atomic_taken(struct rc_responder *r, struct rc_resource *res)
{
	res->psn = r->epsn;
	res->used = true;
	r->newest = (uint8_t)((r->newest + 1) % r->n_resources);
	r->epsn = psn_add(r->epsn, res->pkts);
	r->nak_sent = false;
	r->messages++;
	r->msn = res->msn = psn_add(r->msn, 1);
	// Its answer acknowledges what came before.
	r->since_ack = 0;
	r->ack_due = false;
	return RC_RX_IN_ORDER | RC_RX_MESSAGE | RC_RX_RESPOND;
}

int rc_read_request(struct rc_responder *r, const struct rc_packet *p)
{
	struct rc_resource *res = new_resource(r);

	if (res == NULL || p->dma_len > RC_MESSAGE_MAX || p->payload != 0)
		return rc_rx_invalid(r);
	if (r->memory != NULL &&
		!rc_mr_allows(r->memory, p->rkey, p->remote_addr, p->dma_len, ACCESS_REMOTE_READ))
		return rc_rx_fatal(r, AETH_NAK_REM_ACCESS, RC_RX_ACCESS);

	unsigned i = r->newest;
	*res = (struct rc_resource){
		.addr = p->remote_addr,
		.pkts = packets_of(r, p->dma_len),
		.length = p->dma_len,
		.rkey = p->rkey,
		.op = WR_READ,
	};
	int result = rd_atomic_taken(r, res) | RC_RX_READ;
	answer(r, i, 0, res->pkts, p->dma_len);
	return result;
}

int rc_atomic_request(
	struct rc_responder *r, const struct rc_packet *p, enum wr_op op, struct rc_accept *out)
{
	struct rc_resource *res = new_resource(r);

	if (res == NULL || p->remote_addr % RC_ATOMIC_BYTES != 0 || p->payload != 0)
		return rc_rx_invalid(r);
	if (r->memory != NULL && !rc_mr_allows(r->memory, p->rkey, p->remote_addr, RC_ATOMIC_BYTES,
					 ACCESS_REMOTE_ATOMIC))
		return rc_rx_fatal(r, AETH_NAK_REM_ACCESS, RC_RX_ACCESS);

	*res = (struct rc_resource){
		.addr = p->remote_addr,
		.pkts = 1,
		.length = RC_ATOMIC_BYTES,
		.rkey = p->rkey,
		.op = (uint8_t)op,
	};
	out->atomic.addr = p->remote_addr;
	out->atomic.compare = p->compare;
	out->atomic.swap_add = p->swap_add;
	out->atomic.cmp_swap = op == WR_CMP_SWAP;
	return rd_atomic_taken(r, res) | RC_RX_ATOMIC;
}

void rc_atomic_done(struct rc_responder *r, uint64_t original)
{
	unsigned i = (r->newest + r->n_resources - 1u) % r->n_resources;

	r->resources[i].original = original;
	answer(r, i, 0, 1, RC_ATOMIC_BYTES);
}

// The resource whose answer had this PSN; -1: none remembers it.
static int find_resource(const struct rc_responder *r, uint32_t psn)
{
	for (unsigned i = 0; i < r->n_resources; i++) {
		const struct rc_resource *res = &r->resources[i];
		int32_t d = psn_diff(psn, res->psn);
		if (res->used && d >= 0 && (uint32_t)d < res->pkts)
			return (int)i;
	}
	return -1;
}

// A READ again, of all or a part of what the first asked for; or an atomic.
int rc_duplicate_rd_atomic(struct rc_responder *r, const struct rc_packet *p, enum wr_op op)
{
	int i = find_resource(r, p->psn);

	if (i < 0 || r->resources[i].op != op)
		return RC_RX_DUPLICATE;

	const struct rc_resource *res = &r->resources[i];
	if (op != WR_READ) {
		answer(r, (unsigned)i, 0, 1, RC_ATOMIC_BYTES);
		return RC_RX_DUPLICATE | RC_RX_RESPOND;
	}
	uint32_t from = (uint32_t)psn_diff(p->psn, res->psn);
	uint64_t skip = (uint64_t)from * r->payload;
	if (p->rkey != res->rkey || p->remote_addr != res->addr + skip ||
		skip + p->dma_len > res->length)
		return RC_RX_DUPLICATE;
	if (r->memory != NULL &&
		!rc_mr_allows(r->memory, p->rkey, p->remote_addr, p->dma_len, ACCESS_REMOTE_READ))
		return rc_rx_fatal(r, AETH_NAK_REM_ACCESS, RC_RX_ACCESS);
	answer(r, (unsigned)i, from, from + packets_of(r, p->dma_len), p->dma_len);
	return RC_RX_DUPLICATE | RC_RX_RESPOND;
}
