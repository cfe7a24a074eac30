/* SPDX-License-Identifier: BSD-3-Clause */
// Materialised frames are complete, valid RoCE packets, and the payload pattern is a pure function
// of flow and position.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/core/rng.h"
#include "pcap/build.h"
#include "pcap/icrc.h"
#include "pipelines/materialise.h"

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa};
static const uint8_t mac_b[6] = {2, 0, 0, 0, 0, 0xb};
static const uint8_t ip6_a[16] = {0xfd, [15] = 1}, ip6_b[16] = {0xfd, [15] = 2};

// A frame as it lies in a pool's element, without a pool.
static struct frame *new_frame(void)
{
	struct rte_mbuf *m = aligned_alloc(64, sizeof(*m) + sizeof(struct frame) + FRAME_HEAD_ROOM);
	struct frame *f = mbuf_frame(m);

	*f = (struct frame){.flags = FRAME_F_SYNTH | FRAME_F_PARSED, .flow = 7, .payload_pos = 5};
	return f;
}

static void free_frame(struct frame *f)
{
	free(frame_mbuf(f));
}

// WRITE_ONLY of `payload` bytes; v4: head = 14 + 20 + 8 + 12 + 16 = 70; tagged v6: 94.
static struct frame *synth_write(unsigned payload, bool v6)
{
	struct frame *f = new_frame();
	uint8_t *head = frame_data(f), *p;
	unsigned pad = -payload & 3;
	unsigned udp = 8 + 12 + 16 + payload + pad + 4;

	if (v6) {
		p = eth_put(head, mac_b, mac_a, ETHERTYPE_VLAN);
		p = vlan_put(p, 3 << 13, ETHERTYPE_IPV6);
		p = ipv6_put(p, 2, 0, (uint16_t)udp, IP_PROTO_UDP, 64, ip6_a, ip6_b);
	} else {
		p = eth_put(head, mac_b, mac_a, ETHERTYPE_IPV4);
		p = ipv4_put(p, 2, (uint16_t)(20 + udp), 0, 64, IP_PROTO_UDP, 1, 2);
	}
	f->l3_off = v6 ? 18 : 14;
	f->l4_off = (uint8_t)(p - head);
	p = udp_put(p, 0xc001, ROCE_UDP_PORT, (uint16_t)udp);
	p = bth_put(p, ROCE_RC | ROCE_WRITE_ONLY, BTH_MIG, pad, 0x11, true, 1);
	p = reth_put(p, 0, 1, payload);
	f->head_len = (uint16_t)(p - head);
	f->payload_len = (uint16_t)payload;
	f->len = (uint16_t)(f->head_len + payload + pad + ICRC_BYTES);
	return f;
}

static void assert_valid(struct frame *f)
{
	uint8_t *out = malloc(f->len); // exactly: ASan sees a byte too many
	struct pkt p;

	assert_int_equal(frame_materialise(f, out, f->len), f->len);
	assert_memory_equal(out, frame_data(f), f->head_len);
	assert_int_equal(pkt_parse(out, f->len, &p), PKT_OK);
	assert_int_equal(p.payload_off, f->head_len);
	assert_int_equal(p.payload_len, f->payload_len);
	assert_int_equal(
		payload_pattern_check(f->flow, f->payload_pos, out + p.payload_off, p.payload_len),
		f->payload_len);
	for (unsigned i = 0; i < p.pad; i++)
		assert_int_equal(out[p.payload_off + p.payload_len + i], 0);
	assert_true(pkt_icrc_valid(&p));
	free(out);
}

static void every_payload_length_gives_a_valid_frame(void **state)
{
	for (unsigned n = 0; n < 70; n++)
		for (int v6 = 0; v6 < 2; v6++) {
			struct frame *f = synth_write(n, v6);
			assert_valid(f);
			free_frame(f);
		}
	struct frame *f = synth_write(4096, false);
	assert_valid(f);
	free_frame(f);
}

static void offsets_are_found_when_nobody_parsed(void **state)
{
	struct frame *f = synth_write(33, true);

	f->flags = FRAME_F_SYNTH;
	f->l3_off = f->l4_off = 0;
	assert_valid(f);
	free_frame(f);
}

// Whatever the room, the bytes written are the start of the whole frame.
static void less_room_gives_the_frame_cut_short(void **state)
{
	struct frame *f = synth_write(21, false); // 70 + 21 + 3 + 4 = 98
	uint8_t whole[98];

	assert_int_equal(frame_materialise(f, whole, 200), 98);
	for (unsigned cap = 0; cap < 98; cap++) {
		uint8_t *out = malloc(cap + 1);
		assert_int_equal(frame_materialise(f, out, cap), cap);
		assert_memory_equal(out, whole, cap);
		free(out);
	}
	free_frame(f);
}

// An ACK: no payload, 14 + 20 + 8 + 12 + 4 AETH = 58, ICRC to 62.
static void an_ack_gets_its_icrc(void **state)
{
	struct frame *f = new_frame();
	uint8_t *head = frame_data(f), *p;

	p = eth_put(head, mac_b, mac_a, ETHERTYPE_IPV4);
	p = ipv4_put(p, 2, 48, 0, 64, IP_PROTO_UDP, 1, 2);
	p = udp_put(p, 0xc001, ROCE_UDP_PORT, 28);
	p = bth_put(p, ROCE_RC | ROCE_ACK, BTH_MIG, 0, 0x11, false, 1);
	p = aeth_put(p, AETH_ACK | AETH_CREDIT_INVALID, 1);
	f->l3_off = 14;
	f->l4_off = 34;
	f->head_len = (uint16_t)(p - head);
	f->len = 62;
	assert_valid(f);
	free_frame(f);
}

static void a_real_frame_is_copied(void **state)
{
	struct frame *f = new_frame();
	uint8_t out[100] = {0};

	f->flags = 0;
	f->len = f->head_len = 100;
	for (unsigned i = 0; i < 100; i++)
		frame_data(f)[i] = (uint8_t)i;
	assert_int_equal(frame_materialise(f, out, sizeof(out)), 100);
	assert_memory_equal(out, frame_data(f), 100);
	free_frame(f);
}

// Byte x of flow f, from the header's definition, one by one.
static uint8_t pattern_byte(uint32_t flow, uint64_t x)
{
	uint64_t w = mix64(mix64((uint64_t)flow + 1) + x / 8 * UINT64_C(0x9e3779b97f4a7c15));

	return (uint8_t)(w >> (8 * (x % 8)));
}

static void pattern_is_the_documented_function(void **state)
{
	uint8_t b[64];

	for (uint64_t pos = 0; pos < 20; pos++)
		for (size_t n = 0; n <= 40; n++) {
			memset(b, 0xa5, sizeof(b));
			payload_pattern_fill(3, pos, b, n);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(b[i], pattern_byte(3, pos + i));
			assert_int_equal(b[n], 0xa5);
		}
}

static void pattern_check_finds_the_first_wrong_byte(void **state)
{
	uint8_t b[1000];

	payload_pattern_fill(9, 1 << 20, b, sizeof(b));
	assert_int_equal(payload_pattern_check(9, 1 << 20, b, sizeof(b)), sizeof(b));
	for (unsigned i = 0; i < sizeof(b); i++) {
		b[i] ^= 0x10;
		assert_int_equal(payload_pattern_check(9, 1 << 20, b, sizeof(b)), i);
		b[i] ^= 0x10;
	}
	assert_in_range(payload_pattern_check(8, 1 << 20, b, sizeof(b)), 0, 3); // another flow
	assert_in_range(payload_pattern_check(9, (1 << 20) + 8, b, sizeof(b)), 0, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_payload_length_gives_a_valid_frame),
		cmocka_unit_test(offsets_are_found_when_nobody_parsed),
		cmocka_unit_test(less_room_gives_the_frame_cut_short),
		cmocka_unit_test(an_ack_gets_its_icrc),
		cmocka_unit_test(a_real_frame_is_copied),
		cmocka_unit_test(pattern_is_the_documented_function),
		cmocka_unit_test(pattern_check_finds_the_first_wrong_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
