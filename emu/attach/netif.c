/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/attach/netif.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS_MAX  32
#define NETNS_DIR "/run/netns"
#define OWNER_DIR "/run/fabemu"

int run_program(FILE *err, const char *program, ...)
{
	const char *argv[ARGS_MAX] = {program};
	char output[512];
	int fds[2], n = 1;
	va_list ap;

	va_start(ap, program);
	while (n < ARGS_MAX - 1 && (argv[n] = va_arg(ap, const char *)) != NULL)
		n++;
	va_end(ap);
	argv[n] = NULL;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execvp(program, (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return -EAGAIN;
	}
	ssize_t len = 0, got;
	while ((got = read(fds[0], output + len, sizeof(output) - 1 - (size_t)len)) > 0)
		len += got;
	output[len] = '\0';
	close(fds[0]);
	int status = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		fprintf(err, "cannot run '%s': not installed? (ip: apt-get install iproute2)\n",
			program);
		return -ENOENT;
	}
	output[strcspn(output, "\n")] = '\0';
	for (int i = 0; i < n; i++)
		fprintf(err, "%s%s", i ? " " : "'", argv[i]);
	fprintf(err, "' failed: %s\n", output);
	return -EIO;
}

static const char *mac_text(const uint8_t mac[6], char text[18])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		mac[5]);
	return text;
}

static void write_sysctl(const char *ifname, const char *family, const char *key, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, ifname, key);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (write(fd, value, strlen(value)) < 0) {
		// A kernel without the key needs no setting.
	}
	close(fd);
}

int netif_configure(const char *ifname, const uint8_t mac[6], uint32_t mtu,
	const char *const *addresses, unsigned n_addresses, FILE *err)
{
	char text[18], mtu_text[12];

	snprintf(mtu_text, sizeof(mtu_text), "%u", mtu);
	// Addresses are unique by construction; duplicate detection would only delay.
	write_sysctl(ifname, "ipv6", "accept_dad", "0");
	int e = run_program(err, "ip", "link", "set", ifname, "address", mac_text(mac, text), "mtu",
		mtu_text, "up", NULL);
	for (unsigned i = 0; e == 0 && i < n_addresses; i++)
		e = run_program(err, "ip", "addr", "add", addresses[i], "dev", ifname, NULL);
	netif_offloads_off(ifname);
	return e;
}

static int interface_ioctl(const char *ifname, unsigned long request, struct ifreq *ifr)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", ifname);
	int e = ioctl(fd, request, ifr) < 0 ? -errno : 0;
	close(fd);
	return e;
}

int netif_set_mtu(const char *ifname, uint32_t mtu, FILE *err)
{
	struct ifreq ifr = {.ifr_mtu = (int)mtu};
	int e = interface_ioctl(ifname, SIOCSIFMTU, &ifr);

	if (e < 0)
		fprintf(err, "%s: cannot set MTU %u: %s\n", ifname, mtu, strerror(-e));
	return e;
}

void netif_set_queue(const char *ifname, unsigned frames)
{
	struct ifreq ifr = {.ifr_qlen = (int)frames};

	interface_ioctl(ifname, SIOCSIFTXQLEN, &ifr);
}

void netif_offloads_off(const char *ifname)
{
	static const uint32_t features[] = {ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO,
		ETHTOOL_STXCSUM, ETHTOOL_SRXCSUM, ETHTOOL_SSG};

	for (unsigned i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		struct ethtool_value value = {.cmd = features[i], .data = 0};
		struct ifreq ifr = {.ifr_data = (void *)&value};

		interface_ioctl(ifname, SIOCETHTOOL, &ifr);
	}
}

void netif_no_host_stack(const char *ifname)
{
	write_sysctl(ifname, "ipv6", "disable_ipv6", "1");
	write_sysctl(ifname, "ipv4", "arp_ignore", "8");
}

// ---- namespaces ---------------------------------------------------------------------------------

static void owner_file(const char *name, char *path, size_t len)
{
	snprintf(path, len, OWNER_DIR "/netns.%s", name);
}

// True when the namespace was made by a fabemu that no longer lives.
static bool left_behind(const char *name)
{
	char path[300];
	int pid = 0;

	owner_file(name, path, sizeof(path));
	FILE *f = fopen(path, "re");
	if (f == NULL)
		return false;
	bool known = fscanf(f, "%d", &pid) == 1 && pid > 0;
	fclose(f);
	return known && kill(pid, 0) < 0 && errno == ESRCH;
}

int netns_create(const char *name, FILE *err)
{
	char path[300];

	snprintf(path, sizeof(path), NETNS_DIR "/%s", name);
	if (access(path, F_OK) == 0) {
		if (!left_behind(name)) {
			fprintf(err,
				"network namespace %s exists: remove it (ip netns del %s) or name "
				"another by `netns:`\n",
				name, name);
			return -EEXIST;
		}
		netns_remove(name);
	}
	int e = run_program(err, "ip", "netns", "add", name, NULL);
	if (e < 0)
		return e;
	mkdir(OWNER_DIR, 0755);
	owner_file(name, path, sizeof(path));
	FILE *f = fopen(path, "we");
	if (f != NULL) {
		fprintf(f, "%d\n", (int)getpid());
		fclose(f);
	}
	return 0;
}

void netns_remove(const char *name)
{
	char path[300];
	FILE *null = fopen("/dev/null", "we");

	if (null == NULL)
		return;
	run_program(null, "ip", "netns", "del", name, NULL);
	fclose(null);
	owner_file(name, path, sizeof(path));
	unlink(path);
}

int netns_open(const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), NETNS_DIR "/%s", name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

// Offloads of the inner interface, from a child so that this process never changes namespace.
static void offloads_off_inside(const char *netns, const char *ifname)
{
	int fd = netns_open(netns);

	if (fd < 0)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		if (setns(fd, CLONE_NEWNET) == 0)
			netif_offloads_off(ifname);
		_exit(0);
	}
	close(fd);
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

int netns_add_veth(const char *netns, const char *host_if, const char *ns_if, const uint8_t mac[6],
	uint32_t mtu, FILE *err)
{
	char text[18], mtu_text[12];

	snprintf(mtu_text, sizeof(mtu_text), "%u", mtu);
	int e = run_program(err, "ip", "link", "add", host_if, "mtu", mtu_text, "type", "veth",
		"peer", "name", ns_if, "netns", netns, "mtu", mtu_text, "address",
		mac_text(mac, text), NULL);
	if (e < 0)
		return e;
	netif_no_host_stack(host_if);
	netif_offloads_off(host_if);
	offloads_off_inside(netns, ns_if);
	return run_program(err, "ip", "link", "set", host_if, "up", NULL);
}
