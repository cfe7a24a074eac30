/* SPDX-License-Identifier: BSD-3-Clause */
// Captures of a node's ports: what is written, in which order, with which comments, and what
// happens when the file cannot take more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <glob.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/capture/capture.h"
#include "pcap/build.h"
#include "pcap/icrc.h"
#include "pcap/reader.h"
#include "tests/unit/frames.h"

static char dir[] = "/tmp/fabemu-capture-XXXXXX";
static char path[64];
static struct node node;

static const struct node_ops no_ops;

static int start(void **state)
{
	if (mkdtemp(dir) == NULL || node_init(&node, &no_ops, "leaf1", 2, 4) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/x.pcapng", dir);
	snprintf(node.ports[1].name, sizeof(node.ports[1].name), "eth3");
	return 0;
}

static int stop(void **state)
{
	char command[80];

	node_fini(&node);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static struct capture_tap taps[2] = {
	{.node = &node, .port = 0, .rx = true, .tx = true, .peer = "h1"},
	{.node = &node, .port = 1, .rx = true, .tx = false},
};

static struct capture_config config(void)
{
	return (struct capture_config){
		.path = path, .taps = taps, .n_taps = 2, .lossless = true, .n_producers = 1};
}

static struct capture *open_capture(const struct capture_config *cfg)
{
	struct capture *c = NULL;
	char err[256];

	if (capture_open(&c, cfg, err, sizeof(err)) < 0)
		fail_msg("%s", err);
	return c;
}

// ---- frames ----------------------------------------------------------------------------------

static struct frame *new_frame(void)
{
	struct rte_mbuf *m = aligned_alloc(64, sizeof(*m) + sizeof(struct frame) + 2048);
	struct frame *f = mbuf_frame(m);

	*f = (struct frame){0};
	return f;
}

static void free_frame(struct frame *f)
{
	free(frame_mbuf(f));
}

// A synthetic WRITE_ONLY of 1024 bytes to queue pair `qp`: 70 bytes of headers, 1098 in all.
static struct frame *synth(uint32_t qp)
{
	static const uint8_t mac[6] = {2};
	struct frame *f = new_frame();
	uint8_t *p = eth_put(frame_data(f), mac, mac, ETHERTYPE_IPV4);

	p = ipv4_put(p, 2, 1084, 0, 64, IP_PROTO_UDP, 1, 2);
	p = udp_put(p, 0xc001, ROCE_UDP_PORT, 1064);
	p = bth_put(p, ROCE_RC | ROCE_WRITE_ONLY, 0, 0, qp, false, 0);
	p = reth_put(p, 0, 0, 1024);
	f->flags = FRAME_F_PARSED | FRAME_F_SYNTH | FRAME_F_ROCE;
	f->l3_off = 14;
	f->l4_off = 34;
	f->head_len = 70;
	f->payload_len = 1024;
	f->len = 1098;
	return f;
}

static void observe(unsigned port, enum observe_dir d, const struct frame *f, simtime_t at)
{
	node_observe(&node, port, d, f, at, OBS_PASS, 0, 0);
}

// ---- reading back ----------------------------------------------------------------------------

struct got {
	unsigned n, icrc_ok, backwards; // backwards: frames earlier than the one before them
	int64_t ns[64];
	uint32_t qp[64], caplen[64], len[64];
};

static struct got read_back(const char *file)
{
	struct got g = {0};
	struct reader *r;
	struct reader_frame f;
	int64_t before = INT64_MIN;
	char err[512];
	int ret;

	if (reader_open(&r, file, NULL, err, sizeof(err)) < 0)
		fail_msg("%s", err);
	while ((ret = reader_next(r, &f)) == 1) {
		struct pkt p;
		unsigned i = g.n < 64 ? g.n : 63;
		enum pkt_error e = pkt_parse_head(f.data, f.caplen, f.len, &p);
		g.backwards += f.time_ns < before;
		g.ns[i] = before = f.time_ns;
		g.qp[i] = e == PKT_OK ? p.dest_qp : 0;
		g.caplen[i] = f.caplen;
		g.len[i] = f.len;
		if (e == PKT_OK && f.caplen == f.len && p.bth_off)
			g.icrc_ok += pkt_icrc_valid(&p);
		g.n++;
	}
	assert_int_equal(ret, 0);
	reader_close(r);
	return g;
}

// The file's bytes contain `text` (names and comments stand in it as they are).
static unsigned count_in_file(const char *file, const char *text)
{
	FILE *f = fopen(file, "rb");
	static char bytes[1 << 20];
	size_t n = fread(bytes, 1, sizeof(bytes), f), k = strlen(text);
	unsigned found = 0;

	fclose(f);
	for (size_t i = 0; i + k <= n; i++)
		found += memcmp(bytes + i, text, k) == 0;
	return found;
}

// ---- tests -----------------------------------------------------------------------------------

static void frames_are_whole_and_in_time_order(void **state)
{
	struct capture_config cfg = config();
	struct capture *c = open_capture(&cfg);
	struct capture_status s;
	struct frame *f[5];

	for (uint32_t i = 0; i < 5; i++)
		f[i] = synth(i + 1);
	observe(0, OBSERVE_TX, f[0], 3500 * SIM_NS); // stamped ahead
	observe(0, OBSERVE_RX, f[1], 1000 * SIM_NS);
	observe(1, OBSERVE_RX, f[2], 3500 * SIM_NS); // same time: by interface
	observe(1, OBSERVE_TX, f[3], 2000 * SIM_NS); // not tapped
	capture_watermark(c, 3000 * SIM_NS);
	observe(0, OBSERVE_RX, f[4], 3500 * SIM_NS + 999);
	assert_int_equal(capture_close(c, &s), 0);

	struct got g = read_back(path);
	// by picoseconds, then interface: tx of port 0 before rx of port 1
	static const uint32_t order[4] = {2, 1, 3, 5};
	assert_int_equal(g.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(g.qp[i], order[i]);
	assert_int_equal(g.ns[0], 1000);
	assert_int_equal(g.ns[3], 3500);
	assert_int_equal(g.len[0], 1098);
	assert_int_equal(g.caplen[0], 1098);
	assert_int_equal(g.icrc_ok, 4);
	assert_int_equal(s.frames, 4);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(s.bytes, st.st_size);
	assert_null(node.ports[0].obs);
	for (uint32_t i = 0; i < 5; i++)
		free_frame(f[i]);
}

// A writer that falls behind (here both threads have one CPU) has all that was recorded before the
// watermark in order, not only the first of it. The earliest frame comes last.
static void a_long_backlog_is_merged_before_it_is_written(void **state)
{
	struct capture_config cfg = config();
	struct frame *f = synth(1);
	cpu_set_t all, one;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	struct capture *c = open_capture(&cfg);

	for (unsigned i = 15000; i > 0; i--)
		observe(0, OBSERVE_RX, f, i * SIM_NS);
	capture_watermark(c, SIM_US * 1000);
	usleep(20000);
	sched_setaffinity(0, sizeof(all), &all);
	assert_int_equal(capture_close(c, NULL), 0);

	struct got g = read_back(path);
	assert_int_equal(g.n, 15000);
	assert_int_equal(g.backwards, 0);
	free_frame(f);
}

static void nothing_is_written_before_the_watermark_allows(void **state)
{
	struct capture_config cfg = config();
	struct capture *c = open_capture(&cfg);
	struct capture_status s;
	struct frame *f = synth(1);

	observe(0, OBSERVE_RX, f, SIM_US);
	capture_watermark(c, SIM_US); // all before 1 us: not this one
	usleep(20000);
	capture_get_status(c, &s);
	assert_int_equal(s.frames, 0);
	capture_watermark(c, SIM_US + 1);
	for (unsigned i = 0; i < 2000 && s.frames == 0; i++) {
		usleep(1000);
		capture_get_status(c, &s);
	}
	assert_int_equal(s.frames, 1);
	capture_close(c, NULL);
	free_frame(f);
}

static void interfaces_are_named_after_port_and_direction(void **state)
{
	struct capture_config cfg = config();

	capture_close(open_capture(&cfg), NULL);
	assert_int_equal(count_in_file(path, "leaf1:0 rx"), 1);
	assert_int_equal(count_in_file(path, "leaf1:0 tx"), 1);
	assert_int_equal(count_in_file(path, "leaf1:eth3 rx"), 1);
	assert_int_equal(count_in_file(path, "leaf1:eth3 tx"), 0);
	assert_int_equal(count_in_file(path, "to h1"), 1);
}

static void comments_say_what_happened(void **state)
{
	struct capture_config cfg = config();
	struct capture *c = open_capture(&cfg);
	struct frame *f = synth(1);

	node_observe(&node, 0, OBSERVE_TX, f, 1, OBS_ECN, 3, 4096);
	node_observe(&node, 0, OBSERVE_TX, f, 2, OBS_PFC_XOFF, 4, 70000);
	node_observe(&node, 0, OBSERVE_TX, f, 3, OBS_PFC_XON, 4, 100);
	node_observe(&node, 0, OBSERVE_RX, f, 4, OBS_DROP, DROP_TTL_EXPIRED, 0);
	node_observe(&node, 0, OBSERVE_RX, f, 5, OBS_FAULT, 7, 0);
	capture_close(c, NULL);
	assert_int_equal(count_in_file(path, "ECN marked at queue 3 with 4096 bytes"), 1);
	assert_int_equal(count_in_file(path, "PFC XOFF by PG 4 at 70000 bytes"), 1);
	assert_int_equal(count_in_file(path, "PFC XON by PG 4 at 100 bytes"), 1);
	assert_int_equal(count_in_file(path, "dropped: ttl_expired"), 1);
	assert_int_equal(count_in_file(path, "fault 7: dropped"), 1);
	free_frame(f);
}

// Arrival and drop at the same instant are one frame; a drop later on is told again.
static void a_frame_dropped_on_arrival_appears_once(void **state)
{
	struct capture_config cfg = config();
	struct capture *c = open_capture(&cfg);
	struct frame *f = synth(1);

	observe(0, OBSERVE_RX, f, 1000);
	node_observe(&node, 0, OBSERVE_RX, f, 1000, OBS_DROP, DROP_NO_ROUTE, 0);
	observe(0, OBSERVE_RX, f, 2000);
	node_observe(&node, 0, OBSERVE_RX, f, 3000, OBS_DROP, DROP_WATCHDOG, 0);
	capture_close(c, NULL);
	assert_int_equal(read_back(path).n, 3);
	assert_int_equal(count_in_file(path, "dropped: no_route"), 1);
	assert_int_equal(count_in_file(path, "dropped: watchdog"), 1);
	free_frame(f);
}

static void notes_ride_on_the_next_frame(void **state)
{
	struct capture_config cfg = config();
	struct capture *c = open_capture(&cfg);
	struct frame *f = synth(1);
	struct node other = {.name = "elsewhere"};

	assert_true(capture_note(c, &node, 0, "deadlock #1: leaf1 waits for itself"));
	observe(1, OBSERVE_RX, f, 1);
	observe(0, OBSERVE_TX, f, 2);
	observe(0, OBSERVE_TX, f, 3);
	assert_true(capture_note(c, &node, 1, "of eth3, never carried"));
	assert_true(capture_note(c, &other, 7, "of a node without a tap"));
	assert_true(capture_note(c, &node, 0, "both taps have one already"));
	capture_close(c, NULL);
	assert_int_equal(read_back(path).n, 3);
	assert_int_equal(count_in_file(path, "deadlock #1: leaf1 waits for itself"), 1);
	assert_int_equal(count_in_file(path, "of eth3, never carried"), 1);
	assert_int_equal(count_in_file(path, "MESSAGE=of a node without a tap"), 1);
	assert_int_equal(count_in_file(path, "MESSAGE=both taps have one already"), 1);
	free_frame(f);
}

static void filters_see_the_whole_frame(void **state)
{
	struct capture_config cfg = config();
	struct capture_status s;

	// UDP payload starts at 42: the BTH's queue pair is udp[13:3], its last byte udp[15].
	cfg.filter = "udp dst port 4791 and udp[15] = 2";
	cfg.snaplen = 60;
	struct capture *c = open_capture(&cfg);
	for (uint32_t i = 0; i < 4; i++) {
		struct frame *f = synth(i);
		observe(0, OBSERVE_RX, f, i);
		free_frame(f);
	}
	capture_close(c, &s);
	struct got g = read_back(path);
	assert_int_equal(g.n, 1);
	assert_int_equal(g.caplen[0], 60);
	assert_int_equal(g.len[0], 1098);
	assert_int_equal(s.filtered, 3);
	assert_int_equal(count_in_file(path, cfg.filter), 3); // in each interface
}

static void only_what_is_asked_for_is_recorded(void **state)
{
	struct capture_config cfg = config();
	struct frame *f = synth(1);

	cfg.what = 1u << OBS_DROP;
	struct capture *c = open_capture(&cfg);
	observe(0, OBSERVE_RX, f, 1);
	node_observe(&node, 0, OBSERVE_RX, f, 1, OBS_DROP, DROP_WRED, 0);
	capture_close(c, NULL);
	assert_int_equal(read_back(path).n, 1);
	free_frame(f);
}

// Real bytes cut at the snap length; 100 is not a multiple of anything.
static void snap_length_cuts_real_and_synthetic_frames(void **state)
{
	struct capture_config cfg = config();
	struct frame *real = new_frame(), *made = synth(1);

	real->len = real->head_len = 1500;
	memset(frame_data(real), 0x11, 1500);
	cfg.snaplen = 101;
	struct capture *c = open_capture(&cfg);
	observe(0, OBSERVE_RX, real, 1);
	observe(0, OBSERVE_RX, made, 2);
	capture_close(c, NULL);
	struct got g = read_back(path);
	assert_int_equal(g.n, 2);
	assert_int_equal(g.caplen[0], 101);
	assert_int_equal(g.caplen[1], 101);
	assert_int_equal(g.len[0], 1500);
	assert_int_equal(g.len[1], 1098);
	free_frame(real);
	free_frame(made);
}

static void captures_share_a_port(void **state)
{
	struct capture_config cfg = config();
	char other[80];
	struct frame *f = synth(1);

	snprintf(other, sizeof(other), "%s/other.pcapng", dir);
	struct capture *a = open_capture(&cfg);
	cfg.path = other;
	struct capture *b = open_capture(&cfg);
	observe(0, OBSERVE_RX, f, 1);
	capture_close(a, NULL); // the first one, which the second's tap points at
	observe(0, OBSERVE_RX, f, 2);
	capture_close(b, NULL);
	assert_null(node.ports[0].obs);
	assert_int_equal(read_back(path).n, 1);
	assert_int_equal(read_back(other).n, 2);
	free_frame(f);
}

// More than a ring holds (256 KiB / ~160 bytes): the producer waits, nothing is lost.
static void a_full_ring_makes_the_producer_wait(void **state)
{
	struct capture_config cfg = config();
	struct capture_status s;
	struct frame *f = synth(1);

	cfg.ring_bytes = 256 << 10;
	struct capture *c = open_capture(&cfg);
	for (unsigned i = 0; i < 20000; i++)
		observe(0, OBSERVE_RX, f, i); // no watermark: all are held back
	assert_int_equal(capture_close(c, &s), 0);
	assert_int_equal(s.frames, 20000);
	assert_int_equal(s.lost_ring, 0);
	assert_int_equal(read_back(path).icrc_ok, 20000);
	free_frame(f);
}

// Wall clock: what the ring cannot take is counted; together it is everything.
static void the_wall_clock_counts_losses(void **state)
{
	struct capture_config cfg = config();
	struct capture_status s;
	struct frame *f = synth(1);

	cfg.lossless = false;
	struct capture *c = open_capture(&cfg);
	for (unsigned i = 0; i < 200000; i++)
		observe(0, OBSERVE_RX, f, i);
	assert_int_equal(capture_close(c, &s), 0);
	assert_int_equal(s.frames + s.lost_ring, 200000);
	assert_int_equal(read_back(path).n, s.frames);
	free_frame(f);
}

static void the_size_limit_stops_or_turns_the_files(void **state)
{
	struct capture_config cfg = config();
	struct capture_status s;
	struct frame *f = synth(1);
	struct stat st;
	char pattern[80];
	glob_t g;

	cfg.max_bytes = 10000; // 8 frames of 1098 bytes and their block fit
	struct capture *c = open_capture(&cfg);
	for (unsigned i = 0; i < 100; i++)
		observe(0, OBSERVE_RX, f, i);
	assert_int_equal(capture_close(c, &s), 0);
	assert_int_equal(s.frames, 8);
	assert_int_equal(s.past_limit, 92);
	assert_int_equal(read_back(path).n, 8);

	cfg.ring_files = 3;
	c = open_capture(&cfg);
	for (unsigned i = 0; i < 100; i++)
		observe(0, OBSERVE_RX, f, i);
	assert_int_equal(capture_close(c, &s), 0);
	assert_int_equal(s.frames, 100);
	assert_int_equal(s.files, 13); // ceil(100 / 8)
	snprintf(pattern, sizeof(pattern), "%s/x.000*.pcapng", dir);
	assert_int_equal(glob(pattern, 0, NULL, &g), 0);
	assert_int_equal(g.gl_pathc, 3);
	assert_non_null(strstr(g.gl_pathv[2], "/x.00013.pcapng"));
	assert_int_equal(read_back(g.gl_pathv[0]).n, 8);
	assert_int_equal(read_back(g.gl_pathv[2]).n, 4); // 100 - 12 * 8
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(stat(g.gl_pathv[i], &st), 0);
		assert_true(st.st_size <= 10000 + 512); // statistics come on top
		unlink(g.gl_pathv[i]);
	}
	globfree(&g);
	free_frame(f);
}

static void a_full_disk_ends_the_file_and_not_the_run(void **state)
{
	struct capture_config cfg = config();
	struct capture_status s;
	struct rlimit old, limit;
	struct frame *f = synth(1);

	getrlimit(RLIMIT_FSIZE, &old);
	struct capture *c = open_capture(&cfg);
	limit = (struct rlimit){.rlim_cur = 600000, .rlim_max = old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &limit);
	for (unsigned i = 0; i < 5000; i++)
		observe(0, OBSERVE_RX, f, i);
	assert_int_equal(capture_close(c, &s), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_string_equal(s.message, "cannot write: File too large");
	assert_int_equal(s.frames + s.lost_disk, 5000);
	assert_true(s.frames > 450 && s.frames < 600); // 600000 / (1098 + 48)
	assert_int_equal(read_back(path).n, s.frames);
	free_frame(f);
}

static void an_unwritable_file_is_reported_not_fatal(void **state)
{
	struct capture_config cfg = config();
	struct capture_status s;
	struct frame *f = synth(1);

	cfg.path = "/nonexistent/x.pcapng";
	struct capture *c = open_capture(&cfg);
	assert_null(node.ports[0].obs);
	observe(0, OBSERVE_RX, f, 1);
	capture_watermark(c, 2);
	assert_int_equal(capture_close(c, &s), -ENOENT);
	assert_string_equal(s.message, "cannot create: No such file or directory");
	free_frame(f);
}

static void bad_configurations_are_refused(void **state)
{
	struct capture_config cfg = config();
	struct capture_tap tap = {.node = &node, .port = 2, .rx = true};
	struct capture *c;
	char err[256];

	cfg.filter = "udp prt 1";
	assert_int_equal(capture_open(&c, &cfg, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "udp prt 1"));
	assert_int_equal(capture_filter_check("udp prt 1", err, sizeof(err)), -EINVAL);
	assert_int_equal(capture_filter_check("udp port 1", err, sizeof(err)), 0);
	cfg.filter = NULL;
	cfg.taps = &tap;
	cfg.n_taps = 1;
	assert_int_equal(capture_open(&c, &cfg, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "leaf1 port 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_whole_and_in_time_order),
		cmocka_unit_test(a_long_backlog_is_merged_before_it_is_written),
		cmocka_unit_test(nothing_is_written_before_the_watermark_allows),
		cmocka_unit_test(interfaces_are_named_after_port_and_direction),
		cmocka_unit_test(comments_say_what_happened),
		cmocka_unit_test(a_frame_dropped_on_arrival_appears_once),
		cmocka_unit_test(notes_ride_on_the_next_frame),
		cmocka_unit_test(filters_see_the_whole_frame),
		cmocka_unit_test(only_what_is_asked_for_is_recorded),
		cmocka_unit_test(snap_length_cuts_real_and_synthetic_frames),
		cmocka_unit_test(captures_share_a_port),
		cmocka_unit_test(a_full_ring_makes_the_producer_wait),
		cmocka_unit_test(the_wall_clock_counts_losses),
		cmocka_unit_test(the_size_limit_stops_or_turns_the_files),
		cmocka_unit_test(a_full_disk_ends_the_file_and_not_the_run),
		cmocka_unit_test(an_unwritable_file_is_reported_not_fatal),
		cmocka_unit_test(bad_configurations_are_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
