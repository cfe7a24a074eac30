/* SPDX-License-Identifier: BSD-3-Clause */
// The set's private folder /tmp/fabemu-PID-XXXXXX. The process id in its name tells a folder in use
// from one that a killed run has left behind.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/attach/attach_priv.h"
#include "emu/attach/probe.h"

#define BASE   "/tmp"
#define PREFIX "fabemu-"

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_DP || type == FTW_D)
		rmdir(path);
	else
		unlink(path);
	return 0;
}

static void remove_tree(const char *path)
{
	nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static void remove_left_behind(void)
{
	DIR *d = opendir(BASE);
	struct dirent *e;

	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL) {
		char path[sizeof(BASE) + sizeof(e->d_name) + 1];
		struct stat st;
		int pid;

		if (sscanf(e->d_name, PREFIX "%d-", &pid) != 1 || pid <= 0 || kill(pid, 0) == 0 ||
			errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), BASE "/%s", e->d_name);
		// A name alone proves nothing in a folder that everyone may write to.
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
			remove_tree(path);
	}
	closedir(d);
}

static int copy_file(const char *from, const char *to)
{
	char buf[4096];
	ssize_t n = 0;
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (in < 0 || out < 0)
		n = -1;
	while (n >= 0 && (n = read(in, buf, sizeof(buf))) > 0) {
		if (write(out, buf, (size_t)n) != n)
			n = -1;
	}
	int e = n < 0 ? -errno : 0;
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) < 0 && e == 0)
		e = -errno;
	return e;
}

int attach_make_dir(struct attach_set *set, FILE *err)
{
	char script[512], path[512];

	if (!probe_guest_file(script, sizeof(script), "session")) {
		fprintf(err, "the script guest/session is not installed: reinstall, or set "
			     "FABEMU_GUEST_DIR to emu/attach/guest\n");
		return -ENOENT;
	}
	remove_left_behind();
	snprintf(set->dir, sizeof(set->dir), BASE "/" PREFIX "%d-XXXXXX", (int)getpid());
	if (mkdtemp(set->dir) == NULL) {
		int e = errno;
		fprintf(err, "cannot make a folder in " BASE ": %s\n", strerror(e));
		set->dir[0] = '\0';
		return -e;
	}
	snprintf(path, sizeof(path), "%s/session", set->dir);
	int e = copy_file(script, path);
	if (e < 0)
		fprintf(err, "cannot write %s: %s\n", path, strerror(-e));
	return e;
}

void attach_remove_dir(struct attach_set *set)
{
	if (set->dir[0] != '\0')
		remove_tree(set->dir);
	set->dir[0] = '\0';
}
