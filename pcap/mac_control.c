/* SPDX-License-Identifier: BSD-3-Clause */
// PFC (802.1Qbb, 802.3 annex 31D) and link PAUSE (802.3 annex 31B) frames:
//
//	| DA 01:80:c2:00:00:01 | SA | 8808 | 0101 | class enable vector | 8 x quanta | pad |
//	| DA 01:80:c2:00:00:01 | SA | 8808 | 0001 | quanta | pad |
#include "pcap/build.h"
#include "pcap/codec.h"

const uint8_t mac_control_address[6] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};

struct pfc pfc_parse(const struct pkt *p)
{
	const uint8_t *c = p->data + p->l3_off;
	struct pfc pfc = {.classes = c[3]}; // the vector's high byte is reserved

	for (unsigned i = 0; i < PFC_CLASSES; i++)
		pfc.quanta[i] = get_be16(c + 4 + 2 * i);
	return pfc;
}

uint16_t pause_parse(const struct pkt *p)
{
	return get_be16(p->data + p->l3_off + 2);
}

static uint8_t *control_put(uint8_t out[ETH_MIN_NO_FCS], const uint8_t src_mac[6], uint16_t opcode)
{
	memset(out, 0, ETH_MIN_NO_FCS);
	uint8_t *c = eth_put(out, mac_control_address, src_mac, ETHERTYPE_CONTROL);
	put_be16(c, opcode);
	return c + 2;
}

void pfc_build(uint8_t out[ETH_MIN_NO_FCS], const uint8_t src_mac[6], uint8_t classes,
	const uint16_t quanta[PFC_CLASSES])
{
	uint8_t *c = control_put(out, src_mac, MAC_OP_PFC);

	put_be16(c, classes);
	for (unsigned i = 0; i < PFC_CLASSES; i++)
		put_be16(c + 2 + 2 * i, classes >> i & 1 ? quanta[i] : 0);
}

void pause_build(uint8_t out[ETH_MIN_NO_FCS], const uint8_t src_mac[6], uint16_t quanta)
{
	put_be16(control_put(out, src_mac, MAC_OP_PAUSE), quanta);
}
