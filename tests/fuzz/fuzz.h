/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// What the fuzz targets share.

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(cond)                                                                \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                   \
		}                                                                  \
	} while (0)

#ifndef FUZZ_LIBFUZZER

// Of the mutations: the same in every run.
static uint64_t noise_state = 1;

static inline uint32_t noise(void)
{
	noise_state = noise_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(noise_state >> 33);
}

#endif
