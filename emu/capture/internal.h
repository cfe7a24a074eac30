/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// A capture from inside: taps on the data path's side, the merge and the file on the writer's.

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "emu/capture/byte_ring.h"
#include "emu/capture/capture.h"
#include "pcap/filter.h"
#include "pcap/pcapng.h"
#include "pipelines/materialise.h"

#define CAPTURE_NO_INTERFACE UINT16_MAX
#define CAPTURE_COMMENT_MAX  PCAPNG_COMMENT_MAX

// A frame on its way to the writer; its first `have` bytes follow.
struct record {
	uint32_t bytes; // of the whole record: first, for the ring
	uint16_t interface;
	uint8_t what; // enum observe_what
	uint8_t note; // 1 + index of a note, 0: none
	simtime_t at;
	uint64_t seq; // within the interface
	uint64_t a;
	uint64_t b;
	const void *frame; // its address: is this the same frame again?
	struct frame_recipe recipe;
	uint32_t have;
	uint8_t data[];
};

struct tap {
	struct observer obs;   // first: what the port points at
	struct observer *next; // the port's other observers
	struct capture *capture;
	struct node *node;
	unsigned port;
	uint16_t interface[2]; // by enum observe_dir, or CAPTURE_NO_INTERFACE
	uint64_t seq[2];
	uint8_t note; // for the next frame
};

struct interface {
	char name[NODE_NAME_MAX + 32];
	char description[96];
	uint64_t rate_bps;
	enum observe_dir dir;
	uint64_t frames;
};

// Records waiting for their turn: a binary heap by (time, interface, sequence).
struct merge {
	struct record **heap;
	size_t n;
	size_t cap;
	struct record *free_small; // chained through their first word
};

int merge_init(struct merge *m);
void merge_fini(struct merge *m);
// Copies the record. Returns 0 or -ENOMEM.
int merge_add(struct merge *m, const struct record *r);
// The earliest record, NULL when there is none; and taking it out, to be given back.
const struct record *merge_first(const struct merge *m);
struct record *merge_take(struct merge *m);
void merge_give_back(struct merge *m, struct record *r);

struct capture {
	// constant while running
	struct tap *taps;
	unsigned n_taps;
	struct interface *ifs;
	unsigned n_ifs;
	struct byte_ring *rings; // [n_rings], one per producer
	unsigned n_rings;
	uint32_t what;
	uint32_t snaplen;
	uint64_t max_bytes;
	unsigned ring_files;
	bool lossless;
	bool copy_all; // a filter may look at any byte
	char *path;
	char *filter_text;
	const char *const *fault_names;
	unsigned n_fault_names;
	struct frame_filter *filter;

	// notes: appended while nothing runs, read by the writer
	char *notes[CAPTURE_NOTES_MAX];
	simtime_t note_at[CAPTURE_NOTES_MAX];
	unsigned n_notes;

	// shared
	alignas(64) simtime_t watermark;
	bool stop;

	// writer
	alignas(64) pthread_t thread;
	bool threaded;
	struct merge merge;
	struct pcapng *file;
	simtime_t last_at;      // latest frame taken from the rings
	simtime_t horizon[2];   // wall clock: last_at one and two rounds ago
	uint64_t notes_written; // bit per note
	struct capture_status status;
};

// Counts something that others read without a lock. Writer only.
static inline void tally(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

// The file or numbered file that comes next. On failure the status tells.
void capture_file_next(struct capture *c);
// Ends the current file with statistics; in the last one undelivered notes stand by themselves.
void capture_file_end(struct capture *c, bool last);
// Filters, materialises, comments, writes.
void capture_write_record(struct capture *c, const struct record *r, const char *extra);
void capture_fail(struct capture *c, int error, const char *what);

void capture_tap_attach(struct tap *t);
void capture_tap_detach(struct tap *t);

void *capture_writer(void *arg); // pthread function

// The comment of a frame into `out`; empty for one that just passed.
void capture_comment(const struct capture *c, char *out, size_t bytes, enum observe_what what,
	uint64_t a, uint64_t b);
