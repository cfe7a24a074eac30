/* SPDX-License-Identifier: BSD-3-Clause */
// Priority-based flow control. A PFC frame names priorities and gives each a pause in quanta of 512
// bit times; 0 ends a pause (XON). A pause that is not repeated ends by itself, so whoever wants
// quiet for longer refreshes it: here at half its life, which leaves the other half for a frame
// that is in the way (pfc_min_quanta() tells when that is not enough).
//
//	PG crosses XOFF    refresh at 1/2       PG below XON
//	      |--XOFF q-------|--XOFF q-------|---XON--|
//	peer: |<- response ->|========== paused ==========|<- response
//
// One frame carries all that a port has to say: every asserted priority with full quanta, every
// resumed one with 0. So each frame refreshes everything, and one deadline per port suffices.
//
// The receiver acts `response` after the frame's last bit (802.3 31B.3.7 bounds it, table below);
// pause and resume alike, and the quanta count from there. A frame whose transmission has begun is
// finished (PFC never cuts a frame). The response delay itself is the caller's timer.
//
// Invariants: told, asserted are subsets of enabled; unsaid == (asserted ^ told); since[] is valid
// for the bits of told and paused; refresh_at is SIMTIME_NEVER iff told == 0.

#include "models/pfc.h"

#include <stddef.h>

#define REFRESH_FRACTION 2
#define WIRE_OVERHEAD    20                                    // preamble and gap
#define PFC_WIRE_BYTES   (PFC_FRAME_BYTES + 4 + WIRE_OVERHEAD) // 84
#define MBPS             UINT64_C(1000000)

// Response time by rate, IEEE 802.3 31B.3.7 and its amendments.
static const struct {
	uint64_t rate_bps;
	uint32_t quanta;
} response_table[] = {
	{100 * MBPS, 1},
	{1000 * MBPS, 2},
	{10000 * MBPS, 67},
	{25000 * MBPS, 80},
	{40000 * MBPS, 118},
	{50000 * MBPS, 147},
	{100000 * MBPS, 394},
	{200000 * MBPS, 453},
	{400000 * MBPS, 905},
	{800000 * MBPS, 905},
};

#define N_RESPONSES (sizeof(response_table) / sizeof(response_table[0]))

uint32_t pfc_response_quanta(uint64_t rate_bps)
{
	for (size_t i = 0; i < N_RESPONSES; i++)
		if (rate_bps <= response_table[i].rate_bps)
			return response_table[i].quanta;
	uint64_t top = response_table[N_RESPONSES - 1].rate_bps;
	return (uint32_t)(((unsigned __int128)response_table[N_RESPONSES - 1].quanta * rate_bps +
				  top - 1) /
			  top);
}

simtime_t pfc_response_time(uint64_t rate_bps)
{
	return pfc_quanta_time(byte_time_fp(rate_bps), pfc_response_quanta(rate_bps));
}

uint32_t pfc_min_quanta(uint32_t max_frame_bytes)
{
	uint32_t in_the_way = max_frame_bytes + WIRE_OVERHEAD + PFC_WIRE_BYTES;

	return REFRESH_FRACTION * in_the_way / PFC_QUANTUM_BYTES + 2;
}

void pfc_tx_init(struct pfc_tx *p, uint8_t enabled, uint16_t quanta, uint64_t byte_time)
{
	*p = (struct pfc_tx){
		.enabled = enabled,
		.quanta = quanta,
		.lifetime = pfc_quanta_time(byte_time, quanta),
		.refresh_at = SIMTIME_NEVER,
	};
}

struct pfc_tx_frame pfc_tx_say(struct pfc_tx *p, simtime_t now, struct pauses *ended)
{
	struct pfc_tx_frame f = {
		.vector = p->asserted | p->told,
		.xoff = p->asserted & (uint8_t)~p->told,
		.xon = p->told & (uint8_t)~p->asserted,
	};

	for (unsigned i = 0; i < PFC_PRIORITIES; i++) {
		if (p->asserted >> i & 1)
			f.quanta[i] = p->quanta;
		if (f.xoff >> i & 1)
			p->since[i] = now;
		if (f.xon >> i & 1)
			pauses_add(ended, i, now - p->since[i]);
	}
	p->told = p->asserted;
	p->unsaid = 0;
	p->refresh_at = p->told ? now + p->lifetime / REFRESH_FRACTION : SIMTIME_NEVER;
	return f;
}

void pfc_tx_reset(struct pfc_tx *p, simtime_t now, struct pauses *ended)
{
	for (unsigned i = 0; i < PFC_PRIORITIES; i++)
		if (p->told >> i & 1)
			pauses_add(ended, i, now - p->since[i]);
	p->told = 0;
	p->unsaid = p->asserted;
	p->refresh_at = SIMTIME_NEVER;
}

void pfc_rx_init(struct pfc_rx *p, uint8_t enabled, uint64_t byte_time)
{
	*p = (struct pfc_rx){.enabled = enabled, .byte_time = byte_time};
}

static enum pfc_rx_change resume(
	struct pfc_rx *p, unsigned prio, simtime_t now, struct pauses *ended)
{
	if (!(p->paused >> prio & 1))
		return PFC_NO_CHANGE;
	p->paused &= (uint8_t) ~(1u << prio);
	pauses_add(ended, prio, now - p->since[prio]);
	return PFC_RESUMED;
}

enum pfc_rx_change pfc_rx_apply(
	struct pfc_rx *p, unsigned prio, uint16_t quanta, simtime_t now, struct pauses *ended)
{
	if (quanta == 0)
		return resume(p, prio, now, ended);
	p->until[prio] = now + pfc_quanta_time(p->byte_time, quanta);
	if (p->paused >> prio & 1)
		return PFC_NO_CHANGE;
	p->paused |= (uint8_t)(1u << prio);
	p->since[prio] = now;
	return PFC_PAUSED;
}

enum pfc_rx_change pfc_rx_expire(
	struct pfc_rx *p, unsigned prio, simtime_t now, struct pauses *ended)
{
	if (now < p->until[prio])
		return PFC_NO_CHANGE;
	return resume(p, prio, now, ended);
}

uint8_t pfc_rx_reset(struct pfc_rx *p, simtime_t now, struct pauses *ended)
{
	uint8_t were = p->paused;

	for (unsigned i = 0; i < PFC_PRIORITIES; i++)
		resume(p, i, now, ended);
	return were;
}
