/* SPDX-License-Identifier: BSD-3-Clause */
// A vhost-user port: we are the server, a guest (QEMU, User Mode Linux) or any other virtio-user
// front end connects. librte_vhost is used directly, because the net_vhost PMD does not get on with
// UML 6.1.
//
// Back-pressure is natural and lossless: while the edge does not call rx, the guest's transmit ring
// stays full and its queue stops.
//
// librte_vhost announces connections on a thread of its own. `vid` is the handshake with the edge's
// lcore: the thread that takes a device away first clears vid, then waits until the lcore is out of
// the section it may have entered with the old one (`busy`, sequentially consistent on both sides).

#include <errno.h>
#include <linux/virtio_net.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_vhost.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "emu/attach/port.h"

#define QUEUE_TO_GUEST   0 // VIRTIO_RXQ, seen from the guest
#define QUEUE_FROM_GUEST 1
#define NO_DEVICE        (-1)

// Not offered: checksum and segmentation offloads (frames must be complete on the wire), and what
// UML 6.1's or QEMU's drivers would start but librte_vhost leaves unanswered.
#define FEATURES_OFF                                                                 \
	(1ULL << VIRTIO_NET_F_CSUM | 1ULL << VIRTIO_NET_F_GUEST_CSUM |               \
		1ULL << VIRTIO_NET_F_HOST_TSO4 | 1ULL << VIRTIO_NET_F_HOST_TSO6 |    \
		1ULL << VIRTIO_NET_F_HOST_UFO | 1ULL << VIRTIO_NET_F_HOST_ECN |      \
		1ULL << VIRTIO_NET_F_GUEST_TSO4 | 1ULL << VIRTIO_NET_F_GUEST_TSO6 |  \
		1ULL << VIRTIO_NET_F_GUEST_UFO | 1ULL << VIRTIO_NET_F_GUEST_ECN |    \
		1ULL << VIRTIO_NET_F_GSO | 1ULL << VIRTIO_NET_F_CTRL_VQ |            \
		1ULL << VIRTIO_NET_F_CTRL_RX | 1ULL << VIRTIO_NET_F_GUEST_ANNOUNCE | \
		1ULL << VIRTIO_NET_F_MQ | 1ULL << VIRTIO_F_RING_PACKED)

#ifndef VIRTIO_F_RING_PACKED
#define VIRTIO_F_RING_PACKED 34
#endif

struct vhost_port {
	_Atomic int vid;
	_Atomic bool busy;
	struct rte_mempool *pool;
	char path[108]; // sun_path
	LIST_ENTRY(vhost_port) link;
};

// Callbacks get a vid only; the socket's path leads to the port.
static LIST_HEAD(, vhost_port) vhost_ports = LIST_HEAD_INITIALIZER(vhost_ports);

static struct vhost_port *port_of(int vid)
{
	char path[sizeof(((struct vhost_port *)0)->path)];
	struct vhost_port *v;

	if (rte_vhost_get_ifname(vid, path, sizeof(path)) < 0)
		return NULL;
	LIST_FOREACH(v, &vhost_ports, link)
	{
		if (strcmp(v->path, path) == 0)
			return v;
	}
	return NULL;
}

static int device_ready(int vid)
{
	struct vhost_port *v = port_of(vid);

	if (v == NULL)
		return -1;
	// We poll: the guest need not kick.
	rte_vhost_enable_guest_notification(vid, QUEUE_FROM_GUEST, 0);
	rte_vhost_enable_guest_notification(vid, QUEUE_TO_GUEST, 0);
	atomic_store(&v->vid, vid);
	return 0;
}

static void device_gone(int vid)
{
	struct vhost_port *v = port_of(vid);

	if (v == NULL)
		return;
	atomic_store(&v->vid, NO_DEVICE);
	while (atomic_load(&v->busy))
		rte_pause();
}

static const struct rte_vhost_device_ops device_ops = {
	.new_device = device_ready,
	.destroy_device = device_gone,
};

static unsigned vhost_rx(void *port, struct rte_mbuf **m, unsigned n)
{
	struct vhost_port *v = port;
	unsigned got = 0;

	atomic_store(&v->busy, true);
	int vid = atomic_load(&v->vid);
	if (vid != NO_DEVICE)
		got = rte_vhost_dequeue_burst(vid, QUEUE_FROM_GUEST, v->pool, m, (uint16_t)n);
	atomic_store_explicit(&v->busy, false, memory_order_release);
	return got;
}

static unsigned vhost_tx(void *port, struct rte_mbuf **m, unsigned n)
{
	struct vhost_port *v = port;
	unsigned sent = 0;

	atomic_store(&v->busy, true);
	int vid = atomic_load(&v->vid);
	if (vid != NO_DEVICE)
		sent = rte_vhost_enqueue_burst(vid, QUEUE_TO_GUEST, m, (uint16_t)n);
	atomic_store_explicit(&v->busy, false, memory_order_release);
	// Enqueueing copies.
	for (unsigned i = 0; i < sent; i++)
		rte_pktmbuf_free(m[i]);
	return sent;
}

static bool vhost_down(void *port)
{
	struct vhost_port *v = port;

	return atomic_load_explicit(&v->vid, memory_order_relaxed) == NO_DEVICE;
}

static const struct edge_ops vhost_ops = {
	.rx = vhost_rx,
	.tx = vhost_tx,
	.down = vhost_down,
};

static void vhost_close(void *arg)
{
	struct vhost_port *v = arg;

	rte_vhost_driver_unregister(v->path);
	LIST_REMOVE(v, link);
	unlink(v->path);
	free(v);
}

int port_vhost_open(struct port *p, const char *path, struct rte_mempool *pool, FILE *err)
{
	struct vhost_port *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return -ENOMEM;
	if (strlen(path) >= sizeof(v->path)) {
		fprintf(err, "vhost-user socket %s: path longer than %zu bytes\n", path,
			sizeof(v->path) - 1);
		free(v);
		return -ENAMETOOLONG;
	}
	if (access(path, F_OK) == 0) {
		fprintf(err,
			"vhost-user socket %s exists: remove it if no other process serves it\n",
			path);
		free(v);
		return -EEXIST;
	}
	atomic_init(&v->vid, NO_DEVICE);
	v->pool = pool;
	strcpy(v->path, path);
	LIST_INSERT_HEAD(&vhost_ports, v, link);
	if (rte_vhost_driver_register(path, 0) < 0 ||
		rte_vhost_driver_disable_features(path, FEATURES_OFF) < 0 ||
		rte_vhost_driver_callback_register(path, &device_ops) < 0 ||
		rte_vhost_driver_start(path) < 0) {
		fprintf(err, "vhost-user socket %s: cannot listen there (directory writable?)\n",
			path);
		vhost_close(v);
		return -EIO;
	}
	*p = (struct port){.ops = &vhost_ops, .arg = v, .close = vhost_close};
	return 0;
}
