/* SPDX-License-Identifier: BSD-3-Clause */
// The ICRC against golden vectors, captured frames and a bitwise CRC written from the definition.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pcap/build.h"
#include "pcap/icrc.h"
#include "tests/unit/frames.h"

static const uint8_t no_mac[6];

static uint32_t crc_bitwise(uint32_t crc, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int b = 0; b < 8; b++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return crc;
}

// CNP of a ConnectX-4 Lx (scapy's test/contrib/roce.uts).
static void golden_cnp(void **state)
{
	uint8_t f[74] = {0};
	static const uint8_t icrc[4] = {0x82, 0xfd, 0x00, 0x2a};
	struct pkt p;

	uint8_t *c = eth_put(f, no_mac, no_mac, ETHERTYPE_IPV4);
	c = ipv4_put(c, 0xc2, 60, 0x718c, 64, IP_PROTO_UDP, 0x0a001101, 0x0a001201);
	c = udp_put(c, 0, ROCE_UDP_PORT, 40);
	memcpy(c, (uint8_t[]){0x81, 0, 0xff, 0xff, 0x40, 0, 1, 0x18}, 8); // BECN, QP 0x118
	icrc_put(c + 28, icrc_compute(f, 14, 42, 70));
	assert_memory_equal(f + 70, icrc, 4);
	assert_int_equal(pkt_parse(f, 74, &p), PKT_OK);
	assert_int_equal(p.opcode, ROCE_OP_CNP);
	assert_int_equal(p.dest_qp, 0x118);
	assert_true(p.becn);
	assert_non_null(pkt_ext(&p, ROCE_EXT_CNP));
	assert_true(pkt_icrc_valid(&p));
}

// UC SEND_ONLY with 18 payload bytes and 2 of pad.
static void golden_uc_send(void **state)
{
	uint8_t f[78] = {0};
	static const uint8_t payload[18] = {0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89, 0x35, 0xd9, 0x0e,
		0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88, 0x5e, 0x50};
	static const uint8_t icrc[4] = {0x78, 0xf3, 0x53, 0xf3};
	struct pkt p;

	uint8_t *c = eth_put(f, no_mac, no_mac, ETHERTYPE_IPV4);
	c = ipv4_put(c, 0, 64, 1144, 64, IP_PROTO_UDP, 0xc0a80007, 0xc0a80007);
	c = udp_put(c, 49152, ROCE_UDP_PORT, 44);
	c = bth_put(c, ROCE_UC | ROCE_SEND_ONLY, BTH_MIG, 2, 0xd3, false, 13571856);
	assert_int_equal(f[43], 0x60);
	memcpy(c, payload, sizeof(payload));
	icrc_put(c + 20, icrc_compute(f, 14, 42, 74));
	assert_memory_equal(f + 74, icrc, 4);
	assert_int_equal(pkt_parse(f, 78, &p), PKT_OK);
	assert_int_equal(p.payload_len, 18);
}

static unsigned check_file(const char *name, unsigned opcodes[256])
{
	struct capture_file cf;
	const uint8_t *f;
	uint32_t len;
	unsigned roce = 0;

	capture_load(&cf, name);
	while (capture_next(&cf, &f, &len)) {
		struct pkt p;
		assert_int_equal(pkt_parse(f, len, &p), PKT_OK);
		if (!p.bth_off)
			continue;
		assert_true(pkt_icrc_valid(&p));
		assert_non_null(roce_opcodes[p.opcode].name);
		opcodes[p.opcode]++;
		roce++;
	}
	capture_unload(&cf);
	return roce;
}

// Frame counts as tshark gives them for the two files (filter infiniband).
static void every_captured_frame_is_valid(void **state)
{
	unsigned opcodes[256] = {0}, kinds = 0;

	assert_int_equal(check_file("rxe-mtu1024.pcap", opcodes), 3789);
	assert_int_equal(check_file("rxe-mtu4096.pcap", opcodes), 1613);
	for (unsigned i = 0; i < 256; i++)
		kinds += opcodes[i] != 0;
	assert_int_equal(kinds, 20);
}

// 14 + 40 + 8 = BTH at 62; the expected value comes from the mask written out byte by byte.
static void ipv6_is_masked_as_the_annex_says(void **state)
{
	static const uint8_t a[16] = {0xfd, 1}, b[16] = {0xfd, 2};
	uint8_t f[14 + 40 + 8 + 12 + 8] = {0}, m[8 + sizeof(f) - 14];

	uint8_t *c = eth_put(f, no_mac, no_mac, ETHERTYPE_IPV6);
	c = ipv6_put(c, 0x69, 0x54321, 8 + 12 + 8 + 4, IP_PROTO_UDP, 61, a, b);
	c = udp_put(c, 0xc005, ROCE_UDP_PORT, 8 + 12 + 8 + 4);
	put_be16(c - 2, 0xbeef); // a UDP checksum: not covered
	c = bth_put(c, ROCE_RC | ROCE_SEND_ONLY, 0, 0, 1, true, 2);
	memcpy(c, "fabemu..", 8);
	memset(m, 0xff, 8);
	memcpy(m + 8, f + 14, sizeof(f) - 14);
	memcpy(m + 8, (uint8_t[]){0x6f, 0xff, 0xff, 0xff}, 4);
	m[8 + 7] = 0xff;
	m[8 + 40 + 6] = m[8 + 40 + 7] = 0xff;
	m[8 + 48 + 4] = 0xff;
	assert_int_equal(icrc_compute(f, 14, 62, sizeof(f)), ~crc_bitwise(~0u, m, sizeof(m)));
}

// What a switch may change leaves the ICRC alone; what it may not does not.
static void icrc_holds_through_switches(void **state)
{
	uint8_t f[14 + 20 + 8 + 12 + 4] = {0};

	uint8_t *c = eth_put(f, no_mac, no_mac, ETHERTYPE_IPV4);
	c = ipv4_put(c, 2, 20 + 8 + 12 + 8, 1, 64, IP_PROTO_UDP, 1, 2);
	c = udp_put(c, 0xc005, ROCE_UDP_PORT, 8 + 12 + 8);
	bth_put(c, ROCE_RC | ROCE_SEND_ONLY, 0, 0, 1, true, 2);
	uint32_t before = icrc_compute(f, 14, 42, sizeof(f));
	ip_set_ce(f + 14);
	ip_set_dscp(f + 14, 33);
	ip_decrement_ttl(f + 14);
	f[42 + 4] |= BTH_FECN;
	assert_int_equal(icrc_compute(f, 14, 42, sizeof(f)), before);
	f[42 + 11] ^= 1; // PSN
	assert_int_not_equal(icrc_compute(f, 14, 42, sizeof(f)), before);
}

static void pieces_equal_the_whole(void **state)
{
	uint8_t f[1024];

	for (unsigned i = 0; i < sizeof(f); i++)
		f[i] = (uint8_t)mix_of(i);
	f[14] = 0x45;
	uint32_t whole = icrc_compute(f, 14, 42, sizeof(f));
	for (unsigned cut = 54; cut <= sizeof(f); cut++) {
		uint32_t s = icrc_begin(f, 14, 42, 54);
		s = icrc_update(s, f + 54, cut - 54);
		s = icrc_update(s, f + cut, sizeof(f) - cut);
		assert_int_equal(icrc_end(s), whole);
	}
}

static void tables_equal_the_bitwise_crc(void **state)
{
	uint8_t b[70];

	for (unsigned i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)mix_of(i + 99);
	for (unsigned n = 0; n <= sizeof(b); n++)
		assert_int_equal(icrc_update(~0u, b, n), crc_bitwise(~0u, b, n));
}

// Long pieces may take another way than short ones: every length at every alignment, from any
// state; and the same bytes in short pieces.
static void long_pieces_equal_the_bitwise_crc(void **state)
{
	uint8_t b[700];

	for (unsigned i = 0; i < sizeof(b); i++)
		b[i] = (uint8_t)mix_of(i + 7);
	for (unsigned n = 0; n + 16 <= sizeof(b); n++) {
		uint32_t state0 = (uint32_t)mix_of(n), tables = state0;
		const uint8_t *p = b + n % 16;
		uint32_t want = crc_bitwise(state0, p, n);
		assert_int_equal(icrc_update(state0, p, n), want);
		for (unsigned at = 0; at < n; at += 48)
			tables = icrc_update(tables, p + at, n - at < 48 ? n - at : 48);
		assert_int_equal(tables, want);
	}
}

// IPv4 options (4 bytes) move the BTH to 46 and are covered.
static void ip_options_are_covered(void **state)
{
	uint8_t f[14 + 24 + 8 + 12] = {0}, m[8 + sizeof(f) - 14];

	f[14] = 0x46;
	for (unsigned i = 15; i < sizeof(f); i++)
		f[i] = (uint8_t)i;
	memset(m, 0xff, 8);
	memcpy(m + 8, f + 14, sizeof(f) - 14);
	m[8 + 1] = m[8 + 8] = m[8 + 10] = m[8 + 11] = 0xff;
	m[8 + 24 + 6] = m[8 + 24 + 7] = 0xff;
	m[8 + 32 + 4] = 0xff;
	assert_int_equal(icrc_compute(f, 14, 46, sizeof(f)), ~crc_bitwise(~0u, m, sizeof(m)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_cnp),
		cmocka_unit_test(golden_uc_send),
		cmocka_unit_test(every_captured_frame_is_valid),
		cmocka_unit_test(ipv6_is_masked_as_the_annex_says),
		cmocka_unit_test(icrc_holds_through_switches),
		cmocka_unit_test(pieces_equal_the_whole),
		cmocka_unit_test(tables_equal_the_bitwise_crc),
		cmocka_unit_test(long_pieces_equal_the_bitwise_crc),
		cmocka_unit_test(ip_options_are_covered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
