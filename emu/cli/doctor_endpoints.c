/* SPDX-License-Identifier: BSD-3-Clause */
// doctor: what real endpoints need, guests first.

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/if_ether.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/attach/probe.h"
#include "emu/cli/doctor.h"

#define ROCE_PORT  4791
#define PATH_BYTES 512
#define NEED_ROOT  "run as root, or give CAP_NET_ADMIN and CAP_NET_RAW"

// ---- guests ---------------------------------------------------------------------------------

static const char *prepare_command(const char *option)
{
	static char text[160];
	char path[PATH_BYTES];

	if (!probe_guest_file(path, sizeof(path), "prepare.sh"))
		snprintf(path, sizeof(path), "prepare.sh");
	snprintf(text, sizeof(text), "%.140s %s", path, option);
	return text;
}

void doctor_check_kvm(struct doctor_result *r)
{
	switch (probe_kvm()) {
	case KVM_WORKS:
		doctor_say(r, DOCTOR_OK, "", "a stock kernel boots");
		break;
	case KVM_ABSENT:
		doctor_say(r, DOCTOR_MISSING,
			"enable virtualization (in a VM: nested) and modprobe kvm", "no /dev/kvm");
		break;
	case KVM_NO_PERMISSION:
		doctor_say(r, DOCTOR_MISSING, "adduser $USER kvm, then log in again",
			"/dev/kvm may not be opened by you");
		break;
	case KVM_UNTESTED:
		doctor_say(r, DOCTOR_LIMITED, prepare_command("--qemu"),
			"/dev/kvm exists; to try it takes QEMU and a prepared kernel");
		break;
	case KVM_BROKEN:
		doctor_say(r, DOCTOR_MISSING,
			"guests use User Mode Linux or QEMU without KVM instead",
			"/dev/kvm exists, but a stock kernel does not boot with it");
		break;
	}
}

void doctor_check_qemu(struct doctor_result *r)
{
	char path[PATH_BYTES];

	if (probe_qemu(path, sizeof(path)))
		doctor_say(r, DOCTOR_OK, "", "%.140s", path);
	else
		doctor_say(r, DOCTOR_MISSING, "apt-get install qemu-system-x86",
			"no qemu-system-x86_64");
}

void doctor_check_guest_kernel(struct doctor_result *r)
{
	char path[PATH_BYTES];

	probe_cache_path(path, sizeof(path), "qemu");
	if (probe_qemu_kernel())
		doctor_say(r, DOCTOR_OK, "", "prepared in %.130s", path);
	else
		doctor_say(r, DOCTOR_MISSING, prepare_command("--qemu"), "not prepared in %.120s",
			path);
}

void doctor_check_uml(struct doctor_result *r)
{
	char path[PATH_BYTES];

	probe_cache_path(path, sizeof(path), "uml/linux");
	if (!probe_uml_kernel())
		doctor_say(
			r, DOCTOR_MISSING, prepare_command("--uml"), "not built in %.120s", path);
	else if (!probe_uml_works())
		doctor_say(r, DOCTOR_MISSING, prepare_command("--uml --force"),
			"%.120s does not boot here", path);
	else
		doctor_say(r, DOCTOR_OK, "", "boots: %.140s", path);
}

void doctor_check_guest(struct doctor_result *r)
{
	char path[PATH_BYTES];
	bool qemu = probe_qemu(path, sizeof(path)) && probe_qemu_kernel();

	if (qemu && probe_kvm() == KVM_WORKS)
		doctor_say(r, DOCTOR_OK, "", "QEMU with KVM");
	else if (probe_uml_works())
		doctor_say(r, DOCTOR_OK, "", "User Mode Linux");
	else if (qemu)
		doctor_say(r, DOCTOR_LIMITED, prepare_command("--uml"),
			"QEMU without KVM: a few MB/s, 15 s to boot; User Mode Linux is faster");
	else
		doctor_say(r, DOCTOR_MISSING, prepare_command("--qemu --uml"),
			"neither QEMU with a prepared kernel nor User Mode Linux");
}

void doctor_check_rdma_tools(struct doctor_result *r)
{
	static const struct {
		const char *program, *package;
	} tools[] = {
		{"rdma", "iproute2"},
		{"ibv_rc_pingpong", "ibverbs-utils"},
		{"ib_write_bw", "perftest"},
		{"rping", "rdmacm-utils"},
	};
	char path[PATH_BYTES], missing[100] = "", fix[160] = "apt-get install ibverbs-providers";

	for (unsigned i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		if (probe_program(tools[i].program, path, sizeof(path)))
			continue;
		snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), " %s",
			tools[i].program);
		snprintf(fix + strlen(fix), sizeof(fix) - strlen(fix), " %s", tools[i].package);
	}
	if (missing[0] == '\0')
		doctor_say(r, DOCTOR_OK, "", "rdma, ibverbs, perftest and rdma_cm tools");
	else
		doctor_say(r, DOCTOR_MISSING, fix, "not installed:%s", missing);
}

// ---- other real endpoints -----------------------------------------------------------------------

static bool matches(const char *pattern)
{
	glob_t g;
	bool any = glob(pattern, 0, NULL, &g) == 0;

	globfree(&g);
	return any;
}

void doctor_check_rxe(struct doctor_result *r)
{
	struct utsname u;
	char module[PATH_BYTES];

	uname(&u);
	snprintf(module, sizeof(module),
		"/lib/modules/%s/kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko*", u.release);
	if (access("/sys/module/rdma_rxe", F_OK) == 0 || matches(module))
		doctor_say(r, DOCTOR_OK, "", "kernel %.60s has it", u.release);
	else
		doctor_say(r, DOCTOR_MISSING,
			"guests bring their own kernel; nothing to do for them",
			"kernel %.60s has no rdma_rxe (cloud kernels lack it)", u.release);
}

void doctor_check_netns_rxe(struct doctor_result *r)
{
	if (probe_netns_rxe())
		doctor_say(r, DOCTOR_OK, "", "works: netns hosts get an rxe device");
	else
		doctor_say(r, DOCTOR_MISSING, "use `kind: guest` for RDMA, or built-in NICs",
			"needs Linux 7.1 with rdma_rxe, and root");
}

void doctor_check_netns(struct doctor_result *r)
{
	char path[PATH_BYTES];
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(unshare(CLONE_NEWNET) == 0 ? 0 : 1);
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (status != 0)
		doctor_say(r, DOCTOR_MISSING, NEED_ROOT, "not permitted");
	else if (!probe_program("ip", path, sizeof(path)))
		doctor_say(r, DOCTOR_MISSING, "apt-get install iproute2", "no ip");
	else
		doctor_say(r, DOCTOR_OK, "", "permitted");
}

void doctor_check_tun(struct doctor_result *r)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		doctor_say(r, DOCTOR_MISSING, errno == ENOENT ? "modprobe tun" : NEED_ROOT,
			"/dev/net/tun: %s", strerror(errno));
	else if (ioctl(fd, TUNSETIFF, &ifr) < 0)
		doctor_say(r, DOCTOR_MISSING, NEED_ROOT, "cannot make one: %s", strerror(errno));
	else
		doctor_say(r, DOCTOR_OK, "", "permitted");
	if (fd >= 0)
		close(fd);
}

void doctor_check_af_packet(struct doctor_result *r)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		doctor_say(r, DOCTOR_MISSING, NEED_ROOT, "%s", strerror(errno));
	else
		doctor_say(r, DOCTOR_OK, "", "permitted");
	if (fd >= 0)
		close(fd);
}

void doctor_check_af_xdp(struct doctor_result *r)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		doctor_say(r, DOCTOR_MISSING,
			errno == EAFNOSUPPORT ? "netdev hosts use AF_PACKET instead" : NEED_ROOT,
			"%s",
			errno == EAFNOSUPPORT ? "the kernel has no AF_XDP (CONFIG_XDP_SOCKETS)"
					      : strerror(errno));
	else
		doctor_say(r, DOCTOR_OK, "", "the kernel has it");
	if (fd >= 0)
		close(fd);
}

// ---- firewall -----------------------------------------------------------------------------------

// A datagram to our own port arrives; true also when the port is taken (then rxe or another has
// it).
static bool datagram_arrives(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(ROCE_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char byte = 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	bool ok = bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0;
	if (!ok && sendto(fd, &byte, 1, 0, (struct sockaddr *)&a, sizeof(a)) == 1) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ok = poll(&p, 1, 200) == 1;
	}
	close(fd);
	return ok;
}

// Lines of a firewall's listing that may concern us. `policy`: a chain drops what no rule accepts;
// `named`: a rule names the port.
static bool scan_rules(const char *command, bool *policy_drop, bool *named)
{
	char line[1024];
	FILE *f = popen(command, "re");

	if (f == NULL)
		return false;
	while (fgets(line, sizeof(line), f) != NULL) {
		bool input =
			strstr(line, "hook input") != NULL || strncmp(line, "-P INPUT", 8) == 0;

		*policy_drop |=
			input && (strstr(line, "drop") != NULL || strstr(line, "DROP") != NULL);
		*named |= strstr(line, "4791") != NULL;
	}
	return pclose(f) == 0;
}

void doctor_check_udp4791(struct doctor_result *r)
{
	bool policy = false, named = false;
	bool nft = scan_rules("nft list ruleset 2>/dev/null", &policy, &named);
	bool ipt = scan_rules("iptables -S 2>/dev/null", &policy, &named);

	if (!datagram_arrives())
		doctor_say(r, DOCTOR_MISSING, "nft or iptables: accept udp dport 4791",
			"a datagram to our own UDP port 4791 does not arrive");
	else if (policy && !named)
		doctor_say(r, DOCTOR_LIMITED, "nft or iptables: accept udp dport 4791",
			"the firewall drops input by default and no rule names 4791");
	else
		doctor_say(r, DOCTOR_OK, "", "%s",
			nft || ipt ? "no firewall rule in the way"
				   : "arrives on loopback (no nft or iptables to look at)");
}
