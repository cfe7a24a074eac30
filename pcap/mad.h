/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Management datagrams: the 256 bytes in a UD SEND to queue pair 1, and in them the messages of
// connection management (IBTA vol. 1, 13.4.2 and chapter 12). Each message is one table of fields,
// from which come the struct, the decoder and the encoder. Fields that the standard reserves are
// not kept: they are written as zero, as every sender does.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pcap/wire.h"

#define MAD_BYTES        256
#define MAD_HEADER_BYTES 24
#define MAD_BASE_VERSION 1
#define MAD_CLASS_CM     0x07
#define MAD_CM_VERSION   2
#define MAD_METHOD_SEND  0x03

// Where they go: queue pair 1, the general services interface (IBTA 10.2.4.4).
#define GSI_QPN  1
#define GSI_QKEY 0x80010000u

#define GID_BYTES 16

// Tables of fields: B(type, name, byte, first bit of that byte, bits) and M(name, byte, bytes);
// positions count behind the MAD header. Table numbers are those of IBTA vol. 1 release
// 1.3 as Linux's ibta_vol1_c12.h counts them.

// One path of table 106.
#define CM_PATH_FIELDS(B, M, pre, at)                    \
	B(uint16_t, pre##_local_lid, (at), 0, 16)        \
	B(uint16_t, pre##_remote_lid, (at) + 2, 0, 16)   \
	M(pre##_local_gid, (at) + 4, GID_BYTES)          \
	M(pre##_remote_gid, (at) + 20, GID_BYTES)        \
	B(uint32_t, pre##_flow_label, (at) + 36, 0, 20)  \
	B(uint8_t, pre##_packet_rate, (at) + 39, 2, 6)   \
	B(uint8_t, pre##_traffic_class, (at) + 40, 0, 8) \
	B(uint8_t, pre##_hop_limit, (at) + 41, 0, 8)     \
	B(uint8_t, pre##_sl, (at) + 42, 0, 4)            \
	B(uint8_t, pre##_subnet_local, (at) + 42, 4, 1)  \
	B(uint8_t, pre##_ack_timeout, (at) + 43, 0, 5)

// Table 106. starting_psn is the PSN with which the receiver of this message begins to transmit.
#define CM_REQ_FIELDS(B, M)                           \
	B(uint32_t, local_comm_id, 0, 0, 32)          \
	B(uint32_t, vendor_id, 5, 0, 24)              \
	B(uint64_t, service_id, 8, 0, 64)             \
	B(uint64_t, local_ca_guid, 16, 0, 64)         \
	B(uint32_t, local_qkey, 28, 0, 32)            \
	B(uint32_t, local_qpn, 32, 0, 24)             \
	B(uint8_t, responder_resources, 35, 0, 8)     \
	B(uint32_t, local_eecn, 36, 0, 24)            \
	B(uint8_t, initiator_depth, 39, 0, 8)         \
	B(uint32_t, remote_eecn, 40, 0, 24)           \
	B(uint8_t, remote_response_timeout, 43, 0, 5) \
	B(uint8_t, transport, 43, 5, 2)               \
	B(uint8_t, flow_control, 43, 7, 1)            \
	B(uint32_t, starting_psn, 44, 0, 24)          \
	B(uint8_t, local_response_timeout, 47, 0, 5)  \
	B(uint8_t, retry_count, 47, 5, 3)             \
	B(uint16_t, pkey, 48, 0, 16)                  \
	B(uint8_t, path_mtu, 50, 0, 4)                \
	B(uint8_t, rdc_exists, 50, 4, 1)              \
	B(uint8_t, rnr_retry_count, 50, 5, 3)         \
	B(uint8_t, max_cm_retries, 51, 0, 4)          \
	B(uint8_t, srq, 51, 4, 1)                     \
	B(uint8_t, extended_transport, 51, 5, 3)      \
	CM_PATH_FIELDS(B, M, primary, 52)             \
	CM_PATH_FIELDS(B, M, alternate, 96)           \
	B(uint8_t, sap_supported, 139, 5, 1)          \
	M(private_data, 140, 92)

// Table 107
#define CM_MRA_FIELDS(B, M)                   \
	B(uint32_t, local_comm_id, 0, 0, 32)  \
	B(uint32_t, remote_comm_id, 4, 0, 32) \
	B(uint8_t, message_mraed, 8, 0, 2)    \
	B(uint8_t, service_timeout, 9, 0, 5)  \
	M(private_data, 10, 222)

// Table 108
#define CM_REJ_FIELDS(B, M)                   \
	B(uint32_t, local_comm_id, 0, 0, 32)  \
	B(uint32_t, remote_comm_id, 4, 0, 32) \
	B(uint8_t, message_rejected, 8, 0, 2) \
	B(uint8_t, info_length, 9, 0, 7)      \
	B(uint16_t, reason, 10, 0, 16)        \
	M(info, 12, 72)                       \
	M(private_data, 84, 148)

// Table 110
#define CM_REP_FIELDS(B, M)                       \
	B(uint32_t, local_comm_id, 0, 0, 32)      \
	B(uint32_t, remote_comm_id, 4, 0, 32)     \
	B(uint32_t, local_qkey, 8, 0, 32)         \
	B(uint32_t, local_qpn, 12, 0, 24)         \
	B(uint8_t, vendor_id_high, 15, 0, 8)      \
	B(uint32_t, local_eecn, 16, 0, 24)        \
	B(uint8_t, vendor_id_middle, 19, 0, 8)    \
	B(uint32_t, starting_psn, 20, 0, 24)      \
	B(uint8_t, vendor_id_low, 23, 0, 8)       \
	B(uint8_t, responder_resources, 24, 0, 8) \
	B(uint8_t, initiator_depth, 25, 0, 8)     \
	B(uint8_t, target_ack_delay, 26, 0, 5)    \
	B(uint8_t, failover_accepted, 26, 5, 2)   \
	B(uint8_t, flow_control, 26, 7, 1)        \
	B(uint8_t, rnr_retry_count, 27, 0, 3)     \
	B(uint8_t, srq, 27, 3, 1)                 \
	B(uint64_t, local_ca_guid, 28, 0, 64)     \
	M(private_data, 36, 196)

// Table 111
#define CM_RTU_FIELDS(B, M)                   \
	B(uint32_t, local_comm_id, 0, 0, 32)  \
	B(uint32_t, remote_comm_id, 4, 0, 32) \
	M(private_data, 8, 224)

// Table 112
#define CM_DREQ_FIELDS(B, M)                  \
	B(uint32_t, local_comm_id, 0, 0, 32)  \
	B(uint32_t, remote_comm_id, 4, 0, 32) \
	B(uint32_t, remote_qpn, 8, 0, 24)     \
	M(private_data, 12, 220)

// Table 113
#define CM_DREP_FIELDS(B, M)                  \
	B(uint32_t, local_comm_id, 0, 0, 32)  \
	B(uint32_t, remote_comm_id, 4, 0, 32) \
	M(private_data, 8, 224)

// Table 119
#define CM_SIDR_REQ_FIELDS(B, M)          \
	B(uint32_t, request_id, 0, 0, 32) \
	B(uint16_t, pkey, 4, 0, 16)       \
	B(uint64_t, service_id, 8, 0, 64) \
	M(private_data, 16, 216)

// Table 120
#define CM_SIDR_REP_FIELDS(B, M)              \
	B(uint32_t, request_id, 0, 0, 32)     \
	B(uint8_t, status, 4, 0, 8)           \
	B(uint8_t, info_length, 5, 0, 8)      \
	B(uint16_t, vendor_id_high, 6, 0, 16) \
	B(uint32_t, qpn, 8, 0, 24)            \
	B(uint8_t, vendor_id_low, 11, 0, 8)   \
	B(uint64_t, service_id, 12, 0, 64)    \
	B(uint32_t, qkey, 20, 0, 32)          \
	M(info, 24, 72)                       \
	M(private_data, 96, 136)

// Path migration (LAP, APR) is recognised by name and its contents are not looked at.
#define CM_NO_FIELDS(B, M) B(uint32_t, local_comm_id, 0, 0, 32)

// Messages: X(id, member, attribute ID, name, fields).
#define CM_MESSAGES(X)                                                           \
	X(REQ, req, 0x0010, "ConnectRequest", CM_REQ_FIELDS)                     \
	X(MRA, mra, 0x0011, "MsgRcptAck", CM_MRA_FIELDS)                         \
	X(REJ, rej, 0x0012, "ConnectReject", CM_REJ_FIELDS)                      \
	X(REP, rep, 0x0013, "ConnectReply", CM_REP_FIELDS)                       \
	X(RTU, rtu, 0x0014, "ReadyToUse", CM_RTU_FIELDS)                         \
	X(DREQ, dreq, 0x0015, "DisconnectRequest", CM_DREQ_FIELDS)               \
	X(DREP, drep, 0x0016, "DisconnectReply", CM_DREP_FIELDS)                 \
	X(SIDR_REQ, sidr_req, 0x0017, "ServiceIDResReq", CM_SIDR_REQ_FIELDS)     \
	X(SIDR_REP, sidr_rep, 0x0018, "ServiceIDResReqResp", CM_SIDR_REP_FIELDS) \
	X(LAP, lap, 0x0019, "LoadAlternatePath", CM_NO_FIELDS)                   \
	X(APR, apr, 0x001a, "AlternatePathResponse", CM_NO_FIELDS)

enum cm_attribute {
#define X(id, member, value, name, fields) CM_ATTR_##id = value,
	CM_MESSAGES(X)
#undef X
};

#define CM_BIT_MEMBER(type, name, byte, bit, bits) type name;
#define CM_MEM_MEMBER(name, byte, bytes)           uint8_t name[bytes];
#define X(id, member, value, name, fields)           \
	struct cm_##member {                         \
		fields(CM_BIT_MEMBER, CM_MEM_MEMBER) \
	};
CM_MESSAGES(X)
#undef X
#undef CM_BIT_MEMBER
#undef CM_MEM_MEMBER

struct mad_header {
	uint64_t tid;
	uint32_t attr_mod;
	uint16_t status;
	uint16_t class_specific;
	uint16_t attr_id; // with MAD_CLASS_CM: enum cm_attribute
	uint8_t base_version;
	uint8_t mgmt_class;
	uint8_t class_version;
	uint8_t method;
};

// A connection management message; hdr.attr_id says which member it is.
struct cm_mad {
	struct mad_header hdr;
	union {
#define X(id, member, value, name, fields) struct cm_##member member;
		CM_MESSAGES(X)
#undef X
	};
};

enum mad_error {
	MAD_OK,
	MAD_SHORT,   // fewer than MAD_BYTES
	MAD_NOT_CM,  // another class, version or method
	MAD_UNKNOWN, // attribute not in CM_MESSAGES
};

// The header alone, of any class. False when `len` is less than it needs.
bool mad_header_parse(const uint8_t *data, size_t len, struct mad_header *out);

// A connection management MAD of `len` bytes; bytes behind MAD_BYTES are ignored. With MAD_NOT_CM
// and MAD_UNKNOWN the header is valid.
enum mad_error cm_mad_parse(const uint8_t *data, size_t len, struct cm_mad *out);

// The inverse. Values wider than their field are cut. hdr.attr_id must be in CM_MESSAGES.
void cm_mad_build(const struct cm_mad *mad, uint8_t out[MAD_BYTES]);

// A message with its header filled in and all else zero.
void cm_mad_init(struct cm_mad *mad, enum cm_attribute attr, uint64_t tid);

// "ConnectRequest"; NULL for values not in the table.
const char *cm_attribute_name(uint16_t attr_id);

// ---- values -----------------------------------------------------------------------------------

// Which message a REJ or MRA answers.
enum cm_answered { CM_ANSWERS_REQ = 0, CM_ANSWERS_REP = 1, CM_ANSWERS_OTHER = 2 };

enum cm_transport { CM_RC = 0, CM_UC = 1, CM_UD = 2 }; // 2 is RD's on the wire and never sent

// Reasons of a REJ (table 109): X(id, value, text). Those that somebody sends.
#define CM_REJ_REASONS(X)                                                  \
	X(NO_QP, 1, "no queue pair available")                             \
	X(NO_RESOURCES, 3, "no resources available")                       \
	X(TIMEOUT, 4, "timeout")                                           \
	X(UNSUPPORTED, 5, "unsupported request")                           \
	X(INVALID_COMM_ID, 6, "invalid communication ID")                  \
	X(INVALID_COMM_INSTANCE, 7, "invalid instance of a communication") \
	X(INVALID_SERVICE_ID, 8, "invalid service ID: nobody listens")     \
	X(INVALID_TRANSPORT, 9, "invalid transport service type")          \
	X(STALE_CONN, 10, "stale connection")                              \
	X(INVALID_GID, 12, "invalid GID")                                  \
	X(INVALID_MTU, 26, "invalid path MTU")                             \
	X(INSUFFICIENT_RESP, 27, "insufficient responder resources")       \
	X(CONSUMER, 28, "rejected by the consumer")                        \
	X(INVALID_RNR_RETRY, 29, "RNR retry count rejected")               \
	X(DUPLICATE_COMM_ID, 30, "duplicate local communication ID")       \
	X(INVALID_VERSION, 31, "invalid class version")                    \
	X(VENDOR_OPTION, 35, "vendor option not supported")

enum cm_rej_reason {
#define X(id, value, text) CM_REJ_##id = value,
	CM_REJ_REASONS(X)
#undef X
};

const char *cm_rej_text(uint16_t reason); // "other reason" for those not in the table

// Status of a SIDR_REP (table 121).
enum cm_sidr_status {
	CM_SIDR_OK = 0,
	CM_SIDR_UNSUPPORTED = 1, // nobody listens
	CM_SIDR_REJECT = 2,
	CM_SIDR_NO_QP = 3,
};

// ---- rdma_cm ----------------------------------------------------------------------------------

// Service IDs of rdma_cm (annex A11): a prefix, the protocol, the port.
#define CMA_PS_TCP 0x0106
#define CMA_PS_UDP 0x0111

static inline uint64_t cma_service_id(uint16_t port_space, uint16_t port)
{
	return UINT64_C(0x0000000001000000) | (uint64_t)(port_space & 0xff) << 16 | port;
}

static inline bool cma_is_service_id(uint64_t service_id)
{
	return service_id >> 24 == 1;
}

static inline uint16_t cma_port(uint64_t service_id)
{
	return (uint16_t)service_id;
}

// What rdma_cm puts before the consumer's private data in REQ and SIDR_REQ (annex A11.2): who calls
// whom, as IP addresses.
#define CMA_HEADER_BYTES 36
#define CMA_VERSION      0

struct cma_header {
	uint8_t version;
	uint8_t ip_version;                     // 4 or 6
	uint16_t port;                          // the caller's
	uint8_t src[GID_BYTES], dst[GID_BYTES]; // IPv4 addresses mapped, as in a RoCEv2 GID
};

void cma_header_parse(const uint8_t data[CMA_HEADER_BYTES], struct cma_header *out);
void cma_header_build(const struct cma_header *h, uint8_t out[CMA_HEADER_BYTES]);

// GID of an IPv4 address, ::ffff:a.b.c.d (annex A17.5); `address` in host order.
void gid_from_ipv4(uint8_t gid[GID_BYTES], uint32_t address);
bool gid_is_ipv4(const uint8_t gid[GID_BYTES]);
