/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// The barrier between windows. The last to arrive does the serial work (decide the next window, run
// tasks) before it lets the others go, so one barrier per window is enough. Waiters spin briefly,
// for windows are short, and then sleep in the kernel, for the host may have fewer cores than we
// think.

#include <linux/futex.h>
#include <rte_pause.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BARRIER_SPINS 4000 // some 100 us: a sleeper wakes late

struct barrier {
	uint32_t n;
	uint32_t arrived;
	uint32_t generation;
	uint32_t sleepers;
};

// `serial(arg)` is run by the last of b->n callers while the others wait.
static inline void barrier_wait(struct barrier *b, void (*serial)(void *), void *arg)
{
	if (b->n == 1) {
		serial(arg);
		return;
	}

	uint32_t generation = __atomic_load_n(&b->generation, __ATOMIC_ACQUIRE);
	if (__atomic_add_fetch(&b->arrived, 1, __ATOMIC_ACQ_REL) == b->n) {
		b->arrived = 0;
		serial(arg);
		__atomic_store_n(&b->generation, generation + 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&b->sleepers, __ATOMIC_SEQ_CST) != 0)
			syscall(SYS_futex, &b->generation, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL,
				NULL, 0);
		return;
	}
	for (int i = 0; i < BARRIER_SPINS; i++) {
		if (__atomic_load_n(&b->generation, __ATOMIC_ACQUIRE) != generation)
			return;
		rte_pause();
	}
	__atomic_add_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&b->generation, __ATOMIC_SEQ_CST) == generation)
		syscall(SYS_futex, &b->generation, FUTEX_WAIT_PRIVATE, generation, NULL, NULL, 0);
	__atomic_sub_fetch(&b->sleepers, 1, __ATOMIC_SEQ_CST);
}
