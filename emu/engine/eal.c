/* SPDX-License-Identifier: BSD-3-Clause */
// EAL start and frame pools.
//
// Pools are LIFO (the "stack" handler under a per-lcore cache): the frame freed last, still in the
// cache, is the next one used. The order in which a pool hands out frames never shows in results.

#include "emu/engine/eal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_version.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGS_MAX      64
#define NO_HUGE       "FABEMU_NO_HUGE" // environment: leave hugepages alone
#define LCORE_MAP_MAX 65536
#define HUGEPAGE      ((size_t)2 << 20)
#define EAL_OVERHEAD  ((size_t)24 << 20) // EAL's own tables and malloc's slack
#define POOL_CACHE    256
#define POOL_PER_OBJ  (sizeof(struct rte_mbuf) + sizeof(struct frame) + 64 + 8)

static size_t free_hugepages(void)
{
	size_t n = 0;
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");

	if (f != NULL) {
		if (fscanf(f, "%zu", &n) != 1)
			n = 0;
		fclose(f);
	}
	return n;
}

// "0@3,1@5" or "0@(3,5),1@(3,5)" from the CPUs this process may run on.
static void lcore_map(const struct eal_config *c, char *out, size_t len)
{
	cpu_set_t set;
	int cpus[CPU_SETSIZE];
	unsigned n_cpus = 0;
	char all[1024] = "";
	size_t pos = 0;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &set) || i >= 1024)
			continue;
		if (pos < sizeof(all) - 8)
			pos += (size_t)snprintf(
				all + pos, sizeof(all) - pos, "%s%d", n_cpus ? "," : "", i);
		cpus[n_cpus++] = i;
	}
	pos = 0;
	for (unsigned i = 0; i < c->n_lcores && pos < len; i++) {
		if (c->pin && n_cpus > 0)
			pos += (size_t)snprintf(
				out + pos, len - pos, "%s%u@%d", i ? "," : "", i, cpus[i % n_cpus]);
		else
			pos += (size_t)snprintf(
				out + pos, len - pos, "%s%u@(%s)", i ? "," : "", i, all);
	}
}

// Whether the user's own arguments say which CPUs to use; EAL takes only one such option.
static bool chooses_lcores(const char *extra)
{
	static const char *const options[] = {"--lcores", "-l ", "-c ", "-S "};

	for (size_t i = 0; extra != NULL && i < RTE_DIM(options); i++)
		if (strstr(extra, options[i]) != NULL)
			return true;
	return false;
}

static int split_extra(const char *extra, char *copy, size_t len, char **argv, int argc)
{
	if (extra == NULL)
		return argc;
	snprintf(copy, len, "%s", extra);
	for (char *p = strtok(copy, " \t"); p != NULL && argc < ARGS_MAX - 1;
		p = strtok(NULL, " \t"))
		argv[argc++] = p;
	return argc;
}

// The pages that were free may be gone, or not for us; EAL cannot be initialised twice in a
// process. Returns only if that fails.
static void start_over_without_hugepages(void)
{
	static char cmdline[65536];
	static char *argv[4096];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, cmdline, sizeof(cmdline) - 1) : -1;
	size_t argc = 0;

	if (fd >= 0)
		close(fd);
	if (n <= 0 || (size_t)n == sizeof(cmdline) - 1)
		return;
	for (char *p = cmdline; p < cmdline + n && argc < RTE_DIM(argv) - 1; p += strlen(p) + 1)
		argv[argc++] = p;
	setenv(NO_HUGE, "1", 1);
	fflush(NULL);
	execv("/proc/self/exe", argv);
}

int eal_start(const struct eal_config *c, struct eal_info *info, FILE *err)
{
	static char lcores[LCORE_MAP_MAX];
	static char megabytes[16];
	static char extra[4096];
	static char *argv[ARGS_MAX];
	static char fixed[][20] = {
		"fabemu", "--no-telemetry", "--log-level=error", "--iova-mode=va"};
	static char opt_lcores[] = "--lcores", opt_no_pci[] = "--no-pci";
	static char opt_in_memory[] = "--in-memory", opt_no_shconf[] = "--no-shconf";
	static char opt_no_huge[] = "--no-huge", opt_m[] = "-m";
	size_t need = c->memory_bytes + EAL_OVERHEAD;
	int argc = 0;

	// Generous: it is touched only when used, and malloc cannot use all of it.
	need += need / 3;
	info->hugepages = getenv(NO_HUGE) == NULL && free_hugepages() * HUGEPAGE >= need;
	lcore_map(c, lcores, sizeof(lcores));
	for (size_t i = 0; i < RTE_DIM(fixed); i++)
		argv[argc++] = fixed[i];
	if (!chooses_lcores(c->extra)) {
		argv[argc++] = opt_lcores;
		argv[argc++] = lcores;
	}
	if (!c->pci)
		argv[argc++] = opt_no_pci;
	if (info->hugepages) {
		argv[argc++] = opt_in_memory;
	} else {
		// Implies EAL's legacy memory mode, which --in-memory refuses; all that is left of
		// that option then is to keep no files.
		argv[argc++] = opt_no_shconf;
		argv[argc++] = opt_no_huge;
	}
	// Reserved now, so that it is EAL that fails if somebody else takes the pages meanwhile.
	snprintf(megabytes, sizeof(megabytes), "%zu", (need >> 20) + 1);
	argv[argc++] = opt_m;
	argv[argc++] = megabytes;
	argc = split_extra(c->extra, extra, sizeof(extra), argv, argc);
	argv[argc] = NULL;

	// EAL permutes and keeps argv.
	if (rte_eal_init(argc, argv) < 0) {
		int rc = rte_errno > 0 ? -rte_errno : -EINVAL;
		if (info->hugepages && c->extra == NULL)
			start_over_without_hugepages();
		fprintf(err,
			"fabemu: DPDK did not start: %s (arguments: %s%s); run `fabemu doctor`\n",
			rte_strerror(-rc), info->hugepages ? "hugepages" : "--no-huge",
			c->extra ? ", --eal given" : "");
		return rc;
	}
	return 0;
}

void eal_stop(void)
{
	rte_eal_cleanup();
}

size_t frame_pool_bytes(unsigned n, unsigned room)
{
	return (size_t)n * (POOL_PER_OBJ + room) + ((size_t)1 << 20);
}

static void init_frame(struct rte_mempool *mp, void *arg, void *obj, unsigned i)
{
	rte_pktmbuf_init(mp, arg, obj, i);
}

struct rte_mempool *frame_pool_create(const char *name, unsigned n, unsigned room)
{
	struct rte_pktmbuf_pool_private priv = {
		.mbuf_data_room_size = (uint16_t)room,
		.mbuf_priv_size = sizeof(struct frame),
	};
	unsigned elt = sizeof(struct rte_mbuf) + sizeof(struct frame) + room;
	// A cache may hold 1.5 times its size, and DPDK refuses one larger than its pool.
	unsigned cache = RTE_MIN(POOL_CACHE, n * 2 / 3);
	struct rte_mempool *mp =
		rte_mempool_create_empty(name, n, elt, cache, sizeof(priv), SOCKET_ID_ANY, 0);

	if (mp == NULL)
		return NULL;
	int rc = rte_mempool_set_ops_byname(mp, "stack", NULL);
	if (rc < 0) {
		rte_errno = -rc;
		rte_mempool_free(mp);
		return NULL;
	}
	rte_pktmbuf_pool_init(mp, &priv);
	rc = rte_mempool_populate_default(mp);
	if (rc < 0) {
		rte_errno = -rc;
		rte_mempool_free(mp);
		return NULL;
	}
	rte_mempool_obj_iter(mp, init_frame, NULL);
	return mp;
}
