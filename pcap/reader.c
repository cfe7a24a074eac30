/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap/reader.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pcap/filter.h"

#define NS_PER_S 1000000000

struct reader {
	pcap_t *pcap;
	struct frame_filter *filter;
	char *path;
	uint64_t number;
	char error[PCAP_ERRBUF_SIZE + 512];
};

// libpcap's messages start with the path in some cases; ours always do, once.
static void say(char *err, size_t err_bytes, const char *path, const char *what)
{
	size_t n = strlen(path);

	if (strncmp(what, path, n) == 0 && strncmp(what + n, ": ", 2) == 0)
		what += n + 2;
	snprintf(err, err_bytes, "%s: %s", path, what);
}

static int open_file(struct reader *r, const char *path, char *err, size_t err_bytes)
{
	char why[PCAP_ERRBUF_SIZE];

	r->pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
	if (r->pcap == NULL) {
		say(err, err_bytes, path, why);
		return -EINVAL;
	}
	int link = pcap_datalink(r->pcap);
	if (link != DLT_EN10MB) {
		const char *name = pcap_datalink_val_to_name(link);
		snprintf(err, err_bytes, "%s: link type %s, expected Ethernet (EN10MB)", path,
			name ? name : "unknown");
		return -EINVAL;
	}
	return 0;
}

int reader_open(
	struct reader **out, const char *path, const char *filter, char *err, size_t err_bytes)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (r == NULL || (r->path = strdup(path)) == NULL) {
		free(r);
		snprintf(err, err_bytes, "%s: out of memory", path);
		return -ENOMEM;
	}
	int ret = open_file(r, path, err, err_bytes);
	if (ret == 0 && filter != NULL)
		ret = frame_filter_new(&r->filter, filter, err, err_bytes);
	if (ret < 0) {
		reader_close(r);
		return ret;
	}
	*out = r;
	return 0;
}

int reader_next(struct reader *r, struct reader_frame *f)
{
	struct pcap_pkthdr *h;
	const u_char *data;
	int ret;

	while ((ret = pcap_next_ex(r->pcap, &h, &data)) == 1) {
		r->number++;
		if (!frame_filter_match(r->filter, data, h->caplen, h->len))
			continue;
		*f = (struct reader_frame){
			.data = data,
			.caplen = h->caplen,
			.len = h->len,
			// with nanosecond precision tv_usec holds nanoseconds
			.time_ns = (int64_t)h->ts.tv_sec * NS_PER_S + h->ts.tv_usec,
			.number = r->number,
		};
		return 1;
	}
	if (ret == PCAP_ERROR_BREAK)
		return 0;
	snprintf(r->error, sizeof(r->error), "%s: frame %llu: %s", r->path,
		(unsigned long long)(r->number + 1), pcap_geterr(r->pcap));
	return -EIO;
}

const char *reader_error(const struct reader *r)
{
	return r->error;
}

void reader_close(struct reader *r)
{
	if (r->pcap != NULL)
		pcap_close(r->pcap);
	frame_filter_free(r->filter);
	free(r->path);
	free(r);
}
