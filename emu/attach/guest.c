/* SPDX-License-Identifier: BSD-3-Clause */
#include "emu/attach/guest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emu/attach/probe.h"

#define PATH_BYTES 512
#define MIB        (1u << 20)

extern char **environ;

// ---- choosing -------------------------------------------------------------------------------

static const char *prepare_script(void)
{
	static char path[PATH_BYTES];

	return probe_guest_file(path, sizeof(path), "prepare.sh") ? path : "prepare.sh";
}

static int need_qemu(const char *name, const struct sc_attach *a, FILE *err)
{
	char qemu[PATH_BYTES];

	if (!probe_qemu(qemu, sizeof(qemu))) {
		fprintf(err, "%s: no qemu-system-x86_64: apt-get install qemu-system-x86\n", name);
		return -ENOENT;
	}
	if ((a->kernel == NULL || a->initrd == NULL) && !probe_qemu_kernel()) {
		fprintf(err, "%s: no guest kernel prepared: run %s\n", name, prepare_script());
		return -ENOENT;
	}
	return 0;
}

static int choose_kvm(const char *name, const struct sc_attach *a, FILE *err)
{
	static const char *const why[] = {
		[KVM_ABSENT] = "there is no /dev/kvm (nested virtualization off?)",
		[KVM_NO_PERMISSION] = "no permission on /dev/kvm: add yourself to group kvm",
		[KVM_BROKEN] = "/dev/kvm exists but a stock kernel does not boot with it",
	};
	int e = need_qemu(name, a, err);

	if (e < 0)
		return e;
	enum probe_kvm kvm = probe_kvm();
	if (kvm == KVM_WORKS || kvm == KVM_UNTESTED)
		return GUEST_KVM;
	fprintf(err, "%s: accel kvm: %s\n", name, why[kvm]);
	return -ENODEV;
}

static int choose_uml(const char *name, const struct sc_attach *a, FILE *err)
{
	if ((a->kernel == NULL || a->initrd == NULL) && !probe_uml_kernel()) {
		fprintf(err,
			"%s: accel uml: no User Mode Linux kernel: run %s --uml (builds it, about "
			"20 CPU minutes)\n",
			name, prepare_script());
		return -ENOENT;
	}
	if (a->kernel == NULL && !probe_uml_works()) {
		fprintf(err, "%s: accel uml: the User Mode Linux kernel does not boot here\n",
			name);
		return -ENODEV;
	}
	return GUEST_UML;
}

int guest_choose(const struct scenario *sc, const struct sc_host *h, FILE *err)
{
	const char *name = sc->nodes[h->node].name;
	const struct sc_attach *a = &h->attach;
	int e;

	switch (a->accel) {
	case SC_ACCEL_KVM:
		return choose_kvm(name, a, err);
	case SC_ACCEL_UML:
		return choose_uml(name, a, err);
	case SC_ACCEL_TCG:
		e = need_qemu(name, a, err);
		return e < 0 ? e : GUEST_TCG;
	case SC_ACCEL_AUTO:
		break;
	}
	if (probe_kvm() == KVM_WORKS)
		return GUEST_KVM;
	// A kernel of the user's own is an image for QEMU.
	if (a->kernel == NULL && probe_uml_works())
		return GUEST_UML;
	e = need_qemu(name, a, err);
	return e < 0 ? e : GUEST_TCG;
}

// ---- command lines ------------------------------------------------------------------------------

static void add(struct guest_command *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

// Out of memory leaves a NULL early, which guest_command_build() notices.
static void add(struct guest_command *c, const char *fmt, ...)
{
	va_list ap;

	if (c->argv == NULL)
		return;
	if (c->n + 1 >= c->cap) {
		unsigned cap = c->cap * 2;
		char **more = realloc(c->argv, cap * sizeof(*more));
		if (more == NULL)
			return;
		c->argv = more;
		c->cap = cap;
	}
	va_start(ap, fmt);
	if (vasprintf(&c->argv[c->n], fmt, ap) < 0)
		c->argv[c->n] = NULL;
	else
		c->n++;
	va_end(ap);
	c->argv[c->n] = NULL;
}

static void session_arguments(char *text, size_t len, const char *root, const char *dir,
	const char *name, const char *append)
{
	snprintf(text, len, "quiet panic=-1 fabemu.root=%s fabemu.dir=%s fabemu.job=%s.job%s%s",
		root, dir, name, append ? " " : "", append ? append : "");
}

static void image(char *path, size_t len, const char *own, const char *prepared)
{
	if (own != NULL)
		snprintf(path, len, "%s", own);
	else
		probe_cache_path(path, len, prepared);
}

static void build_qemu(struct guest_command *c, enum guest_machine machine,
	const struct scenario *sc, const struct sc_host *h, const char *dir)
{
	const struct sc_node *node = &sc->nodes[h->node];
	const struct sc_attach *a = &h->attach;
	char path[PATH_BYTES], text[1024];
	uint64_t mib = a->memory / MIB;

	probe_qemu(path, sizeof(path));
	add(c, "%s", path);
	add(c, "-name");
	add(c, "%s", node->name);
	add(c, "-accel");
	add(c, "%s", machine == GUEST_KVM ? "kvm" : "tcg");
	add(c, "-cpu");
	add(c, "%s", machine == GUEST_KVM ? "host" : "max");
	add(c, "-smp");
	add(c, "%" PRIu32, a->cpus);
	add(c, "-m");
	add(c, "%" PRIu64, mib);
	add(c, "-object"); // vhost-user needs the guest's memory shared
	add(c, "memory-backend-memfd,id=mem,size=%" PRIu64 "M,share=on", mib);
	add(c, "-numa");
	add(c, "node,memdev=mem");
	for (const char *const *w = (const char *const[]){"-nodefaults", "-display", "none",
		     "-monitor", "none", "-no-reboot", "-serial", "stdio", "-kernel", NULL};
		*w != NULL; w++)
		add(c, "%s", *w);
	image(path, sizeof(path), a->kernel, "qemu/vmlinuz");
	add(c, "%s", path);
	add(c, "-initrd");
	image(path, sizeof(path), a->initrd, "qemu/initrd.gz");
	add(c, "%s", path);
	add(c, "-append");
	session_arguments(text, sizeof(text), "9p", dir, node->name, a->append);
	add(c, "console=ttyS0 tsc=reliable %s", text);
	add(c, "-virtfs");
	add(c, "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap");
	for (unsigned port = 0; port < node->n_ports; port++) {
		const uint8_t *mac = node->ports[port].mac;

		add(c, "-chardev");
		add(c, "socket,id=c%u,path=%s/%s.%u.sock", port, dir, node->name, port);
		add(c, "-netdev");
		add(c, "vhost-user,id=n%u,chardev=c%u", port, port);
		add(c, "-device");
		// With MSI-X under TCG, QEMU 7.2 crashes in msix_set_vector_notifiers.
		add(c, "virtio-net-pci,romfile=,netdev=n%u,mac=%02x:%02x:%02x:%02x:%02x:%02x%s",
			port, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5],
			machine == GUEST_TCG ? ",vectors=0" : "");
	}
}

static void build_uml(struct guest_command *c, const struct scenario *sc, const struct sc_host *h,
	const char *dir)
{
	const struct sc_node *node = &sc->nodes[h->node];
	const struct sc_attach *a = &h->attach;
	char path[PATH_BYTES], text[1024];

	image(path, sizeof(path), a->kernel, "uml/linux");
	add(c, "%s", path);
	add(c, "mem=%" PRIu64 "M", a->memory / MIB);
	image(path, sizeof(path), a->initrd, "uml/initrd.gz");
	add(c, "initrd=%s", path);
	add(c, "con=null");
	add(c, "con0=fd:0,fd:1");
	add(c, "uml_dir=%s/", dir); // its pid file and console socket vanish with ours
	add(c, "umid=%s", node->name);
	for (unsigned port = 0; port < node->n_ports; port++)
		add(c, "virtio_uml.device=%s/%s.%u.sock:1", dir, node->name, port);
	session_arguments(text, sizeof(text), "hostfs", dir, node->name, a->append);
	char *save = NULL;
	for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		add(c, "%s", w);
}

// UML keeps the guest's memory in a file in $TMPDIR: it must be a tmpfs that may be executed from.
static char **environment(enum guest_machine machine)
{
	static char tmpdir[] = "TMPDIR=/dev/shm";
	size_t n = 0;

	while (environ[n] != NULL)
		n++;
	char **envp = calloc(n + 2, sizeof(*envp));
	if (envp == NULL)
		return NULL;
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		if (machine != GUEST_UML || strncmp(environ[i], "TMPDIR=", 7) != 0)
			envp[k++] = environ[i];
	}
	if (machine == GUEST_UML && access("/dev/shm", W_OK) == 0)
		envp[k++] = tmpdir;
	return envp;
}

int guest_command_build(struct guest_command *c, enum guest_machine machine,
	const struct scenario *sc, const struct sc_host *h, const char *dir)
{
	*c = (struct guest_command){.cap = 64, .envp = environment(machine)};
	c->argv = calloc(c->cap, sizeof(*c->argv));
	if (c->argv == NULL || c->envp == NULL) {
		guest_command_free(c);
		return -ENOMEM;
	}
	if (machine == GUEST_UML)
		build_uml(c, sc, h, dir);
	else
		build_qemu(c, machine, sc, h, dir);
	return 0;
}

void guest_command_free(struct guest_command *c)
{
	for (unsigned i = 0; i < c->n; i++)
		free(c->argv[i]);
	free(c->argv);
	free(c->envp);
	*c = (struct guest_command){0};
}
