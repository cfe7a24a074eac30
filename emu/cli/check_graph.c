/* SPDX-License-Identifier: BSD-3-Clause */
// The buffer-dependency graph of any traffic as a picture: a box per switch, a vertex per ingress
// PG, an edge for "can wait for". Grey: only traffic that the scenario does not have; red: on a
// cycle; bold red: on a cycle of the scenario's own traffic.

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu/cli/check.h"

static const char *extension(const char *file)
{
	const char *slash = strrchr(file, '/');
	const char *dot = strrchr(slash != NULL ? slash : file, '.');

	return dot != NULL ? dot + 1 : "";
}

static bool is_source(const char *file)
{
	return strcmp(extension(file), "dot") == 0 || strcmp(extension(file), "gv") == 0;
}

bool check_can_draw(const char *file)
{
	static const char *const pictures[] = {"svg", "png", "pdf", "dot", "gv"};

	for (unsigned i = 0; i < sizeof(pictures) / sizeof(pictures[0]); i++)
		if (strcmp(extension(file), pictures[i]) == 0)
			return true;
	fprintf(stderr,
		"fabemu check: --graph: '%s', expected a name that ends in .svg, .png, .pdf, .dot "
		"or .gv\n",
		file);
	return false;
}

// Vertex v has an edge to, or from, another.
static bool *find_drawn(const struct bdg *b)
{
	bool *drawn = calloc(bdg_ids(b) + 1, sizeof(*drawn));
	const uint32_t *to;

	for (uint32_t v = 0; drawn != NULL && v < bdg_ids(b); v++) {
		uint32_t n = bdg_edges(b, v, &to);
		for (uint32_t i = 0; i < n; i++)
			drawn[v] = drawn[to[i]] = true;
	}
	return drawn;
}

static void write_switch(const struct scenario *s, const struct cbd_study *st, const bool *drawn,
	uint32_t sw, uint32_t *v, FILE *out)
{
	bool open = false;

	for (; *v < bdg_ids(&st->any) && bdg_vertex(&st->any, *v).sw == sw; (*v)++) {
		struct bdg_vertex x = bdg_vertex(&st->any, *v);
		if (!drawn[*v])
			continue;
		if (!open)
			fprintf(out, "  subgraph cluster_%u {\n    label=\"%s\"\n", sw,
				s->nodes[sw].name);
		open = true;
		bool red = bdg_component(&st->any, *v) != BDG_NONE;
		bool bold = bdg_component(&st->workload, *v) != BDG_NONE;
		struct sc_end peer = sc_peer(s, sw, x.port);
		fprintf(out, "    v%u [label=\"%s pg %u\\nfrom %s\"%s%s]\n", *v,
			s->nodes[sw].ports[x.port].name, x.pg, s->nodes[peer.node].name,
			red ? " color=red" : "", bold ? " penwidth=3" : "");
	}
	if (open)
		fputs("  }\n", out);
}

static bool has_edge(const struct bdg *b, uint32_t from, uint32_t to)
{
	const uint32_t *e;
	uint32_t n = bdg_edges(b, from, &e);

	for (uint32_t i = 0; i < n; i++)
		if (e[i] == to)
			return true;
	return false;
}

static bool on_cycle(const struct bdg *b, uint32_t from, uint32_t to)
{
	return bdg_component(b, from) != BDG_NONE && bdg_component(b, from) == bdg_component(b, to);
}

static void write_edges(const struct cbd_study *st, FILE *out)
{
	for (uint32_t v = 0; v < bdg_ids(&st->any); v++) {
		const uint32_t *to;
		uint32_t n = bdg_edges(&st->any, v, &to);
		for (uint32_t i = 0; i < n; i++) {
			bool used = has_edge(&st->workload, v, to[i]);
			bool bold = used && on_cycle(&st->workload, v, to[i]);
			bool red = on_cycle(&st->any, v, to[i]);
			fprintf(out, "  v%u -> v%u [color=%s%s%s]\n", v, to[i],
				red    ? "red"
				: used ? "black"
				       : "gray",
				bold ? " penwidth=3" : "", used ? "" : " style=dashed");
		}
	}
}

static int write_graph(const struct scenario *s, const struct cbd_study *st, FILE *out)
{
	bool *drawn = find_drawn(&st->any);
	uint32_t v = 0;

	if (drawn == NULL)
		return -ENOMEM;
	fprintf(out, "digraph \"%s\" {\n", s->name);
	fputs("  rankdir=LR\n  node [shape=box fontsize=10]\n", out);
	for (uint32_t sw = 0; sw < s->n_switches; sw++)
		write_switch(s, st, drawn, sw, &v, out);
	write_edges(st, out);
	fputs("}\n", out);
	free(drawn);
	return 0;
}

static int fail(const char *file, const char *why)
{
	fprintf(stderr, "fabemu check: %s: %s\n", file, why);
	return -1;
}

// Graphviz reads the graph from its standard input.
static FILE *start_dot(const char *file, pid_t *pid)
{
	char type[16];
	int fds[2];

	snprintf(type, sizeof(type), "-T%s", extension(file));
	if (pipe(fds) < 0)
		return NULL;
	*pid = fork();
	if (*pid == 0) {
		dup2(fds[0], STDIN_FILENO);
		close(fds[0]);
		close(fds[1]);
		execlp("dot", "dot", type, "-o", file, (char *)NULL);
		_exit(errno == ENOENT ? 127 : 126);
	}
	close(fds[0]);
	if (*pid < 0) {
		close(fds[1]);
		return NULL;
	}
	return fdopen(fds[1], "w");
}

static int end_dot(const char *file, pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return fail(file, "Graphviz (dot) was killed");
	if (WEXITSTATUS(status) == 127)
		return fail(file, "needs Graphviz: no program 'dot' (package graphviz); a name "
				  "that ends in .dot needs none");
	return WEXITSTATUS(status) == 0 ? 0 : fail(file, "Graphviz (dot) failed");
}

int check_draw_graph(const struct scenario *s, const struct cbd_study *st, const char *file)
{
	pid_t pid = -1;
	bool source = is_source(file);
	void (*old)(int) = signal(SIGPIPE, SIG_IGN); // dot may not be there
	FILE *out = source ? fopen(file, "we") : start_dot(file, &pid);
	int rc = out != NULL ? write_graph(s, st, out) : -errno;

	if (out != NULL && fclose(out) != 0 && source && rc == 0)
		rc = -errno;
	signal(SIGPIPE, old);
	if (pid > 0)
		return end_dot(file, pid);
	return rc < 0 ? fail(file, strerror(-rc)) : 0;
}
