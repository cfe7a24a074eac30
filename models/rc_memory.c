/* SPDX-License-Identifier: BSD-3-Clause */
// Memory regions by key (IBTA vol. 1, 10.6): who may touch which addresses how.
//
// A key names a slot of the table in its upper 24 bits, so that finding it costs no search, and
// carries a variant in the lower 8, so that a key kept from an earlier use of the slot is refused.
// lkey and rkey are the same number, as they are with rxe and mlx5.
//
// A region may end at the last address: bounds are compared without adding addr and length.
#include "models/rc_memory.h"

#include <stddef.h>

#define KEY_VARIANT_BITS 8

const struct rc_mr *rc_mr_register(
	struct rc_memory *m, uint64_t addr, uint64_t length, uint8_t access, uint8_t variant)
{
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->mr[i].valid)
			continue;
		uint32_t key = i << KEY_VARIANT_BITS | variant;
		m->mr[i] = (struct rc_mr){
			.addr = addr,
			.length = length,
			.rkey = key,
			.lkey = key,
			.access = access,
			.valid = true,
		};
		return &m->mr[i];
	}
	return NULL;
}

const struct rc_mr *rc_mr_find(const struct rc_memory *m, uint32_t key)
{
	uint32_t i = key >> KEY_VARIANT_BITS;

	return i < m->n && m->mr[i].valid && m->mr[i].rkey == key ? &m->mr[i] : NULL;
}

bool rc_mr_invalidate(struct rc_memory *m, uint32_t key)
{
	if (rc_mr_find(m, key) == NULL)
		return false;
	m->mr[key >> KEY_VARIANT_BITS].valid = false;
	return true;
}

bool rc_mr_allows(
	const struct rc_memory *m, uint32_t key, uint64_t addr, uint32_t bytes, uint8_t access)
{
	if (bytes == 0)
		return true;

	const struct rc_mr *mr = rc_mr_find(m, key);
	return mr != NULL && (mr->access & access) == access && addr >= mr->addr &&
	       addr - mr->addr <= mr->length && bytes <= mr->length - (addr - mr->addr);
}
