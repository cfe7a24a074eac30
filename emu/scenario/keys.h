/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// How a key is declared, for the files that hold the key table: one line per key; the columns:
// struct, field, name, type, default, help, then what only some types need (range, words, reader).

#include "emu/scenario/loader.h"

// clang-format off
#define FIELD(s, field) .offset = offsetof(s, field), .size = sizeof(((s *)0)->field)
#define NUM(s, field, key, quantity, default_, low, high, text, ...)                            \
	{                                                                                       \
		.name = key, .type = K_NUMBER, .q = quantity, FIELD(s, field), .def = default_, \
		.min = low, .max = high, .help = text, ##__VA_ARGS__                            \
	}
#define INT(s, field, key, default_, low, high, text, ...)                                \
	{                                                                                 \
		.name = key, .type = K_INT, FIELD(s, field), .def = default_, .min = low, \
		.max = high, .help = text, ##__VA_ARGS__                                  \
	}
#define BOOL(s, field, key, default_, text)                                                 \
	{                                                                                   \
		.name = key, .type = K_BOOL, FIELD(s, field), .def = default_, .help = text \
	}
#define TEXT(s, field, key, default_, text, ...)                                               \
	{                                                                                      \
		.name = key, .type = K_STRING, FIELD(s, field), .def = default_, .help = text, \
		##__VA_ARGS__                                                                  \
	}
#define ENUM(s, field, key, table, default_, text, ...)                                        \
	{                                                                                      \
		.name = key, .type = K_ENUM, FIELD(s, field), .words = table, .def = default_, \
		.help = text, ##__VA_ARGS__                                                    \
	}
#define SUB(s, field, key, section, text)                                                      \
	{                                                                                      \
		.name = key, .type = K_SECTION, FIELD(s, field), .sub = &section, .help = text \
	}
#define CUSTOM(reader, key, default_, shape_, text, ...)                                         \
	{                                                                                        \
		.name = key, .type = K_CUSTOM, .read = reader, .def = default_, .shape = shape_, \
		.help = text, ##__VA_ARGS__                                                      \
	}
// Kept as a node for a later step.
#define NODE(s, field, key, default_, shape_, text, ...)                                        \
	{                                                                                       \
		.name = key, .type = K_NODE, FIELD(s, field), .def = default_, .shape = shape_, \
		.help = text, ##__VA_ARGS__                                                     \
	}
#define AUTO .word = "auto", .word_value = (int64_t)SC_AUTO
#define SECTION(var, title, text, ...)                        \
	static const struct key var##_keys[] = {__VA_ARGS__}; \
	const struct section var = {.name = title,            \
		.help = text,                                 \
		.keys = var##_keys,                           \
		.n_keys = sizeof(var##_keys) / sizeof(var##_keys[0])}

#define RATE_MIN  1000
#define RATE_MAX  1600000000000
#define SIZE_MAX_ (INT64_C(1) << 40)
#define YEAR      (SIM_S * 1000000) // 11 days; simtime_t reaches 106
// clang-format on
