/* SPDX-License-Identifier: BSD-3-Clause */
// Mean and maximum length of the switches' egress queues, by looking at them at a fixed interval
// from an engine task: so the data path counts nothing, and a run without costs nothing. The mean
// over time is that of the samples; an interval well below a queue's time to change (a microsecond,
// say) makes them the same. It ends with the last frame that
// left a switch: what stale timers add to a run does not count.

#include <errno.h>
#include <stdlib.h>

#include "emu/fabric/internal.h"
#include "pipelines/ethernet_switch.h"

static void sample(struct engine *e, simtime_t now, void *arg)
{
	struct fabric *f = arg;
	struct queue_stat *q = f->queue_stats;
	uint64_t sent = 0;

	for (uint32_t sw = 0; sw < f->s->n_switches; sw++) {
		for (unsigned i = 0; i < f->s->nodes[sw].n_ports * (unsigned)PRIO_COUNT; i++, q++) {
			uint64_t tx_frames;
			uint64_t bytes = ethernet_switch_queue_bytes(
				f->nodes[sw], i / PRIO_COUNT, i % PRIO_COUNT, &tx_frames);
			q->sum_bytes += bytes;
			q->max_bytes = RTE_MAX(q->max_bytes, bytes);
			sent += tx_frames;
		}
	}
	f->queue_looks++;
	if (sent != f->queue_sent) {
		f->queue_sent = sent;
		f->queue_samples = f->queue_looks;
	}
	engine_at(e, now + f->s->queue_stats.interval, sample, f, true);
}

static unsigned count_queues(const struct fabric *f)
{
	unsigned n = 0;

	for (uint32_t sw = 0; sw < f->s->n_switches; sw++)
		n += f->s->nodes[sw].n_ports * (unsigned)PRIO_COUNT;
	return n;
}

int queue_stats_create(struct fabric *f)
{
	const struct sc_queue_stats *cfg = &f->s->queue_stats;

	if (cfg->interval == 0)
		return 0;
	f->queue_stats = calloc(count_queues(f) + 1, sizeof(*f->queue_stats));
	if (f->queue_stats == NULL)
		return -ENOMEM;
	return engine_at(f->engine, cfg->from, sample, f, true);
}

int collect_queues(struct fabric *f, struct run_queue **store, struct run_results *r)
{
	const struct queue_stat *q = f->queue_stats;

	if (q == NULL || f->queue_samples == 0)
		return 0;
	*store = calloc(count_queues(f) + 1, sizeof(**store));
	if (*store == NULL)
		return -ENOMEM;
	for (uint32_t sw = 0; sw < f->s->n_switches; sw++) {
		for (unsigned i = 0; i < f->s->nodes[sw].n_ports * (unsigned)PRIO_COUNT; i++, q++) {
			if (q->max_bytes == 0)
				continue;
			(*store)[r->n_queues++] = (struct run_queue){
				.node = sw,
				.port = (uint16_t)(i / PRIO_COUNT),
				.queue = (uint8_t)(i % PRIO_COUNT),
				.mean_bytes = q->sum_bytes / f->queue_samples,
				.max_bytes = q->max_bytes,
			};
		}
	}
	r->queues = *store;
	return 0;
}
