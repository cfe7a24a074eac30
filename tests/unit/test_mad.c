/* SPDX-License-Identifier: BSD-3-Clause */
// The codec of management datagrams: the connection set-up of two kernels (rping over rxe) as
// truth, golden bytes for the messages it does not contain, and noise.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pcap/codec.h"
#include "pcap/mad.h"
#include "tests/unit/frames.h"

#define CAPTURED 11 // most MADs in one capture

// The MADs of a capture, in order; returns how many.
static unsigned load_mads(const char *name, uint8_t mads[CAPTURED][MAD_BYTES])
{
	struct capture_file c;
	const uint8_t *frame;
	uint32_t len;
	unsigned n = 0;

	capture_load(&c, name);
	while (capture_next(&c, &frame, &len)) {
		struct pkt p;
		if (pkt_parse(frame, len, &p) != PKT_OK || p.bth_off == 0 || p.dest_qp != GSI_QPN)
			continue;
		assert_int_equal(p.payload_len, MAD_BYTES);
		assert_int_equal(get_be32(pkt_ext(&p, ROCE_EXT_DETH)), GSI_QKEY);
		assert_true(n < CAPTURED);
		memcpy(mads[n++], frame + p.payload_off, MAD_BYTES);
	}
	capture_unload(&c);
	return n;
}

// Parses from memory that ends where the MAD ends.
static enum mad_error parse_exact(const uint8_t *data, size_t len, struct cm_mad *out)
{
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, data, len);
	enum mad_error err = cm_mad_parse(copy, len, out);
	free(copy);
	return err;
}

static void what_kernels_send_comes_back_byte_for_byte(void **state)
{
	static const struct {
		const char *file;
		uint16_t attrs[CAPTURED]; // 0: no more
	} captures[] = {
		// rping
		{"rxe-mtu1024.pcap",
			{CM_ATTR_REQ, CM_ATTR_REP, CM_ATTR_RTU, CM_ATTR_DREQ, CM_ATTR_DREP}},
		{"rxe-mtu4096.pcap",
			{CM_ATTR_REQ, CM_ATTR_REP, CM_ATTR_RTU, CM_ATTR_DREQ, CM_ATTR_DREP}},
		// udaddy, ucmatose, then rping and udaddy where nobody listens
		{"rdma-cm.pcap", {CM_ATTR_SIDR_REQ, CM_ATTR_SIDR_REP, CM_ATTR_REQ, CM_ATTR_REP,
					 CM_ATTR_RTU, CM_ATTR_DREQ, CM_ATTR_DREP, CM_ATTR_REQ,
					 CM_ATTR_REJ, CM_ATTR_SIDR_REQ, CM_ATTR_SIDR_REP}},
	};

	for (unsigned f = 0; f < sizeof(captures) / sizeof(captures[0]); f++) {
		uint8_t mads[CAPTURED][MAD_BYTES], again[MAD_BYTES];
		unsigned n = load_mads(captures[f].file, mads);
		for (unsigned i = 0; i < n; i++) {
			struct cm_mad m;
			assert_int_equal(parse_exact(mads[i], MAD_BYTES, &m), MAD_OK);
			assert_int_equal(m.hdr.attr_id, captures[f].attrs[i]);
			cm_mad_build(&m, again);
			assert_memory_equal(again, mads[i], MAD_BYTES);
		}
		assert_true(n == CAPTURED || (n > 0 && captures[f].attrs[n] == 0));
	}
}

// Values as tshark 4.0 prints them for frames 3968 to 3970, 4031 and 4032 of rxe-mtu1024.pcap.
static void captured_fields_are_what_another_decoder_says(void **state)
{
	uint8_t mads[CAPTURED][MAD_BYTES], gid[GID_BYTES];
	struct cma_header h;
	struct cm_mad m;

	load_mads("rxe-mtu1024.pcap", mads);
	assert_int_equal(cm_mad_parse(mads[0], MAD_BYTES, &m), MAD_OK);
	const struct cm_req *q = &m.req;
	assert_int_equal(m.hdr.tid, 0x29338fa78);
	assert_int_equal(q->local_comm_id, 0x78fa3893);
	assert_int_equal(q->service_id, cma_service_id(CMA_PS_TCP, 7174));
	assert_true(q->local_ca_guid == UINT64_C(0x505400fffe000002));
	assert_int_equal(q->local_qpn, 0x1a);
	assert_int_equal(q->responder_resources, 1);
	assert_int_equal(q->initiator_depth, 1);
	assert_int_equal(q->remote_response_timeout, 20);
	assert_int_equal(q->transport, CM_RC);
	assert_int_equal(q->starting_psn, 0xd89201);
	assert_int_equal(q->local_response_timeout, 20);
	assert_int_equal(q->retry_count, 7);
	assert_int_equal(q->pkey, 0xffff);
	assert_int_equal(q->path_mtu, 3);
	assert_int_equal(q->rnr_retry_count, 7);
	assert_int_equal(q->max_cm_retries, 15);
	assert_int_equal(q->primary_local_lid, 0xffff);
	gid_from_ipv4(gid, 0x0a000002);
	assert_memory_equal(q->primary_local_gid, gid, GID_BYTES);
	gid_from_ipv4(gid, 0x0a000001);
	assert_memory_equal(q->primary_remote_gid, gid, GID_BYTES);
	// tshark 4.0 reads these two a byte early (0x314, 0x31). The data that follows says who is
	// right: its UDP source port is 0xd40d, and 0x31401 gives 0x1401 ^ 0xc | 0xc000 = 0xd40d.
	assert_int_equal(q->primary_flow_label, 0x31401);
	assert_int_equal(q->primary_packet_rate, 0); // IB_RATE_PORT_CURRENT
	assert_int_equal(q->primary_hop_limit, 0x40);
	assert_int_equal(q->primary_ack_timeout, 0x13);

	cma_header_parse(q->private_data, &h);
	assert_int_equal(h.version, CMA_VERSION);
	assert_int_equal(h.ip_version, 4);
	assert_int_equal(h.port, 0x9ca5);
	assert_memory_equal(h.dst, gid, GID_BYTES);
	uint8_t again[CMA_HEADER_BYTES];
	cma_header_build(&h, again);
	assert_memory_equal(again, q->private_data, CMA_HEADER_BYTES);

	assert_int_equal(cm_mad_parse(mads[1], MAD_BYTES, &m), MAD_OK);
	assert_int_equal(m.rep.local_comm_id, 0x34c38caa);
	assert_int_equal(m.rep.remote_comm_id, 0x78fa3893);
	assert_int_equal(m.rep.local_qpn, 0x1a);
	assert_int_equal(m.rep.starting_psn, 0x501c3b);
	assert_int_equal(m.rep.responder_resources, 1);
	assert_int_equal(m.rep.initiator_depth, 1);
	assert_int_equal(m.rep.target_ack_delay, 0xf);
	assert_int_equal(m.rep.rnr_retry_count, 7);
	assert_true(m.rep.local_ca_guid == UINT64_C(0x505400fffe000001));

	assert_int_equal(cm_mad_parse(mads[2], MAD_BYTES, &m), MAD_OK);
	assert_int_equal(m.rtu.remote_comm_id, 0x34c38caa);
	assert_int_equal(cm_mad_parse(mads[3], MAD_BYTES, &m), MAD_OK);
	assert_int_equal(m.dreq.remote_qpn, 0x1a);
	assert_int_equal(cm_mad_parse(mads[4], MAD_BYTES, &m), MAD_OK);
	assert_int_equal(m.drep.remote_comm_id, 0x78fa3893);
}

static void expect_bytes(const struct cm_mad *m, const char *hex)
{
	uint8_t out[MAD_BYTES];

	cm_mad_build(m, out);
	for (unsigned i = 0; hex[2 * i] != 0; i++) {
		unsigned byte;
		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		if (out[MAD_HEADER_BYTES + i] != byte)
			print_error("byte %u\n", i);
		assert_int_equal(out[MAD_HEADER_BYTES + i], byte);
	}
}

// By hand from IBTA tables 107, 108, 119 and 120; tshark 4.0 names the same fields in the same
// bytes.
static void other_messages_are_laid_out_as_the_standard_says(void **state)
{
	struct cm_mad m;

	cm_mad_init(&m, CM_ATTR_MRA, 1);
	m.mra.local_comm_id = 0x01020304;
	m.mra.remote_comm_id = 0x05060708;
	m.mra.message_mraed = CM_ANSWERS_REP; // 01......
	m.mra.service_timeout = 24;           // 11000...
	m.mra.private_data[0] = 0xaa;
	expect_bytes(&m, "0102030405060708"
			 "40c0aa");

	cm_mad_init(&m, CM_ATTR_REJ, 1);
	m.rej.local_comm_id = 0x01020304;
	m.rej.remote_comm_id = 0x05060708;
	m.rej.message_rejected = CM_ANSWERS_OTHER; // 10......
	m.rej.info_length = 8;                     // 0001000.
	m.rej.reason = CM_REJ_CONSUMER;            // 28
	m.rej.info[0] = 0x11;
	m.rej.private_data[0] = 0x22;
	expect_bytes(&m, "0102030405060708"
			 "8010001c"
			 "11"
			 "0000000000000000000000000000000000000000000000000000000000000000000000"
			 "000000000000000000000000000000000000000000000000000000000000000000000000"
			 "22");

	cm_mad_init(&m, CM_ATTR_SIDR_REQ, 1);
	m.sidr_req.request_id = 0x01020304;
	m.sidr_req.pkey = 0xffff;
	m.sidr_req.service_id = cma_service_id(CMA_PS_UDP, 7174);
	m.sidr_req.private_data[0] = 0x33;
	expect_bytes(&m, "01020304"
			 "ffff0000"
			 "0000000001111c06"
			 "33");

	cm_mad_init(&m, CM_ATTR_SIDR_REP, 1);
	m.sidr_rep.request_id = 0x01020304;
	m.sidr_rep.status = CM_SIDR_REJECT;
	m.sidr_rep.info_length = 4;
	m.sidr_rep.qpn = 0xabcdef;
	m.sidr_rep.service_id = cma_service_id(CMA_PS_UDP, 7174);
	m.sidr_rep.qkey = 0x01234567;
	expect_bytes(&m, "01020304"
			 "02040000"
			 "abcdef00"
			 "0000000001111c06"
			 "01234567");
}

static unsigned popcount(const uint8_t *p, unsigned n)
{
	unsigned ones = 0;

	for (unsigned i = 0; i < n; i++)
		ones += (unsigned)__builtin_popcount(p[i]);
	return ones;
}

#define COUNT_BITS(type, name, byte, bit, bits) +(bits)
#define COUNT_BYTES(name, byte, bytes)          +8 * (bytes)

static const struct {
	uint16_t attr_id;
	unsigned bits; // of all fields
} messages[] = {
#define X(id, member, value, name, fields) {value, 0 fields(COUNT_BITS, COUNT_BYTES)},
	CM_MESSAGES(X)
#undef X
};

#define N_MESSAGES (sizeof(messages) / sizeof(messages[0]))

// All ones show which bits of a message belong to a field. They are as many as the fields have
// together, so no two fields overlap; and of noise exactly these bits come back.
static void every_bit_belongs_to_one_field_or_none(void **state)
{
	for (unsigned i = 0; i < N_MESSAGES; i++) {
		uint8_t ones[MAD_BYTES], mask[MAD_BYTES], noise[MAD_BYTES], again[MAD_BYTES];
		struct cm_mad m;

		cm_mad_init(&m, (enum cm_attribute)messages[i].attr_id, UINT64_MAX);
		cm_mad_build(&m, ones);
		memset(ones + MAD_HEADER_BYTES, 0xff, MAD_BYTES - MAD_HEADER_BYTES);
		assert_int_equal(parse_exact(ones, MAD_BYTES, &m), MAD_OK);
		cm_mad_build(&m, mask);
		assert_int_equal(popcount(mask + MAD_HEADER_BYTES, MAD_BYTES - MAD_HEADER_BYTES),
			messages[i].bits);

		memcpy(noise, ones, MAD_BYTES);
		for (unsigned b = MAD_HEADER_BYTES; b < MAD_BYTES; b++)
			noise[b] = (uint8_t)mix_of(i * 1000 + b);
		assert_int_equal(parse_exact(noise, MAD_BYTES, &m), MAD_OK);
		cm_mad_build(&m, again);
		for (unsigned b = MAD_HEADER_BYTES; b < MAD_BYTES; b++)
			assert_int_equal(again[b], noise[b] & mask[b]);
	}
}

static void what_is_not_a_cm_message_is_refused(void **state)
{
	uint8_t bytes[MAD_BYTES];
	struct mad_header h;
	struct cm_mad m;

	cm_mad_init(&m, CM_ATTR_RTU, 7);
	cm_mad_build(&m, bytes);
	for (unsigned n = 0; n < MAD_BYTES; n++)
		assert_int_equal(parse_exact(bytes, n, &m), MAD_SHORT);
	assert_false(mad_header_parse(bytes, MAD_HEADER_BYTES - 1, &h));
	for (unsigned i = 0; i < 4; i++) { // base version, class, class version, method
		bytes[i] ^= 0x40;
		assert_int_equal(parse_exact(bytes, MAD_BYTES, &m), MAD_NOT_CM);
		assert_int_equal(m.hdr.tid, 7);
		bytes[i] ^= 0x40;
	}
	put_be16(bytes + 16, 0x000f);
	assert_int_equal(parse_exact(bytes, MAD_BYTES, &m), MAD_UNKNOWN);
}

static void ipv6_header_of_rdma_cm_keeps_its_addresses(void **state)
{
	struct cma_header h = {.ip_version = 6, .port = 0x1234}, back;
	uint8_t bytes[CMA_HEADER_BYTES];

	for (unsigned i = 0; i < GID_BYTES; i++) {
		h.src[i] = (uint8_t)(0x20 + i);
		h.dst[i] = (uint8_t)(0x40 + i);
	}
	cma_header_build(&h, bytes);
	assert_int_equal(get_be32(bytes), 0x00601234); // version 0, IP version in the high half
	assert_int_equal(bytes[4], 0x20);
	assert_int_equal(bytes[35], 0x4f);
	cma_header_parse(bytes, &back);
	assert_memory_equal(&back, &h, sizeof(h));
}

static void names_are_the_standards(void **state)
{
	assert_string_equal(cm_attribute_name(CM_ATTR_REQ), "ConnectRequest");
	assert_null(cm_attribute_name(0x20));
	assert_string_equal(cm_rej_text(8), "invalid service ID: nobody listens");
	assert_string_equal(cm_rej_text(200), "other reason");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_kernels_send_comes_back_byte_for_byte),
		cmocka_unit_test(captured_fields_are_what_another_decoder_says),
		cmocka_unit_test(other_messages_are_laid_out_as_the_standard_says),
		cmocka_unit_test(every_bit_belongs_to_one_field_or_none),
		cmocka_unit_test(what_is_not_a_cm_message_is_refused),
		cmocka_unit_test(ipv6_header_of_rdma_cm_keeps_its_addresses),
		cmocka_unit_test(names_are_the_standards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
