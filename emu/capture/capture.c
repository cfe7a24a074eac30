/* SPDX-License-Identifier: BSD-3-Clause */
// Making and ending captures.
#include "emu/capture/capture.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emu/capture/internal.h"

#define RING_BYTES_MIN ((size_t)256 << 10)

// EAL pins the thread that calls it, and threads inherit that: the writer must not share an lcore
// that is never idle, so remember where the process may run.
static cpu_set_t process_cpus;

__attribute__((constructor)) static void remember_process_cpus(void)
{
	sched_getaffinity(0, sizeof(process_cpus), &process_cpus);
}

int capture_filter_check(const char *expr, char *err, size_t err_bytes)
{
	struct frame_filter *f = NULL;
	int ret = frame_filter_new(&f, expr, err, err_bytes);

	frame_filter_free(f);
	return ret;
}

static void add_interface(
	struct capture *c, struct tap *t, const struct capture_tap *cfg, enum observe_dir dir)
{
	struct interface *i = &c->ifs[c->n_ifs];
	const struct node *n = cfg->node;

	if (n->ports[cfg->port].name[0] != '\0')
		snprintf(i->name, sizeof(i->name), "%s:%s %s", n->name, n->ports[cfg->port].name,
			dir == OBSERVE_RX ? "rx" : "tx");
	else
		snprintf(i->name, sizeof(i->name), "%s:%u %s", n->name, cfg->port,
			dir == OBSERVE_RX ? "rx" : "tx");
	if (cfg->peer != NULL)
		snprintf(i->description, sizeof(i->description), "%s %s",
			dir == OBSERVE_RX ? "from" : "to", cfg->peer);
	i->rate_bps = cfg->rate_bps;
	i->dir = dir;
	t->interface[dir] = (uint16_t)c->n_ifs++;
}

static int add_taps(
	struct capture *c, const struct capture_config *cfg, char *err, size_t err_bytes)
{
	c->taps = calloc(cfg->n_taps ? cfg->n_taps : 1, sizeof(*c->taps));
	c->ifs = calloc(cfg->n_taps ? 2 * cfg->n_taps : 1, sizeof(*c->ifs));
	if (c->taps == NULL || c->ifs == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < cfg->n_taps; i++) {
		const struct capture_tap *from = &cfg->taps[i];
		struct tap *t = &c->taps[c->n_taps];

		if (from->port >= from->node->n_ports || !(from->rx || from->tx) ||
			c->n_ifs + 2 > PCAPNG_INTERFACES_MAX) {
			snprintf(err, err_bytes,
				"tap of %s port %u: no such port, no direction, or more than "
				"%u interfaces",
				from->node->name, from->port, PCAPNG_INTERFACES_MAX);
			return -EINVAL;
		}
		*t = (struct tap){
			.capture = c,
			.node = from->node,
			.port = from->port,
			.interface = {CAPTURE_NO_INTERFACE, CAPTURE_NO_INTERFACE},
		};
		if (from->rx)
			add_interface(c, t, from, OBSERVE_RX);
		if (from->tx)
			add_interface(c, t, from, OBSERVE_TX);
		c->n_taps++;
	}
	return 0;
}

static int add_rings(struct capture *c, const struct capture_config *cfg)
{
	size_t bytes = cfg->ring_bytes ? cfg->ring_bytes : CAPTURE_RING_BYTES;

	bytes = RTE_MAX(bytes, RING_BYTES_MIN);
	c->rings = aligned_alloc(64, cfg->n_producers * sizeof(*c->rings));
	if (c->rings == NULL)
		return -ENOMEM;
	for (; c->n_rings < cfg->n_producers; c->n_rings++)
		if (byte_ring_init(&c->rings[c->n_rings], bytes) < 0)
			return -ENOMEM;
	return merge_init(&c->merge);
}

static int start_writer(struct capture *c)
{
	sigset_t all, old;
	pthread_attr_t attr;

	// Signals are the main thread's; SIGXFSZ then is an error of write() here, as it should be.
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(process_cpus), &process_cpus);
	int err = pthread_create(&c->thread, &attr, capture_writer, c);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	c->threaded = err == 0;
	return -err;
}

static void free_capture(struct capture *c)
{
	for (unsigned i = 0; i < c->n_rings; i++)
		byte_ring_fini(&c->rings[i]);
	for (unsigned i = 0; i < c->n_notes; i++)
		free(c->notes[i]);
	merge_fini(&c->merge);
	frame_filter_free(c->filter);
	free(c->rings);
	free(c->ifs);
	free(c->taps);
	free(c->filter_text);
	free(c->path);
	free(c);
}

static int prepare(struct capture *c, const struct capture_config *cfg, char *err, size_t err_bytes)
{
	c->what = cfg->what ? cfg->what : UINT32_MAX;
	c->snaplen = cfg->snaplen;
	c->fault_names = cfg->fault_names;
	c->n_fault_names = cfg->n_fault_names;
	c->max_bytes = cfg->max_bytes;
	c->ring_files = cfg->ring_files;
	c->lossless = cfg->lossless;
	c->path = strdup(cfg->path);
	c->filter_text = cfg->filter ? strdup(cfg->filter) : NULL;
	if (c->path == NULL || (cfg->filter != NULL && c->filter_text == NULL))
		return -ENOMEM;
	if (cfg->filter != NULL) {
		int ret = frame_filter_new(&c->filter, cfg->filter, err, err_bytes);
		if (ret < 0)
			return ret;
		c->copy_all = true;
	}
	int ret = add_taps(c, cfg, err, err_bytes);
	return ret < 0 ? ret : add_rings(c, cfg);
}

int capture_open(
	struct capture **out, const struct capture_config *cfg, char *err, size_t err_bytes)
{
	struct capture *c = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*c), 64));

	snprintf(err, err_bytes, "out of memory");
	if (c == NULL)
		return -ENOMEM;
	memset(c, 0, sizeof(*c));
	int ret = prepare(c, cfg, err, err_bytes);
	if (ret == 0)
		capture_file_next(c);
	if (ret == 0 && c->file != NULL)
		ret = start_writer(c);
	if (ret < 0) {
		if (c->file != NULL)
			pcapng_close(c->file);
		free_capture(c);
		return ret;
	}
	for (unsigned i = 0; i < c->n_taps && c->threaded; i++)
		capture_tap_attach(&c->taps[i]);
	err[0] = '\0';
	*out = c;
	return 0;
}

void capture_watermark(struct capture *c, simtime_t t)
{
	__atomic_store_n(&c->watermark, t, __ATOMIC_RELEASE);
}

bool capture_note(struct capture *c, const struct node *node, unsigned port, const char *text)
{
	struct tap *best = NULL;
	int best_score = -1;

	for (unsigned i = 0; i < c->n_taps; i++) {
		struct tap *t = &c->taps[i];
		int score = t->note ? -1 : t->node != node ? 0 : t->port != port ? 1 : 2;
		if (score > best_score) {
			best_score = score;
			best = t;
		}
	}
	if (c->n_notes == CAPTURE_NOTES_MAX)
		return false;
	char *copy = strdup(text);
	if (copy == NULL)
		return false;
	unsigned n = c->n_notes;
	c->notes[n] = copy;
	c->note_at[n] = simtime_max(node->now, __atomic_load_n(&c->watermark, __ATOMIC_RELAXED));
	__atomic_store_n(&c->n_notes, n + 1, __ATOMIC_RELEASE);
	if (best != NULL)
		best->note = (uint8_t)(n + 1);
	return true;
}

void capture_get_status(const struct capture *c, struct capture_status *s)
{
	const struct capture_status *from = &c->status;

	*s = (struct capture_status){
		.frames = __atomic_load_n(&from->frames, __ATOMIC_RELAXED),
		.bytes = __atomic_load_n(&from->bytes, __ATOMIC_RELAXED),
		.filtered = __atomic_load_n(&from->filtered, __ATOMIC_RELAXED),
		.lost_disk = __atomic_load_n(&from->lost_disk, __ATOMIC_RELAXED),
		.past_limit = __atomic_load_n(&from->past_limit, __ATOMIC_RELAXED),
		.files = __atomic_load_n(&from->files, __ATOMIC_RELAXED),
		.error = __atomic_load_n(&from->error, __ATOMIC_ACQUIRE),
	};
	if (s->error != 0) // set once, after the message
		memcpy(s->message, from->message, sizeof(s->message));
	for (unsigned i = 0; i < c->n_rings; i++)
		s->lost_ring += __atomic_load_n(&c->rings[i].lost, __ATOMIC_RELAXED);
}

int capture_close(struct capture *c, struct capture_status *s)
{
	struct capture_status final;

	if (c->threaded) {
		for (unsigned i = 0; i < c->n_taps; i++)
			capture_tap_detach(&c->taps[i]);
		__atomic_store_n(&c->stop, true, __ATOMIC_RELEASE);
		pthread_join(c->thread, NULL);
	}
	capture_get_status(c, &final);
	free_capture(c);
	if (s != NULL)
		*s = final;
	return final.error;
}
