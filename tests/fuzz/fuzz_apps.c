/* SPDX-License-Identifier: BSD-3-Clause */
// Fuzz target: hostile frames to NICs whose applications are at work. Two NICs run a pair of
// programs (connection management on QP 1, RC or UD) over a cable that the input changes frames on:
// any byte, the header fields that lead somewhere (queue pair, opcode, PSN, syndrome, address, key,
// length), lengths, ICRCs made right again or not; frames lost, repeated and overtaken. Whatever
// comes: no crash, every frame accounted for, the NICs' own invariants, pools full again.
//
// With clang, libFuzzer drives it (-fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER); with any
// compiler it runs the files given as arguments as inputs, piece by piece, then `-runs=N` inputs of
// chance.
#include <inttypes.h>
#include <string.h>

#include "../unit/nic_rig.h"
#include "fuzz.h"
#include "pcap/icrc.h"
#include "pcap/psn.h"
#include "pipelines/nic_apps.h"
#include "pipelines/nic_verbs.h"

#define FULL_FRAMES 1023
#define FULL_ROOM   (RTE_PKTMBUF_HEADROOM + 4096 + 128)
#define LASTS       (2 * SIM_S) // retries of rdma_cm and RC end well before

static struct rte_mempool *full;
static const uint8_t *input;
static size_t left;
static enum rig_side held_from;

static uint8_t next(void)
{
	if (left == 0)
		return 0;
	left--;
	return *input++;
}

static uint32_t next32(void)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 8 | next();
	return v;
}

// ---- frames ----------------------------------------------------------------------------------

static struct frame *copy_of(struct rig *r, const struct frame *f)
{
	struct frame *copy = frame_alloc(full);

	if (copy == NULL)
		return NULL;
	*copy = *f;
	copy->next = NULL;
	copy->data_off = RTE_PKTMBUF_HEADROOM;
	memcpy(frame_data(copy), frame_data(f), f->len);
	node_adopt(&r->tap, copy);
	return copy;
}

static void change_roce(uint8_t *bth, uint8_t *end)
{
	static const uint8_t opcodes[] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST,
		ROCE_SEND_ONLY, ROCE_SEND_ONLY_IMM, ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE,
		ROCE_WRITE_LAST_IMM, ROCE_WRITE_ONLY, ROCE_READ_REQUEST, ROCE_READ_RESP_FIRST,
		ROCE_READ_RESP_MIDDLE, ROCE_READ_RESP_LAST, ROCE_READ_RESP_ONLY, ROCE_ACK,
		ROCE_ATOMIC_ACK, ROCE_CMP_SWAP, ROCE_FETCH_ADD, ROCE_SEND_ONLY_INV,
		ROCE_UC | ROCE_SEND_ONLY, ROCE_UD | ROCE_SEND_ONLY, ROCE_OP_CNP};
	static const uint32_t qpns[] = {0, 1, 2, NIC_QPN_FIRST, VERBS_QPN_FIRST,
		VERBS_QPN_FIRST + 1, VERBS_QPN_FIRST + 255, VERBS_QPN_FIRST + 256, 0xffffff};
	uint8_t what = next(), how = next();

	switch (what % 6) {
	case 0:
		bth[0] = opcodes[how % sizeof(opcodes)];
		break;
	case 1:
		put_be32(bth + 4, qpns[how % RTE_DIM(qpns)]);
		break;
	case 2:
		put_be32(bth + 8,
			(get_be32(bth + 8) & ~PSN_MASK) |
				psn_add(get_be32(bth + 8) & PSN_MASK, (uint64_t)(int8_t)how));
		break;
	case 3:
		bth[1] ^= how; // SE, MigReq, pad
		break;
	case 4: // AETH, DETH, RETH ...
		if (bth + BTH_BYTES + (how % 8) * 4 + 4 <= end)
			put_be32(bth + BTH_BYTES + (how % 8) * 4, next32());
		break;
	default:
		bth[8] ^= 0x80; // AckReq
		if (bth + BTH_BYTES < end)
			bth[BTH_BYTES] = how;
	}
}

// Cuts the packet, or lets its lengths lie.
static void change_length(struct frame *f, struct pkt *p)
{
	uint8_t *ip = frame_data(f) + p->l3_off, *udp = frame_data(f) + p->l4_off, how = next();
	uint16_t cut = next();

	if (how & 1 && f->len > cut + ETH_MIN_BYTES)
		f->len = f->head_len = (uint16_t)(f->len - cut);
	if (how & 2)
		put_be16(udp + 4, (uint16_t)(get_be16(udp + 4) - cut));
	if (how & 4 && p->ip_version == 4)
		put_be16(ip + 2, (uint16_t)(get_be16(ip + 2) - cut));
	if (how & 4 && p->ip_version == 6)
		put_be16(ip + 4, (uint16_t)(get_be16(ip + 4) - cut));
}

static void make_icrc_right(struct frame *f)
{
	struct pkt p;

	if (pkt_parse(frame_data(f), f->len, &p) == PKT_OK && p.bth_off != 0)
		icrc_put(frame_data(f) + p.end - ICRC_BYTES,
			icrc_compute(frame_data(f), p.l3_off, p.bth_off, p.end - ICRC_BYTES));
}

static void change(struct frame *f, uint8_t how)
{
	struct pkt p;

	if (pkt_parse(frame_data(f), f->len, &p) != PKT_OK || p.bth_off == 0)
		return;
	for (unsigned n = how & 3; n != 0; n--)
		frame_data(f)[(next() << 8 | next()) % f->len] = next();
	if (how & 4)
		change_roce(frame_data(f) + p.bth_off, frame_data(f) + p.end - ICRC_BYTES);
	if ((how & 0x18) == 0x18)
		change_length(f, &p);
	if (!(how & 0x20))
		make_icrc_right(f);
	f->flags = 0; // it will be parsed again
}

static bool tap(struct rig *r, enum rig_side from, struct frame *f)
{
	uint8_t what = next();

	if (f->flags & FRAME_F_SYNTH || left == 0)
		return true;
	if (r->held != NULL && what & 1)
		rig_release(r, held_from == RIG_A ? RIG_B : RIG_A);
	switch (what >> 4) {
	case 0:
		return false;
	case 1:
		if (r->held != NULL)
			return true;
		r->held = f;
		held_from = from;
		return false;
	case 2:
	case 3: {
		struct frame *again = copy_of(r, f);
		if (again == NULL)
			return true;
		change(again, next());
		node_send(&r->tap, from == RIG_A ? 1 : 0, again);
		return true;
	}
	case 4: { // back to where it came from
		struct frame *back = copy_of(r, f);
		if (back != NULL)
			node_send(&r->tap, from == RIG_A ? 0 : 1, back);
		return true;
	}
	case 5:
	case 6:
	case 7:
	case 8:
		change(f, next());
		return true;
	default:
		return true;
	}
}

// ---- runs ------------------------------------------------------------------------------------

static struct nic_app_config app_of(enum app_kind kind, bool ipv6)
{
	struct nic_app_config c = {.kind = kind, .ipv6 = ipv6, .dscp = 26, .tc = 3, .mtu = 1024};
	struct nic_port_config b = rig_port(RIG_B);

	app_config_default(kind, &c.app);
	if (ipv6)
		memcpy(c.app.server_gid, b.ip6, GID_BYTES);
	else
		gid_from_ipv4(c.app.server_gid, RIG_B_IP);
	c.rdma_cm_timeout = 4 * SIM_MS;
	c.app.size = kind == APP_udaddy_client || kind == APP_udaddy_server ? 700 : 2500;
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum app_kind servers[] = {
		APP_rping_server, APP_cmatose_server, APP_udaddy_server, APP_target};
	static const enum app_kind clients[] = {
		APP_rping_client, APP_cmatose_client, APP_udaddy_client, APP_initiator};
	struct nic_config cfg = nic_config_default();
	char why[200];

	rig_pool();
	if (full == NULL)
		full = rte_pktmbuf_pool_create(
			"full", FULL_FRAMES, 32, sizeof(struct frame), FULL_ROOM, SOCKET_ID_ANY);
	CHECK(full != NULL);
	input = data;
	left = size;
	uint8_t kind = next();
	cfg.seed = kind;
	cfg.ack_every = 4;
	cfg.timeout = 10; // 4.2 ms
	struct rig *r = rig_new(&cfg, true);
	r->nic[0]->pool.full = r->nic[1]->pool.full = r->tap.pool.full = full;
	r->on_frame = tap;
	struct nic_app_config s = app_of(servers[kind & 3], kind >> 2 & 1);
	struct nic_app_config c = app_of(clients[kind & 3], kind >> 2 & 1);
	c.app.count = 4;
	if (s.app.count != 0)
		s.app.count = 4;
	c.start = SIM_US;
	CHECK(nic_add_app(r->nic[RIG_B], &s) == 0);
	CHECK(nic_add_app(r->nic[RIG_A], &c) == 0);
	rig_start(r);
	rig_run(r, LASTS);
	left = 0;
	if (r->held != NULL)
		rig_release(r, held_from == RIG_A ? RIG_B : RIG_A);
	rig_run(r, LASTS + SIM_MS);
	if (!rig_end(r, why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	CHECK(rte_mempool_avail_count(full) == FULL_FRAMES);
	return 0;
}

#ifndef FUZZ_LIBFUZZER

#define INPUT_MAX 512

// A capture or anything else, as inputs of up to INPUT_MAX bytes.
static unsigned add_file(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *f = fopen(path, "rb");
	unsigned n = 0;

	if (f == NULL) {
		perror(path);
		exit(1);
	}
	size_t size = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	for (size_t at = 0; at < size && n < 64; at += INPUT_MAX, n++)
		LLVMFuzzerTestOneInput(bytes + at, RTE_MIN(size - at, (size_t)INPUT_MAX));
	return n;
}

int main(int argc, char **argv)
{
	uint64_t runs = 10000, first = 1;
	uint8_t bytes[INPUT_MAX];
	unsigned inputs = 0;

	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "-runs=", 6) == 0)
			runs = strtoull(argv[i] + 6, NULL, 10);
		else if (strncmp(argv[i], "-seed=", 6) == 0)
			first = strtoull(argv[i] + 6, NULL, 10);
		else
			inputs += add_file(argv[i]);
	for (uint64_t i = first; i < first + runs; i++) {
		noise_state = i;
		// Few changes or many: most frames pass, or few do.
		uint32_t calm = noise() % 4;
		size_t size = 1 + noise() % INPUT_MAX;
		for (size_t k = 0; k < size; k++)
			bytes[k] = k > 0 && noise() % 4 < calm ? 0xff : (uint8_t)noise();
		bytes[0] = (uint8_t)i;
		LLVMFuzzerTestOneInput(bytes, size);
	}
	printf("%u inputs, %" PRIu64 " of chance\n", inputs, runs);
	return 0;
}

#endif
