/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap/mad.h"

#include <assert.h>

// One field: bits of the wire, counted from the most significant of the MAD's first byte, and the
// member they become; or, with bits 0, bytes that are copied.
struct field {
	uint16_t at;     // first bit
	uint16_t bits;   // 0: `bytes` bytes as they are
	uint16_t member; // offset in the message's struct
	uint16_t bytes;  // of the member
};

struct table {
	const struct field *rows;
	unsigned n;
};

#define AT(byte, bit) (8 * (MAD_HEADER_BYTES + (byte)) + (bit))
#define ROW_BITS(type, name, byte, bit, bits) \
	{AT(byte, bit), bits, offsetof(message, name), sizeof(type)},
#define ROW_BYTES(name, byte, bytes) {AT(byte, 0), 0, offsetof(message, name), bytes},

// table_req() and so on: the tables of mad.h as arrays.
#define X(id, member, value, name, fields)                                        \
	static struct table table_##member(void)                                  \
	{                                                                         \
		typedef struct cm_##member message;                               \
		static const struct field rows[] = {fields(ROW_BITS, ROW_BYTES)}; \
		return (struct table){rows, sizeof(rows) / sizeof(rows[0])};      \
	}
CM_MESSAGES(X)
#undef X

static struct table table_of(uint16_t attr_id)
{
	switch (attr_id) {
#define X(id, member, value, name, fields) \
	case value:                        \
		return table_##member();
		CM_MESSAGES(X)
#undef X
	}
	return (struct table){NULL, 0};
}

// ---- bits -------------------------------------------------------------------------------------

static uint64_t get_bits(const uint8_t *p, unsigned at, unsigned bits)
{
	uint64_t v = 0;

	for (unsigned end = at + bits; at < end;) {
		unsigned here = 8 - at % 8; // bits of this byte from `at` on
		unsigned take = here < end - at ? here : end - at;
		v = v << take | ((p[at / 8] >> (here - take)) & ((1u << take) - 1));
		at += take;
	}
	return v;
}

// The bits were zero before.
static void put_bits(uint8_t *p, unsigned at, unsigned bits, uint64_t v)
{
	for (unsigned end = at + bits; at < end;) {
		unsigned here = 8 - at % 8;
		unsigned take = here < end - at ? here : end - at;
		uint64_t part = v >> (end - at - take) & ((1u << take) - 1);
		p[at / 8] |= (uint8_t)(part << (here - take));
		at += take;
	}
}

static void member_set(uint8_t *member, unsigned bytes, uint64_t v)
{
	switch (bytes) {
	case 1:
		*member = (uint8_t)v;
		break;
	case 2:
		memcpy(member, &(uint16_t){(uint16_t)v}, 2);
		break;
	case 4:
		memcpy(member, &(uint32_t){(uint32_t)v}, 4);
		break;
	default:
		memcpy(member, &v, 8);
	}
}

// The accessors of wire.h assume a little-endian machine, and so does this.
static uint64_t member_get(const uint8_t *member, unsigned bytes)
{
	uint64_t v = 0;

	memcpy(&v, member, bytes);
	return v;
}

// ---- messages ---------------------------------------------------------------------------------

static uint8_t *body(struct cm_mad *mad)
{
	return (uint8_t *)mad + offsetof(struct cm_mad, req);
}

bool mad_header_parse(const uint8_t *p, size_t len, struct mad_header *h)
{
	if (len < MAD_HEADER_BYTES)
		return false;
	*h = (struct mad_header){
		.base_version = p[0],
		.mgmt_class = p[1],
		.class_version = p[2],
		.method = p[3],
		.status = get_be16(p + 4),
		.class_specific = get_be16(p + 6),
		.tid = get_be64(p + 8),
		.attr_id = get_be16(p + 16),
		.attr_mod = get_be32(p + 20),
	};
	return true;
}

static void header_build(const struct mad_header *h, uint8_t *p)
{
	p[0] = h->base_version;
	p[1] = h->mgmt_class;
	p[2] = h->class_version;
	p[3] = h->method;
	put_be16(p + 4, h->status);
	put_be16(p + 6, h->class_specific);
	put_be64(p + 8, h->tid);
	put_be16(p + 16, h->attr_id);
	put_be32(p + 20, h->attr_mod);
}

enum mad_error cm_mad_parse(const uint8_t *data, size_t len, struct cm_mad *out)
{
	memset(out, 0, sizeof(*out));
	if (len < MAD_BYTES)
		return MAD_SHORT;
	mad_header_parse(data, len, &out->hdr);
	if (out->hdr.base_version != MAD_BASE_VERSION || out->hdr.mgmt_class != MAD_CLASS_CM ||
		out->hdr.class_version != MAD_CM_VERSION || out->hdr.method != MAD_METHOD_SEND)
		return MAD_NOT_CM;

	struct table t = table_of(out->hdr.attr_id);
	if (t.n == 0)
		return MAD_UNKNOWN;
	for (const struct field *f = t.rows; f < t.rows + t.n; f++) {
		uint8_t *member = body(out) + f->member;
		if (f->bits == 0)
			memcpy(member, data + f->at / 8, f->bytes);
		else
			member_set(member, f->bytes, get_bits(data, f->at, f->bits));
	}
	return MAD_OK;
}

void cm_mad_build(const struct cm_mad *mad, uint8_t out[MAD_BYTES])
{
	struct table t = table_of(mad->hdr.attr_id);
	const uint8_t *from = (const uint8_t *)mad + offsetof(struct cm_mad, req);

	assert(t.n != 0);
	memset(out, 0, MAD_BYTES);
	header_build(&mad->hdr, out);
	for (const struct field *f = t.rows; f < t.rows + t.n; f++) {
		const uint8_t *member = from + f->member;
		if (f->bits == 0)
			memcpy(out + f->at / 8, member, f->bytes);
		else
			put_bits(out, f->at, f->bits, member_get(member, f->bytes));
	}
}

void cm_mad_init(struct cm_mad *mad, enum cm_attribute attr, uint64_t tid)
{
	memset(mad, 0, sizeof(*mad));
	mad->hdr = (struct mad_header){
		.base_version = MAD_BASE_VERSION,
		.mgmt_class = MAD_CLASS_CM,
		.class_version = MAD_CM_VERSION,
		.method = MAD_METHOD_SEND,
		.attr_id = (uint16_t)attr,
		.tid = tid,
	};
}

const char *cm_attribute_name(uint16_t attr_id)
{
	switch (attr_id) {
#define X(id, member, value, name, fields) \
	case value:                        \
		return name;
		CM_MESSAGES(X)
#undef X
	}
	return NULL;
}

const char *cm_rej_text(uint16_t reason)
{
	switch (reason) {
#define X(id, value, text) \
	case value:        \
		return text;
		CM_REJ_REASONS(X)
#undef X
	}
	return "other reason";
}

// ---- rdma_cm ----------------------------------------------------------------------------------

#define IPV4_IN_GID 12 // where the four bytes are, in a GID and in the header's address fields

void gid_from_ipv4(uint8_t gid[GID_BYTES], uint32_t address)
{
	memset(gid, 0, GID_BYTES);
	gid[10] = gid[11] = 0xff;
	put_be32(gid + IPV4_IN_GID, address);
}

bool gid_is_ipv4(const uint8_t gid[GID_BYTES])
{
	static const uint8_t prefix[IPV4_IN_GID] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

void cma_header_parse(const uint8_t data[CMA_HEADER_BYTES], struct cma_header *out)
{
	out->version = data[0];
	out->ip_version = data[1] >> 4;
	out->port = get_be16(data + 2);
	memcpy(out->src, data + 4, GID_BYTES);
	memcpy(out->dst, data + 20, GID_BYTES);
	if (out->ip_version == 4) {
		gid_from_ipv4(out->src, get_be32(data + 4 + IPV4_IN_GID));
		gid_from_ipv4(out->dst, get_be32(data + 20 + IPV4_IN_GID));
	}
}

void cma_header_build(const struct cma_header *h, uint8_t out[CMA_HEADER_BYTES])
{
	memset(out, 0, CMA_HEADER_BYTES);
	out[0] = h->version;
	out[1] = (uint8_t)(h->ip_version << 4);
	put_be16(out + 2, h->port);
	if (h->ip_version == 4) {
		memcpy(out + 4 + IPV4_IN_GID, h->src + IPV4_IN_GID, 4);
		memcpy(out + 20 + IPV4_IN_GID, h->dst + IPV4_IN_GID, 4);
	} else {
		memcpy(out + 4, h->src, GID_BYTES);
		memcpy(out + 20, h->dst, GID_BYTES);
	}
}
