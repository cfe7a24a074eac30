/* SPDX-License-Identifier: BSD-3-Clause */
// EAL starts as any user, with what the machine has; pools give all their frames and get them back.
// EAL can be started once in a process, so each start is a child.

#include <errno.h>
#include <rte_mempool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <rte_lcore.h>

#include "emu/engine/eal.h"

// Exit status of `fn` in a child; 255 when it crashed.
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

#define REQUIRE(cond)                                                              \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			return 1;                                                  \
		}                                                                  \
	} while (0)

static int start(struct eal_config c)
{
	struct eal_info info;

	return eal_start(&c, &info, stderr);
}

static int use_pool(unsigned n, unsigned room)
{
	struct rte_mempool *mp = frame_pool_create("p", n, room);
	REQUIRE(mp != NULL);
	REQUIRE(rte_mempool_avail_count(mp) == n);
	struct frame **f = calloc(n, sizeof(struct frame *));
	REQUIRE(f != NULL);
	for (unsigned i = 0; i < n; i++) {
		f[i] = frame_alloc(mp);
		REQUIRE(f[i] != NULL);
		REQUIRE(f[i]->len == 0 && f[i]->dst == FRAME_NO_DST && f[i]->flow == FRAME_NO_FLOW);
		REQUIRE(frame_mbuf(f[i])->pool == mp && mbuf_frame(frame_mbuf(f[i])) == f[i]);
		memset(frame_data(f[i]), 0xaa, room); // what is promised is there
	}
	REQUIRE(frame_alloc(mp) == NULL);
	for (unsigned i = 0; i < n; i++)
		i % 2 ? frame_free(f[i]) : frame_free_to(mp, f[i]);
	REQUIRE(rte_mempool_avail_count(mp) == n);
	rte_mempool_free(mp);
	free(f);
	return 0;
}

static int child_two_lcores(void)
{
	REQUIRE(start((struct eal_config){.n_lcores = 2, .memory_bytes = 1 << 20}) == 0);
	REQUIRE(rte_lcore_count() == 2);
	REQUIRE(rte_lcore_id() == rte_get_main_lcore());
	eal_stop();
	return 0;
}

static void two_lcores_start(void **state)
{
	assert_int_equal(in_child(child_two_lcores), 0);
}

// More lcores than this machine may have CPUs: they share them.
static int child_many_lcores(void)
{
	REQUIRE(start((struct eal_config){.n_lcores = 16, .memory_bytes = 1 << 20}) == 0);
	REQUIRE(rte_lcore_count() == 16);
	return 0;
}

static void more_lcores_than_cpus_start(void **state)
{
	assert_int_equal(in_child(child_many_lcores), 0);
}

static int child_pinned(void)
{
	REQUIRE(start((struct eal_config){.n_lcores = 2, .memory_bytes = 1 << 20, .pin = true}) ==
		0);
	cpu_set_t set;
	REQUIRE(pthread_getaffinity_np(pthread_self(), sizeof(set), &set) == 0);
	REQUIRE(CPU_COUNT(&set) == 1);
	return 0;
}

static void lcores_can_be_pinned(void **state)
{
	assert_int_equal(in_child(child_pinned), 0);
}

static int child_nobody(void)
{
	if (getuid() == 0)
		REQUIRE(setgid(65534) == 0 && setuid(65534) == 0);
	REQUIRE(chdir("/") == 0);
	REQUIRE(start((struct eal_config){
			.n_lcores = 2, .memory_bytes = frame_pool_bytes(1000, 192)}) == 0);
	return use_pool(1000, 192);
}

static void no_privileges_are_needed(void **state)
{
	assert_int_equal(in_child(child_nobody), 0);
}

// What frame_pool_bytes() says is enough for what frame_pool_create() needs, together with EAL's
// own.
static int child_big_pool(void)
{
	size_t bytes = frame_pool_bytes(100000, 192) + frame_pool_bytes(20000, 9728);
	REQUIRE(start((struct eal_config){.n_lcores = 1, .memory_bytes = bytes}) == 0);
	struct rte_mempool *a = frame_pool_create("a", 100000, 192);
	struct rte_mempool *b = frame_pool_create("b", 20000, 9728);
	REQUIRE(a != NULL && b != NULL);
	REQUIRE(rte_mempool_avail_count(a) == 100000 && rte_mempool_avail_count(b) == 20000);
	return 0;
}

static void the_memory_estimate_suffices(void **state)
{
	assert_int_equal(in_child(child_big_pool), 0);
}

static int child_pools(void)
{
	static const unsigned sizes[] = {1, 2, 7, 100, 255, 383, 384, 385, 5000};

	REQUIRE(start((struct eal_config){.n_lcores = 2, .memory_bytes = 16 << 20}) == 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		REQUIRE(use_pool(sizes[i], 192) == 0);
	return use_pool(500, 2048);
}

static void pools_of_any_size_give_every_frame_and_get_it_back(void **state)
{
	assert_int_equal(in_child(child_pools), 0);
}

static int child_extra(void)
{
	REQUIRE(start((struct eal_config){.n_lcores = 1,
			.memory_bytes = 1 << 20,
			.extra = "  --vdev=net_null0 \t --main-lcore=0"}) == 0);
	return rte_get_main_lcore() == 0 ? 0 : 1;
}

static void extra_arguments_are_passed_on(void **state)
{
	assert_int_equal(in_child(child_extra), 0);
}

// One line that says so, and never success.
static int child_wrong(void)
{
	char *text = NULL;
	size_t len = 0;
	FILE *err = open_memstream(&text, &len);
	struct eal_info info;
	struct eal_config c = {.n_lcores = 1, .memory_bytes = 1 << 20, .extra = "--main-lcore=77"};

	REQUIRE(err != NULL && freopen("/dev/null", "w", stdout) &&
		freopen("/dev/null", "w", stderr));
	int rc = eal_start(&c, &info, err);
	fclose(err);
	REQUIRE(rc < 0);
	return strncmp(text, "fabemu: DPDK did not start: ", 28) != 0 ||
	       strchr(text, '\n') != text + len - 1;
}

static void wrong_arguments_are_an_error_in_one_line(void **state)
{
	assert_int_equal(in_child(child_wrong), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_lcores_start),
		cmocka_unit_test(more_lcores_than_cpus_start),
		cmocka_unit_test(lcores_can_be_pinned),
		cmocka_unit_test(no_privileges_are_needed),
		cmocka_unit_test(the_memory_estimate_suffices),
		cmocka_unit_test(pools_of_any_size_give_every_frame_and_get_it_back),
		cmocka_unit_test(extra_arguments_are_passed_on),
		cmocka_unit_test(wrong_arguments_are_an_error_in_one_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
