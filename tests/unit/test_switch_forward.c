/* SPDX-License-Identifier: BSD-3-Clause */
// What an Ethernet switch does with a frame's headers: forward, answer, refuse.

#include "tests/unit/switch_bench.h"

static void forwards_with_ttl_macs_and_time_of_the_next_hop(void **state)
{
	bench_default();
	send_udp(0, 2, 1000, 3, ECN_ECT0);
	run(SIM_MS);
	const struct record *r = got(2, 0);
	// 1024 bytes on the wire at 80 ps, twice (store and forward), and two delays.
	assert_int_equal(r->at, 2 * (1024 * 80 + DELAY));
	assert_int_equal(r->len, 1000);
	assert_memory_equal(r->bytes, peer_mac(2), 6);
	assert_memory_equal(r->bytes + 6, port_mac(2), 6);
	assert_int_equal(r->bytes[14 + 8], 63);
	assert_int_equal(ipv4_header_sum(r->bytes + 14, 20), 0xffff);
	assert_int_equal(r->bytes[15], 3 << 2 | ECN_ECT0);
	assert_int_equal(counters(0)->prio[3].rx_frames, 1);
	assert_int_equal(counters(0)->prio[3].rx_bytes, 1004);
	assert_int_equal(counters(2)->prio[3].tx_frames, 1);
	assert_int_equal(b->sw->dropped, 0);
	bench_stop();
}

static void forwards_ipv6_with_one_hop_less(void **state)
{
	uint8_t bytes[200] = {0}, src[16], dst[16];

	bench_default();
	peer_ip6(0, src);
	peer_ip6(3, dst);
	uint8_t *p = eth_put(bytes, port_mac(0), peer_mac(0), ETHERTYPE_IPV6);
	p = ipv6_put(p, 4 << 2, 0x12345, 200 - 54, IP_PROTO_UDP, 64, src, dst);
	udp_put(p, 1, 2, 200 - 54);
	send_bytes(0, bytes, sizeof(bytes));
	run(SIM_MS);
	const struct record *r = got(3, 0);
	assert_int_equal(r->bytes[14 + 7], 63);
	assert_memory_equal(r->bytes + 14, bytes + 14, 7); // class, label, length as they were
	assert_int_equal(counters(0)->prio[4].rx_frames, 1);
	bench_stop();
}

static void pcp_decides_when_it_is_trusted(void **state)
{
	struct ethernet_switch_port_config ports[PORTS];
	uint8_t bytes[204], plain[200];

	bench_ports(ports);
	ports[0].qos.trust = QOS_TRUST_PCP;
	ports[0].qos.default_tc = 2;
	bench_start(ports);
	udp_frame(plain, 0, 1, 200, 4, 0, 64);
	memcpy(bytes, plain, 12);
	put_be16(bytes + 12, ETHERTYPE_VLAN);
	put_be16(bytes + 14, 3 << 13 | 7);
	memcpy(bytes + 16, plain + 12, 188);
	send_bytes(0, bytes, sizeof(bytes));
	send_bytes(0, plain, sizeof(plain));
	run(SIM_MS);
	assert_int_equal(counters(0)->prio[3].rx_frames, 1);       // PCP 3, whatever DSCP 4 says
	assert_int_equal(counters(0)->prio[2].rx_frames, 1);       // untagged
	assert_memory_equal(got(1, 0)->bytes + 12, bytes + 12, 4); // the tag stays
	bench_stop();
}

// A RoCE v1 frame with an ACK for the GID of `to`, IPv4-mapped unless `v6`.
static void roce1_frame(uint8_t bytes[90], unsigned to, bool v6, uint8_t hops)
{
	uint8_t gid[2][16] = {{0}};
	unsigned ends[2] = {0, to};

	for (unsigned i = 0; i < 2; i++) {
		gid[i][10] = gid[i][11] = 0xff;
		put_be32(gid[i] + 12, peer_ip(ends[i]));
		if (v6)
			peer_ip6(ends[i], gid[i]);
	}
	memset(bytes, 0, 90);
	uint8_t *p = eth_put(bytes, peer_mac(to), peer_mac(0), ETHERTYPE_VLAN);
	p = vlan_put(p, 5 << 13, ETHERTYPE_ROCE1);
	p = ipv6_put(p, 3 << 2, 0, 20, GRH_NEXT_BTH, hops, gid[0], gid[1]); // class: not DSCP 3
	p = bth_put(p, ROCE_ACK, BTH_MIG, 0, 7, false, 0);
	aeth_put(p, 0x1f, 0);
}

static void roce_v1_is_switched_as_it_is(void **state)
{
	uint8_t bytes[90];

	for (unsigned v6 = 0; v6 < 2; v6++) {
		bench_default();
		roce1_frame(bytes, 2, v6, 1);
		send_bytes(0, bytes, sizeof(bytes));
		roce1_frame(bytes, 99, v6, 64); // nobody's GID
		send_bytes(0, bytes, sizeof(bytes));
		run(SIM_MS);
		roce1_frame(bytes, 2, v6, 1);
		const struct record *r = got(2, 0);
		assert_int_equal(r->len, sizeof(bytes));
		assert_memory_equal(
			r->bytes, bytes, sizeof(bytes)); // MACs, hop limit: nothing changes
		assert_int_equal(counters(0)->prio[5].rx_frames, 2); // the class of the tag
		assert_int_equal(counters(0)->drops[DROP_NO_ROUTE], 1);
		assert_int_equal(b->sw->dropped, 1);
		bench_stop();
	}
}

static void each_refusal_has_its_reason(void **state)
{
	uint8_t bytes[1600];

	bench_default();
	udp_frame(bytes, 0, 1, 100, 0, 0, 1);
	send_bytes(0, bytes, 100);
	udp_frame(bytes, 0, 99, 100, 0, 0, 64); // 10.0.0.100
	send_bytes(0, bytes, 100);
	udp_frame(bytes, 0, 1, 1515, 0, 0, 64); // IP length 1501
	send_bytes(0, bytes, 1515);
	udp_frame(bytes, 0, 1, 1514, 0, 0, 64); // 1500 passes
	send_bytes(0, bytes, 1514);
	udp_frame(bytes, 0, 1, 100, 0, 0, 64);
	memset(bytes, 0xff, 6); // broadcast
	send_bytes(0, bytes, 100);
	udp_frame(bytes, 0, 1, 100, 0, 0, 64);
	put_be32(bytes + 30, 0xe0000001); // 224.0.0.1
	ipv4_set_checksum(bytes + 14, 20);
	send_bytes(0, bytes, 100);
	run(SIM_MS);
	const struct port_counters *c = counters(0);
	assert_int_equal(c->drops[DROP_TTL_EXPIRED], 1);
	assert_int_equal(c->drops[DROP_NO_ROUTE], 1);
	assert_int_equal(c->drops[DROP_MTU_EXCEEDED], 1);
	assert_int_equal(c->drops[DROP_NOT_ROUTABLE], 2);
	assert_int_equal(b->peer[1].n_rec, 1);
	bench_stop();
}

static void a_removed_route_is_no_route(void **state)
{
	bench_default();
	assert_int_equal(ethernet_switch_set_route(b->sw, 1, NULL, 0), 0);
	assert_int_equal(ethernet_switch_set_route(b->sw, 1, (uint16_t[]){PORTS}, 1), -EINVAL);
	send_udp(0, 1, 100, 0, 0);
	run(SIM_MS);
	assert_int_equal(counters(0)->drops[DROP_NO_ROUTE], 1);
	bench_stop();
}

// ---- malformed ----------------------------------------------------------------------------------

static uint64_t drops_of(unsigned port)
{
	uint64_t n = 0;

	for (int i = 0; i < DROP_REASON_COUNT; i++)
		n += counters(port)->drops[i];
	return n;
}

// A RoCEv2 frame without its last bytes: each cut contradicts the IP length, so each is dropped.
static void truncation_at_every_byte_is_a_counted_drop(void **state)
{
	uint8_t bytes[14 + 20 + 8 + 12 + 16 + 4];
	const uint16_t len = sizeof(bytes);

	bench_default();
	memset(bytes, 0, len);
	uint8_t *p = eth_put(bytes, port_mac(0), peer_mac(0), ETHERTYPE_IPV4);
	p = ipv4_put(p, 12, len - 14, 1, 64, IP_PROTO_UDP, peer_ip(0), peer_ip(1));
	p = udp_put(p, 0xc000, ROCE_UDP_PORT, len - 34);
	bth_put(p, 0x04, 0, 0, 17, false, 5); // SEND_ONLY, 16 bytes, ICRC
	for (uint16_t n = 1; n < len; n++)
		send_bytes(0, bytes, n);
	run(SIM_MS);
	assert_int_equal(drops_of(0), len - 1u);
	assert_int_equal(b->sw->dropped, len - 1u);
	assert_int_equal(counters(0)->drops[DROP_MALFORMED_ETH], 13); // 1..13 bytes
	assert_int_equal(b->peer[1].n_rec, 0);
	send_bytes(0, bytes, len);
	run(2 * SIM_MS);
	assert_int_equal(b->peer[1].n_rec, 1);
	bench_stop();
}

// Random bytes, and valid frames with random bytes changed, of every kind the switch understands.
// What counts: no crash (run under ASan), and every frame accounted for (bench_stop).
static void random_bytes_neither_crash_nor_leak(void **state)
{
	static const uint16_t types[] = {ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_ARP,
		ETHERTYPE_CONTROL, ETHERTYPE_VLAN, ETHERTYPE_ROCE1};
	struct rng g = rng_stream(9, 9);
	uint8_t bytes[256];

	bench_default();
	for (int i = 0; i < 20000; i++) {
		uint16_t len = (uint16_t)(1 + rng_below(&g, sizeof(bytes)));
		if (i % 2) {
			for (unsigned k = 0; k < len; k++)
				bytes[k] = (uint8_t)rng_next(&g);
			if (len >= 14)
				put_be16(bytes + 12, types[rng_below(&g, 6)]);
		} else {
			udp_frame(bytes, 0, 1, 200, 0, 0, 64);
			len = 200;
			for (int k = 0; k < 3; k++)
				bytes[12 + rng_below(&g, 40)] = (uint8_t)rng_next(&g);
		}
		send_bytes(0, bytes, len);
		run(b->sw->now + SIM_US);
		for (unsigned k = 0; k < PORTS; k++)
			b->peer[k].n_rec = 0;
	}
	assert_true(drops_of(0) > 10000);
	assert_true(counters(0)->drops[DROP_IP_CHECKSUM] > 1000);
	bench_stop();
}

static void malformed_control_frames_are_counted_and_not_obeyed(void **state)
{
	uint8_t bytes[60];
	uint16_t quanta[PFC_CLASSES] = {[3] = 65535};

	bench_default();
	pfc_build(bytes, peer_mac(0), 1 << 3, quanta);
	put_be16(bytes + 14, 0x0102); // unknown opcode
	send_bytes(0, bytes, sizeof(bytes));
	pause_build(bytes, peer_mac(0), 100);
	send_bytes(0, bytes, sizeof(bytes));
	run(SIM_US);
	assert_int_equal(counters(0)->drops[DROP_MALFORMED_CONTROL], 1);
	assert_int_equal(counters(0)->rx_global_pause, 1);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(ethernet_switch_paused_since(b->sw, 0, i), SIMTIME_NEVER);
	bench_stop();
}

// ---- ARP and ND ---------------------------------------------------------------------------------

static void arp_request(uint8_t bytes[60], unsigned from, const uint8_t mac[6], uint32_t target)
{
	memset(bytes, 0, 60);
	uint8_t *a =
		eth_put(bytes, (const uint8_t *)"\xff\xff\xff\xff\xff\xff", mac, ETHERTYPE_ARP);
	memcpy(a, "\0\1\10\0\6\4\0\1", 8);
	memcpy(a + 8, mac, 6);
	put_be32(a + 14, peer_ip(from));
	put_be32(a + 24, target);
}

static void arp_for_an_endpoint_elsewhere_is_answered_with_the_ports_mac(void **state)
{
	uint8_t bytes[60];

	bench_default();
	arp_request(bytes, 0, peer_mac(0), peer_ip(2));
	send_bytes(0, bytes, sizeof(bytes));
	run(SIM_MS);
	assert_int_equal(b->peer[2].n_rec, 0); // nothing is flooded
	const struct record *r = got(0, 0);
	const uint8_t *a = r->bytes + 14;
	assert_memory_equal(r->bytes, peer_mac(0), 6);
	assert_memory_equal(r->bytes + 6, port_mac(0), 6);
	assert_int_equal(get_be16(a + 6), 2); // reply
	assert_memory_equal(a + 8, port_mac(0), 6);
	assert_int_equal(get_be32(a + 14), peer_ip(2));
	assert_memory_equal(a + 18, peer_mac(0), 6);
	assert_int_equal(get_be32(a + 24), peer_ip(0));
	bench_stop();
}

static void arp_for_oneself_or_a_stranger_ends_here(void **state)
{
	uint8_t bytes[60];

	bench_default();
	arp_request(bytes, 0, peer_mac(0), peer_ip(0)); // gratuitous
	send_bytes(0, bytes, sizeof(bytes));
	arp_request(bytes, 0, peer_mac(0), peer_ip(50));
	send_bytes(0, bytes, sizeof(bytes));
	run(SIM_MS);
	assert_int_equal(b->peer[0].n_rec, 0);
	assert_int_equal(counters(0)->drops[DROP_NOT_ROUTABLE], 2);
	bench_stop();
}

static void a_hosts_mac_is_learned_from_its_arp(void **state)
{
	static const uint8_t real[6] = {0x52, 0x54, 0, 1, 2, 3};
	uint8_t bytes[60];

	bench_default();
	arp_request(bytes, 0, real, peer_ip(2));
	send_bytes(0, bytes, sizeof(bytes));
	run(SIM_US * 10);
	send_udp(2, 0, 100, 0, 0);
	run(SIM_US * 20);
	assert_memory_equal(got(0, 1)->bytes, real, 6);
	bench_stop();
}

static uint16_t icmp6_sum(const uint8_t *ip, uint16_t bytes)
{
	uint32_t sum = bytes + 58u;

	for (int i = 8; i < 40 + bytes; i += 2)
		sum += get_be16(ip + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void neighbour_solicitation(uint8_t bytes[86], unsigned from, unsigned target)
{
	uint8_t src[16], dst[16];

	memset(bytes, 0, 86);
	peer_ip6(from, src);
	peer_ip6(target, dst);
	uint8_t *p = eth_put(
		bytes, (const uint8_t *)"\x33\x33\xff\0\0\1", peer_mac(from), ETHERTYPE_IPV6);
	uint8_t *ns = ipv6_put(p, 0, 0, 32, 58, 255, src, dst);
	ns[0] = 135;
	memcpy(ns + 8, dst, 16);
	ns[24] = ns[25] = 1;
	memcpy(ns + 26, peer_mac(from), 6);
	put_be16(ns + 2, (uint16_t)~icmp6_sum(p, 32));
}

static void nd_for_an_endpoint_elsewhere_is_advertised(void **state)
{
	uint8_t bytes[86], target[16];

	bench_default();
	neighbour_solicitation(bytes, 1, 3);
	send_bytes(1, bytes, sizeof(bytes));
	neighbour_solicitation(bytes, 1, 1); // its own address: not answered
	send_bytes(1, bytes, sizeof(bytes));
	neighbour_solicitation(bytes, 1, 3);
	bytes[60] ^= 1; // wrong checksum: not answered
	send_bytes(1, bytes, sizeof(bytes));
	run(SIM_MS);
	assert_int_equal(b->peer[1].n_rec, 1);
	const struct record *r = got(1, 0);
	const uint8_t *ip = r->bytes + 14, *na = ip + 40;
	peer_ip6(3, target);
	assert_int_equal(r->len, 86);
	assert_memory_equal(r->bytes, peer_mac(1), 6);
	assert_int_equal(ip[7], 255);
	assert_int_equal(na[0], 136);
	assert_int_equal(na[4], 0x60); // solicited, override
	assert_memory_equal(na + 8, target, 16);
	assert_int_equal(na[24], 2);
	assert_memory_equal(na + 26, port_mac(1), 6);
	assert_int_equal(icmp6_sum(ip, 32), 0xffff);
	assert_int_equal(counters(1)->drops[DROP_NOT_ROUTABLE], 2);
	bench_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwards_with_ttl_macs_and_time_of_the_next_hop),
		cmocka_unit_test(forwards_ipv6_with_one_hop_less),
		cmocka_unit_test(pcp_decides_when_it_is_trusted),
		cmocka_unit_test(roce_v1_is_switched_as_it_is),
		cmocka_unit_test(each_refusal_has_its_reason),
		cmocka_unit_test(a_removed_route_is_no_route),
		cmocka_unit_test(truncation_at_every_byte_is_a_counted_drop),
		cmocka_unit_test(random_bytes_neither_crash_nor_leak),
		cmocka_unit_test(malformed_control_frames_are_counted_and_not_obeyed),
		cmocka_unit_test(arp_for_an_endpoint_elsewhere_is_answered_with_the_ports_mac),
		cmocka_unit_test(arp_for_oneself_or_a_stranger_ends_here),
		cmocka_unit_test(a_hosts_mac_is_learned_from_its_arp),
		cmocka_unit_test(nd_for_an_endpoint_elsewhere_is_advertised),
	};

	return cmocka_run_group_tests(tests, eal_up, eal_down);
}
