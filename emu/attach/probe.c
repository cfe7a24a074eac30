/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/attach/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "emu/attach/guest_dirs.h"
#include "emu/attach/netif.h"

#define PATH_BYTES     512
#define KVM_BOOT_MS    8000 // a guest that works says so within two seconds
#define UML_BOOT_MS    8000
#define PROBE_ARGUMENT "fabemu.probe"
#define PROBE_ANSWER   "@fabemu@ probe"

void probe_cache_path(char *path, size_t len, const char *file)
{
	const char *cache = getenv("FABEMU_CACHE");
	const char *xdg = getenv("XDG_CACHE_HOME");
	const char *home = getenv("HOME");

	if (cache != NULL && *cache)
		snprintf(path, len, "%s/%s", cache, file);
	else if (xdg != NULL && *xdg)
		snprintf(path, len, "%s/fabemu/%s", xdg, file);
	else
		snprintf(path, len, "%s/.cache/fabemu/%s", home != NULL ? home : "/root", file);
}

bool probe_guest_file(char *path, size_t len, const char *file)
{
	const char *dirs[] = {getenv("FABEMU_GUEST_DIR"), GUEST_INSTALL_DIR, GUEST_SOURCE_DIR};

	for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (dirs[i] == NULL || *dirs[i] == '\0')
			continue;
		snprintf(path, len, "%s/%s", dirs[i], file);
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

bool probe_program(const char *name, char *path, size_t len)
{
	static const char fixed[] = "/usr/sbin:/sbin:/usr/bin:/bin";
	const char *env = getenv("PATH");
	char dirs[4096];

	snprintf(dirs, sizeof(dirs), "%s:%s", env != NULL ? env : "", fixed);
	char *save = NULL;
	for (char *d = strtok_r(dirs, ":", &save); d != NULL; d = strtok_r(NULL, ":", &save)) {
		snprintf(path, len, "%s/%s", d, name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

bool probe_qemu(char *path, size_t len)
{
	return probe_program("qemu-system-x86_64", path, len);
}

static bool in_cache(const char *file, int mode)
{
	char path[PATH_BYTES];

	probe_cache_path(path, sizeof(path), file);
	return access(path, mode) == 0;
}

bool probe_qemu_kernel(void)
{
	return in_cache("qemu/vmlinuz", R_OK) && in_cache("qemu/initrd.gz", R_OK);
}

bool probe_uml_kernel(void)
{
	return in_cache("uml/linux", X_OK) && in_cache("uml/initrd.gz", R_OK);
}

// ---- trying a kernel ------------------------------------------------------------------------

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Reads until the answer appears, the other side closes, or time is up.
static bool answers(int fd, int timeout_ms)
{
	char text[4096];
	size_t len = 0;
	int64_t end = now_ms() + timeout_ms;

	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		int64_t left = end - now_ms();

		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return false;
		ssize_t got = read(fd, text + len, sizeof(text) - 1 - len);
		if (got <= 0)
			return false;
		for (size_t i = len; i < len + (size_t)got; i++)
			text[i] = text[i] ? text[i] : ' ';
		len += (size_t)got;
		text[len] = '\0';
		if (strstr(text, PROBE_ANSWER) != NULL)
			return true;
		if (len > sizeof(text) / 2) { // keep the end: the answer may be cut
			memmove(text, text + len - 64, 64);
			len = 64;
		}
	}
}

static bool boots(char *const *argv, int timeout_ms)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDONLY);
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, STDIN_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	bool ok = pid > 0 && answers(fds[0], timeout_ms);
	close(fds[0]);
	if (pid > 0) {
		setpgid(pid, pid);
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return ok;
}

// Answers are kept with the boot they were found in: a moved disk or a new kernel asks again.
static bool remembered(const char *what, bool *answer)
{
	char path[PATH_BYTES], id[64] = "", text[128];
	bool known = false;
	int yes;

	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f == NULL)
		return false;
	if (fgets(id, sizeof(id), f) == NULL)
		id[0] = '\0';
	fclose(f);
	id[strcspn(id, "\n")] = '\0';
	probe_cache_path(path, sizeof(path), what);
	f = fopen(path, "re");
	if (f == NULL)
		return false;
	if (fgets(text, sizeof(text), f) != NULL && strncmp(text, id, strlen(id)) == 0 &&
		sscanf(text + strlen(id), "%d", &yes) == 1) {
		*answer = yes;
		known = true;
	}
	fclose(f);
	return known;
}

static void remember(const char *what, bool answer)
{
	char path[PATH_BYTES], id[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (f == NULL)
		return;
	if (fgets(id, sizeof(id), f) == NULL)
		id[0] = '\0';
	fclose(f);
	id[strcspn(id, "\n")] = '\0';
	probe_cache_path(path, sizeof(path), what);
	f = fopen(path, "we");
	if (f == NULL)
		return; // asked again next time
	fprintf(f, "%s %d\n", id, answer);
	fclose(f);
}

enum probe_kvm probe_kvm(void)
{
	char qemu[PATH_BYTES], kernel[PATH_BYTES], initrd[PATH_BYTES];
	bool works;

	if (access("/dev/kvm", F_OK) < 0)
		return KVM_ABSENT;
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES || errno == EPERM ? KVM_NO_PERMISSION : KVM_ABSENT;
	close(fd);
	if (!probe_qemu(qemu, sizeof(qemu)) || !probe_qemu_kernel())
		return KVM_UNTESTED;
	if (remembered("kvm-works", &works))
		return works ? KVM_WORKS : KVM_BROKEN;

	probe_cache_path(kernel, sizeof(kernel), "qemu/vmlinuz");
	probe_cache_path(initrd, sizeof(initrd), "qemu/initrd.gz");
	char *argv[] = {qemu, "-accel", "kvm", "-cpu", "host", "-m", "256", "-nodefaults",
		"-display", "none", "-monitor", "none", "-no-reboot", "-serial", "stdio", "-kernel",
		kernel, "-initrd", initrd, "-append",
		"console=ttyS0 quiet panic=-1 " PROBE_ARGUMENT, NULL};
	works = boots(argv, KVM_BOOT_MS);
	remember("kvm-works", works);
	return works ? KVM_WORKS : KVM_BROKEN;
}

bool probe_uml_works(void)
{
	char kernel[PATH_BYTES], initrd[PATH_BYTES];
	bool works;

	if (!probe_uml_kernel())
		return false;
	if (remembered("uml-works", &works))
		return works;
	probe_cache_path(kernel, sizeof(kernel), "uml/linux");
	snprintf(initrd, sizeof(initrd), "initrd=");
	probe_cache_path(initrd + strlen(initrd), sizeof(initrd) - strlen(initrd), "uml/initrd.gz");
	char *argv[] = {kernel, "mem=128M", initrd, "con=null", "con0=fd:0,fd:1", "quiet",
		"panic=-1", PROBE_ARGUMENT, NULL};
	works = boots(argv, UML_BOOT_MS);
	remember("uml-works", works);
	return works;
}

bool probe_netns_rxe(void)
{
	static const uint8_t mac[6] = {0x02, 0xfa, 0xbe, 0x00, 0x00, 0x01};
	char name[32], host_if[16];
	struct utsname u;
	int major = 0, minor = 0;

	// Older kernels accept the device, but their one UDP socket is the initial namespace's.
	if (uname(&u) < 0 || sscanf(u.release, "%d.%d", &major, &minor) != 2 ||
		major * 1000 + minor < 7001)
		return false;
	FILE *null = fopen("/dev/null", "we");
	if (null == NULL)
		return false;
	snprintf(name, sizeof(name), "fabemu-probe-%d", (int)getpid());
	snprintf(host_if, sizeof(host_if), "fp%d", (int)getpid());
	bool works = netns_create(name, null) == 0;
	if (works) {
		works = netns_add_veth(name, host_if, "eth0", mac, 1500, null) == 0 &&
			run_program(null, "ip", "-n", name, "link", "set", "eth0", "up", NULL) ==
				0 &&
			run_program(null, "ip", "netns", "exec", name, "rdma", "link", "add",
				"rxe_probe", "type", "rxe", "netdev", "eth0", NULL) == 0;
		if (works)
			run_program(null, "ip", "netns", "exec", name, "rdma", "link", "delete",
				"rxe_probe", NULL);
		netns_remove(name);
	}
	fclose(null);
	return works;
}
