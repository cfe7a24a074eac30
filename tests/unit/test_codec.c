/* SPDX-License-Identifier: BSD-3-Clause */
// The codec against hand-made frames, captured ones, truncations and noise. Run under ASan these
// tests also show that nothing is read past the end: each frame is parsed from a heap copy of
// exactly its size.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pcap/build.h"
#include "pcap/codec.h"
#include "pcap/icrc.h"
#include "tests/unit/frames.h"

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xb};

#define V4_SRC 0x0a000001u
#define V4_DST 0x0a000002u

// Parses from memory that ends where the frame ends.
static enum pkt_error parse_exact(const uint8_t *data, uint32_t len, struct pkt *p)
{
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, data, len);
	enum pkt_error err = pkt_parse(copy, len, p);
	free(copy);
	p->data = data;
	return err;
}

// RC WRITE_ONLY over IPv4 with `payload` bytes; returns the frame's length.
// 14 Ethernet + 20 IP + 8 UDP + 12 BTH + 16 RETH = payload at 70.
static unsigned write_only_v4(uint8_t *f, unsigned payload)
{
	unsigned pad = -payload & 3;
	unsigned udp = 8 + 12 + 16 + payload + pad + 4;
	uint8_t *p = eth_put(f, mac_b, mac_a, ETHERTYPE_IPV4);

	p = ipv4_put(
		p, 26 << 2 | ECN_ECT0, (uint16_t)(20 + udp), 7, 64, IP_PROTO_UDP, V4_SRC, V4_DST);
	p = udp_put(p, 0xc123, ROCE_UDP_PORT, (uint16_t)udp);
	p = bth_put(p, ROCE_RC | ROCE_WRITE_ONLY, BTH_MIG, pad, 0x123456, true, 0xabcdef);
	p = reth_put(p, 0x1122334455667788, 0xcafe, payload);
	for (unsigned i = 0; i < payload; i++)
		*p++ = (uint8_t)i;
	memset(p, 0, pad);
	p += pad;
	icrc_put(p, icrc_compute(f, 14, 42, (unsigned)(p - f)));
	return (unsigned)(p + 4 - f);
}

static void write_only_is_understood(void **state)
{
	uint8_t f[256];
	unsigned len = write_only_v4(f, 5); // pad 3
	struct pkt p;

	assert_int_equal(len, 70 + 5 + 3 + 4);
	assert_int_equal(parse_exact(f, len, &p), PKT_OK);
	assert_int_equal(p.kind, PKT_IP);
	assert_int_equal(p.ip_version, 4);
	assert_int_equal(p.dscp, 26);
	assert_int_equal(p.ecn, ECN_ECT0);
	assert_int_equal(p.ttl, 64);
	assert_int_equal(p.l3_off, 14);
	assert_int_equal(p.l4_off, 34);
	assert_int_equal(p.bth_off, 42);
	assert_int_equal(p.payload_off, 70);
	assert_int_equal(p.payload_len, 5);
	assert_int_equal(p.pad, 3);
	assert_int_equal(p.end, len);
	assert_int_equal(p.sport, 0xc123);
	assert_int_equal(p.opcode, 0x0a);
	assert_int_equal(p.dest_qp, 0x123456);
	assert_int_equal(p.psn, 0xabcdef);
	assert_true(p.ack_req);
	assert_false(p.se);
	assert_int_equal(get_be32(f + p.dst_off), V4_DST);
	assert_ptr_equal(pkt_ext(&p, ROCE_EXT_RETH), f + 54);
	assert_null(pkt_ext(&p, ROCE_EXT_AETH));
	assert_int_equal(get_be32(f + 54 + 12), 5); // RETH length
	assert_true(pkt_icrc_valid(&p));
	assert_int_equal(pkt_flow_hash(&p),
		flow_hash_v4(V4_SRC, V4_DST, 0xc123, ROCE_UDP_PORT, IP_PROTO_UDP));
}

// A synthetic frame: headers exist (70 bytes), payload, pad and ICRC do not.
static void headers_alone_are_enough(void **state)
{
	uint8_t f[1200];
	unsigned len = write_only_v4(f, 1024);
	uint8_t *head = malloc(70);
	struct pkt p;

	memcpy(head, f, 70);
	assert_int_equal(pkt_parse_head(head, 70, len, &p), PKT_OK);
	assert_int_equal(p.payload_len, 1024);
	assert_int_equal(p.end, len);
	assert_int_equal(pkt_parse_head(head, 69, len, &p), PKT_ERR_BTH); // RETH cut
	assert_int_equal(pkt_parse_head(head, 53, len, &p), PKT_ERR_BTH); // BTH cut
	assert_int_equal(pkt_parse_head(head, 41, len, &p), PKT_ERR_UDP);
	assert_int_equal(pkt_parse_head(head, 33, len, &p), PKT_ERR_IP);
	assert_int_equal(pkt_parse_head(head, 13, len, &p), PKT_ERR_ETH);
	free(head);
}

// The IP total length no longer fits what is left: Ethernet cut below 14, IP from there on.
static void truncation_at_every_byte_is_an_error_of_its_layer(void **state)
{
	uint8_t f[256];
	unsigned len = write_only_v4(f, 32);
	struct pkt p;

	for (unsigned n = 0; n < len; n++)
		assert_int_equal(parse_exact(f, n, &p), n < 14 ? PKT_ERR_ETH : PKT_ERR_IP);
}

// The same with the IP length following the cut, so that the layers above must notice: UDP's own
// length contradicts at once (UDP 8 .. ), and with that adjusted too the BTH is what is cut.
static void consistent_truncation_reaches_the_inner_layers(void **state)
{
	uint8_t f[256];
	unsigned len = write_only_v4(f, 32);
	struct pkt p;

	for (unsigned n = 34; n < len; n++) {
		put_be16(f + 16, (uint16_t)(n - 14));
		ipv4_set_checksum(f + 14, 20);
		assert_int_equal(parse_exact(f, n, &p), PKT_ERR_UDP);
	}
	for (unsigned n = 42; n < len; n++) {
		put_be16(f + 16, (uint16_t)(n - 14));
		ipv4_set_checksum(f + 14, 20);
		put_be16(f + 38, (uint16_t)(n - 34));
		// 42 + BTH 12 + RETH 16 + ICRC 4 = 74 is the shortest WRITE_ONLY
		assert_int_equal(parse_exact(f, n, &p), n < 74 ? PKT_ERR_BTH : PKT_OK);
	}
}

static void padding_behind_a_short_packet_is_ignored(void **state)
{
	uint8_t f[128];
	unsigned len = write_only_v4(f, 0);
	struct pkt p;

	memset(f + len, 0xee, 10);
	assert_int_equal(parse_exact(f, len + 10, &p), PKT_OK);
	assert_int_equal(p.end, len);
	assert_int_equal(p.payload_len, 0);
	assert_true(pkt_icrc_valid(&p));
}

struct mangle {
	const char *what;
	unsigned off;
	uint8_t value;
	bool fix_checksum;
	enum pkt_error expect;
};

// Each line changes one byte of the valid WRITE_ONLY (32 payload bytes, IP length 92, UDP length
// 72) and names the layer that must object.
static const struct mangle mangles[] = {
	{"ethertype unknown", 12, 0x12, false, PKT_ERR_ETH},
	{"IP version 5", 14, 0x55, true, PKT_ERR_IP},
	{"IP header length 16", 14, 0x44, false, PKT_ERR_IP},
	{"IP header length 60 is not a lie the checksum survives", 14, 0x4f, false,
		PKT_ERR_IP_CHECKSUM},
	{"IP total length above the frame", 17, 93, true, PKT_ERR_IP},
	{"IP total length below its header", 17, 19, true, PKT_ERR_IP},
	{"IP total length cuts UDP", 17, 27, true, PKT_ERR_UDP},
	{"IP checksum", 25, 0x5a, false, PKT_ERR_IP_CHECKSUM},
	{"TTL changed without the checksum", 22, 63, false, PKT_ERR_IP_CHECKSUM},
	{"UDP length above the packet", 39, 73, false, PKT_ERR_UDP},
	{"UDP length below the packet of RoCE", 39, 71, false, PKT_ERR_UDP},
	{"UDP length below 8", 39, 7, false, PKT_ERR_UDP},
	{"BTH version 1", 43, 0x41, false, PKT_ERR_BTH},
	{"opcode with longer headers than the packet", 42, 0x13, false, PKT_OK}, // 28 < 48
	{"opcode unknown", 42, 0x1f, false, PKT_OK},
};

static void a_wrong_field_is_an_error_of_its_layer(void **state)
{
	for (size_t i = 0; i < sizeof(mangles) / sizeof(mangles[0]); i++) {
		const struct mangle *m = &mangles[i];
		uint8_t f[256];
		unsigned len = write_only_v4(f, 32);
		struct pkt p;

		f[m->off] = m->value;
		if (m->fix_checksum)
			ipv4_set_checksum(f + 14, 20);
		enum pkt_error err = parse_exact(f, len, &p);
		if (err != m->expect)
			fail_msg("%s: %s, expected %s", m->what, pkt_error_name(err),
				pkt_error_name(m->expect));
	}
}

// Two tags (802.1ad outside), IPv6: 14 + 4 + 4 = 22 L3, 62 UDP, 70 BTH, 82 AETH, 86 ICRC.
static void tagged_ipv6_ack_is_understood(void **state)
{
	static const uint8_t src[16] = {0xfd, 0, [15] = 1}, dst[16] = {0xfd, 0, [15] = 2};
	uint8_t f[128];
	struct pkt p;

	uint8_t *c = eth_put(f, mac_b, mac_a, ETHERTYPE_QINQ);
	c = vlan_put(c, 3 << 13 | 100, ETHERTYPE_VLAN);
	c = vlan_put(c, 200, ETHERTYPE_IPV6);
	c = ipv6_put(c, 48 << 2 | ECN_CE, 0x12345, 8 + 12 + 4 + 4, IP_PROTO_UDP, 17, src, dst);
	c = udp_put(c, 0xc001, ROCE_UDP_PORT, 8 + 12 + 4 + 4);
	c = bth_put(c, ROCE_RC | ROCE_ACK, 0, 0, 9, false, 77);
	c = aeth_put(c, AETH_ACK | AETH_CREDIT_INVALID, 5);
	assert_int_equal(c - f, 86);
	icrc_put(c, icrc_compute(f, 22, 70, 86));

	assert_int_equal(parse_exact(f, 90, &p), PKT_OK);
	assert_int_equal(p.n_tags, 2);
	assert_int_equal(pkt_pcp(&p), 3);
	assert_int_equal(p.ethertype, ETHERTYPE_IPV6);
	assert_int_equal(p.ip_version, 6);
	assert_int_equal(p.dscp, 48);
	assert_int_equal(p.ecn, ECN_CE);
	assert_int_equal(p.ttl, 17);
	assert_int_equal(p.bth_off, 70);
	assert_int_equal(p.payload_len, 0);
	assert_ptr_equal(pkt_ext(&p, ROCE_EXT_AETH), f + 82);
	assert_int_equal(pkt_flow_hash(&p), flow_hash_v6(src, dst, 0xc001, 4791, IP_PROTO_UDP));
	for (unsigned n = 0; n < 90; n++)
		assert_int_equal(parse_exact(f, n, &p), n < 22 ? PKT_ERR_ETH : PKT_ERR_IP);
}

// RoCEv1: GRH at 14, BTH at 54.
static void roce1_is_understood(void **state)
{
	static const uint8_t gid[16] = {0xfe, 0x80};
	uint8_t f[128];
	struct pkt p;

	uint8_t *c = eth_put(f, mac_b, mac_a, ETHERTYPE_ROCE1);
	c = ipv6_put(c, 0, 0, 12 + 4 + 4, GRH_NEXT_BTH, 1, gid, gid);
	c = bth_put(c, ROCE_UC | ROCE_SEND_ONLY, 0, 0, 9, false, 77);
	memset(c, 0xab, 4);
	icrc_put(c + 4, icrc_compute(f, 14, 54, 70));
	assert_int_equal(parse_exact(f, 74, &p), PKT_OK);
	assert_int_equal(p.kind, PKT_ROCE1);
	assert_int_equal(p.bth_off, 54);
	assert_int_equal(p.payload_len, 4);
	assert_int_equal(p.ip_version, 0);
	assert_true(pkt_icrc_valid(&p));
	for (unsigned n = 14; n < 74; n++)
		assert_int_equal(parse_exact(f, n, &p), PKT_ERR_BTH);
}

// IBTA table 38: header bytes by opcode, BTH (12) included.
static void header_lengths_follow_the_opcode(void **state)
{
	static const struct {
		uint8_t opcode, bytes;
	} t[] = {
		{0x00, 12},
		{0x03, 16},
		{0x06, 28},
		{0x09, 16},
		{0x0a, 28},
		{0x0b, 32},
		{0x0c, 28},
		{0x0d, 16},
		{0x0e, 12},
		{0x0f, 16},
		{0x10, 16},
		{0x11, 16},
		{0x12, 24},
		{0x13, 40},
		{0x14, 40},
		{0x16, 16},
		{0x24, 12},
		{0x2b, 32},
		{0x44, 24},
		{0x51, 20},
		{0x53, 52},
		{0x64, 20},
		{0x65, 24},
		{0x81, 28},
		{0xa6, 32},
		{0xb1, 16},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(roce_header_bytes(t[i].opcode), t[i].bytes);
	// WRITE_ONLY_IMM: RETH at 12, ImmDt behind it.
	assert_int_equal(roce_opcodes[0x0b].ext[ROCE_EXT_RETH], 12);
	assert_int_equal(roce_opcodes[0x0b].ext[ROCE_EXT_IMM], 28);
	// ATOMIC_ACKNOWLEDGE: AETH, then the original value.
	assert_int_equal(roce_opcodes[0x12].ext[ROCE_EXT_AETH], 12);
	assert_int_equal(roce_opcodes[0x12].ext[ROCE_EXT_ATOMIC_ACK], 16);
	assert_string_equal(roce_opcodes[0x11].name, "RC ACKNOWLEDGE");
	assert_null(roce_opcodes[0x1f].name);
	assert_null(roce_opcodes[0x32].name); // UC has no atomics
}

static void fragments_have_no_transport(void **state)
{
	uint8_t f[256];
	unsigned len = write_only_v4(f, 32);
	struct pkt p;

	put_be16(f + 20, 0x2000); // MF
	ipv4_set_checksum(f + 14, 20);
	assert_int_equal(parse_exact(f, len, &p), PKT_OK);
	assert_int_equal(p.l4_off, 0);
	assert_int_equal(p.bth_off, 0);
	assert_int_equal(pkt_flow_hash(&p), flow_hash_v4(V4_SRC, V4_DST, 0, 0, 0));
}

static void arp_and_unknown_control(void **state)
{
	uint8_t f[60] = {0};
	struct pkt p;

	eth_put(f, mac_b, mac_a, ETHERTYPE_ARP);
	memcpy(f + 14, (uint8_t[]){0, 1, 8, 0, 6, 4, 0, 1}, 8);
	assert_int_equal(parse_exact(f, 60, &p), PKT_OK);
	assert_int_equal(p.kind, PKT_ARP);
	assert_int_equal(parse_exact(f, 41, &p), PKT_ERR_ETH); // 14 + 28 needed
	eth_put(f, mac_b, mac_a, ETHERTYPE_CONTROL);
	put_be16(f + 14, 0x0102);
	assert_int_equal(parse_exact(f, 60, &p), PKT_ERR_CONTROL);
}

static void pfc_survives_a_round_trip(void **state)
{
	static const uint16_t quanta[8] = {1, 2, 3, 0xffff, 5, 6, 7, 8};
	uint8_t f[60];
	struct pkt p;

	pfc_build(f, mac_a, 1 << 3 | 1 << 4, quanta);
	// DA, SA, 8808 0101 0018, then the quanta of classes 3 and 4 only
	static const uint8_t expect[36] = {0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 0xa, 0x88,
		0x08, 0x01, 0x01, 0x00, 0x18, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 5};
	assert_memory_equal(f, expect, sizeof(expect));
	assert_int_equal(parse_exact(f, 60, &p), PKT_OK);
	assert_int_equal(p.kind, PKT_PFC);
	struct pfc pfc = pfc_parse(&p);
	assert_int_equal(pfc.classes, 0x18);
	assert_int_equal(pfc.quanta[3], 0xffff);
	assert_int_equal(pfc.quanta[4], 5);
	assert_int_equal(pfc.quanta[0], 0);
	// 14 + opcode 2 + vector 2 + 16 = 34 bytes are the frame
	assert_int_equal(parse_exact(f, 33, &p), PKT_ERR_CONTROL);
	assert_int_equal(parse_exact(f, 34, &p), PKT_OK);

	pause_build(f, mac_a, 0x1234);
	assert_int_equal(parse_exact(f, 60, &p), PKT_OK);
	assert_int_equal(p.kind, PKT_PAUSE);
	assert_int_equal(pause_parse(&p), 0x1234);
	assert_int_equal(parse_exact(f, 17, &p), PKT_ERR_CONTROL);
}

static void incremental_checksums_equal_full_ones(void **state)
{
	for (unsigned tos = 0; tos < 256; tos++)
		for (unsigned ttl = 2; ttl < 256; ttl++) {
			uint8_t a[20], b[20];
			uint32_t src = mix_of(tos << 8 | ttl);

			ipv4_put(a, (uint8_t)tos, 1500, (uint16_t)src, (uint8_t)ttl, 17, src, ~src);
			memcpy(b, a, 20);
			assert_true(ip_decrement_ttl(a));
			b[8]--;
			ipv4_set_checksum(b, 20);
			assert_memory_equal(a, b, 20);

			ip_set_ce(a);
			b[1] |= 3;
			ipv4_set_checksum(b, 20);
			assert_memory_equal(a, b, 20);

			ip_set_dscp(a, (uint8_t)(ttl & 63));
			b[1] = (uint8_t)((ttl & 63) << 2 | 3);
			ipv4_set_checksum(b, 20);
			assert_memory_equal(a, b, 20);
		}
}

static void ttl_1_is_left_alone(void **state)
{
	uint8_t a[20], b[20];

	ipv4_put(a, 0, 20, 1, 1, 17, 1, 2);
	memcpy(b, a, 20);
	assert_false(ip_decrement_ttl(a));
	assert_memory_equal(a, b, 20);
}

static void ipv6_fields_change_alone(void **state)
{
	static const uint8_t addr[16] = {0xfd};
	uint8_t a[40], b[40];

	ipv6_put(a, 0x12, 0xfedcb, 100, 17, 64, addr, addr);
	ipv6_put(b, 0xb7, 0xfedcb, 100, 17, 63, addr, addr);
	assert_true(ip_decrement_ttl(a));
	ip_set_dscp(a, 0xb7 >> 2);
	assert_int_equal(ip_tos(a), (0xb7 & 0xfc) | 2);
	ip_set_ce(a);
	assert_memory_equal(a, b, 40);
}

// rdma_calc_flow_label(17, 18) = 306 = 0x132; rdma_flow_label_to_udp_sport: 0x132 | 0xc000.
// (0xffffff, 0xffffff): v = 0xfffffe000001; v ^ v>>20 = 0xfffff1fffe1 (0xfffffe000001 ^
// 0x000000fffffe0 -> 0xfffffeffffe1); ^ >>40 (0xff) -> low 20 bits of 0xffff1e = 0xfff1e;
// sport = 0x3f1e ^ (0xfff1e >> 14 = 0x3f) | 0xc000 = 0xff21.
static void udp_source_port_follows_the_queue_pairs(void **state)
{
	assert_int_equal(roce_udp_sport(17, 18), 0xc132);
	assert_int_equal(roce_udp_sport(18, 17), 0xc132);
	assert_int_equal(roce_udp_sport(0xffffff, 0xffffff), 0xff21);
}

static void every_captured_frame_parses(void **state)
{
	static const char *const files[] = {"rxe-mtu1024.pcap", "rxe-mtu4096.pcap"};

	for (unsigned i = 0; i < 2; i++) {
		struct capture_file cf;
		const uint8_t *f;
		uint32_t len;

		capture_load(&cf, files[i]);
		while (capture_next(&cf, &f, &len)) {
			struct pkt p;
			assert_int_equal(parse_exact(f, len, &p), PKT_OK);
		}
		capture_unload(&cf);
	}
}

static void noise_is_never_read_past_its_end(void **state)
{
	uint64_t seed = 1;
	unsigned ok = 0;

	for (unsigned i = 0; i < 200000; i++) {
		uint8_t f[128];
		unsigned len = mix_of(seed++) % sizeof(f);
		struct pkt p;

		for (unsigned k = 0; k < len; k += 4) {
			uint32_t r = mix_of(seed++);
			memcpy(f + k, &r, 4);
		}
		// half of them start as a valid frame with a few bytes changed
		if (i & 1) {
			len = write_only_v4(f, 32);
			for (unsigned k = 0; k < 3; k++) {
				unsigned at = mix_of(seed++) % len;
				f[at] = (uint8_t)mix_of(seed++);
			}
			ipv4_set_checksum(f + 14, 20);
		}
		if (parse_exact(f, len, &p) == PKT_OK) {
			ok++;
			assert_true(p.payload_off + p.payload_len <= len);
			assert_true(p.end <= len);
		}
	}
	assert_true(ok > 1000); // most payload and address changes do no harm
}

static void a_sack_is_written_and_read_as_documented(void **state)
{
	static const uint8_t wire[] = {
		0x53, 0xab, 0xcd, 0xef, 0x80, 0, 0, 0, 0, 0, 0x12, 0x05, 0, 0, 0, 0};
	struct roce_sack sack = {.top = 0xabcdef, .bitmap = UINT64_C(0x8000000000001205)}, back;
	uint8_t out[ROCE_SACK_BYTES], other[ROCE_SACK_BYTES];

	roce_sack_put(out, &sack);
	assert_memory_equal(out, wire, sizeof(out));
	assert_true(roce_sack_get(wire, ROCE_SACK_BYTES, &back));
	assert_int_equal(back.top, sack.top);
	assert_int_equal(back.bitmap, sack.bitmap);
	assert_false(roce_sack_get(wire, ROCE_SACK_BYTES - 1, &back));
	assert_false(roce_sack_get(wire, ROCE_SACK_BYTES + 4, &back));
	memcpy(other, wire, sizeof(other));
	other[0] = 0;
	assert_false(roce_sack_get(other, sizeof(other), &back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_only_is_understood),
		cmocka_unit_test(headers_alone_are_enough),
		cmocka_unit_test(truncation_at_every_byte_is_an_error_of_its_layer),
		cmocka_unit_test(consistent_truncation_reaches_the_inner_layers),
		cmocka_unit_test(padding_behind_a_short_packet_is_ignored),
		cmocka_unit_test(a_wrong_field_is_an_error_of_its_layer),
		cmocka_unit_test(tagged_ipv6_ack_is_understood),
		cmocka_unit_test(roce1_is_understood),
		cmocka_unit_test(header_lengths_follow_the_opcode),
		cmocka_unit_test(fragments_have_no_transport),
		cmocka_unit_test(arp_and_unknown_control),
		cmocka_unit_test(pfc_survives_a_round_trip),
		cmocka_unit_test(incremental_checksums_equal_full_ones),
		cmocka_unit_test(ttl_1_is_left_alone),
		cmocka_unit_test(ipv6_fields_change_alone),
		cmocka_unit_test(udp_source_port_follows_the_queue_pairs),
		cmocka_unit_test(every_captured_frame_parses),
		cmocka_unit_test(noise_is_never_read_past_its_end),
		cmocka_unit_test(a_sack_is_written_and_read_as_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
