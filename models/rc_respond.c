/* SPDX-License-Identifier: BSD-3-Clause */
// What the responder says (IBTA vol. 1, 9.7.5): ACKs and NAKs, answers to READs and atomics.
//
// An ACK is made when it is sent, with the newest state, so that one stands for all that were due.
// Answers to READs and atomics are sent in the order of the requests, packet by packet as the
// caller has room, and before any ACK or NAK: to the peer, an ACK of a later PSN says that the
// answer before it was lost. A READ asked for again starts again where it was asked for, while
// those after it go on where they are.
//
// Credits (9.7.7.2) are the receives that are there, that of the message in progress included,
// since the peer counts from the messages completed.
#include "models/rc_responder.h"

#define CREDIT_CODES 31

static const uint16_t credit_table[CREDIT_CODES] = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96,
	128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
	32768};

uint32_t rc_credits(uint8_t code)
{
	return credit_table[code < CREDIT_CODES ? code : CREDIT_CODES - 1];
}

uint8_t rc_credit_code(uint32_t n)
{
	uint8_t code = CREDIT_CODES - 1;

	while (credit_table[code] > n)
		code--;
	return code;
}

simtime_t rc_rnr_time(uint8_t timer)
{
	static const uint32_t us[32] = {655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480,
		640, 960, 1280, 1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960,
		61440, 81920, 122880, 163840, 245760, 327680, 491520};

	return us[timer & 31] * SIM_US;
}

uint8_t rc_give_credits(const struct rc_responder *r)
{
	if (!r->credits)
		return AETH_ACK | AETH_CREDIT_INVALID;
	bool taken = r->has_recv && r->in_msg == RC_IN_SEND;
	return AETH_ACK | rc_credit_code(rc_rq_count(r->rq) + taken);
}

static struct rc_resource *first_waiting(struct rc_responder *r)
{
	struct rc_resource *res = &r->resources[r->oldest];

	while (res->next == res->until) {
		r->oldest = (uint8_t)((r->oldest + 1) % r->n_resources);
		res = &r->resources[r->oldest];
	}
	return res;
}

void rc_ack_before_answers(struct rc_responder *r, struct rc_ack *out)
{
	const struct rc_resource *res = first_waiting(r);

	out->psn = psn_add(res->psn, (uint64_t)res->next + PSN_MASK);
	out->msn = psn_add(res->msn, PSN_MASK);
	out->syndrome = rc_give_credits(r);
}

static void read_response(
	const struct rc_responder *r, struct rc_resource *res, struct rc_response *out)
{
	static const uint8_t opcodes[4] = {
		[RC_FIRST] = ROCE_READ_RESP_FIRST,
		[RC_MIDDLE] = ROCE_READ_RESP_MIDDLE,
		[RC_LAST] = ROCE_READ_RESP_LAST,
		[RC_ONLY] = ROCE_READ_RESP_ONLY,
	};
	uint32_t idx = res->next;
	bool last = idx + 1 == res->until;

	out->place = (uint8_t)((idx == res->from ? RC_FIRST : 0) | (last ? RC_LAST : 0));
	out->opcode = opcodes[out->place];
	out->psn = psn_add(res->psn, idx);
	out->addr = res->addr + (uint64_t)idx * r->payload;
	out->payload = last ? res->last_payload : r->payload;
}

void rc_tx_response(struct rc_responder *r, struct rc_response *out)
{
	if (r->sending == 0) {
		struct rc_ack a;
		rc_tx_ack(r, &a);
		*out = (struct rc_response){
			.psn = a.psn, .msn = a.msn, .opcode = ROCE_ACK, .syndrome = a.syndrome};
		return;
	}

	struct rc_resource *res = first_waiting(r);
	*out = (struct rc_response){
		.msn = res->msn, .rkey = res->rkey, .syndrome = rc_give_credits(r)};
	if (res->op == WR_READ) {
		read_response(r, res, out);
	} else {
		out->place = RC_ONLY;
		out->opcode = ROCE_ATOMIC_ACK;
		out->psn = res->psn;
		out->original = res->original;
	}
	res->next++;
	res->answered |= res->next == res->pkts;
	if (res->next == res->until)
		r->sending--;
}
