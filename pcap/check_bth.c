/* SPDX-License-Identifier: BSD-3-Clause */
// What one RoCE packet must be by itself (IBTA vol. 1, 9.2 to 9.4): headers of its opcode are there
// (the codec has seen to that), payload and pad fill whole words, acknowledgements and requests
// for data have no payload, and a first or middle packet is as long as some path MTU.
#include <stdio.h>

#include "pcap/check_priv.h"

// In an ACKNOWLEDGE, what a receiver that repeats selectively says has arrived.
#define SACK_BYTES 12

static bool is_mtu(unsigned bytes)
{
	return bytes >= 256 && bytes <= 4096 && (bytes & (bytes - 1)) == 0;
}

static bool must_fill(uint8_t opcode)
{
	uint8_t transport = opcode & 0xe0, op = opcode & 0x1f;

	if (transport != ROCE_RC && transport != ROCE_UC)
		return false;
	return op == ROCE_SEND_FIRST || op == ROCE_SEND_MIDDLE || op == ROCE_WRITE_FIRST ||
	       op == ROCE_WRITE_MIDDLE || op == ROCE_READ_RESP_FIRST || op == ROCE_READ_RESP_MIDDLE;
}

enum check_kind bth_judge(const struct pkt *p, char *why, size_t bytes)
{
	const struct roce_opcode *o = &roce_opcodes[p->opcode];

	if (o->name == NULL) {
		snprintf(why, bytes, "opcode 0x%02x", p->opcode);
		return CHECK_OPCODE;
	}
	if ((p->payload_len + p->pad) % 4 != 0) {
		snprintf(why, bytes, "%s: payload %u and pad %u are no multiple of 4", o->name,
			p->payload_len, p->pad);
		return CHECK_LENGTH;
	}
	bool sack = p->opcode == ROCE_ACK && p->payload_len == SACK_BYTES;
	if (!o->payload && p->payload_len + p->pad != 0 && !sack) {
		snprintf(why, bytes, "%s: %u bytes of payload, expected none", o->name,
			p->payload_len + p->pad);
		return CHECK_LENGTH;
	}
	if (must_fill(p->opcode) && (p->pad != 0 || !is_mtu(p->payload_len))) {
		snprintf(why, bytes, "%s: payload %u, expected 256, 512, 1024, 2048 or 4096",
			o->name, p->payload_len);
		return CHECK_MTU;
	}
	return CHECK_KINDS;
}
