/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcap/int.h"

#include "pcap/wire.h"

#define MBPS  UINT64_C(1000000)
#define CODES 16u

// By code; 0 means a rate that has none.
static const uint64_t rates[CODES] = {0, 100 * MBPS, 1000 * MBPS, 2500 * MBPS, 5000 * MBPS,
	10000 * MBPS, 20000 * MBPS, 25000 * MBPS, 40000 * MBPS, 50000 * MBPS, 56000 * MBPS,
	100000 * MBPS, 200000 * MBPS, 400000 * MBPS, 800000 * MBPS, 1600000 * MBPS};

static unsigned code_of(uint64_t rate_bps)
{
	for (unsigned i = 1; i < CODES; i++)
		if (rates[i] == rate_bps)
			return i;
	return 0;
}

bool int_rate_known(uint64_t rate_bps)
{
	return code_of(rate_bps) != 0;
}

void int_push(uint8_t trailer[INT_BYTES], uint16_t id, const struct int_hop *hop)
{
	uint32_t head = get_be16(trailer), n = head >> 12;
	uint64_t queue = hop->queue_bytes < INT_QUEUE_MAX ? hop->queue_bytes : INT_QUEUE_MAX;

	if (n < INT_HOPS_MAX)
		put_be64(trailer + INT_HEAD_BYTES + n * INT_HOP_BYTES,
			(uint64_t)code_of(hop->rate_bps) << 60 | (hop->at_ns & INT_TS_MASK) << 36 |
				(hop->tx_bytes / INT_TX_UNIT & INT_TX_MASK) << 16 |
				queue / INT_QUEUE_UNIT);
	n += n < 0xf;
	put_be16(trailer, (uint16_t)(n << 12 | ((head ^ id) & INT_PATH_MASK)));
}

void int_get(const uint8_t trailer[INT_BYTES], struct int_trailer *out)
{
	uint32_t head = get_be16(trailer);

	out->n_hops = (uint8_t)(head >> 12 < INT_HOPS_MAX ? head >> 12 : INT_HOPS_MAX);
	out->path_id = head & INT_PATH_MASK;
	for (unsigned i = 0; i < out->n_hops; i++) {
		uint64_t v = get_be64(trailer + INT_HEAD_BYTES + i * INT_HOP_BYTES);
		out->hops[i] = (struct int_hop){
			.rate_bps = rates[v >> 60],
			.at_ns = v >> 36 & INT_TS_MASK,
			.tx_bytes = v >> 16 & INT_TX_MASK,
			.queue_bytes = (v & 0xffff) * INT_QUEUE_UNIT,
		};
	}
}
