/* SPDX-License-Identifier: BSD-3-Clause */
// Fuzz target: any text as a scenario. It must load or be refused with a message; never crash, leak
// or take long. With clang, libFuzzer drives it (-fsanitize=fuzzer,address,undefined
// -DFUZZ_LIBFUZZER); with any compiler it runs the files given as arguments, then `-runs=N` texts
// mutated from them: bytes, lines and words, so that most stay YAML and reach the later steps.
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/scenario/scenario.h"
#include "fuzz.h"

// What every consumer of a scenario relies on.
static void check_scenario(const struct scenario *s)
{
	CHECK(s->n_nodes == s->n_switches + s->n_hosts);
	CHECK(s->n_qos >= 1);
	for (uint32_t i = 0; i < s->n_links; i++)
		for (int e = 0; e < 2; e++) {
			struct sc_end end = s->links[i].end[e];
			CHECK(end.node < s->n_nodes && end.port < s->nodes[end.node].n_ports);
			CHECK(s->nodes[end.node].ports[end.port].link == i);
		}
	for (uint32_t i = 0; i < s->n_nodes; i++)
		CHECK(s->nodes[i].n_ports > 0);
	for (uint32_t i = 0; i < s->n_switches; i++)
		CHECK(s->switches[i].qos < s->n_qos);
	for (uint32_t i = 0; i < s->n_endpoints; i++)
		CHECK(s->endpoints[i].ip4 != 0);
	for (uint32_t i = 0; i < s->n_flows; i++) {
		CHECK(s->flows[i].src < s->n_endpoints && s->flows[i].dst < s->n_endpoints);
		CHECK(s->flows[i].bytes > 0 && s->flows[i].qps > 0 && s->flows[i].ttl > 0);
		CHECK(s->flows[i].priority < SC_PRIOS);
	}
	for (uint32_t i = 1; i < s->n_events; i++)
		CHECK(s->events[i - 1].at <= s->events[i].at);
	for (uint32_t i = 0; i < s->n_routes; i++)
		CHECK(s->routes[i].sw < s->n_switches && s->routes[i].n_endpoints > 0);
	for (uint32_t i = 0; i < s->n_captures; i++)
		CHECK(s->captures[i].n_taps > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = NULL;
	size_t len = 0;
	FILE *err = open_memstream(&text, &len);
	struct scenario *s = NULL;

	CHECK(err != NULL);
	int rc = scenario_load_text("fuzz.yaml", (const char *)data, size, NULL, &s, err);
	fclose(err);
	if (rc == 0) {
		CHECK(len == 0);
		check_scenario(s);
		scenario_free(s);
	} else {
		CHECK(rc == -EINVAL && s == NULL);
		// each line says where, the first at least
		CHECK(strncmp(text, "fuzz.yaml:", 10) == 0 && text[len - 1] == '\n');
	}
	free(text);
	return 0;
}

#ifndef FUZZ_LIBFUZZER

#define INPUT_MAX  16384
#define CORPUS_MAX 64

struct text {
	char bytes[INPUT_MAX];
	size_t len;
};

static struct text corpus[CORPUS_MAX];
static unsigned n_corpus;

static uint32_t some(uint32_t below)
{
	return noise() % below;
}

static void add_file(const char *path)
{
	FILE *f = fopen(path, "rb");

	if (f == NULL) {
		perror(path);
		exit(1);
	}
	if (n_corpus < CORPUS_MAX) {
		corpus[n_corpus].len = fread(corpus[n_corpus].bytes, 1, INPUT_MAX, f);
		n_corpus++;
	}
	fclose(f);
}

// Replaces t[at, at+cut) by `with`, if it fits.
static void splice(struct text *t, size_t at, size_t cut, const char *with, size_t len)
{
	if (t->len - cut + len > INPUT_MAX)
		return;
	memmove(t->bytes + at + len, t->bytes + at + cut, t->len - at - cut);
	memcpy(t->bytes + at, with, len);
	t->len = t->len - cut + len;
}

// A word (letters, digits, dots) at or after a random place of `t`.
static size_t some_word(const struct text *t, size_t *len)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t at = some((uint32_t)t->len);

	while (at < t->len && strchr(letters, t->bytes[at]) == NULL)
		at++;
	*len = 0;
	while (at + *len < t->len && t->bytes[at + *len] != '\0' &&
		strchr(letters, t->bytes[at + *len]) != NULL)
		++*len;
	return at;
}

static void swap_word(struct text *t)
{
	static const char *const odd[] = {"0", "-1", "null", "[]", "{}", "99999999999999999999",
		"1e30s", "*a", "&a x", "''", "all", "auto", "never", "h1", "sw1", "sw1:eth0", "~"};
	size_t cut, len;
	size_t at = some_word(t, &cut);

	if (some(3) == 0) {
		const char *w = odd[some(sizeof(odd) / sizeof(odd[0]))];
		splice(t, at, cut, w, strlen(w));
		return;
	}
	const struct text *other = &corpus[some(n_corpus)];
	size_t from = some_word(other, &len);
	splice(t, at, cut, other->bytes + from, len);
}

static void line_at(const struct text *t, size_t *at, size_t *len)
{
	size_t a = some((uint32_t)t->len), end = a;

	while (a > 0 && t->bytes[a - 1] != '\n')
		a--;
	while (end < t->len && t->bytes[end] != '\n')
		end++;
	*at = a;
	*len = end - a + (end < t->len);
}

static void mutate(void)
{
	static struct text t;
	size_t at, len, from, n;

	t = corpus[some(n_corpus)];
	for (unsigned k = 1 + some(4); k > 0 && t.len > 1; k--) {
		switch (some(6)) {
		case 0: // one byte
			t.bytes[some((uint32_t)t.len)] = (char)some(256);
			break;
		case 1: // a line goes
			line_at(&t, &at, &len);
			splice(&t, at, len, "", 0);
			break;
		case 2: { // a line of another comes
			const struct text *other = &corpus[some(n_corpus)];
			line_at(&t, &at, &len);
			line_at(other, &from, &n);
			splice(&t, at, 0, other->bytes + from, n);
			break;
		}
		case 3: // cut short
			if (some(8) == 0)
				t.len = some((uint32_t)t.len);
			break;
		default:
			swap_word(&t);
		}
	}
	LLVMFuzzerTestOneInput((const uint8_t *)t.bytes, t.len);
}

int main(int argc, char **argv)
{
	uint64_t runs = 10000;

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "-runs=", 6) == 0)
			runs = strtoull(argv[i] + 6, NULL, 10);
		else
			add_file(argv[i]);
	if (n_corpus == 0) {
		strcpy(corpus[0].bytes, "topology: {star: {hosts: 2}}\n");
		corpus[0].len = strlen(corpus[0].bytes);
		n_corpus = 1;
	}
	for (unsigned i = 0; i < n_corpus; i++)
		LLVMFuzzerTestOneInput((const uint8_t *)corpus[i].bytes, corpus[i].len);
	for (uint64_t i = 0; i < runs; i++)
		mutate();
	printf("%u inputs, %" PRIu64 " mutations\n", n_corpus, runs);
	return 0;
}

#endif
