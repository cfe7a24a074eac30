/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRC32_FOLD_MIN 64

// Whether this processor can.
bool crc32_fold_possible(void);
// Continues a CRC-32 (as icrc_update()) over `n` bytes, a multiple of 16 and at least
// CRC32_FOLD_MIN.
uint32_t crc32_fold(uint32_t crc, const uint8_t *p, size_t n);
