/* SPDX-License-Identifier: BSD-3-Clause */
// A port that DPDK drives: an existing interface through AF_XDP or AF_PACKET, or any device given
// by its devargs. The PMD takes a stripped VLAN tag (PCP included) out of the frame; it is put
// back.

#include <errno.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_log.h>
#include <stdlib.h>
#include <string.h>

#include "emu/attach/netif.h"
#include "emu/attach/port.h"

#define DESCRIPTORS     1024
#define FRAME_EXTRA     (RTE_ETHER_HDR_LEN + 2 * RTE_VLAN_HLEN)
#define PACKET_FRAMES   4096 // of the AF_PACKET rings: what a burst may need while we are busy
#define PACKET_ROUND    512
#define PACKET_OVERHEAD 128 // TPACKET2_HDRLEN and alignment
#define PAGE_BYTES      4096
#define COPY_BURST      32
#define XDP_FRAMES      8191 // both rings of 2048 and what is on the way
#define XDP_LOG         "pmd.net.af_xdp"
#define XDP_HEADROOM    256  // the kernel's XDP_PACKET_HEADROOM
#define XDP_FRAME_LIMIT 3400 // IP MTU an AF_XDP frame of one page holds, its headroom off

struct ethdev_port {
	uint16_t id;
	struct rte_mempool *pool; // the fabric's
	struct rte_mempool *own;  // AF_XDP: what the kernel writes to, NULL for others
	char name[RTE_DEV_NAME_MAX_LEN];
	struct rte_device *device;
};

static unsigned ethdev_rx(void *port, struct rte_mbuf **m, unsigned n)
{
	const struct ethdev_port *e = port;
	unsigned got = rte_eth_rx_burst(e->id, 0, m, (uint16_t)n);

	for (unsigned i = 0; i < got; i++) {
		if (m[i]->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) {
			// Its headroom always has the 4 bytes, and the mbuf is not shared.
			rte_vlan_insert(&m[i]);
		}
	}
	return got;
}

// AF_XDP keeps the buffers it has given to the kernel, even when closed; so it has a pool of its
// own, whose frames are copied and never enter the fabric. Takes no frame that it cannot copy.
static unsigned xdp_rx(void *port, struct rte_mbuf **m, unsigned n)
{
	const struct ethdev_port *e = port;
	struct rte_mbuf *from[COPY_BURST];

	n = RTE_MIN(n, (unsigned)COPY_BURST);
	if (rte_pktmbuf_alloc_bulk(e->pool, m, n) < 0)
		return 0;
	unsigned got = rte_eth_rx_burst(e->id, 0, from, (uint16_t)n);
	for (unsigned i = 0; i < got; i++) {
		uint16_t len = from[i]->data_len;

		memcpy(rte_pktmbuf_append(m[i], len), rte_pktmbuf_mtod(from[i], void *), len);
		rte_pktmbuf_free(from[i]);
	}
	if (got < n)
		rte_pktmbuf_free_bulk(&m[got], n - got);
	return got;
}

static unsigned ethdev_tx(void *port, struct rte_mbuf **m, unsigned n)
{
	const struct ethdev_port *e = port;

	return rte_eth_tx_burst(e->id, 0, m, (uint16_t)n);
}

static const struct edge_ops ethdev_ops = {.rx = ethdev_rx, .tx = ethdev_tx};
static const struct edge_ops xdp_ops = {.rx = xdp_rx, .tx = ethdev_tx};

static void ethdev_close(void *arg)
{
	struct ethdev_port *e = arg;

	rte_eth_dev_stop(e->id);
	rte_eth_dev_close(e->id);
	rte_dev_remove(e->device);
	rte_mempool_free(e->own);
	free(e);
}

static int configure(struct ethdev_port *e, uint32_t mtu, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;

	int r = rte_eth_dev_info_get(e->id, &info);
	if (r < 0)
		return r;
	e->device = info.device;
	conf.rxmode.mtu = (uint16_t)RTE_MIN(mtu, info.max_mtu ? info.max_mtu : UINT16_MAX);
	conf.rxmode.offloads = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	conf.txmode.offloads = 0;
	if ((r = rte_eth_dev_configure(e->id, 1, 1, &conf)) < 0 ||
		(r = rte_eth_dev_adjust_nb_rx_tx_desc(e->id, &rx, &tx)) < 0 ||
		(r = rte_eth_rx_queue_setup(e->id, 0, rx, SOCKET_ID_ANY, NULL, pool)) < 0 ||
		(r = rte_eth_tx_queue_setup(e->id, 0, tx, SOCKET_ID_ANY, NULL)) < 0 ||
		(r = rte_eth_dev_start(e->id)) < 0)
		return r;
	rte_eth_promiscuous_enable(e->id); // unsupported: the device delivers all anyway
	rte_eth_allmulticast_enable(e->id);
	return 0;
}

// Probes `devargs` and starts the port, which receives into `own` if given. What fails is for the
// caller to say. Takes over `own`.
static int open_device(struct port *p, const char *devargs, uint32_t mtu, struct rte_mempool *pool,
	struct rte_mempool *own)
{
	struct rte_dev_iterator it;
	struct ethdev_port *e = calloc(1, sizeof(*e));
	uint16_t id;
	int r = e == NULL ? -ENOMEM : rte_dev_probe(devargs);

	if (r < 0) {
		rte_mempool_free(own);
		free(e);
		return r;
	}
	*e = (struct ethdev_port){.id = RTE_MAX_ETHPORTS, .pool = pool, .own = own};
	RTE_ETH_FOREACH_MATCHING_DEV(id, devargs, &it)
	{
		e->id = id;
		rte_eth_iterator_cleanup(&it);
		break;
	}
	r = e->id == RTE_MAX_ETHPORTS ? -ENODEV : configure(e, mtu, own != NULL ? own : pool);
	if (r < 0) {
		if (e->id != RTE_MAX_ETHPORTS)
			rte_eth_dev_close(e->id);
		if (e->device != NULL)
			rte_dev_remove(e->device);
		rte_mempool_free(own);
		free(e);
		return r;
	}
	*p = (struct port){
		.ops = own != NULL ? &xdp_ops : &ethdev_ops, .arg = e, .close = ethdev_close};
	return 0;
}

static unsigned next_number(void)
{
	static unsigned n; // main thread only

	return n++;
}

static int open_af_packet(
	struct port *p, const char *ifname, uint32_t mtu, struct rte_mempool *pool)
{
	char devargs[256];
	// Eight frames always fill whole pages, whatever their size.
	uint32_t frame = RTE_ALIGN_CEIL(mtu + FRAME_EXTRA + PACKET_OVERHEAD, PACKET_ROUND);

	snprintf(devargs, sizeof(devargs),
		"net_af_packet_fabemu%u,iface=%s,qpairs=1,blocksz=%u,framesz=%u,framecnt=%u",
		next_number(), ifname, frame * (PAGE_BYTES / PACKET_ROUND), frame, PACKET_FRAMES);
	return open_device(p, devargs, mtu, pool, NULL);
}

static int open_af_xdp(struct port *p, const char *ifname, uint32_t mtu, struct rte_mempool *pool)
{
	char devargs[256], name[RTE_MEMPOOL_NAMESIZE];
	unsigned number = next_number();

	snprintf(name, sizeof(name), "xdp%u", number);
	struct rte_mempool *own = rte_pktmbuf_pool_create(name, XDP_FRAMES, 0, 0,
		(uint16_t)(RTE_PKTMBUF_HEADROOM + XDP_HEADROOM + mtu + FRAME_EXTRA), SOCKET_ID_ANY);
	if (own == NULL)
		return -ENOMEM;
	setenv("LIBXDP_SKIP_DISPATCHER", "1", 0); // one program per interface is all we want
	snprintf(devargs, sizeof(devargs), "net_af_xdp_fabemu%u,iface=%s", number, ifname);
	// That it does not work is an answer here, not an error to print.
	rte_log_set_level_pattern(XDP_LOG, RTE_LOG_EMERG);
	int r = open_device(p, devargs, mtu, pool, own);
	rte_log_set_level_pattern(XDP_LOG, RTE_LOG_ERR);
	return r;
}

int port_netdev_open(struct port *p, const char *ifname, uint32_t mtu, bool xdp,
	struct rte_mempool *pool, FILE *err)
{
	if (if_nametoindex(ifname) == 0) {
		fprintf(err, "netdev %s: no such interface (see `ip link`)\n", ifname);
		return -ENODEV;
	}
	netif_offloads_off(ifname);
	// AF_XDP's buffers may cross pages, which the kernel accepts in hugepages only.
	if (xdp && mtu <= XDP_FRAME_LIMIT && rte_eal_has_hugepages() &&
		open_af_xdp(p, ifname, mtu, pool) == 0)
		return 0;
	int r = open_af_packet(p, ifname, mtu, pool);
	if (r < 0)
		fprintf(err,
			"netdev %s: neither AF_XDP nor AF_PACKET works: %s (needs root or "
			"CAP_NET_RAW, and package librte-net-af-packet23)\n",
			ifname, strerror(-r));
	return r;
}

int port_dpdk_open(
	struct port *p, const char *devargs, uint32_t mtu, struct rte_mempool *pool, FILE *err)
{
	int r = open_device(p, devargs, mtu, pool, NULL);

	if (r < 0)
		fprintf(err,
			"dpdk device %s: %s (a PCI device must be bound to vfio-pci: "
			"dpdk-devbind.py)\n",
			devargs, strerror(-r));
	return r;
}
