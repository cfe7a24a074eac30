/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Which class a frame belongs to: DSCP or PCP -> traffic class (TC) -> ingress priority group (PG)
// and egress queue, in SONiC's words (DSCP_TO_TC_MAP, DOT1P_TO_TC_MAP, TC_TO_PRIORITY_GROUP_MAP,
// TC_TO_QUEUE_MAP, MAP_PFC_PRIORITY_TO_QUEUE, PFC_PRIORITY_TO_PRIORITY_GROUP_MAP).

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QOS_CLASSES 8
#define QOS_DSCPS   64

enum qos_trust {
	QOS_TRUST_DSCP, // the IP header's DSCP decides
	QOS_TRUST_PCP,  // the 802.1Q tag's PCP decides
};

struct qos_map {
	uint8_t dscp_to_tc[QOS_DSCPS];
	uint8_t pcp_to_tc[QOS_CLASSES];
	uint8_t tc_to_pg[QOS_CLASSES];
	uint8_t tc_to_queue[QOS_CLASSES];
	uint8_t pfc_to_queue[QOS_CLASSES]; // a received PFC priority pauses this queue
	uint8_t pfc_to_pg[QOS_CLASSES];    // this PG sends XOFF for the priority
	uint8_t trust;                     // enum qos_trust
	uint8_t default_tc;                // of frames without the trusted field
};

// SONiC's AZURE maps: DSCP 3 -> TC 3 and 4 -> 4 (lossless), 5 -> 2, 8 -> 0, 46 -> 5, 48 -> 6, all
// else -> 1; TC 3, 4, 7 have their own PG, the others share PG 0; queues are the identity.
// pfc_to_pg, which SONiC leaves to the ASIC, is the identity. Trusts DSCP; default TC 0.
void qos_map_default(struct qos_map *m);

// True when every entry is a class below 8 and `trust` is known.
bool qos_map_valid(const struct qos_map *m);

// Priorities that PG `pg` pauses when it asserts XOFF, as a bit mask.
uint8_t qos_map_pg_priorities(const struct qos_map *m, uint8_t pg);
