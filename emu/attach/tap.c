/* SPDX-License-Identifier: BSD-3-Clause */
// A tap interface through /dev/net/tun: what the host's stack sends on it we read, and the reverse.
// One system call per frame, so it is for control traffic and modest rates; the kernel drops when
// its queue (QUEUE_FRAMES) overflows, so under back-pressure a tap is not lossless as vhost-user
// is.

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <rte_mbuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "emu/attach/netif.h"
#include "emu/attach/port.h"

#define QUEUE_FRAMES 10000

struct tap_port {
	int fd;
	struct rte_mempool *pool;
};

static unsigned tap_rx(void *port, struct rte_mbuf **m, unsigned n)
{
	struct tap_port *t = port;

	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *b = rte_pktmbuf_alloc(t->pool);
		if (b == NULL)
			return i; // the frame waits in the kernel's queue
		ssize_t len = read(t->fd, rte_pktmbuf_mtod(b, void *), rte_pktmbuf_tailroom(b));
		if (len <= 0) {
			rte_pktmbuf_free(b);
			return i;
		}
		b->data_len = (uint16_t)len;
		b->pkt_len = (uint32_t)len;
		m[i] = b;
	}
	return n;
}

static unsigned tap_tx(void *port, struct rte_mbuf **m, unsigned n)
{
	struct tap_port *t = port;

	for (unsigned i = 0; i < n; i++) {
		ssize_t len = write(t->fd, rte_pktmbuf_mtod(m[i], void *), m[i]->data_len);
		if (len < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == EINTR))
			return i;
		// Any other error (interface down) is final for this frame, as on a real NIC.
		rte_pktmbuf_free(m[i]);
	}
	return n;
}

static const struct edge_ops tap_ops = {.rx = tap_rx, .tx = tap_tx};

static void tap_close(void *arg)
{
	struct tap_port *t = arg;

	close(t->fd); // a tap that is not persistent goes with its last file descriptor
	free(t);
}

static int open_tap(const char *ifname, FILE *err)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0) {
		int e = errno;
		fprintf(err,
			"tap %s: cannot open /dev/net/tun: %s (modprobe tun; root or "
			"CAP_NET_ADMIN)\n",
			ifname, strerror(e));
		return -e;
	}
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", ifname);
	if (ioctl(fd, TUNSETIFF, &ifr) < 0) {
		int e = errno;
		fprintf(err,
			"tap %s: %s (needs root or CAP_NET_ADMIN; an existing interface must "
			"be a tap that no other process has open)\n",
			ifname, strerror(e));
		close(fd);
		return -e;
	}
	return fd;
}

int port_tap_open(struct port *p, const struct tap_config *cfg, struct rte_mempool *pool, FILE *err)
{
	bool existed = if_nametoindex(cfg->ifname) != 0;
	struct tap_port *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->pool = pool;
	t->fd = open_tap(cfg->ifname, err);
	int e = t->fd < 0 ? t->fd : 0;
	if (e == 0 && !existed) {
		e = netif_configure(
			cfg->ifname, cfg->mac, cfg->mtu, cfg->addresses, cfg->n_addresses, err);
		netif_set_queue(cfg->ifname, QUEUE_FRAMES);
	}
	if (e < 0) {
		if (t->fd >= 0)
			close(t->fd);
		free(t);
		return e;
	}
	*p = (struct port){.ops = &tap_ops, .arg = t, .close = tap_close};
	return 0;
}
