/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A YAML document as a tree that can be walked, changed by `--set`, and pointed at in messages.
// Read by libyaml; this layer adds what it leaves to its caller: duplicate keys, recursive and
// exploding aliases, size and depth limits, several documents in a file.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/scenario/arena.h"
#include "emu/scenario/diag.h"

#define DOC_BYTES_MAX (2u << 20)
#define DOC_NODES_MAX 200000u // after expansion of aliases
#define DOC_DEPTH_MAX 32u

enum ykind { Y_SCALAR, Y_LIST, Y_MAP };

struct ynode;

struct ypair {
	struct ynode *key; // scalar
	struct ynode *value;
};

struct ynode {
	enum ykind kind;
	bool plain;         // scalar written without quotes
	const char *src;    // file name, or the --set argument it came from (line 0)
	uint32_t line, col; // 1-based
	struct ynode *parent;
	const char *name;     // key under which the parent map holds it, NULL in a list
	uint32_t index;       // position in the parent
	const char *text;     // scalar
	uint32_t n;           // children
	struct ynode **items; // Y_LIST
	struct ypair *pairs;  // Y_MAP
};

// Parses `text`. Returns the root (an empty document is an empty map), or NULL after an error.
struct ynode *doc_parse(
	struct arena *a, struct diag *d, const char *file, const char *text, size_t len);

// Parses the value of a --set; its nodes have line 0.
struct ynode *doc_parse_value(struct arena *a, struct diag *d, const char *src, const char *text);

// Value of a key, NULL if absent; and the node of the key itself.
struct ynode *ynode_get(const struct ynode *map, const char *key);
struct ynode *ynode_key_node(const struct ynode *map, const char *key);

// True for "", ~ and null written plainly: a key without a value.
bool ynode_is_null(const struct ynode *n);

// "links[2].rate"
#define YNODE_PATH_MAX 256
void ynode_path(const struct ynode *n, char *buf, size_t len);

// "a mapping", "a list", "a value"
const char *ynode_kind_name(const struct ynode *n);

// Applies `path=value` (dots and [index]; the value is YAML). Missing maps on the way are created;
// what they mean is checked later like everything else. Returns false after an error.
bool doc_set(struct arena *a, struct diag *d, struct ynode *root, const char *assignment);
