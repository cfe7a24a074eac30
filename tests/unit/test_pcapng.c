/* SPDX-License-Identifier: BSD-3-Clause */
// What the writer writes, the reader (libpcap) reads back; and a full disk leaves a valid file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pcap/filter.h"
#include "pcap/pcapng.h"
#include "pcap/reader.h"
#include "tests/unit/frames.h"

static char path[] = "/tmp/fabemu-pcapng-XXXXXX";

static const struct pcapng_interface ifs[2] = {
	{.name = "leaf1:eth3 rx",
		.linktype = LINKTYPE_ETHERNET_NG,
		.speed_bps = 100000000000,
		.snaplen = 128},
	{.name = "leaf1:eth3 tx",
		.description = "to spine1",
		.filter = "udp",
		.snaplen = 128,
		.linktype = LINKTYPE_ETHERNET_NG},
};

static int make_file(void **state)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	return 0;
}

static int remove_file(void **state)
{
	unlink(path);
	return 0;
}

static struct pcapng *create(void)
{
	struct pcapng *w = NULL;

	assert_int_equal(pcapng_create(&w, path, "a test", ifs, 2), 0);
	return w;
}

static void frames_come_back_as_written(void **state)
{
	struct pcapng *w = create();
	uint8_t frame[200];
	char err[256];

	for (unsigned i = 0; i < 1000; i++) {
		memset(frame, (int)i, sizeof(frame));
		struct pcapng_frame f = {
			.interface = i & 1,
			.dir = i & 1 ? PCAPNG_OUTBOUND : PCAPNG_INBOUND,
			.time_ns = UINT64_C(5000000000) * i + 123,
			.data = frame,
			.caplen = 61 + i % 4, // all paddings
			.len = 200,
			.comment = i % 3 ? NULL : "ECN marked at queue 3 with 4096 bytes",
		};
		assert_int_equal(pcapng_write(w, &f), 0);
	}
	assert_int_equal(
		pcapng_statistics(w, 0, &(struct pcapng_counts){.last_ns = 99, .received = 500}),
		0);
	uint64_t bytes = pcapng_bytes(w);
	assert_int_equal(pcapng_close(w), 0);
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, bytes);

	struct reader *r;
	struct reader_frame f;
	assert_int_equal(reader_open(&r, path, NULL, err, sizeof(err)), 0);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(reader_next(r, &f), 1);
		memset(frame, (int)i, sizeof(frame));
		assert_int_equal(f.caplen, 61 + i % 4);
		assert_int_equal(f.len, 200);
		assert_int_equal(f.time_ns, INT64_C(5000000000) * i + 123);
		assert_int_equal(f.number, i + 1);
		assert_memory_equal(f.data, frame, f.caplen);
	}
	assert_int_equal(reader_next(r, &f), 0);
	reader_close(r);
}

// Section header: type, total length, magic, version 1.0 by the draft's figures 9 and 10.
static void section_header_is_the_drafts(void **state)
{
	uint8_t head[16];

	assert_int_equal(pcapng_close(create()), 0);
	FILE *f = fopen(path, "rb");
	assert_int_equal(fread(head, 1, 16, f), 16);
	fclose(f);
	assert_memory_equal(head, ((uint8_t[]){0x0a, 0x0d, 0x0d, 0x0a}), 4);
	assert_memory_equal(head + 8, ((uint8_t[]){0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0}), 8);
}

static void bad_arguments_are_refused(void **state)
{
	struct pcapng *w = create();
	uint8_t b[1];

	assert_int_equal(
		pcapng_write(w, &(struct pcapng_frame){.interface = 2, .data = b}), -EINVAL);
	assert_int_equal(
		pcapng_write(w, &(struct pcapng_frame){.data = b, .caplen = 65536}), -EINVAL);
	assert_int_equal(pcapng_statistics(w, 2, &(struct pcapng_counts){0}), -EINVAL);
	assert_int_equal(pcapng_close(w), 0);
	assert_int_equal(pcapng_create(&w, "/nonexistent/x", NULL, ifs, 1), -ENOENT);
	assert_int_equal(pcapng_create(&w, "/dev/full", NULL, ifs, 1), -ENOSPC);
}

// A file size limit stands for the disk: each limit cuts at another place of a block. Each frame's
// block: 28 fixed + 100 data + 12 (flags option, end) + 4 = 144 bytes.
static void full_disk_leaves_whole_blocks(void **state)
{
	struct rlimit old, limit;
	uint8_t frame[100] = {0};
	char err[256];

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	for (unsigned cut = 300000; cut < 300160; cut += 7) {
		struct pcapng *w = create();
		uint64_t wrote = 0, head = pcapng_bytes(w);
		int ret = 0;

		limit = (struct rlimit){.rlim_cur = cut, .rlim_max = old.rlim_max};
		setrlimit(RLIMIT_FSIZE, &limit);
		for (unsigned i = 0; i < 4000 && ret == 0; i++) {
			struct pcapng_frame f = {
				.dir = PCAPNG_INBOUND, .data = frame, .caplen = 100, .len = 100};
			ret = pcapng_write(w, &f);
			wrote += ret == 0;
		}
		assert_int_equal(ret, -EFBIG);
		assert_int_equal(pcapng_statistics(w, 0, &(struct pcapng_counts){0}), -EFBIG);
		uint64_t in_file = (cut - head) / 144;
		assert_int_equal(pcapng_frames_lost(w), wrote - in_file);
		assert_int_equal(pcapng_close(w), -EFBIG);
		setrlimit(RLIMIT_FSIZE, &old);

		struct reader *r;
		struct reader_frame f;
		unsigned n = 0;
		assert_int_equal(reader_open(&r, path, NULL, err, sizeof(err)), 0);
		while ((ret = reader_next(r, &f)) == 1)
			n++;
		assert_int_equal(ret, 0);
		assert_int_equal(n, in_file);
		reader_close(r);
	}
}

static void reader_reads_classic_pcap(void **state)
{
	struct reader *r;
	struct reader_frame f;
	unsigned n = 0;
	char err[256];

	assert_int_equal(
		reader_open(&r, TEST_DATA "/rxe-mtu1024.pcap", "udp port 4791", err, sizeof(err)),
		0);
	while (reader_next(r, &f) == 1) {
		assert_int_equal(f.caplen, f.len);
		n++;
	}
	assert_int_equal(n, 3789);
	reader_close(r);
}

static void write_bytes(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void reader_names_file_and_frame(void **state)
{
	struct reader *r;
	struct reader_frame f;
	char err[512];

	assert_int_equal(reader_open(&r, "/nonexistent/x.pcap", NULL, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "/nonexistent/x.pcap: "));
	assert_null(strstr(err + 1, "/nonexistent/x.pcap: /nonexistent"));

	write_bytes("no capture at all", 17);
	assert_int_equal(reader_open(&r, path, NULL, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, path));

	// classic header: magic, 2.4, zone, sigfigs, snaplen, link type 113 (LINUX_SLL)
	uint32_t head[6] = {0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 113};
	write_bytes(head, sizeof(head));
	assert_int_equal(reader_open(&r, path, NULL, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "LINUX_SLL, expected Ethernet"));

	// one whole frame of 4 bytes, then one that claims 100 bytes and has 4
	uint32_t cut[6 + 5 + 5] = {
		0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1, 1, 2, 4, 4, 0, 1, 3, 100, 100, 0};
	write_bytes(cut, sizeof(cut));
	assert_int_equal(reader_open(&r, path, NULL, err, sizeof(err)), 0);
	assert_int_equal(reader_next(r, &f), 1);
	assert_int_equal(f.time_ns, 1000002000); // 1 s + 2 us
	assert_int_equal(reader_next(r, &f), -EIO);
	assert_non_null(strstr(reader_error(r), ": frame 2: "));
	reader_close(r);
}

static void bad_filters_are_explained(void **state)
{
	struct frame_filter *f;
	struct reader *r;
	char err[256];

	assert_int_equal(frame_filter_new(&f, "udp prt 4791", err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "filter \"udp prt 4791\": "));
	assert_int_equal(
		reader_open(&r, TEST_DATA "/rxe-mtu1024.pcap", "nonsense!", err, sizeof(err)),
		-EINVAL);
	assert_true(frame_filter_match(NULL, NULL, 0, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_come_back_as_written),
		cmocka_unit_test(section_header_is_the_drafts),
		cmocka_unit_test(bad_arguments_are_refused),
		cmocka_unit_test(full_disk_leaves_whole_blocks),
		cmocka_unit_test(reader_reads_classic_pcap),
		cmocka_unit_test(reader_names_file_and_frame),
		cmocka_unit_test(bad_filters_are_explained),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
