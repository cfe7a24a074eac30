/* SPDX-License-Identifier: BSD-3-Clause */
// The target and the initiator of pipelines/app_target.h on real verbs, for a kernel's endpoint:
//
//	verbs_peer server ADDR PORT [--size N] [--count N]
//	verbs_peer client ADDR PORT [--size N] [--count N]
//
// The server takes one connection. Both need the same size and count: the server then knows what
// its memory and the messages must look like. Exit status 0 only if every byte was right and the
// connection came and went as it should; each thing that is wrong is told in one line.
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "pcap/wire.h"
#include "pipelines/app_target.h"

#define PATIENCE_MS 120000
#define DEPTH       32
#define RESOLVE_MS  5000
#define READS       4

enum wr { WR_WRITE, WR_READ, WR_ADD, WR_SWAP, WR_SWAP_NOT, WR_SEND, WR_RECV };

struct peer {
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener, *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	uint32_t size, count;
	uint64_t remote_addr;
	uint32_t rkey;
	unsigned wrong;
};

static void die(const char *what)
{
	fprintf(stderr, "verbs_peer: %s: %s\n", what, strerror(errno));
	exit(2);
}

__attribute__((format(printf, 2, 3))) static void wrong(struct peer *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr, "verbs_peer: ");
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	p->wrong++;
}

// ---- memory: words, data, then one buffer (client) or several (server) for SENDs ---------------

static uint32_t align(uint32_t n)
{
	return (n + 63) & ~63u;
}

static uint32_t buffer_at(const struct peer *p, unsigned i)
{
	return TARGET_DATA_AT + align(p->size) + i * align(p->size);
}

static void check_pattern(struct peer *p, uint32_t at, enum target_pattern what, uint32_t round)
{
	uint32_t bad = target_check(p->memory + at, p->size, what, round);

	if (bad != p->size)
		wrong(p, "round %u: %s differs at byte %u: %02x, expected %02x", round,
			what == TARGET_SENT ? "message" : "memory", bad, p->memory[at + bad],
			target_byte(what, round, bad));
}

static uint64_t word(const struct peer *p, uint32_t at)
{
	uint64_t v;

	memcpy(&v, p->memory + at, sizeof(v));
	return v;
}

// ---- queue pair --------------------------------------------------------------------------------

static void make_queue_pair(struct peer *p)
{
	size_t bytes = buffer_at(p, TARGET_ECHOES);
	struct ibv_qp_init_attr attr = {
		.cap = {DEPTH, DEPTH, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	p->memory = aligned_alloc(64, bytes);
	if (p->memory == NULL)
		die("memory");
	memset(p->memory, 0, bytes);
	p->pd = ibv_alloc_pd(p->id->verbs);
	p->completions = ibv_create_comp_channel(p->id->verbs);
	if (p->pd == NULL || p->completions == NULL)
		die("protection domain, completion channel");
	p->cq = ibv_create_cq(p->id->verbs, 2 * DEPTH, NULL, p->completions, 0);
	p->mr = ibv_reg_mr(p->pd, p->memory, bytes,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_ATOMIC);
	if (p->cq == NULL || p->mr == NULL)
		die("completion queue, memory region");
	attr.send_cq = p->cq;
	attr.recv_cq = p->cq;
	if (rdma_create_qp(p->id, p->pd, &attr) != 0)
		die("queue pair");
}

static void post_recv(struct peer *p, uint64_t wr_id, uint32_t at)
{
	struct ibv_sge sge = {(uintptr_t)p->memory + at, p->size, p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	errno = ibv_post_recv(p->id->qp, &wr, &bad);
	if (errno != 0)
		die("receive");
}

static void post_send(struct peer *p, struct ibv_send_wr wr, uint32_t at, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)p->memory + at, length, p->mr->lkey};
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	errno = ibv_post_send(p->id->qp, &wr, &bad);
	if (errno != 0)
		die("send");
}

// ---- events ------------------------------------------------------------------------------------

// The next event of the connection, which must be `want`; what it carried is copied before it is
// acknowledged.
static void expect_event(struct peer *p, enum rdma_cm_event_type want, struct rdma_cm_event *out,
	uint8_t *private_data, unsigned bytes)
{
	struct pollfd fd = {p->events->fd, POLLIN, 0};
	struct rdma_cm_event *e;

	if (poll(&fd, 1, PATIENCE_MS) != 1) {
		fprintf(stderr, "verbs_peer: %s did not come\n", rdma_event_str(want));
		exit(1);
	}
	if (rdma_get_cm_event(p->events, &e) != 0)
		die("event");
	if (e->event != want) {
		fprintf(stderr, "verbs_peer: %s (status %d) instead of %s\n",
			rdma_event_str(e->event), e->status, rdma_event_str(want));
		exit(1);
	}
	*out = *e;
	if (bytes != 0) {
		memset(private_data, 0, bytes);
		if (e->param.conn.private_data_len < bytes)
			bytes = e->param.conn.private_data_len;
		memcpy(private_data, e->param.conn.private_data, bytes);
	}
	rdma_ack_cm_event(e);
}

static void arm(struct peer *p)
{
	if (ibv_req_notify_cq(p->cq, 0) != 0)
		die("completion notification");
}

static void take_notice(struct peer *p)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(p->completions, &cq, &context) != 0)
		die("completion event");
	ibv_ack_cq_events(cq, 1);
	arm(p);
}

// The next completion; false when the peer ended the connection instead.
static bool next_completion(struct peer *p, struct ibv_wc *wc)
{
	struct pollfd fds[] = {{p->completions->fd, POLLIN, 0}, {p->events->fd, POLLIN, 0}};
	struct rdma_cm_event e;

	for (;;) {
		int n = ibv_poll_cq(p->cq, 1, wc);
		if (n < 0)
			die("completion queue");
		if (n == 1 && wc->status != IBV_WC_WR_FLUSH_ERR)
			break;
		if (n == 1)
			continue;
		if (poll(fds, 2, PATIENCE_MS) == 0) {
			fprintf(stderr, "verbs_peer: nothing happens\n");
			exit(1);
		}
		if (fds[0].revents != 0) {
			take_notice(p);
		} else {
			expect_event(p, RDMA_CM_EVENT_DISCONNECTED, &e, NULL, 0);
			return false;
		}
	}
	if (wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "verbs_peer: work request %" PRIu64 ": %s\n", wc->wr_id,
			ibv_wc_status_str(wc->status));
		exit(1);
	}
	return true;
}

static struct sockaddr *resolve(const char *addr, const char *port)
{
	struct addrinfo *res;
	int err = getaddrinfo(addr, port, NULL, &res);

	if (err != 0) {
		fprintf(stderr, "verbs_peer: %s port %s: %s\n", addr, port, gai_strerror(err));
		exit(2);
	}
	return res->ai_addr;
}

// ---- server ------------------------------------------------------------------------------------

static void accept_one(struct peer *p, struct sockaddr *addr)
{
	struct rdma_conn_param param = {0};
	uint8_t greeting[TARGET_GREETING_BYTES];
	struct rdma_cm_event e;

	if (rdma_create_id(p->events, &p->listener, NULL, RDMA_PS_TCP) != 0 ||
		rdma_bind_addr(p->listener, addr) != 0 || rdma_listen(p->listener, 1) != 0)
		die("listen");
	expect_event(p, RDMA_CM_EVENT_CONNECT_REQUEST, &e, NULL, 0);
	p->id = e.id;
	make_queue_pair(p);
	arm(p);
	for (unsigned i = 0; i < TARGET_ECHOES; i++)
		post_recv(p, i, buffer_at(p, i));

	put_be64(greeting, (uintptr_t)p->memory);
	put_be32(greeting + 8, p->mr->rkey);
	put_be32(greeting + 12, TARGET_DATA_AT + p->size);
	param.private_data = greeting;
	param.private_data_len = sizeof(greeting);
	param.responder_resources = e.param.conn.initiator_depth;
	param.initiator_depth = e.param.conn.responder_resources;
	param.rnr_retry_count = 7;
	if (rdma_accept(p->id, &param) != 0)
		die("accept");
	expect_event(p, RDMA_CM_EVENT_ESTABLISHED, &e, NULL, 0);
}

static void echo(struct peer *p, const struct ibv_wc *wc, uint32_t round)
{
	bool has_imm = wc->wc_flags & IBV_WC_WITH_IMM;
	struct ibv_send_wr wr = {.wr_id = wc->wr_id, .opcode = IBV_WR_SEND};

	if (wc->byte_len != p->size)
		wrong(p, "round %u: message of %u bytes", round, wc->byte_len);
	check_pattern(p, buffer_at(p, (unsigned)wc->wr_id), TARGET_SENT, round);
	if (has_imm != (round % 2 == 1) || (has_imm && be32toh(wc->imm_data) != round))
		wrong(p, "round %u: immediate data", round);
	if (has_imm) {
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = wc->imm_data;
	}
	post_send(p, wr, buffer_at(p, (unsigned)wc->wr_id), wc->byte_len);
}

static void serve(struct peer *p)
{
	uint32_t rounds = 0;
	struct ibv_wc wc;

	while (next_completion(p, &wc)) {
		if (wc.opcode == IBV_WC_RECV) {
			// What the round WROTE is there before its SEND.
			check_pattern(p, TARGET_DATA_AT, TARGET_WRITTEN, rounds);
			echo(p, &wc, rounds++);
		} else {
			post_recv(p, wc.wr_id, buffer_at(p, (unsigned)wc.wr_id));
		}
	}
	if (rounds != p->count)
		wrong(p, "%u rounds, expected %u", rounds, p->count);
	if (word(p, TARGET_ADD_AT) != target_sum(p->count))
		wrong(p, "FETCH_ADD made %" PRIu64 ", expected %" PRIu64, word(p, TARGET_ADD_AT),
			target_sum(p->count));
	if (word(p, TARGET_SWAP_AT) != target_swap(p->count - 1))
		wrong(p, "CMP_SWAP made %" PRIx64 ", expected %" PRIx64, word(p, TARGET_SWAP_AT),
			target_swap(p->count - 1));
}

// ---- client ------------------------------------------------------------------------------------

static void connect_to(struct peer *p, struct sockaddr *addr)
{
	struct rdma_conn_param param = {
		.responder_resources = READS,
		.initiator_depth = READS,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	uint8_t greeting[TARGET_GREETING_BYTES];
	struct rdma_cm_event e;

	if (rdma_create_id(p->events, &p->id, NULL, RDMA_PS_TCP) != 0 ||
		rdma_resolve_addr(p->id, NULL, addr, RESOLVE_MS) != 0)
		die("resolve address");
	expect_event(p, RDMA_CM_EVENT_ADDR_RESOLVED, &e, NULL, 0);
	if (rdma_resolve_route(p->id, RESOLVE_MS) != 0)
		die("resolve route");
	expect_event(p, RDMA_CM_EVENT_ROUTE_RESOLVED, &e, NULL, 0);
	make_queue_pair(p);
	arm(p);
	if (rdma_connect(p->id, &param) != 0)
		die("connect");
	expect_event(p, RDMA_CM_EVENT_ESTABLISHED, &e, greeting, sizeof(greeting));
	p->remote_addr = get_be64(greeting);
	p->rkey = get_be32(greeting + 8);
	if (get_be32(greeting + 12) < TARGET_DATA_AT + p->size) {
		fprintf(stderr, "verbs_peer: the target's memory has %u bytes, needs %u\n",
			get_be32(greeting + 12), TARGET_DATA_AT + p->size);
		exit(1);
	}
}

// Until `n` work requests have completed.
static void await(struct peer *p, unsigned n, struct ibv_wc *recv)
{
	struct ibv_wc wc;

	for (; n > 0; n--) {
		if (!next_completion(p, &wc)) {
			fprintf(stderr, "verbs_peer: the peer ended the connection\n");
			exit(1);
		}
		if (wc.wr_id == WR_RECV)
			*recv = wc;
	}
}

static void post_atomic(
	struct peer *p, enum wr id, enum ibv_wr_opcode op, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = {.wr_id = id, .opcode = op};

	wr.wr.atomic.remote_addr = p->remote_addr + (id == WR_ADD ? TARGET_ADD_AT : TARGET_SWAP_AT);
	wr.wr.atomic.rkey = p->rkey;
	wr.wr.atomic.compare_add = compare_add;
	wr.wr.atomic.swap = swap;
	post_send(p, wr, 8 * (id - WR_ADD), 8);
}

static void expect_word(struct peer *p, uint32_t round, enum wr id, const char *op, uint64_t want)
{
	uint64_t got = word(p, 8 * (id - WR_ADD));

	if (got != want)
		wrong(p, "round %u: %s returned %" PRIx64 ", expected %" PRIx64, round, op, got,
			want);
}

static void write_and_read(struct peer *p, uint32_t round)
{
	struct ibv_send_wr write = {.wr_id = WR_WRITE, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_send_wr read = {.wr_id = WR_READ, .opcode = IBV_WR_RDMA_READ};
	struct ibv_wc none;

	target_fill(p->memory + TARGET_DATA_AT, p->size, TARGET_WRITTEN, round);
	memset(p->memory + buffer_at(p, 0), 0, p->size);
	write.wr.rdma.remote_addr = read.wr.rdma.remote_addr = p->remote_addr + TARGET_DATA_AT;
	write.wr.rdma.rkey = read.wr.rdma.rkey = p->rkey;
	post_send(p, write, TARGET_DATA_AT, p->size);
	post_send(p, read, buffer_at(p, 0), p->size);
	await(p, 2, &none);
	check_pattern(p, buffer_at(p, 0), TARGET_WRITTEN, round);
}

static void do_atomics(struct peer *p, uint32_t round)
{
	uint64_t before = round == 0 ? 0 : target_swap(round - 1);
	struct ibv_wc none;

	post_atomic(p, WR_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, round + 1, 0);
	post_atomic(p, WR_SWAP, IBV_WR_ATOMIC_CMP_AND_SWP, before, target_swap(round));
	post_atomic(p, WR_SWAP_NOT, IBV_WR_ATOMIC_CMP_AND_SWP, target_swap(round) + 1, 1);
	await(p, 3, &none);
	expect_word(p, round, WR_ADD, "FETCH_ADD", target_sum(round));
	expect_word(p, round, WR_SWAP, "CMP_SWAP", before);
	expect_word(p, round, WR_SWAP_NOT, "CMP_SWAP of another value", target_swap(round));
}

static void send_and_receive(struct peer *p, uint32_t round)
{
	struct ibv_send_wr wr = {.wr_id = WR_SEND, .opcode = IBV_WR_SEND};
	struct ibv_wc wc = {0};
	bool with_imm = round % 2 == 1;

	if (with_imm) {
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htobe32(round);
	}
	target_fill(p->memory + TARGET_DATA_AT, p->size, TARGET_SENT, round);
	memset(p->memory + buffer_at(p, 0), 0, p->size);
	post_recv(p, WR_RECV, buffer_at(p, 0));
	post_send(p, wr, TARGET_DATA_AT, p->size);
	await(p, 2, &wc);
	if (wc.byte_len != p->size)
		wrong(p, "round %u: echo of %u bytes", round, wc.byte_len);
	check_pattern(p, buffer_at(p, 0), TARGET_SENT, round);
	bool has_imm = wc.wc_flags & IBV_WC_WITH_IMM;
	if (has_imm != with_imm || (has_imm && be32toh(wc.imm_data) != round))
		wrong(p, "round %u: immediate data of the echo", round);
}

static void use(struct peer *p)
{
	struct rdma_cm_event e;

	for (uint32_t round = 0; round < p->count; round++) {
		write_and_read(p, round);
		do_atomics(p, round);
		send_and_receive(p, round);
	}
	if (rdma_disconnect(p->id) != 0)
		die("disconnect");
	expect_event(p, RDMA_CM_EVENT_DISCONNECTED, &e, NULL, 0);
}

// ---- main --------------------------------------------------------------------------------------

static void release(struct peer *p)
{
	rdma_destroy_qp(p->id);
	ibv_dereg_mr(p->mr);
	ibv_destroy_cq(p->cq);
	ibv_destroy_comp_channel(p->completions);
	ibv_dealloc_pd(p->pd);
	rdma_destroy_id(p->id);
	if (p->listener != NULL)
		rdma_destroy_id(p->listener);
	rdma_destroy_event_channel(p->events);
	free(p->memory);
}

static void usage(void)
{
	fprintf(stderr, "usage: verbs_peer server|client ADDR PORT [--size N] [--count N]\n");
	exit(2);
}

static uint32_t number(const char *s, uint32_t max)
{
	char *end;
	unsigned long v = strtoul(s, &end, 0);

	if (*end != 0 || v < 1 || v > max)
		usage();
	return (uint32_t)v;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"size", required_argument, NULL, 's'},
		{"count", required_argument, NULL, 'c'}, {0}};
	struct peer p = {.size = 4096, .count = 10};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 's')
			p.size = number(optarg, 1 << 20);
		else if (opt == 'c')
			p.count = number(optarg, INT32_MAX);
		else
			usage();
	}
	if (argc - optind != 3)
		usage();
	bool server = strcmp(argv[optind], "server") == 0;
	if (!server && strcmp(argv[optind], "client") != 0)
		usage();
	struct sockaddr *addr = resolve(argv[optind + 1], argv[optind + 2]);

	p.events = rdma_create_event_channel();
	if (p.events == NULL)
		die("rdma_cm");
	if (server) {
		accept_one(&p, addr);
		serve(&p);
		rdma_disconnect(p.id);
	} else {
		connect_to(&p, addr);
		use(&p);
	}
	release(&p);
	printf("verbs_peer: %s: %u rounds of %u bytes, %u wrong\n", argv[optind], p.count, p.size,
		p.wrong);
	return p.wrong != 0;
}
