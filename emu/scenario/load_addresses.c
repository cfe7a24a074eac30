/* SPDX-License-Identifier: BSD-3-Clause */

// Addresses of endpoints. Given ones first; the others get 10.0.0.1 and up in endpoint order,
// skipping what is taken, in one /8, so that every host is on-link for every other (the switches
// answer ARP). The IPv6 address is fd00:: with the IPv4 address in its last 32 bits.

#include <arpa/inet.h>
#include <string.h>

#include "emu/scenario/loader.h"

#define AUTO_NET     UINT32_C(0x0a000000)
#define AUTO_LEN     8
#define AUTO_IP6_LEN 64

// Text before '/', and the prefix length after it (or `def`).
static bool split_prefix(struct loader *l, const struct ynode *v, const char *text, unsigned max,
	uint8_t def, const char **address, uint8_t *len)
{
	const char *slash = strchr(text, '/');
	char *end;

	*len = def;
	*address = text;
	if (slash == NULL)
		return true;
	unsigned long n = strtoul(slash + 1, &end, 10);
	if (slash[1] < '0' || slash[1] > '9' || *end != '\0' || n > max) {
		diag_at(&l->d, v, "'%.60s' has a wrong prefix length, expected 0 to %u", text, max);
		return false;
	}
	*address = arena_strndup(l->a, text, (size_t)(slash - text));
	*len = (uint8_t)n;
	return true;
}

bool parse_ip4(struct loader *l, const struct ynode *v, uint8_t def_len, uint32_t *ip, uint8_t *len)
{
	const char *address;
	struct in_addr in;

	if (!split_prefix(l, v, v->text, 32, def_len, &address, len))
		return false;
	if (inet_pton(AF_INET, address, &in) != 1) {
		diag_at(&l->d, v, "'%.60s' is not an IPv4 address, expected one such as 10.0.0.1",
			v->text);
		return false;
	}
	*ip = ntohl(in.s_addr);
	return true;
}

bool parse_ip6(
	struct loader *l, const struct ynode *v, uint8_t def_len, uint8_t ip[16], uint8_t *len)
{
	const char *address;

	if (!split_prefix(l, v, v->text, 128, def_len, &address, len))
		return false;
	if (inet_pton(AF_INET6, address, ip) != 1) {
		diag_at(&l->d, v, "'%.60s' is not an IPv6 address, expected one such as fd00::1",
			v->text);
		return false;
	}
	return true;
}

static bool set_ip4(struct loader *l, const struct ynode *v, struct sc_endpoint *e)
{
	if (!parse_ip4(l, v, AUTO_LEN, &e->ip4, &e->ip4_len))
		return false;
	if (e->ip4 >> 24 == 0 || e->ip4 >> 24 == 127 || e->ip4 >> 28 >= 0xe) {
		diag_at(&l->d, v, "'%.60s' is not a host's address, expected unicast", v->text);
		return false;
	}
	return true;
}

static bool set_ip6(struct loader *l, const struct ynode *v, struct sc_endpoint *e)
{
	static const uint8_t none[16];

	if (!parse_ip6(l, v, AUTO_IP6_LEN, e->ip6, &e->ip6_len))
		return false;
	bool link_local = e->ip6[0] == 0xfe && (e->ip6[1] & 0xc0) == 0x80;
	if (e->ip6[0] == 0xff || link_local || memcmp(e->ip6, none, sizeof(none)) == 0) {
		diag_at(&l->d, v,
			"'%.60s' is not a host's address, expected unicast, not link-local",
			v->text);
		return false;
	}
	e->has_ip6 = true;
	return true;
}

static int hex(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *d = c != '\0' ? strchr(digits, c | 0x20) : NULL;
	return d != NULL ? (int)(d - digits) : -1;
}

static bool set_mac(struct loader *l, const struct ynode *v, uint8_t mac[6])
{
	bool ok = strlen(v->text) == 17;

	for (int i = 0; i < 6 && ok; i++) {
		int hi = hex(v->text[3 * i]), lo = hex(v->text[3 * i + 1]);
		ok = hi >= 0 && lo >= 0 && (i == 5 || v->text[3 * i + 2] == ':');
		if (ok)
			mac[i] = (uint8_t)(hi << 4 | lo);
	}
	if (!ok || (mac[0] & 1)) {
		diag_at(&l->d, v,
			"'%.60s' is not a unicast MAC address, expected one such as "
			"02:00:00:00:00:01",
			v->text);
		return false;
	}
	return true;
}

// The addresses given for one host: a value or a list, at most one per port, in port order.
static bool load_given(struct loader *l, struct ynode *v, const struct sc_host *h, int what)
{
	const struct sc_node *n = &l->s->nodes[h->node];

	if (v == NULL)
		return true;
	if (list_count(v) > n->n_ports) {
		diag_at(&l->d, v, "%u addresses for %u ports of %s", list_count(v), n->n_ports,
			n->name);
		return false;
	}
	for (uint32_t i = 0; i < list_count(v); i++) {
		const struct ynode *item = list_item(v, i);
		struct sc_endpoint *e = &l->s->endpoints[h->first_endpoint + i];
		struct sc_port *ports = l->ports[h->node];

		if (item->kind != Y_SCALAR) {
			diag_at(&l->d, item, "is %s, expected an address", ynode_kind_name(item));
			return false;
		}
		if (!(what == 4         ? set_ip4(l, item, e)
			    : what == 6 ? set_ip6(l, item, e)
					: set_mac(l, item, ports[i].mac)))
			return false;
	}
	return true;
}

static const char *address_key(struct loader *l, const void *bytes, size_t len)
{
	char *key = arena_alloc(l->a, 2 * len + 1);

	for (size_t i = 0; i < len; i++)
		snprintf(key + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
	return key;
}

// Remembers an address; reports it when it is another endpoint's.
static bool claim(struct loader *l, struct names *taken, const void *bytes, size_t len,
	uint32_t endpoint, const char *key)
{
	const char *name = address_key(l, bytes, len);

	if (names_add(taken, name, endpoint))
		return true;
	const struct scenario *s = l->s;
	uint32_t first = s->endpoints[names_find(taken, name)].node;
	uint32_t second = s->endpoints[endpoint].node;
	const struct ynode *at = l->nodes[second].at;
	diag_key(&l->d, at != NULL && at->kind == Y_MAP ? at : l->root, key,
		"the address of %s is already that of %s, expected one of its own",
		s->nodes[second].name, s->nodes[first].name);
	return false;
}

static bool claim_given(struct loader *l, struct names *taken)
{
	struct scenario *s = l->s;
	bool ok = true;

	for (uint32_t i = 0; i < s->n_endpoints; i++) {
		const struct sc_endpoint *e = &s->endpoints[i];
		const struct sc_port *p = &s->nodes[e->node].ports[e->port];

		if (e->ip4 != 0)
			ok = claim(l, taken, &e->ip4, sizeof(e->ip4), i, "ip") && ok;
		if (e->has_ip6)
			ok = claim(l, taken, e->ip6, sizeof(e->ip6), i, "ip6") && ok;
		ok = claim(l, taken, p->mac, sizeof(p->mac), i, "mac") && ok;
	}
	return ok;
}

static void assign_rest(struct loader *l, struct names *taken)
{
	struct scenario *s = l->s;
	uint32_t next = 0;

	for (uint32_t i = 0; i < s->n_endpoints; i++) {
		struct sc_endpoint *e = &s->endpoints[i];

		while (e->ip4 == 0) {
			// last byte 1..254, so that the address looks like a host's
			uint32_t ip = AUTO_NET + next / 254 * 256 + next % 254 + 1;
			next++;
			if (!names_add(taken, address_key(l, &ip, sizeof(ip)), i))
				continue;
			e->ip4 = ip;
			e->ip4_len = AUTO_LEN;
		}
		if (e->has_ip6)
			continue;
		uint32_t be = htonl(e->ip4);
		uint8_t ip6[16] = {0xfd};
		memcpy(ip6 + 12, &be, sizeof(be));
		if (!names_add(taken, address_key(l, ip6, sizeof(ip6)), i))
			continue; // somebody was given it: this endpoint stays without
		memcpy(e->ip6, ip6, sizeof(ip6));
		e->ip6_len = AUTO_IP6_LEN;
		e->has_ip6 = true;
	}
}

bool load_addresses(struct loader *l)
{
	struct names taken;
	bool ok = true;

	for (uint32_t i = 0; i < l->s->n_hosts; i++) {
		const struct sc_host *h = &l->s->hosts[i];
		struct host_in *in = &l->nodes[h->node].host;

		ok = load_given(l, in->ip, h, 4) && ok;
		ok = load_given(l, in->ip6, h, 6) && ok;
		ok = load_given(l, in->mac, h, 0) && ok;
	}
	names_init(&taken, l->a);
	if (!ok || !claim_given(l, &taken))
		return false;
	assign_rest(l, &taken);
	return true;
}
