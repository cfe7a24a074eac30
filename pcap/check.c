/* SPDX-License-Identifier: BSD-3-Clause */
// How a capture is judged.
//
// Only what a place on the path can know is held against anyone. A tap sees what passes it: a
// packet may have been lost before (then there is a *gap*, and the responder, further on, will ask
// for it), or may be lost behind (then a NAK comes back for what passed here all right). So a gap
// is a note; it becomes a violation when the responder acknowledges what never passed. In the same
// way a NAK must be followed by a resend from its PSN, but the resend may begin further on here
// when its first packets were lost; it is a violation once the responder goes on without them. A
// finding that only the sequel decides waits for it, in the flow's state.
//
// A packet that fails by itself (ICRC, lengths, checksum) is a violation at once and is otherwise
// taken as not sent, since that is what its receiver does.
//
// State is bounded: so many flows, and per flow a ring of the packets under way, some holes, some
// READs. Captures that begin or end anywhere are fine: what was before the first packet of a flow
// is not judged.
#include "pcap/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "pcap/build.h"
#include "pcap/check_priv.h"
#include "pcap/icrc.h"

#define NO_TAP    UINT32_MAX
#define WHY_BYTES 120
#define UDP_PORTS 4 // bytes of a UDP header that hold the ports

struct check *check_new(const struct check_options *options)
{
	struct check *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->opt = *options;
	if (c->opt.flows_max == 0)
		c->opt.flows_max = CHECK_FLOWS_DEFAULT;
	if (c->opt.findings_max == 0)
		c->opt.findings_max = CHECK_FINDINGS_DEFAULT;
	for (c->n_buckets = 64; c->n_buckets < 2 * c->opt.flows_max;)
		c->n_buckets *= 2;
	c->flows = calloc(c->opt.flows_max, sizeof(*c->flows));
	c->buckets = calloc(c->n_buckets, sizeof(*c->buckets));
	c->pairs = calloc(c->n_buckets, sizeof(*c->pairs));
	if (c->flows == NULL || c->buckets == NULL || c->pairs == NULL) {
		check_free(c);
		return NULL;
	}
	return c;
}

void check_free(struct check *c)
{
	for (uint32_t i = 0; c->flows != NULL && i < c->r.n_flows; i++) {
		struct check_flow *f = &c->flows[i]->f;
		free(f->ack_latency);
		free(f->read_latency);
		free(f->nak_to_resend);
		free(f->cnp_interval);
		free(c->flows[i]->q.ring);
		free(c->flows[i]);
	}
	free(c->flows);
	free(c->buckets);
	free(c->pairs);
	free(c->taps);
	free(c->tap_of);
	free(c->pauses);
	free(c->findings);
	free(c);
}

// ---- taps ------------------------------------------------------------------------------------

// Name of the tap of an interface: without the direction that fabemu's captures put behind it.
static void tap_name(const struct stream_interface *i, uint32_t index, char *out, size_t bytes)
{
	size_t n = strlen(i->name);

	if (n > 3 && (strcmp(i->name + n - 3, " rx") == 0 || strcmp(i->name + n - 3, " tx") == 0))
		n -= 3;
	if (n == 0)
		snprintf(out, bytes, "if%u", index);
	else
		snprintf(out, bytes, "%.*s", (int)n, i->name);
	if (i->section != 0) {
		n = strlen(out);
		snprintf(out + n, bytes - n, " #%u", i->section + 1);
	}
}

static uint32_t tap_find(struct check *c, const char *name)
{
	for (uint32_t t = 0; t < c->r.n_taps; t++)
		if (strcmp(c->taps[t].name, name) == 0)
			return t;
	if (c->r.n_taps == c->cap_taps) {
		uint32_t cap = c->cap_taps != 0 ? 2 * c->cap_taps : 16;
		struct check_tap *more = realloc(c->taps, cap * sizeof(*more));
		if (more == NULL) {
			c->out_of_memory = true;
			return NO_TAP;
		}
		c->taps = more;
		c->cap_taps = cap;
	}
	struct check_tap *t = &c->taps[c->r.n_taps];
	*t = (struct check_tap){.frames = 0};
	snprintf(t->name, sizeof(t->name), "%s", name);
	return c->r.n_taps++;
}

static uint32_t tap_of(struct check *c, const struct stream *s, uint32_t interface)
{
	char name[sizeof(c->taps->name)];

	if (interface < c->n_tap_of)
		return c->tap_of[interface];
	uint32_t n = stream_n_interfaces(s);
	uint32_t *more = realloc(c->tap_of, n * sizeof(*more));
	if (more == NULL) {
		c->out_of_memory = true;
		return NO_TAP;
	}
	c->tap_of = more;
	for (; c->n_tap_of < n; c->n_tap_of++) {
		const struct stream_interface *i = stream_interface(s, c->n_tap_of);
		if (i->linktype != STREAM_LINKTYPE_ETHERNET) {
			c->tap_of[c->n_tap_of] = NO_TAP;
			continue;
		}
		tap_name(i, c->n_tap_of, name, sizeof(name));
		c->tap_of[c->n_tap_of] = tap_find(c, name);
	}
	return c->tap_of[interface];
}

// ---- frames ----------------------------------------------------------------------------------

static const char *error_text(enum pkt_error err)
{
	switch (err) {
	case PKT_ERR_UDP:
		return "UDP length contradicts the packet's";
	case PKT_ERR_IP:
		return "IP lengths or version contradict the frame";
	case PKT_ERR_BTH:
		return "headers of the opcode, pad and ICRC do not fit, or the BTH's version is "
		       "not 0";
	default:
		return "malformed";
	}
}

// Whether a packet that the codec gave up at layer 3 or 4 looks like RoCEv2.
static bool looks_like_roce(const struct stream_frame *f, const struct pkt *p)
{
	if (p->ethertype == ETHERTYPE_ROCE1 || p->dport == ROCE_UDP_PORT)
		return true;
	if (p->ethertype != ETHERTYPE_IPV4 || f->caplen < (uint32_t)p->l3_off + IPV4_HEADER_BYTES)
		return false;
	const uint8_t *ip = f->data + p->l3_off;
	uint32_t udp = p->l3_off + (ip[0] & 15u) * 4u;
	return ip[9] == IP_PROTO_UDP && udp + UDP_PORTS <= f->caplen &&
	       get_be16(f->data + udp + 2) == ROCE_UDP_PORT;
}

static void judge_error(struct check *c, uint32_t tap, const struct stream_frame *f,
	const struct pkt *p, enum pkt_error err)
{
	struct check_tap *t = &c->taps[tap];

	if (err == PKT_ERR_CONTROL && f->caplen == f->len) {
		check_found(c, CHECK_CONTROL, tap, NULL, f->number, f->time_ns,
			"MAC control frame that is neither PAUSE nor PFC, or cut");
		return;
	}
	if (!looks_like_roce(f, p)) {
		t->other++;
		return;
	}
	t->roce++;
	if (err == PKT_ERR_IP_CHECKSUM)
		check_found(c, CHECK_IP_CHECKSUM, tap, NULL, f->number, f->time_ns,
			"the IPv4 header does not sum up");
	else if (f->caplen < f->len)
		t->cut++; // headers may be behind the cut
	else
		check_found(c, err == PKT_ERR_BTH ? CHECK_BTH : CHECK_LENGTH, tap, NULL, f->number,
			f->time_ns, "%s", error_text(err));
}

// True when the packet is one that a receiver takes.
static bool judge_packet(struct check *c, const struct sight *s)
{
	const struct stream_frame *f = s->frame;
	char why[WHY_BYTES];
	enum check_kind kind = bth_judge(s->p, why, sizeof(why));

	if (kind != CHECK_KINDS)
		check_found(c, kind, s->tap, NULL, f->number, f->time_ns, "%s", why);
	if (f->caplen < s->p->end)
		c->taps[s->tap].unjudged_icrc++;
	else if (c->opt.icrc && !pkt_icrc_valid(s->p)) {
		check_found(c, CHECK_ICRC, s->tap, NULL, f->number, f->time_ns,
			"%s to QP 0x%06x, PSN %u: ICRC 0x%08x, expected 0x%08x",
			roce_opcodes[s->p->opcode].name ? roce_opcodes[s->p->opcode].name
							: "opcode ?",
			s->p->dest_qp, s->p->psn, get_le32(s->p->data + s->p->end - ICRC_BYTES),
			icrc_compute(
				s->p->data, s->p->l3_off, s->p->bth_off, s->p->end - ICRC_BYTES));
		return false;
	}
	return kind == CHECK_KINDS || kind == CHECK_OPCODE;
}

static void cnp_seen(struct check *c, struct flow *f, const struct sight *s)
{
	c->taps[s->tap].cnps++;
	if (f->f.cnps++ > 0)
		check_sample(c, &f->f.cnp_interval, s->frame->time_ns - f->q.last_cnp_ns);
	f->q.last_cnp_ns = s->frame->time_ns;
}

static bool is_response(uint8_t op)
{
	return op >= ROCE_READ_RESP_FIRST && op <= ROCE_ATOMIC_ACK;
}

static void judge_roce(struct check *c, const struct sight *s)
{
	struct check_tap *t = &c->taps[s->tap];
	const struct pkt *p = s->p;

	t->roce++;
	t->ecn[p->ecn]++;
	if (!judge_packet(c, s))
		return;
	struct flow *f = flow_get(c, s);
	if (f == NULL) {
		t->flows_refused++;
		return;
	}
	struct check_flow *r = &f->f;
	r->first_ns = r->frames == 0 ? s->frame->time_ns : r->first_ns;
	r->last_ns = s->frame->time_ns;
	r->frames++;
	r->wire_bytes += s->frame->len;
	r->sport = p->sport;
	if (p->opcode == ROCE_OP_CNP) {
		cnp_seen(c, f, s);
		return;
	}
	uint8_t transport = p->opcode & 0xe0, op = p->opcode & 0x1f;
	r->transport = transport;
	r->ops[op]++;
	r->ecn[p->ecn]++;
	if (roce_opcodes[p->opcode].name == NULL)
		return;
	if (transport == ROCE_RC && is_response(op))
		ack_response(c, f, s);
	else if (transport == ROCE_RC || transport == ROCE_UC)
		seq_request(c, f, s);
	else
		r->payload_bytes += p->payload_len;
	if (transport == ROCE_UD && p->dest_qp == 1)
		check_cm(c, s);
}

void check_frame(struct check *c, const struct stream *st, const struct stream_frame *f)
{
	struct pkt p;
	uint32_t tap = tap_of(c, st, f->interface);

	c->r.frames++;
	c->r.bytes += f->caplen;
	if (tap == NO_TAP) {
		c->r.foreign++;
		return;
	}
	struct check_tap *t = &c->taps[tap];
	t->first_ns = t->frames == 0 ? f->time_ns : t->first_ns;
	t->last_ns = f->time_ns;
	t->frames++;
	t->bytes += f->len;
	enum pkt_error err = pkt_parse_head(f->data, f->caplen, f->len, &p);
	if (err != PKT_OK) {
		judge_error(c, tap, f, &p, err);
	} else if (p.bth_off != 0) {
		struct sight s = {f, &p, tap};
		t->cut += f->caplen < f->len;
		judge_roce(c, &s);
	} else if (p.kind == PKT_PFC || p.kind == PKT_PAUSE) {
		t->pauses++;
		check_pause_frame(c, st, f, &p);
	} else {
		t->other++;
	}
}

void check_end(struct check *c, const struct stream *s)
{
	for (uint32_t i = 0; i < c->r.n_flows; i++)
		seq_end(c, c->flows[i]);
	bool lossy = false;
	for (uint32_t i = 0; i < c->n_tap_of; i++)
		if (c->tap_of[i] != NO_TAP) {
			uint64_t lost = stream_interface(s, i)->lost;
			c->taps[c->tap_of[i]].lost += lost;
			lossy |= lost != 0;
		}
	doubt_settle(c, lossy);
	check_pause_end(c);
}

struct check_result check_result(const struct check *c)
{
	struct check_result r = c->r;

	r.out_of_memory = c->out_of_memory;
	r.taps = c->taps;
	r.flows = (struct check_flow *const *)c->flows;
	r.pauses = c->pauses;
	r.findings = c->findings;
	return r;
}
