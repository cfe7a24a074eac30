/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Priority-based flow control (IEEE 802.1Q clause 36, 802.3 annex 31D), both ends of a link:
// pfc_tx decides what a port says to its peer, pfc_rx keeps what the peer said. See pfc.c.
// Neither knows frames or timers: the caller builds the frame and asks for deadlines.

#include <stdbool.h>
#include <stdint.h>

#include "emu/core/pauses.h"
#include "emu/core/simtime.h"

#define PFC_PRIORITIES     8
#define PFC_QUANTUM_BYTES  64 // 512 bit times
#define PFC_QUANTA_DEFAULT 65535
#define PFC_FRAME_BYTES    60 // without FCS

// Duration of one quantum on a line with this byte time (see byte_time_fp()).
static inline simtime_t pfc_quanta_time(uint64_t byte_time, uint32_t quanta)
{
	return (simtime_t)(((unsigned __int128)byte_time * PFC_QUANTUM_BYTES * quanta) >>
			   BYTE_TIME_SHIFT);
}

// IEEE 802.3 31B.3.7 (the values SONiC's asic_table.j2 lists): longest time in quanta that a
// station of that rate may take to stop. A rate between two entries gets the faster one's quanta,
// which is never too short; above 800 Gb/s the time stays that of 800 Gb/s.
uint32_t pfc_response_quanta(uint64_t rate_bps);
simtime_t pfc_response_time(uint64_t rate_bps);

// Fewest pause quanta with which a refresh at half time always arrives before expiry, for frames of
// up to `max_frame_bytes` (with FCS) in the way.
uint32_t pfc_min_quanta(uint32_t max_frame_bytes);

// ---- what a port says ---------------------------------------------------------------------------

struct pfc_tx {
	uint8_t enabled;                 // priorities for which this port may send PFC
	uint8_t asserted;                // priorities that should be paused
	uint8_t unsaid;                  // priorities whose state changed since the last frame
	uint8_t told;                    // priorities paused by the last frame
	uint16_t quanta;                 // of every XOFF
	simtime_t lifetime;              // quanta as time
	simtime_t refresh_at;            // when the peer must hear again, SIMTIME_NEVER
	simtime_t since[PFC_PRIORITIES]; // XOFF sent at, while told
};

struct pfc_tx_frame {
	uint8_t vector;                  // class-enable vector; 0: nothing to say
	uint8_t xoff;                    // priorities newly paused by this frame
	uint8_t xon;                     // priorities resumed by this frame
	uint16_t quanta[PFC_PRIORITIES]; // 0 is XON
};

void pfc_tx_init(struct pfc_tx *p, uint8_t enabled, uint16_t quanta, uint64_t byte_time);

// Priorities in `mask` are now to be paused (XOFF) or resumed. Returns true when a frame is due.
static inline bool pfc_tx_set(struct pfc_tx *p, uint8_t mask, bool xoff)
{
	uint8_t want = xoff ? p->asserted | mask : p->asserted & (uint8_t)~mask;

	p->asserted = want & p->enabled;
	p->unsaid = p->asserted ^ p->told;
	return p->unsaid != 0;
}

// True when there is something to say at `now`: a change, or a refresh.
static inline bool pfc_tx_due(const struct pfc_tx *p, simtime_t now)
{
	return p->unsaid != 0 || now >= p->refresh_at;
}

// The frame to send at `now`: all asserted priorities with full quanta (which refreshes them) and
// those to be resumed with 0. Updates the state as said and sets the next refresh_at.
// `ended` grows by the pauses that end.
struct pfc_tx_frame pfc_tx_say(struct pfc_tx *p, simtime_t now, struct pauses *ended);

// The link went down: the peer has forgotten; what is asserted will have to be said again.
void pfc_tx_reset(struct pfc_tx *p, simtime_t now, struct pauses *ended);

// ---- what a port was told -----------------------------------------------------------------------

struct pfc_rx {
	uint8_t enabled; // priorities for which this port obeys PFC
	uint8_t paused;  // priorities paused now
	uint8_t armed;   // priorities with an expiry timer running, the caller's
	uint64_t byte_time;
	simtime_t until[PFC_PRIORITIES]; // while paused
	simtime_t since[PFC_PRIORITIES]; // while paused
};

void pfc_rx_init(struct pfc_rx *p, uint8_t enabled, uint64_t byte_time);

enum pfc_rx_change { PFC_NO_CHANGE, PFC_PAUSED, PFC_RESUMED };

// The effect of a PFC frame for one enabled priority, to be applied response time after the frame's
// last bit: pauses for `quanta` from `now`, or resumes when 0. `ended` grows by a pause that
// ends.
enum pfc_rx_change pfc_rx_apply(
	struct pfc_rx *p, unsigned prio, uint16_t quanta, simtime_t now, struct pauses *ended);

// The pause of `prio` may have run out at `now`: PFC_RESUMED if so. If it was extended meanwhile,
// returns PFC_NO_CHANGE and the caller waits until p->until[prio].
enum pfc_rx_change pfc_rx_expire(
	struct pfc_rx *p, unsigned prio, simtime_t now, struct pauses *ended);

// The link went down: nothing is paused any more. Returns the priorities that were.
uint8_t pfc_rx_reset(struct pfc_rx *p, simtime_t now, struct pauses *ended);

// Since when `prio` is paused, SIMTIME_NEVER if it is not.
static inline simtime_t pfc_rx_since(const struct pfc_rx *p, unsigned prio)
{
	return p->paused >> prio & 1 ? p->since[prio] : SIMTIME_NEVER;
}

static inline simtime_t pfc_tx_since(const struct pfc_tx *p, unsigned prio)
{
	return p->told >> prio & 1 ? p->since[prio] : SIMTIME_NEVER;
}
