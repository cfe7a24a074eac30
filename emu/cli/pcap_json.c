/* SPDX-License-Identifier: BSD-3-Clause */
// The report of fabemu pcap check for scripts. Schema: pcap/README.md. Nanoseconds, bytes, bits per
// second.

#include "emu/cli/pcap.h"
#include "pcap/roce.h"

#define ADDRESS_BYTES 48

static void set_int(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

static void set_text(json_t *o, const char *key, const char *value)
{
	// names come from files and need not be UTF-8
	json_t *text = json_string(value);

	json_object_set_new(o, key, text != NULL ? text : json_string("?"));
}

static json_t *times_json(const struct histogram *h)
{
	if (h == NULL || h->n == 0)
		return json_null();
	json_t *o = json_object();
	set_int(o, "count", h->n);
	set_int(o, "min", h->min_ns);
	set_int(o, "median", histogram_quantile(h, 500));
	set_int(o, "p99", histogram_quantile(h, 990));
	set_int(o, "max", h->max_ns);
	set_int(o, "mean", h->sum_ns / h->n);
	return o;
}

static json_t *ecn_json(const uint64_t ecn[4])
{
	json_t *o = json_object();

	set_int(o, "not_ect", ecn[ECN_NOT_ECT]);
	set_int(o, "ect0", ecn[ECN_ECT0]);
	set_int(o, "ect1", ecn[ECN_ECT1]);
	set_int(o, "ce", ecn[ECN_CE]);
	return o;
}

static json_t *tap_json(const struct check_tap *t)
{
	json_t *o = json_object();

	set_text(o, "name", t->name);
	set_int(o, "frames", t->frames);
	set_int(o, "bytes", t->bytes);
	set_int(o, "first_ns", (uint64_t)t->first_ns);
	set_int(o, "last_ns", (uint64_t)t->last_ns);
	set_int(o, "roce", t->roce);
	set_int(o, "other", t->other);
	set_int(o, "cut", t->cut);
	set_int(o, "icrc_unjudged", t->unjudged_icrc);
	set_int(o, "lost_by_capture", t->lost);
	set_int(o, "pause_frames", t->pauses);
	set_int(o, "cnps", t->cnps);
	set_int(o, "not_followed", t->flows_refused);
	set_int(o, "violations", t->violations);
	json_object_set_new(o, "ecn", ecn_json(t->ecn));
	return o;
}

static json_t *messages_json(const struct check_flow *f)
{
	json_t *all = json_object();

	for (int m = 0; m < CHECK_MESSAGES; m++) {
		const struct check_messages *k = &f->messages[m];
		if (k->sent == 0)
			continue;
		json_t *o = json_object();
		set_int(o, "sent", k->sent);
		set_int(o, "completed", k->completed);
		set_int(o, "bytes", k->bytes);
		set_int(o, "min_bytes", k->min_bytes);
		set_int(o, "max_bytes", k->max_bytes);
		json_object_set_new(all, check_message_name((enum check_message)m), o);
	}
	return all;
}

static json_t *opcodes_json(const struct check_flow *f)
{
	json_t *o = json_object();

	for (unsigned op = 0; op < 32; op++) {
		const char *name = roce_opcodes[f->transport | op].name;
		char number[8];
		snprintf(number, sizeof(number), "0x%02x", f->transport | op);
		if (f->ops[op] != 0)
			set_int(o, name != NULL ? name : number, f->ops[op]);
	}
	return o;
}

static void set_counts(json_t *o, const struct check_flow *f)
{
	static const struct {
		const char *key;
		size_t off;
	} counts[] = {
		{"frames", offsetof(struct check_flow, frames)},
		{"wire_bytes", offsetof(struct check_flow, wire_bytes)},
		{"payload_bytes", offsetof(struct check_flow, payload_bytes)},
		{"cnps", offsetof(struct check_flow, cnps)},
		{"gaps", offsetof(struct check_flow, gaps)},
		{"gap_packets", offsetof(struct check_flow, gap_packets)},
		{"resent_packets", offsetof(struct check_flow, resent_packets)},
		{"looped", offsetof(struct check_flow, looped)},
		{"reordered", offsetof(struct check_flow, reordered)},
		{"restarts", offsetof(struct check_flow, restarts)},
		{"acks", offsetof(struct check_flow, acks)},
		{"naks", offsetof(struct check_flow, naks)},
		{"rnr_naks", offsetof(struct check_flow, rnr_naks)},
		{"fatal_naks", offsetof(struct check_flow, fatal_naks)},
		{"duplicate_acks", offsetof(struct check_flow, duplicate_acks)},
		{"read_holes", offsetof(struct check_flow, read_holes)},
		{"unjudged", offsetof(struct check_flow, unjudged)},
		{"nak_packets_max", offsetof(struct check_flow, nak_packets_max)},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		uint64_t v;
		memcpy(&v, (const uint8_t *)f + counts[i].off, sizeof(v));
		set_int(o, counts[i].key, v);
	}
}

static json_t *flow_json(const struct pcap_report *p, const struct check_flow *f)
{
	char address[ADDRESS_BYTES];
	json_t *o = json_object(), *causes = json_object();
	int64_t ns = f->last_ns - f->first_ns;

	set_text(o, "tap", p->r.taps[f->tap].name);
	check_address(address, sizeof(address), f->src, f->addr_bytes);
	set_text(o, "src", address);
	check_address(address, sizeof(address), f->dst, f->addr_bytes);
	set_text(o, "dst", address);
	set_int(o, "dest_qp", f->dest_qp);
	json_object_set_new(o, "src_qp",
		f->pairing >= CHECK_BY_PSN ? json_integer(p->r.flows[f->peer]->dest_qp)
					   : json_null());
	set_text(o, "paired_by", check_pairing_name(f->pairing));
	set_int(o, "roce", f->roce1 ? 1 : 2);
	set_int(o, "mtu", f->mtu);
	set_int(o, "first_ns", (uint64_t)f->first_ns);
	set_int(o, "last_ns", (uint64_t)f->last_ns);
	set_counts(o, f);
	json_object_set_new(o, "goodput_bps",
		ns > 0 ? json_real((double)f->payload_bytes * 8e9 / (double)ns) : json_null());
	for (int i = 0; i < CHECK_CAUSE_COUNT; i++)
		set_int(causes, check_cause_name((enum check_cause)i), f->resends[i]);
	json_object_set_new(o, "resends", causes);
	json_object_set_new(o, "ecn", ecn_json(f->ecn));
	json_object_set_new(o, "opcodes", opcodes_json(f));
	json_object_set_new(o, "messages", messages_json(f));
	json_object_set_new(o, "ack_latency_ns", times_json(f->ack_latency));
	json_object_set_new(o, "read_latency_ns", times_json(f->read_latency));
	json_object_set_new(o, "nak_to_resend_ns", times_json(f->nak_to_resend));
	json_object_set_new(o, "cnp_interval_ns", times_json(f->cnp_interval));
	return o;
}

static void add_pauses(const struct pcap_report *p, const struct check_pause *e, json_t *list)
{
	char mac[18];

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", e->src_mac[0], e->src_mac[1],
		e->src_mac[2], e->src_mac[3], e->src_mac[4], e->src_mac[5]);
	for (unsigned k = 0; k < CHECK_PAUSE_CLASSES; k++) {
		const struct check_pause_class *c = &e->classes[k];
		if (c->xoff + c->xon == 0)
			continue;
		json_t *o = json_object();
		set_text(o, "interface", p->interfaces[e->interface]);
		set_text(o, "sender", mac);
		json_object_set_new(
			o, "priority", k == PFC_CLASSES ? json_null() : json_integer(k));
		set_int(o, "rate_bps", e->rate_bps);
		set_int(o, "xoff", c->xoff);
		set_int(o, "xon", c->xon);
		set_int(o, "pauses", c->pauses);
		set_int(o, "quanta", c->quanta);
		set_int(o, "paused_ns", (uint64_t)c->paused_ns);
		json_array_append_new(list, o);
	}
}

static json_t *finding_json(const struct pcap_report *p, const struct check_finding *f)
{
	json_t *o = json_object();

	set_int(o, "event", (uint64_t)(f - p->r.findings) + 1);
	set_text(o, "kind", check_kind_name(f->kind));
	json_object_set_new(o, "violation", json_boolean(check_is_violation(f->kind)));
	set_int(o, "frame", f->frame);
	set_int(o, "time_ns", (uint64_t)f->time_ns);
	set_text(o, "tap", p->r.taps[f->tap].name);
	json_object_set_new(o, "dest_qp",
		f->flow != CHECK_NO_FLOW ? json_integer(p->r.flows[f->flow]->dest_qp)
					 : json_null());
	set_text(o, "text", f->text);
	return o;
}

json_t *pcap_json(const struct pcap_report *p)
{
	json_t *o = json_object(), *taps = json_array(), *qps = json_array();
	json_t *pauses = json_array(), *findings = json_array(), *counts = json_object();

	set_text(o, "file", p->path);
	json_object_set_new(o, "error", p->error != NULL ? json_string(p->error) : json_null());
	json_object_set_new(o, "icrc_verified", json_boolean(p->icrc));
	set_int(o, "frames", p->r.frames);
	set_int(o, "bytes", p->r.bytes);
	set_int(o, "not_ethernet", p->r.foreign);
	set_int(o, "violations", p->violations);
	for (int k = 0; k < CHECK_KINDS; k++)
		set_int(counts, check_kind_name((enum check_kind)k), p->r.counts[k]);
	for (uint32_t i = 0; i < p->r.n_taps; i++)
		json_array_append_new(taps, tap_json(&p->r.taps[i]));
	for (uint32_t i = 0; i < p->r.n_flows; i++)
		if (p->r.flows[i]->frames != 0 && pcap_wants_flow(p, i))
			json_array_append_new(qps, flow_json(p, p->r.flows[i]));
	for (uint32_t i = 0; i < p->r.n_pauses; i++)
		add_pauses(p, &p->r.pauses[i], pauses);
	for (uint32_t i = 0; i < p->r.n_findings; i++)
		if (pcap_wants_finding(p, &p->r.findings[i]))
			json_array_append_new(findings, finding_json(p, &p->r.findings[i]));
	json_object_set_new(o, "counts", counts);
	json_object_set_new(o, "taps", taps);
	json_object_set_new(o, "qps", qps);
	json_object_set_new(o, "pauses", pauses);
	json_object_set_new(o, "findings", findings);
	return o;
}
