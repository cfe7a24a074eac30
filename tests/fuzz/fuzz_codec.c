/* SPDX-License-Identifier: BSD-3-Clause */
// Fuzz target: bytes from anywhere through everything that reads frames. With clang, libFuzzer
// drives it (-fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER); with any compiler it runs the
// files given as arguments, then `-runs=N` frames mutated from them.
//
// Input: 2 bytes of how many bytes the frame claims beyond those present, then the frame.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "pcap/build.h"
#include "pcap/codec.h"
#include "pcap/icrc.h"
#include "pcap/mad.h"

// What is understood of a MAD can be written and understood again.
static void check_mad(const uint8_t *data, size_t len)
{
	uint8_t bytes[MAD_BYTES], again[MAD_BYTES];
	struct cm_mad m;

	if (cm_mad_parse(data, len, &m) != MAD_OK)
		return;
	cm_mad_build(&m, bytes);
	CHECK(cm_mad_parse(bytes, sizeof(bytes), &m) == MAD_OK);
	cm_mad_build(&m, again);
	CHECK(memcmp(bytes, again, sizeof(bytes)) == 0);
}

// What every caller relies on after PKT_OK.
static void check_ok(const struct pkt *p, uint32_t have, uint32_t len)
{
	CHECK(p->end <= len);
	CHECK(p->l3_off <= have);
	CHECK(p->payload_off + p->payload_len <= len);
	CHECK(p->addr_bytes == 0 || p->dst_off + p->addr_bytes <= have);
	CHECK(p->l4_off == 0 || p->l4_off <= p->end);
	if (p->kind == PKT_PFC)
		pfc_parse(p);
	if (p->kind == PKT_PAUSE)
		pause_parse(p);
	if (p->bth_off == 0)
		return;
	CHECK(p->bth_off + roce_header_bytes(p->opcode) <= have);
	CHECK(p->payload_off + p->payload_len + p->pad + ICRC_BYTES == p->end);
	for (unsigned e = 0; e < ROCE_EXT_COUNT; e++) {
		const uint8_t *at = pkt_ext(p, (enum roce_ext)e);
		CHECK(at == NULL || at < p->data + p->payload_off);
	}
	if (have < p->end)
		return;
	pkt_icrc_valid(p);
	check_mad(p->data + p->payload_off, p->payload_len);
}

// A switch's changes keep a good checksum good.
static void check_rewrite(const uint8_t *frame, uint32_t len, const struct pkt *p)
{
	uint8_t *copy = malloc(len);
	struct pkt q;

	memcpy(copy, frame, len);
	uint8_t *ip = copy + p->l3_off;
	bool alive = ip_decrement_ttl(ip);
	ip_set_ce(ip);
	ip_set_dscp(ip, p->dscp ^ 0x3f);
	CHECK(pkt_parse(copy, len, &q) == PKT_OK);
	CHECK(q.ecn == ECN_CE && q.dscp == (p->dscp ^ 0x3f));
	CHECK(q.ttl == p->ttl - alive);
	free(copy);
}

// A tag changes where everything is, and nothing else. (The codec parses the usual untagged frame
// by a way of its own.)
static void check_tagged(
	const uint8_t *frame, uint32_t have, uint32_t len, enum pkt_error err, const struct pkt *p)
{
	uint8_t *tagged = malloc(have + VLAN_TAG_BYTES);
	struct pkt q;

	memcpy(tagged, frame, 12);
	put_be16(tagged + 12, ETHERTYPE_VLAN);
	put_be16(tagged + 14, 0);
	memcpy(tagged + 16, frame + 12, have - 12);
	CHECK(pkt_parse_head(tagged, have + VLAN_TAG_BYTES, len + VLAN_TAG_BYTES, &q) == err);
	q.data = p->data;
	q.n_tags--;
	q.vlan_tci = p->vlan_tci;
	for (uint16_t *off = &q.l3_off; off <= &q.payload_off; off++)
		*off = (uint16_t)(*off ? *off - VLAN_TAG_BYTES : 0);
	q.end -= VLAN_TAG_BYTES;
	q.src_off = (uint16_t)(q.src_off ? q.src_off - VLAN_TAG_BYTES : 0);
	q.dst_off = (uint16_t)(q.dst_off ? q.dst_off - VLAN_TAG_BYTES : 0);
	CHECK(memcmp(&q, p, sizeof(q)) == 0);
	free(tagged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pkt p;

	if (size < 2)
		return 0;
	uint32_t have = (uint32_t)size - 2;
	uint32_t missing = get_be16(data) & 0x0fff;
	uint8_t *frame = malloc(have ? have : 1); // its own block: ASan guards the end
	memcpy(frame, data + 2, have);

	enum pkt_error err = pkt_parse(frame, have, &p);
	CHECK(pkt_error_name(err) != NULL);
	pkt_flow_hash(&p);
	if (err == PKT_OK) {
		check_ok(&p, have, have);
		if (p.kind == PKT_IP)
			check_rewrite(frame, have, &p);
	}
	err = pkt_parse_head(frame, have, have + missing, &p);
	if (err == PKT_OK)
		check_ok(&p, have, have + missing);
	if (have >= 14 && p.n_tags == 0)
		check_tagged(frame, have, have + missing, err, &p);
	free(frame);
	return 0;
}

#ifndef FUZZ_LIBFUZZER

#define INPUT_MAX 4096
#define HEADERS   96

struct corpus {
	uint8_t bytes[512][INPUT_MAX];
	size_t size[512];
	unsigned n;
};

static void add_input(struct corpus *c, const uint8_t *bytes, size_t size)
{
	if (c->n == 512 || size == 0 || size > INPUT_MAX - 2)
		return;
	c->bytes[c->n][0] = c->bytes[c->n][1] = 0;
	memcpy(c->bytes[c->n] + 2, bytes, size);
	c->size[c->n++] = size + 2;
}

// A classic little-endian pcap gives its frames, any other file is one frame.
static void add_file(struct corpus *c, const char *path)
{
	static uint8_t bytes[8 << 20];
	FILE *f = fopen(path, "rb");

	if (f == NULL) {
		perror(path);
		exit(1);
	}
	size_t n = fread(bytes, 1, sizeof(bytes), f), at = 24;
	fclose(f);
	if (n < 24 || get_le32(bytes) != 0xa1b2c3d4) {
		add_input(c, bytes, n);
		return;
	}
	while (at + 16 <= n && at + 16 + get_le32(bytes + at + 8) <= n) {
		add_input(c, bytes + at + 16, get_le32(bytes + at + 8));
		at += 16 + get_le32(bytes + at + 8);
	}
}

static void mutate(const struct corpus *c)
{
	uint8_t in[INPUT_MAX];
	unsigned i = c->n ? noise() % c->n : 0;
	size_t size = c->n ? c->size[i] : 3 + noise() % 128;

	if (c->n)
		memcpy(in, c->bytes[i], size);
	else
		for (size_t k = 0; k < size; k++)
			in[k] = (uint8_t)noise();
	put_be16(in, noise() & 3 ? 0 : (uint16_t)noise());
	// headers are where it matters: most changes go there
	for (unsigned k = noise() % 6; k > 0; k--) {
		size_t range = (noise() & 7) && size - 2 > HEADERS ? HEADERS : size - 2;
		size_t at = 2 + noise() % range;
		in[at] = (uint8_t)noise();
	}
	if ((noise() & 3) == 0)
		size = 2 + noise() % (size - 1);
	else if (size > 36 && in[14] == 8 && (noise() & 1))
		ipv4_set_checksum(in + 16, IPV4_HEADER_BYTES);
	LLVMFuzzerTestOneInput(in, size);
}

int main(int argc, char **argv)
{
	static struct corpus c;
	uint64_t runs = 1000000;

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "-runs=", 6) == 0)
			runs = strtoull(argv[i] + 6, NULL, 10);
		else
			add_file(&c, argv[i]);
	for (unsigned i = 0; i < c.n; i++)
		LLVMFuzzerTestOneInput(c.bytes[i], c.size[i]);
	for (uint64_t i = 0; i < runs; i++)
		mutate(&c);
	printf("%u inputs, %" PRIu64 " mutations\n", c.n, runs);
	return 0;
}

#endif
