/* SPDX-License-Identifier: BSD-3-Clause */
// QoS maps as SONiC renders them (files/build_templates/qos_config.j2, map name AZURE). Two
// lossless classes, 3 and 4, keep their DSCP value as class all the way; CNPs (DSCP 48) go to
// class 6.

#include "models/qos_map.h"

#include <string.h>

#define DSCP_TC_OTHER 1

void qos_map_default(struct qos_map *m)
{
	static const uint8_t tc_to_pg[QOS_CLASSES] = {0, 0, 0, 3, 4, 0, 0, 7};

	*m = (struct qos_map){.trust = QOS_TRUST_DSCP};
	memset(m->dscp_to_tc, DSCP_TC_OTHER, sizeof(m->dscp_to_tc));
	m->dscp_to_tc[3] = 3;
	m->dscp_to_tc[4] = 4;
	m->dscp_to_tc[5] = 2;
	m->dscp_to_tc[8] = 0;
	m->dscp_to_tc[46] = 5;
	m->dscp_to_tc[48] = 6;
	memcpy(m->tc_to_pg, tc_to_pg, sizeof(tc_to_pg));
	for (uint8_t i = 0; i < QOS_CLASSES; i++) {
		// DOT1P_TO_TC_MAP swaps 0 and 1: best effort is 802.1p's 0, background its 1.
		m->pcp_to_tc[i] = i < 2 ? 1 - i : i;
		m->tc_to_queue[i] = i;
		m->pfc_to_queue[i] = i;
		m->pfc_to_pg[i] = i;
	}
}

static bool classes(const uint8_t *map, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (map[i] >= QOS_CLASSES)
			return false;
	return true;
}

bool qos_map_valid(const struct qos_map *m)
{
	return classes(m->dscp_to_tc, QOS_DSCPS) && classes(m->pcp_to_tc, QOS_CLASSES) &&
	       classes(m->tc_to_pg, QOS_CLASSES) && classes(m->tc_to_queue, QOS_CLASSES) &&
	       classes(m->pfc_to_queue, QOS_CLASSES) && classes(m->pfc_to_pg, QOS_CLASSES) &&
	       m->default_tc < QOS_CLASSES && m->trust <= QOS_TRUST_PCP;
}

uint8_t qos_map_pg_priorities(const struct qos_map *m, uint8_t pg)
{
	uint8_t mask = 0;

	for (unsigned prio = 0; prio < QOS_CLASSES; prio++)
		if (m->pfc_to_pg[prio] == pg)
			mask |= (uint8_t)(1u << prio);
	return mask;
}
