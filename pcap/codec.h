/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The one place where bytes become headers: used by switch, NIC, edge, capture, replay and checker
// alike. Nothing here reads past the bytes it was given, whatever their contents.

#include <stdbool.h>
#include <stdint.h>

#include "pcap/roce.h"
#include "pcap/wire.h"

// Names align with the DROP_* reasons: X(id, drop reason).
#define PKT_ERRORS(X)               \
	X(ETH, MALFORMED_ETH)       \
	X(IP, MALFORMED_IP)         \
	X(IP_CHECKSUM, IP_CHECKSUM) \
	X(UDP, MALFORMED_UDP)       \
	X(BTH, MALFORMED_BTH)       \
	X(CONTROL, MALFORMED_CONTROL)

enum pkt_error {
	PKT_OK,
#define X(id, drop) PKT_ERR_##id,
	PKT_ERRORS(X)
#undef X
};

enum pkt_kind {
	PKT_IP,    // IPv4 or IPv6: see ip_version
	PKT_ARP,   // l3_off: the ARP body
	PKT_PFC,   // l3_off: the opcode of the MAC control frame; see pfc_parse()
	PKT_PAUSE, // the same; see pause_parse()
	PKT_ROCE1, // RoCEv1: l3_off: the GRH
};

// Where a frame's headers are and what the data path asks of them. Offsets count from the frame's
// first byte and are 0 when the header is not there.
struct pkt {
	const uint8_t *data;
	uint16_t l3_off;
	uint16_t l4_off; // 0 for IP fragments: they are routed by address alone
	uint16_t bth_off;
	uint16_t payload_off; // after the last header known here
	uint16_t payload_len; // without BTH pad and ICRC
	uint16_t end;         // first byte behind the packet: Ethernet padding starts here
	uint16_t ethertype;   // behind the tags
	uint16_t vlan_tci;    // outermost tag, PCP included
	uint8_t kind;         // enum pkt_kind
	uint8_t n_tags;
	uint8_t ip_version; // 4, 6, or 0
	uint8_t dscp;
	uint8_t ecn; // enum ecn
	uint8_t ttl; // or hop limit
	uint8_t proto;
	uint8_t addr_bytes; // 4, 16 (GIDs for RoCEv1), or 0
	uint16_t src_off;   // IP addresses
	uint16_t dst_off;
	uint16_t sport; // UDP and TCP
	uint16_t dport;
	// BTH, if bth_off
	uint32_t psn;
	uint32_t dest_qp;
	uint16_t pkey;
	uint8_t opcode;
	uint8_t pad;
	bool se, ack_req, fecn, becn;
};

// Parses a frame whose `len` bytes (without FCS) are all there. Checks everything a receiver would:
// header lengths against the frame and against each other, versions, the IPv4 checksum; not the
// ICRC (pcap/icrc.h). Bytes behind the IP packet are Ethernet padding and ignored. On an error
// `out` holds what was understood before it. len <= 65535.
enum pkt_error pkt_parse(const uint8_t *data, uint32_t len, struct pkt *out);

// The same for a frame of `len` bytes of which only the first `have` exist: payload, pad and ICRC
// may be missing, headers not.
enum pkt_error pkt_parse_head(const uint8_t *data, uint32_t have, uint32_t len, struct pkt *out);

const char *pkt_error_name(enum pkt_error err);

// First byte of an extension header of a parsed RoCE packet, NULL when its opcode has none.
static inline const uint8_t *pkt_ext(const struct pkt *p, enum roce_ext ext)
{
	unsigned off = roce_opcodes[p->opcode].ext[ext];

	return p->bth_off && off ? p->data + p->bth_off + off : NULL;
}

static inline uint8_t pkt_pcp(const struct pkt *p)
{
	return (uint8_t)(p->vlan_tci >> 13);
}

// Hash of the 5-tuple, for ECMP; 0 ports and protocol for fragments, so that all of a datagram's
// fragments take one path.
uint32_t pkt_flow_hash(const struct pkt *p);

// The same hash for a sender that knows its tuple. Addresses in host order.
uint32_t flow_hash_v4(uint32_t src, uint32_t dst, uint16_t sport, uint16_t dport, uint8_t proto);
uint32_t flow_hash_v6(const uint8_t src[16], const uint8_t dst[16], uint16_t sport, uint16_t dport,
	uint8_t proto);

// ---- MAC control -----------------------------------------------------------------------------

extern const uint8_t mac_control_address[6]; // 01:80:c2:00:00:01

struct pfc {
	uint8_t classes;              // bit i: priority i is named
	uint16_t quanta[PFC_CLASSES]; // of 512 bit times; 0 resumes
};

// `p` is of kind PKT_PFC.
struct pfc pfc_parse(const struct pkt *p);
// Quanta of a frame of kind PKT_PAUSE (802.3 annex 31B).
uint16_t pause_parse(const struct pkt *p);

// Writes a complete 60-byte frame (FCS not counted): quanta of classes not in `classes` are zero.
void pfc_build(uint8_t out[ETH_MIN_NO_FCS], const uint8_t src_mac[6], uint8_t classes,
	const uint16_t quanta[PFC_CLASSES]);
void pause_build(uint8_t out[ETH_MIN_NO_FCS], const uint8_t src_mac[6], uint16_t quanta);
