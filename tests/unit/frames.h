/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// For unit tests: the captured frames of tests/data, read without the code under test, and a small
// source of reproducible noise.

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct capture_file {
	uint8_t *bytes;
	size_t size;
	size_t at;
};

// tests/data/<name> of the source tree (TEST_DATA is set by meson). Aborts when it is not there.
static inline void capture_load(struct capture_file *c, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", TEST_DATA, name);
	FILE *f = fopen(path, "rb");
	if (f == NULL) {
		perror(path);
		abort();
	}
	fseek(f, 0, SEEK_END);
	c->size = (size_t)ftell(f);
	rewind(f);
	c->bytes = malloc(c->size);
	if (c->bytes == NULL || fread(c->bytes, 1, c->size, f) != c->size)
		abort();
	fclose(f);
	c->at = 24; // classic pcap's file header
}

static inline bool capture_next(struct capture_file *c, const uint8_t **frame, uint32_t *len)
{
	if (c->at + 16 > c->size)
		return false;
	memcpy(len, c->bytes + c->at + 8, 4);
	*frame = c->bytes + c->at + 16;
	c->at += 16 + *len;
	return true;
}

static inline void capture_unload(struct capture_file *c)
{
	free(c->bytes);
}

// Noise: murmur3's finaliser.
static inline uint32_t mix_of(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return (uint32_t)(x >> 32);
}
