/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

// Captures: what passes chosen ports, as annotated pcapng.
//
// The observer of a tapped port copies headers and recipe of a frame into its lcore's ring. A
// writer thread merges the rings in time order, makes the missing bytes, filters, comments and
// writes:
//
//	node -> tap -> byte ring (per lcore) --+
//	node -> tap -> byte ring (per lcore) --+-> merge -> materialise -> filter -> pcapng
//
// Under the virtual clock nothing is lost (a producer waits for a full ring) and the file is the
// same on any number of lcores. Under the wall clock a full ring costs frames, which are counted.
//
// Time stamps are emulated time: nanoseconds since the start of the run, on an epoch of 0. One
// interface per tapped port and direction, named "leaf1:eth3 rx". Dropped frames appear at the port
// they came in by, with the reason as comment.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emu/core/node.h"
#include "emu/core/observe.h"

#define CAPTURE_RING_BYTES ((size_t)4 << 20) // default, per producer
#define CAPTURE_NOTES_MAX  64

struct capture;

struct capture_tap {
	struct node *node;
	unsigned port;
	bool rx;
	bool tx;
	const char *peer;  // what is at the other end, for the description; NULL: not said
	uint64_t rate_bps; // 0: not said
};

struct capture_config {
	const char *path;
	const struct capture_tap *taps; // [n_taps]
	unsigned n_taps;
	const char *filter;   // libpcap expression over the complete frame, NULL: all
	uint32_t snaplen;     // bytes kept of a frame, 0: all
	uint64_t max_bytes;   // of a file, 0: no limit
	unsigned ring_files;  // with max_bytes: keep the last N files, PATH numbered; 0 or 1: stop
	uint32_t what;        // bit per enum observe_what to record, 0: everything
	bool lossless;        // virtual clock: wait for room, merge by capture_watermark()
	unsigned n_producers; // lcores of EAL (rte_lcore_count()), 1 without EAL
	const char *const *fault_names; // [n_fault_names] of rules, for comments; outlive it
	unsigned n_fault_names;
	size_t ring_bytes; // per producer, power of two >= 256 KiB; 0: default
};

struct capture_status {
	uint64_t frames;     // written
	uint64_t bytes;      // of all files written
	uint64_t filtered;   // did not match the filter
	uint64_t lost_ring;  // found their lcore's ring full (wall clock)
	uint64_t lost_disk;  // came after an error, or could not be written
	uint64_t past_limit; // came after max_bytes
	unsigned files;      // made
	int error;           // 0 or negative errno: the capture is incomplete
	char message[128];   // what failed and why, one line, without the path
};

// Checks a filter expression. Returns 0 or -EINVAL with one line in `err`.
int capture_filter_check(const char *expr, char *err, size_t err_bytes);

// Opens the file, starts the writer, attaches to the ports (several captures may share one). Called
// while nothing runs. A file that cannot be made does not fail the run: the capture exists, takes
// nothing, and its status says why. Returns 0, or with one line in `err` -EINVAL (bad filter or
// tap) or -ENOMEM, -EAGAIN (no thread).
int capture_open(
	struct capture **out, const struct capture_config *cfg, char *err, size_t err_bytes);

// Virtual clock: everything before `t` has been produced by all lcores.
void capture_watermark(struct capture *c, simtime_t t);

// A comment for the next frame that passes `port` of `node`, or failing such a tap the nearest
// there is (same node, else the first). Called while no node runs. Notes that no frame carried
// stand by themselves at the end of the file, with the time of this call. The text is copied; false
// when there is no room for more.
bool capture_note(struct capture *c, const struct node *node, unsigned port, const char *text);

// Any time, from any thread; numbers may be a moment old while running.
void capture_get_status(const struct capture *c, struct capture_status *s);

// Detaches, writes what is left, ends the file, stops the writer. Nothing runs any more; the nodes
// still exist. The final status goes to `s` (may be NULL); returns its error.
int capture_close(struct capture *c, struct capture_status *s);
