/* SPDX-License-Identifier: BSD-3-Clause */
// Fuzz target: capture files from anywhere through reader, checker and cutter. With clang,
// libFuzzer drives it (-fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER); with any compiler it
// runs the files given as arguments, and files of some of their frames, then `-runs=N` mutations.
//
// Mutations come in three sorts: bytes of the file; fields of the headers of frames (queue pair,
// opcode, PSN, syndrome), which lead the checker into states that no sane peer shows; frames left
// out, repeated and swapped.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "pcap/check.h"
#include "pcap/cut.h"
#include "pcap/wire.h"

#define FLOWS_MAX    16
#define FINDINGS_MAX 64

// What every reader of a report relies on.
static void check_report(const struct check_result *r, uint64_t frames)
{
	uint64_t seen = r->foreign, violations = 0;

	CHECK(r->frames == frames);
	CHECK(r->n_flows <= FLOWS_MAX && r->n_findings <= FINDINGS_MAX);
	for (uint32_t i = 0; i < r->n_taps; i++)
		seen += r->taps[i].frames;
	CHECK(seen == frames);
	for (int k = 0; k < CHECK_KINDS; k++)
		violations += check_is_violation((enum check_kind)k) ? r->counts[k] : 0;
	CHECK(violations == r->violations);
	for (uint32_t i = 0; i < r->n_flows; i++) {
		const struct check_flow *f = r->flows[i];
		CHECK(f->tap < r->n_taps);
		if (f->pairing >= CHECK_BY_PSN)
			CHECK(f->peer < r->n_flows && r->flows[f->peer]->peer == i);
		for (int m = 0; m < CHECK_MESSAGES; m++)
			CHECK(f->messages[m].min_bytes <= f->messages[m].max_bytes);
	}
	for (uint32_t i = 0; i < r->n_findings; i++) {
		CHECK(r->findings[i].tap < r->n_taps);
		CHECK(r->findings[i].flow == CHECK_NO_FLOW || r->findings[i].flow < r->n_flows);
		CHECK(r->findings[i].frame >= 1 && r->findings[i].frame <= frames);
	}
}

static void cut_all(const uint8_t *data, size_t size, const struct check_result *r)
{
	char err[512];
	struct stream *s;
	struct stream_frame f;
	struct cut *cut =
		cut_new(&(struct cut_window){.by_number = true, .from = 1, .to = 50}, NULL);

	if (stream_open_memory(&s, data, size, err, sizeof(err)) == 0) {
		for (uint32_t i = 0; i < r->n_flows && i < 2; i++)
			cut_add_flow(cut, r->flows[i]);
		while (stream_next(s, &f) == 1)
			CHECK(!cut_wants(cut, &f) || f.number <= 50);
		stream_close(s);
	}
	cut_free(cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char err[512] = "";
	struct stream *s;
	struct stream_frame f;
	uint8_t *copy = malloc(size ? size : 1); // its own block: ASan guards the end
	uint64_t frames = 0;

	memcpy(copy, data, size);
	if (stream_open_memory(&s, copy, size, err, sizeof(err)) < 0) {
		CHECK(err[0] != '\0');
		free(copy);
		return 0;
	}
	struct check *c = check_new(&(struct check_options){
		.icrc = size & 1, .flows_max = FLOWS_MAX, .findings_max = FINDINGS_MAX});
	int ret;
	while ((ret = stream_next(s, &f)) == 1) {
		CHECK(f.data >= copy && f.data + f.caplen <= copy + size);
		CHECK(f.interface < stream_n_interfaces(s) && f.number == ++frames);
		check_frame(c, s, &f);
	}
	CHECK((ret < 0) == (stream_error(s)[0] != '\0'));
	check_end(c, s);
	struct check_result r = check_result(c);
	check_report(&r, frames);
	cut_all(copy, size, &r);
	check_free(c);
	stream_close(s);
	free(copy);
	return 0;
}

#ifndef FUZZ_LIBFUZZER

#define INPUT_MAX  16384
#define INPUTS_MAX 256
#define PCAP_HEAD  24
#define RECORD     16
#define CHUNK      60 // frames of a capture in one input

struct input {
	uint8_t bytes[INPUT_MAX];
	size_t size;
};

static struct input inputs[INPUTS_MAX];
static unsigned n_inputs;
// Runs of frames of a classic little-endian pcap, cut to 128 bytes so that many fit.
static void add_pcap(const uint8_t *bytes, size_t n)
{
	size_t at = PCAP_HEAD;

	while (at + RECORD <= n && n_inputs < INPUTS_MAX) {
		struct input *in = &inputs[n_inputs++];
		memcpy(in->bytes, bytes, in->size = PCAP_HEAD);
		for (unsigned i = 0; i < CHUNK && at + RECORD <= n; i++) {
			uint32_t caplen = get_le32(bytes + at + 8),
				 keep = caplen < 128 ? caplen : 128;
			if (at + RECORD + caplen > n)
				return;
			memcpy(in->bytes + in->size, bytes + at, RECORD + keep);
			put_le32(in->bytes + in->size + 8, keep);
			in->size += RECORD + keep;
			at += RECORD + caplen;
		}
	}
}

static void add_file(const char *path)
{
	static uint8_t bytes[8 << 20];
	FILE *f = fopen(path, "rb");

	if (f == NULL) {
		perror(path);
		exit(1);
	}
	size_t n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	LLVMFuzzerTestOneInput(bytes, n);
	if (n > PCAP_HEAD && get_le32(bytes) == 0xa1b2c3d4) {
		add_pcap(bytes, n);
	} else if (n_inputs < INPUTS_MAX && n <= INPUT_MAX) {
		memcpy(inputs[n_inputs].bytes, bytes, n);
		inputs[n_inputs++].size = n;
	}
}

// The same frames as a pcapng file with two interfaces and comments.
static void to_pcapng(const struct input *in, struct input *out)
{
	static const uint32_t head[] = {0x0a0d0d0a, 28, 0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX, 28,
		1, 20, 1, 0, 20, 1, 20, 1, 0, 20};
	size_t at = PCAP_HEAD;

	memcpy(out->bytes, head, out->size = sizeof(head));
	while (at + RECORD <= in->size) {
		uint32_t caplen = get_le32(in->bytes + at + 8), pad = (caplen + 3) & ~3u;
		uint32_t total = 32 + pad + 12;
		if (at + RECORD + caplen > in->size || out->size + total > INPUT_MAX)
			return;
		uint32_t block[] = {6, total, noise() & 1, 0, get_le32(in->bytes + at + 4), caplen,
			get_le32(in->bytes + at + 12)};
		uint32_t tail[] = {1 | 4 << 16, 0x796d6d64, 0, total};
		uint8_t *p = out->bytes + out->size;
		memset(p, 0, total);
		memcpy(p, block, sizeof(block));
		memcpy(p + sizeof(block), in->bytes + at + RECORD, caplen);
		memcpy(p + total - sizeof(tail), tail, sizeof(tail));
		out->size += total;
		at += RECORD + caplen;
	}
}

// Changes what the checker's states depend on, in one frame of a pcap.
static void change_header(uint8_t *frame, uint32_t caplen)
{
	static const uint8_t opcodes[] = {0, 1, 2, 4, 6, 7, 8, 10, 12, 13, 14, 15, 16, 17, 18, 20,
		0x81, 0x24, 0x64, 0x2c, 0x33, 0x15};
	uint8_t *bth = frame + 42;

	if (caplen < 62)
		return;
	switch (noise() % 6) {
	case 0:
		bth[0] = opcodes[noise() % sizeof(opcodes)];
		break;
	case 1:
		bth[7] = (uint8_t)(0x11 + noise() % 4);
		break;
	case 2:
		put_be32(bth + 8, (get_be32(bth + 8) + noise() % 16 - 8) & PSN_MASK);
		break;
	case 3:
		bth[12] = (uint8_t)((noise() & 1 ? 0x60 : 0x20) + noise() % 4);
		break;
	case 4:
		put_be32(bth + 8, noise() & PSN_MASK);
		break;
	default:
		put_be32(bth + 12 + noise() % 4 * 4, noise());
	}
}

// Walks the frames of a pcap, changing, leaving out and repeating some.
static void shuffle(const struct input *in, struct input *out)
{
	size_t at = PCAP_HEAD;

	memcpy(out->bytes, in->bytes, out->size = PCAP_HEAD);
	while (at + RECORD <= in->size) {
		uint32_t caplen = get_le32(in->bytes + at + 8);
		if (at + RECORD + caplen > in->size)
			return;
		unsigned copies = noise() % 16 == 0 ? noise() % 3 : 1;
		for (unsigned i = 0; i < copies; i++) {
			if (out->size + RECORD + caplen > INPUT_MAX)
				return;
			memcpy(out->bytes + out->size, in->bytes + at, RECORD + caplen);
			if (noise() % 8 == 0)
				change_header(out->bytes + out->size + RECORD, caplen);
			out->size += RECORD + caplen;
		}
		at += RECORD + caplen;
	}
}

static void mutate(void)
{
	static struct input a, b;
	const struct input *in = &inputs[noise() % n_inputs];

	if (in->size > PCAP_HEAD && get_le32(in->bytes) == 0xa1b2c3d4)
		shuffle(in, &a);
	else
		a = *in;
	if ((noise() & 1) && get_le32(a.bytes) == 0xa1b2c3d4) {
		to_pcapng(&a, &b);
		a = b;
	}
	for (unsigned k = noise() % 4; k > 1 && a.size > 0; k--)
		a.bytes[noise() % a.size] = (uint8_t)noise();
	if (noise() % 8 == 0)
		a.size = noise() % (a.size + 1);
	LLVMFuzzerTestOneInput(a.bytes, a.size);
}

int main(int argc, char **argv)
{
	uint64_t runs = 100000;

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "-runs=", 6) == 0)
			runs = strtoull(argv[i] + 6, NULL, 10);
		else
			add_file(argv[i]);
	for (unsigned i = 0; i < n_inputs; i++)
		LLVMFuzzerTestOneInput(inputs[i].bytes, inputs[i].size);
	for (uint64_t i = 0; n_inputs != 0 && i < runs; i++)
		mutate();
	printf("%u inputs, %" PRIu64 " mutations\n", n_inputs, runs);
	return 0;
}

#endif
