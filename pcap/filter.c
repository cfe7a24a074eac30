/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap/filter.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>

struct frame_filter {
	struct bpf_program program;
};

int frame_filter_new(struct frame_filter **out, const char *expr, char *err, size_t err_bytes)
{
	struct frame_filter *f = malloc(sizeof(*f));
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, 65535);
	int ret = 0;

	if (f == NULL || dead == NULL) {
		snprintf(err, err_bytes, "out of memory");
		ret = -ENOMEM;
	} else if (pcap_compile(dead, &f->program, expr, 1, PCAP_NETMASK_UNKNOWN) < 0) {
		snprintf(err, err_bytes, "filter \"%s\": %s", expr, pcap_geterr(dead));
		ret = -EINVAL;
	}
	if (dead != NULL)
		pcap_close(dead);
	if (ret < 0)
		free(f);
	else
		*out = f;
	return ret;
}

void frame_filter_free(struct frame_filter *f)
{
	if (f == NULL)
		return;
	pcap_freecode(&f->program);
	free(f);
}

bool frame_filter_match(
	const struct frame_filter *f, const uint8_t *data, uint32_t caplen, uint32_t len)
{
	struct pcap_pkthdr h = {.caplen = caplen, .len = len};

	return f == NULL || pcap_offline_filter(&f->program, &h, data) != 0;
}
