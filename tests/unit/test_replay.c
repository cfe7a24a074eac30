/* SPDX-License-Identifier: BSD-3-Clause */
// A replay sends the frames of a capture, in its order and at its times, obeys PFC per priority,
// and takes what it receives.
#include <unistd.h>

#include "engine_harness.h"

#include "pcap/build.h"
#include "pcap/codec.h"
#include "pcap/icrc.h"
#include "pcap/pcapng.h"
#include "pipelines/replay.h"

#define FULL_FRAMES 1023
#define FULL_ROOM   (RTE_PKTMBUF_HEADROOM + 4500)

static char path[] = "/tmp/fabemu-replay-XXXXXX";
static struct rte_mempool *full;
static const uint8_t mac_own[6] = {2, 0, 0, 0, 0, 1}, mac_hop[6] = {2, 0, 0, 0, 0, 2};
static const uint8_t mac_cap[6] = {2, 0, 0, 0, 0, 9};

static int start(void **state)
{
	int fd = mkstemp(path);

	if (fd < 0 || harness_start(state) < 0)
		return -1;
	close(fd);
	full = frame_pool_create("full", FULL_FRAMES, FULL_ROOM);
	return full ? 0 : -1;
}

static int stop(void **state)
{
	unlink(path);
	rte_mempool_free(full);
	return harness_stop(state);
}

// ---- captures made for a test ----------------------------------------------------------------

struct item {
	uint64_t ns;
	uint8_t dscp;
	uint8_t mark; // last byte of the frame
	uint16_t len; // >= 42
};

// UDP (not RoCE) over IPv4, `len` bytes in all.
static void make_udp(uint8_t *f, const struct item *i)
{
	uint8_t *p = eth_put(f, mac_cap, mac_cap, ETHERTYPE_IPV4);

	p = ipv4_put(
		p, (uint8_t)(i->dscp << 2), (uint16_t)(i->len - 14), 0, 64, IP_PROTO_UDP, 1, 2);
	p = udp_put(p, 1, 2, (uint16_t)(i->len - 34));
	memset(p, 0, i->len - 42u);
	f[i->len - 1] = i->mark;
}

static void write_capture(const struct item *items, unsigned n)
{
	static const struct pcapng_interface i = {.name = "x", .linktype = LINKTYPE_ETHERNET_NG};
	struct pcapng *w;
	uint8_t f[8192];

	assert_int_equal(pcapng_create(&w, path, NULL, &i, 1), 0);
	for (unsigned k = 0; k < n; k++) {
		make_udp(f, &items[k]);
		assert_int_equal(pcapng_write(w, &(struct pcapng_frame){.time_ns = items[k].ns,
							 .data = f,
							 .caplen = items[k].len,
							 .len = items[k].len}),
			0);
	}
	assert_int_equal(pcapng_close(w), 0);
}

static struct replay_config config(void)
{
	struct replay_config c = {.name = "r",
		.path = path,
		.speed_milli = REPLAY_REAL_SPEED,
		.loops = 1,
		.rewrite_macs = true,
		.pfc_enable = 0xff};

	memcpy(c.mac, mac_own, 6);
	memcpy(c.next_hop_mac, mac_hop, 6);
	for (unsigned d = 0; d < 64; d++)
		c.dscp_to_tc[d] = (uint8_t)(d / 8);
	return c;
}

// ---- a sink that notes what arrives ----------------------------------------------------------

struct bench {
	struct engine *e;
	struct node *r;
	struct probe *sink;
};

// note = mark of the frame
static void note_mark(struct probe *p, unsigned port, struct frame *f)
{
	if (p->n_rec <= RECORDS_MAX)
		p->rec[p->n_rec - 1].note = frame_data(f)[f->len - 1];
	probe_check(p, memcmp(frame_data(f), mac_hop, 6) == 0);
	probe_check(p, memcmp(frame_data(f) + 6, mac_own, 6) == 0);
	node_deliver(&p->n, port, f);
}

// 100 Gb/s: a byte lasts 80 ps. 1 us of delay.
static struct bench bench_new(const struct replay_config *c)
{
	struct bench b = {.e = engine_new(1, SIMTIME_NEVER, 500 * SIM_NS)};
	struct lane_config l = {.rate_bps = 100 * GBPS, .delay = SIM_US};
	char err[512];

	int ret = replay_create(c, &b.r, err, sizeof(err));
	if (ret < 0)
		fail_msg("%s", err);
	b.r->pool = (struct frame_pool){.heads = pool.heads, .full = full};
	assert_true(engine_add_node(b.e, b.r) >= 0);
	b.sink = probe_new(b.e, 1);
	b.sink->on_arrive = note_mark;
	assert_int_equal(engine_connect(b.e, b.r, 0, &b.sink->n, 0, &l), 0);
	assert_int_equal(engine_connect(b.e, &b.sink->n, 0, b.r, 0, &l), 0);
	assert_int_equal(engine_prepare(b.e), 0);
	return b;
}

static void bench_end(struct bench *b)
{
	assert_int_equal(b->r->created, b->r->dropped + b->sink->n.delivered);
	engine_destroy(b->e);
	replay_destroy(b->r);
	probe_free(b->sink);
	assert_int_equal(rte_mempool_avail_count(full), FULL_FRAMES);
}

// Arrival of a frame of `len` bytes that starts at `at`.
static simtime_t arrival(simtime_t at, unsigned len)
{
	return at + (RTE_MAX(len, 60u) + 24) * 80 + SIM_US;
}

static const struct item three[3] = {
	{1000, 0, 'a', 100}, {3000, 0, 'b', 1000}, {10000, 0, 'c', 60}};

static void frames_go_at_their_times(void **state)
{
	struct replay_config c = config();

	c.start = 5 * SIM_US;
	write_capture(three, 3);
	struct bench b = bench_new(&c);
	assert_int_equal(engine_run(b.e), ENGINE_END_IDLE);
	assert_int_equal(b.sink->n_rec, 3);
	// 0, 2 and 9 us behind the first
	assert_int_equal(b.sink->rec[0].at, arrival(5 * SIM_US, 100));
	assert_int_equal(b.sink->rec[1].at, arrival(7 * SIM_US, 1000));
	assert_int_equal(b.sink->rec[2].at, arrival(14 * SIM_US, 60));
	assert_int_equal(b.sink->rec[2].note, 'c');
	assert_true(replay_get_stats(b.r).done);
	bench_end(&b);
}

static void speed_scales_the_gaps(void **state)
{
	struct replay_config c = config();

	c.speed_milli = 2000; // twice as fast: 0, 1, 4.5 us
	write_capture(three, 3);
	struct bench b = bench_new(&c);
	engine_run(b.e);
	assert_int_equal(b.sink->rec[1].at, arrival(SIM_US, 1000));
	assert_int_equal(b.sink->rec[2].at, arrival(4500 * SIM_NS, 60));
	bench_end(&b);
}

// Back to back: each frame starts when the one before it and its gap are over.
static void speed_0_fills_the_lane(void **state)
{
	struct replay_config c = config();

	c.speed_milli = 0;
	c.loops = 2;
	write_capture(three, 3);
	struct bench b = bench_new(&c);
	engine_run(b.e);
	assert_int_equal(b.sink->n_rec, 6);
	static const unsigned len[6] = {100, 1000, 60, 100, 1000, 60};
	simtime_t at = 0;
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(b.sink->rec[i].at, arrival(at, len[i]));
		assert_int_equal(b.sink->rec[i].note, "abcabc"[i]);
		at += (len[i] + 24) * 80;
	}
	bench_end(&b);
}

// The capture lasts 9 us with 2 gaps: 4.5 us on average, so a loop takes 13.5 us.
static void loops_are_a_mean_gap_apart(void **state)
{
	struct replay_config c = config();

	c.loops = 3;
	write_capture(three, 3);
	struct bench b = bench_new(&c);
	engine_run(b.e);
	assert_int_equal(b.sink->n_rec, 9);
	assert_int_equal(b.sink->rec[3].at, arrival(13500 * SIM_NS, 100));
	assert_int_equal(b.sink->rec[8].at, arrival((27000 + 9000) * SIM_NS, 60));
	bench_end(&b);
}

static void send_pfc(struct probe *p, uint8_t classes, uint16_t quanta)
{
	struct frame *f = node_new_frame(&p->n, 0);
	uint16_t q[8];

	for (unsigned i = 0; i < 8; i++)
		q[i] = quanta;
	pfc_build(frame_data(f), mac_hop, classes, q);
	f->len = f->head_len = ETH_MIN_NO_FCS;
	f->kind = FRAME_CONTROL;
	node_send(&p->n, 0, f);
}

// XOFF for class 3 with 1000 quanta at time 0.
static void xoff_3(struct probe *p)
{
	send_pfc(p, 1 << 3, 1000);
}

// The PFC frame arrives at 84 * 80 ps + 1 us = 1.00672 us and pauses class 3 for 1000 * 64 bytes =
// 5.12 us, until 6.12672 us. The frame of class 3 that was due at 2 us waits until then, the one of
// class 0 behind it in the capture does not.
static void a_paused_class_waits_alone(void **state)
{
	static const struct item items[4] = {
		{0, 24, 'a', 100}, {2000, 24, 'b', 100}, {3000, 0, 'c', 100}, {9000, 24, 'd', 100}};
	struct replay_config c = config();

	write_capture(items, 4);
	struct bench b = bench_new(&c);
	b.sink->on_start = xoff_3;
	engine_run(b.e);
	assert_int_equal(b.sink->n_rec, 4);
	assert_int_equal(b.sink->rec[1].note, 'c');
	assert_int_equal(b.sink->rec[1].at, arrival(3 * SIM_US, 100));
	assert_int_equal(b.sink->rec[2].note, 'b');
	assert_int_equal(b.sink->rec[2].at, arrival(1006720 + 5120000, 100));
	assert_int_equal(b.sink->rec[3].at, arrival(9 * SIM_US, 100));
	assert_int_equal(b.r->ports[0].ctr->rx_pause[3], 1);
	assert_int_equal(b.r->ports[0].ctr->rx_pauses.duration[3], 5120000);
	bench_end(&b);
}

static void xon_later(struct probe *p, uint32_t kind, uint32_t arg)
{
	send_pfc(p, 1 << 3, 0);
}

static void xoff_then_xon(struct probe *p)
{
	xoff_3(p);
	node_timer(&p->n, 3 * SIM_US, 0, 0);
}

// XON sent at 3 us arrives at 4.00672 us; with 500 ns of response it counts from 4.50672 us.
static void xon_releases_after_the_response_time(void **state)
{
	static const struct item items[2] = {{0, 24, 'a', 100}, {2000, 24, 'b', 100}};
	struct replay_config c = config();

	c.pfc_response = 500 * SIM_NS;
	write_capture(items, 2);
	struct bench b = bench_new(&c);
	b.sink->on_start = xoff_then_xon;
	b.sink->on_timer = xon_later;
	engine_run(b.e);
	assert_int_equal(b.sink->rec[1].at, arrival(4506720, 100));
	bench_end(&b);
}

static void classes_that_do_not_obey_go_on(void **state)
{
	static const struct item items[2] = {{0, 24, 'a', 100}, {2000, 24, 'b', 100}};
	struct replay_config c = config();

	c.pfc_enable = 0;
	write_capture(items, 2);
	struct bench b = bench_new(&c);
	b.sink->on_start = xoff_3;
	engine_run(b.e);
	assert_int_equal(b.sink->rec[1].at, arrival(2 * SIM_US, 100));
	assert_int_equal(b.r->ports[0].ctr->rx_pause_ignored, 1);
	bench_end(&b);
}

// Room for 4500 bytes: the frame of 5000 is dropped with a reason, the others are sent.
static void frames_too_long_are_dropped(void **state)
{
	static const struct item items[3] = {
		{0, 0, 'a', 4500}, {1000, 0, 'b', 5000}, {2000, 0, 'c', 100}};
	struct replay_config c = config();

	write_capture(items, 3);
	struct bench b = bench_new(&c);
	engine_run(b.e);
	assert_int_equal(b.sink->n_rec, 2);
	assert_int_equal(b.r->ports[0].ctr->drops[DROP_MTU_EXCEEDED], 1);
	bench_end(&b);
}

// ---- real captures ---------------------------------------------------------------------------

struct seen {
	unsigned roce, bad;
};

static void check_roce(struct probe *p, unsigned port, struct frame *f)
{
	struct seen *s = p->ctx;
	struct pkt pkt;

	if (pkt_parse(frame_data(f), f->len, &pkt) != PKT_OK)
		s->bad++;
	else if (pkt.bth_off != 0 && pkt_icrc_valid(&pkt))
		s->roce++;
	else
		s->bad++;
	node_deliver(&p->n, port, f);
}

static void captured_frames_arrive_whole(void **state)
{
	static const struct {
		const char *file;
		unsigned roce;
	} files[] = {{TEST_DATA "/rxe-mtu1024.pcap", 3789}, {TEST_DATA "/rxe-mtu4096.pcap", 1613}};

	for (unsigned i = 0; i < 2; i++) {
		struct replay_config c = config();
		struct seen seen = {0};

		c.path = files[i].file;
		c.filter = "udp port 4791";
		c.speed_milli = 0;
		struct bench b = bench_new(&c);
		b.sink->on_arrive = check_roce;
		b.sink->ctx = &seen;
		engine_run(b.e);
		assert_int_equal(seen.roce, files[i].roce);
		assert_int_equal(seen.bad, 0);
		assert_int_equal(b.r->dropped, 0);
		bench_end(&b);
	}
}

// Two replays joined: each is the other's sink, which checks ICRCs.
static void replays_deliver_to_each_other(void **state)
{
	struct replay_config c = config();
	struct lane_config l = {.rate_bps = 100 * GBPS, .delay = SIM_US};
	struct engine *e = engine_new(2, SIMTIME_NEVER, 500 * SIM_NS);
	struct node *r[2];
	char err[512];

	c.path = TEST_DATA "/rxe-mtu1024.pcap";
	c.speed_milli = 0;
	for (unsigned i = 0; i < 2; i++) {
		c.filter = i == 0 ? "udp port 4791 and src host 10.0.0.1"
				  : "udp port 4791 and src host 10.0.0.2";
		assert_int_equal(replay_create(&c, &r[i], err, sizeof(err)), 0);
		r[i]->pool = (struct frame_pool){.heads = pool.heads, .full = full};
		engine_add_node(e, r[i]);
	}
	assert_int_equal(engine_connect(e, r[0], 0, r[1], 0, &l), 0);
	assert_int_equal(engine_connect(e, r[1], 0, r[0], 0, &l), 0);
	assert_int_equal(engine_prepare(e), 0);
	engine_run(e);
	struct replay_stats s0 = replay_get_stats(r[0]), s1 = replay_get_stats(r[1]);
	assert_int_equal(s0.frames + s1.frames, 3789);
	assert_int_equal(s0.received, s1.sent);
	assert_int_equal(s1.received, s0.sent);
	assert_true(s0.done && s1.done);
	engine_destroy(e);
	replay_destroy(r[0]);
	replay_destroy(r[1]);
}

// ---- errors ----------------------------------------------------------------------------------

static void scan_measures_a_capture(void **state)
{
	struct replay_scan s;
	char err[512];

	write_capture(three, 3);
	assert_int_equal(replay_scan(path, NULL, &s, err, sizeof(err)), 0);
	assert_int_equal(s.frames, 3);
	assert_int_equal(s.longest, 1000);
	assert_int_equal(s.duration_ns, 9000);
	assert_int_equal(s.bytes, 1160);
}

static void errors_name_the_file(void **state)
{
	struct replay_scan s;
	char err[512];

	assert_int_equal(replay_scan("/nonexistent.pcap", NULL, &s, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "/nonexistent.pcap"));
	write_capture(three, 3);
	assert_int_equal(replay_scan(path, "tcp", &s, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "no frame to replay matches tcp"));
	assert_int_equal(replay_scan(path, "tcp prot", &s, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "filter \"tcp prot\""));
}

static void frames_cut_by_a_snap_length_are_refused(void **state)
{
	static const struct pcapng_interface i = {.name = "x", .linktype = LINKTYPE_ETHERNET_NG};
	struct replay_scan s;
	struct pcapng *w;
	uint8_t f[100] = {0};
	char err[512];

	assert_int_equal(pcapng_create(&w, path, NULL, &i, 1), 0);
	pcapng_write(w, &(struct pcapng_frame){.data = f, .caplen = 100, .len = 100});
	pcapng_write(w, &(struct pcapng_frame){.data = f, .caplen = 96, .len = 100});
	pcapng_close(w);
	assert_int_equal(replay_scan(path, NULL, &s, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "frame 2: only 96 of its 100 bytes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_go_at_their_times),
		cmocka_unit_test(speed_scales_the_gaps),
		cmocka_unit_test(speed_0_fills_the_lane),
		cmocka_unit_test(loops_are_a_mean_gap_apart),
		cmocka_unit_test(a_paused_class_waits_alone),
		cmocka_unit_test(xon_releases_after_the_response_time),
		cmocka_unit_test(classes_that_do_not_obey_go_on),
		cmocka_unit_test(frames_too_long_are_dropped),
		cmocka_unit_test(captured_frames_arrive_whole),
		cmocka_unit_test(replays_deliver_to_each_other),
		cmocka_unit_test(scan_measures_a_capture),
		cmocka_unit_test(errors_name_the_file),
		cmocka_unit_test(frames_cut_by_a_snap_length_are_refused),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
