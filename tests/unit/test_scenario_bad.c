/* SPDX-License-Identifier: BSD-3-Clause */

// Malformed scenarios: each must be refused with a message that names the line, the key, and what
// is wrong. Lines are counted by hand; NET and its kin take three lines, so what follows is line 4.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emu/scenario/scenario.h"

#define NET "switches: [sw1]\nhosts: [h1, h2]\nlinks: [[sw1, h1], [sw1, h2]]\n"

struct bad {
	const char *what;
	const char *yaml;
	unsigned line; // 0: the message has no position (the whole file)
	const char *key;
	const char *says;
};

static const struct bad table[] = {
	// ---- YAML itself
	{"empty file", "", 1, "", "no nodes"},
	{"only a comment", "# nothing\n", 1, "", "no nodes"},
	{"a list", "- a\n- b\n", 1, "", "is a list, expected sections"},
	{"a text", "hello\n", 1, "", "is a value, expected sections"},
	{"unclosed bracket", NET "seed: [1\n", 5, "", "YAML syntax"},
	{"tab indentation", NET "defaults:\n\tlink: {}\n", 5, "", "YAML syntax"},
	{"bad indentation", NET "defaults:\n  link:\n   rate: 1Gbps\n  nic: {}\n    x: 1\n", 8, "",
		"YAML syntax"},
	{"unknown anchor", NET "seed: *x\n", 4, "", "undefined alias"},
	{"alias to itself", NET "qos: &a {x: *a}\n", 4, "", "an alias contains itself"},
	{"two documents", NET "---\nseed: 2\n", 5, "", "a second document"},
	{"a list as a key", NET "[a, b]: 1\n", 4, "", "a key is a list"},
	{"NUL in a value", NET "name: \"a\\0b\"\n", 4, "", "NUL"},
	{"not UTF-8", NET "name: \"\xff\xfe\"\n", 4, "", "not valid UTF-8"},
	{"control character", NET "name: \x01\n", 4, "", "not valid UTF-8"},

	// ---- keys
	{"unknown section", NET "workload: {}\n", 4, "workload", "did you mean workloads?"},
	{"unknown key far from any", NET "xyzzyplugh: 1\n", 4, "xyzzyplugh",
		"expected one of: name"},
	{"unknown key in a section", NET "deadlock: {detekt: yes}\n", 4, "deadlock.detekt",
		"did you mean detect?"},
	{"duplicate section", NET "seed: 1\nseed: 2\n", 5, "seed",
		"duplicate key at line 5, first given at line 4"},
	{"duplicate key", NET "defaults:\n  link: {rate: 1Gbps, delay: 1us, rate: 2Gbps}\n", 5,
		"defaults.link.rate", "duplicate key"},
	{"duplicate node", "switches: {sw1: , sw1: }\nhosts: [h1]\n", 1, "switches.sw1",
		"duplicate key"},
	{"merge key", NET "defaults:\n  link: {<<: {}}\n", 5, "defaults.link.<<", "unknown key"},

	// ---- types and quantities
	{"rate without unit", NET "defaults: {link: {rate: 100}}\n", 4, "defaults.link.rate",
		"'100' has no unit, expected a rate such as 100Gbps"},
	{"rate in bytes", NET "defaults: {link: {rate: 100GBps}}\n", 4, "defaults.link.rate",
		"has a wrong unit"},
	{"rate as a time", NET "defaults: {link: {rate: 1us}}\n", 4, "defaults.link.rate",
		"has a wrong unit"},
	{"rate of zero", NET "defaults: {link: {rate: 0}}\n", 4, "defaults.link.rate",
		"out of range, expected 1Kbps to 1.6Tbps"},
	{"negative time", NET "duration: -1ms\n", 4, "duration", "is negative, expected a time"},
	{"time without unit", NET "duration: 10\n", 4, "duration", "has no unit"},
	{"time as a word", NET "duration: soon\n", 4, "duration", "is not a number"},
	{"time too fine", NET "duration: 0.1ps\n", 4, "duration", "finer than the smallest unit"},
	{"time too large", NET "duration: 99999999999999999s\n", 4, "duration", "too large"},
	{"time with a comma", NET "duration: 1,5ms\n", 4, "duration", "wrong unit"},
	{"size as a rate", NET "defaults: {switch: {buffer: 1Gbps}}\n", 4, "defaults.switch.buffer",
		"wrong unit, expected a size"},
	{"size empty", NET "defaults: {switch: {buffer: }}\n", 4, "defaults.switch.buffer",
		"is empty, expected a size"},
	{"size a list", NET "defaults: {switch: {buffer: [1MB]}}\n", 4, "defaults.switch.buffer",
		"is a list, expected a size"},
	{"count with unit", NET "seed: 5ms\n", 4, "seed", "has a unit, expected a whole number"},
	{"count with fraction", NET "seed: 1.5\n", 4, "seed", "finer"},
	{"count not a number", NET "lcores: many\n", 4, "lcores", "is not a number"},
	{"count out of range", NET "lcores: 0\n", 4, "lcores", "out of range, expected 1 to 128"},
	{"truth value", NET "deadlock: {detect: maybe}\n", 4, "deadlock.detect",
		"is not a truth value, expected yes or no"},
	{"word", NET "clock: warp\n", 4, "clock", "expected one of: virtual, wall"},
	{"word with suggestion", NET "clock: vitual\n", 4, "clock", "did you mean virtual?"},
	{"text is a map", NET "name: {a: b}\n", 4, "name", "is a mapping, expected a text"},
	{"section is a list", NET "deadlock: [detect]\n", 4, "deadlock",
		"is a list, expected a mapping with the keys of deadlock"},
	{"probability above 1", NET "defaults: {link: {corrupt: 1.5}}\n", 4,
		"defaults.link.corrupt", "out of range"},
	{"probability in percent above 100", NET "defaults: {link: {corrupt: 101%}}\n", 4,
		"defaults.link.corrupt", "out of range"},
	{"delay and length", NET "defaults: {link: {delay: 1us, length: 5m}}\n", 4,
		"defaults.link.length", "together with delay"},
	{"length without unit", NET "defaults: {link: {length: 5}}\n", 4, "defaults.link.length",
		"has no unit, expected a length"},
	{"credit", NET "defaults: {link: {flow_control: credit}}\n", 4,
		"defaults.link.flow_control", "not in this version"},
	{"flow control unknown", NET "defaults: {link: {flow_control: pause}}\n", 4,
		"defaults.link.flow_control", "expected pfc or none"},
	{"IB MTU not a power of two", NET "defaults: {nic: {mtu: 1500}}\n", 4, "defaults.nic.mtu",
		"expected one of: 256, 512, 1024, 2048, 4096"},
	{"payload too small", NET "defaults: {nic: {packet_payload: 32B}}\n", 4,
		"defaults.nic.packet_payload", "out of range, expected 64B to 9KB"},
	{"retries", NET "defaults: {nic: {retry_cnt: 8}}\n", 4, "defaults.nic.retry_cnt",
		"out of range, expected 0 to 7"},
	{"queues looked at too often", NET "queue_stats: {interval: 1ns}\n", 4,
		"queue_stats.interval", "expected 10ns to 1s"},
	{"congestion control unknown", NET "defaults: {nic: {cc: dcqnc}}\n", 4, "defaults.nic.cc",
		"did you mean dcqcn?"},
	{"DCQCN's g above 1", NET "defaults: {nic: {dcqcn: {dce_tcp_g: 1024}}}\n", 4,
		"defaults.nic.dcqcn.dce_tcp_g", "expected 0 to 1023"},
	{"an increase timer of 0", NET "defaults: {nic: {dcqcn: {rpg_time_reset: 0us}}}\n", 4,
		"defaults.nic.dcqcn.rpg_time_reset", "expected 1us to 131.071ms"},
	{"an alpha timer of 0", NET "defaults: {nic: {dcqcn: {dce_tcp_rtt: 0}}}\n", 4,
		"defaults.nic.dcqcn.dce_tcp_rtt", "expected 1ns to 1s"},
	{"no fast recovery", NET "defaults: {nic: {dcqcn: {rpg_threshold: 0}}}\n", 4,
		"defaults.nic.dcqcn.rpg_threshold", "expected 1 to 31"},
	{"lowest rate above highest",
		NET "defaults:\n  nic:\n    dcqcn:\n      rpg_max_rate: 1Gbps\n"
		    "      rpg_min_rate: 2Gbps\n",
		8, "defaults.nic.dcqcn.rpg_min_rate", "rpg_min_rate is above rpg_max_rate"},
	{"highest rate below the preset's lowest",
		NET "defaults:\n  nic:\n    dcqcn: {rpg_max_rate: 50Mbps, preset: hpcc-ns3}\n", 6,
		"defaults.nic.dcqcn.rpg_max_rate", "rpg_min_rate is above rpg_max_rate"},
	{"preset unknown", NET "defaults: {nic: {dcqcn: {preset: mlx4}}}\n", 4,
		"defaults.nic.dcqcn.preset", "expected one of: mlx5, paper, hpcc-ns3, alibaba"},
	{"scope unknown", NET "defaults: {nic: {np: {scope: host}}}\n", 4, "defaults.nic.np.scope",
		"expected one of: qp, ip, port"},
	{"CNP DSCP out of range", NET "defaults: {nic: {np: {cnp_dscp: 64}}}\n", 4,
		"defaults.nic.np.cnp_dscp", "expected 0 to 63"},
	{"early drop and marking at dequeue",
		NET
		"defaults:\n  qos:\n    queue:\n      3: {wred: {drop: yes, mark_at: dequeue}}\n",
		7, "defaults.qos.queue.3.wred", "drop with mark_at: dequeue"},
	{"recovery unknown", NET "defaults: {nic: {recovery: selective}}\n", 4,
		"defaults.nic.recovery", "expected one of: go-back-N, selective-repeat"},
	{"tolerance out of range", NET "defaults: {nic: {ooo: 65537}}\n", 4, "defaults.nic.ooo",
		"out of range, expected 0 to 65536"},
	{"load balancing unknown", NET "defaults: {switch: {load_balancing: wcmp}}\n", 4,
		"defaults.switch.load_balancing",
		"expected one of: ecmp, spray, random, adaptive, flowlet"},

	// ---- QoS
	{"dscp out of range", NET "defaults: {qos: {dscp_to_tc: {64: 3}}}\n", 4,
		"defaults.qos.dscp_to_tc", "not a set of numbers from 0 to 63"},
	{"tc out of range", NET "defaults: {qos: {dscp_to_tc: {3: 8}}}\n", 4,
		"defaults.qos.dscp_to_tc.3", "out of range, expected 0 to 7"},
	{"route from a stranger", NET "routing: [{switch: sw1, dst: h1, via: h1, from: sw1}]\n", 4,
		"routing[0].from", "is not a neighbour of sw1"},
	{"drop of some ports only", NET "routing: [{switch: sw1, dst: h1, via: drop, from: h2}]\n",
		4, "routing[0].via", "is drop together with from"},
	{"bounce to no DSCP", NET "defaults: {qos: {bounce: {3: 64}}}\n", 4,
		"defaults.qos.bounce.3", "out of range, expected 0 to 63"},
	{"bounce of no DSCP", NET "defaults: {qos: {bounce: {64: 3}}}\n", 4, "defaults.qos.bounce",
		"not a set of numbers from 0 to 63"},
	{"unknown kind of paths", NET "paths: valley\n", 4, "paths",
		"expected one of: shortest, up-down"},
	{"level out of range", "switches: {sw1: {level: 16}}\nhosts: [h1]\nlinks: [[sw1, h1]]\n", 1,
		"switches.sw1.level", "expected 0 to 15"},
	{"range backwards", NET "defaults: {qos: {dscp_to_tc: {5-3: 1}}}\n", 4,
		"defaults.qos.dscp_to_tc.5-3", "not a set of numbers"},
	{"map is a list", NET "defaults: {qos: {tc_to_pg: [0, 1]}}\n", 4, "defaults.qos.tc_to_pg",
		"expected a mapping"},
	{"priority 8", NET "defaults: {qos: {pfc_enable: [8]}}\n", 4, "defaults.qos.pfc_enable",
		"from 0 to 7"},
	{"lossless priority without a class", NET "defaults: {qos: {pfc_enable: [5]}}\n", 4,
		"pfc_enable", "no traffic class maps to PG 5"},
	{"lossless without headroom", NET "qos:\n  default:\n    pg: {3: {xoff: 0}}\n", 6,
		"qos.default.pg", "lossless PG 3 has no headroom"},
	{"lossless without PFC", NET "qos: {default: {pg: {2: {lossless: yes}}}}\n", 4,
		"qos.default.pg", "nothing pauses for it"},
	{"both thresholds", NET "defaults: {qos: {pg: {3: {dynamic_th: 1, static_th: 1MB}}}}\n", 4,
		"defaults.qos.pg.3.dynamic_th", "together with static_th"},
	{"alpha out of range", NET "defaults: {qos: {pg: {3: {dynamic_th: 9}}}}\n", 4,
		"defaults.qos.pg.3.dynamic_th", "from -8 to 7"},
	{"kmin above kmax", NET "defaults: {qos: {queue: {3: {wred: {kmin: 2MB, kmax: 1MB}}}}}\n",
		4, "defaults.qos.queue.3.wred", "kmin is above kmax"},
	{"scheduler", NET "defaults: {qos: {queue: {3: {type: WFQ}}}}\n", 4,
		"defaults.qos.queue.3.type", "expected one of: STRICT, DWRR"},
	{"reserved beyond the buffer", NET "qos: {default: {buffer: 1MB, pg: {0: {size: 2MB}}}}\n",
		4, "qos.default.pg", "reserve 2000000 bytes, the buffer has 1000000"},
	{"watchdog polls too rarely", NET "qos: {default: {pfc_wd: {poll_interval: 300ms}}}\n", 4,
		"qos.default.pfc_wd", "poll_interval exceeds detection_time"},
	{"watchdog action", NET "qos: {default: {pfc_wd: {action: reset}}}\n", 4,
		"qos.default.pfc_wd.action", "expected one of: drop, forward, alert"},
	{"watchdog condition", NET "qos: {default: {pfc_wd: {storm_condition: cisco}}}\n", 4,
		"qos.default.pfc_wd.storm_condition",
		"expected one of: generic, broadcom, mellanox"},
	{"watchdog without PFC", NET "qos: {default: {pfc_wd: {}, pfcwd_sw_enable: [5]}}\n", 4,
		"qos.default.pfcwd_sw_enable", "priority 5 obeys no PFC"},
	{"port without a profile",
		"switches: {sw1: {ports: {eth0: fast}}}\nhosts: [h1]\nlinks: [[sw1, h1]]\n", 1,
		"switches.sw1.ports.eth0", "no profile 'fast'"},
	{"profile of no port",
		"switches: {sw1: {ports: {eth9: default}}}\nhosts: [h1]\nlinks: [[sw1, h1]]\n", 1,
		"switches.sw1.ports", "sw1 has no port of that name"},
	{"ports are a list", "switches: {sw1: {ports: [eth0]}}\nhosts: [h1]\nlinks: [[sw1, h1]]\n",
		1, "switches.sw1.ports", "expected a mapping such as {eth0: PROFILE"},
	{"another cell size",
		"qos: {p: {cell_size: 64B}}\nswitches: {sw1: {ports: {eth0: p}}}\nhosts: [h1]\n"
		"links: [[sw1, h1]]\n",
		2, "switches.sw1.ports.eth0", "another cell_size"},
	{"unknown profile", "switches: {sw1: {qos: fast}}\nhosts: [h1]\nlinks: [[sw1, h1]]\n", 1,
		"switches.sw1.qos", "no profile 'fast'"},

	// ---- nodes and links
	{"name with a space", "switches: ['sw 1']\nhosts: [h1]\nlinks: []\n", 1, "switches[0]",
		"cannot be a name"},
	{"name with a dot", "hosts: {h.1: }\n", 1, "hosts.h.1", "cannot be a name"},
	{"name too long", "hosts: [a1234567890123456789012345678901]\n", 1, "hosts[0]",
		"1 to 31 letters"},
	{"switch and host of one name", "switches: [a]\nhosts: [a]\nlinks: []\n", 2, "hosts[0]",
		"already a switch"},
	{"node twice in a list", "switches: [a, a]\n", 1, "switches[1]", "already a switch"},
	{"switches a number", "switches: 4\n", 1, "switches", "expected a mapping or a list"},
	{"host without link", "switches: [sw1]\nhosts: [h1, h2]\nlinks: [[sw1, h1]]\n", 2,
		"hosts[1]", "h2 has no link"},
	{"dangling node", "switches: [sw1]\nhosts: [h1]\nlinks: [[sw2, h1]]\n", 3, "links[0][0]",
		"no node 'sw2', expected a switch or host of this scenario; did you mean sw1?"},
	{"link to itself", "switches: [sw1]\nhosts: [h1]\nlinks: [[sw1, sw1]]\n", 3, "links[0]",
		"from a node to itself"},
	{"link with one end", "switches: [sw1]\nhosts: [h1]\nlinks: [[sw1]]\n", 3, "links[0]",
		"expected the link's two ends"},
	{"link without ends", "switches: [sw1]\nhosts: [h1]\nlinks:\n  - {rate: 1Gbps}\n", 4,
		"links[0].ends", "missing"},
	{"links a map", "switches: [sw1]\nhosts: [h1]\nlinks: {a: b}\n", 3, "links",
		"expected a list of links"},
	{"two links on a port",
		"switches: [sw1]\nhosts: [h1, h2]\nlinks:\n  - [sw1:eth0, h1]\n  - [sw1:eth0, "
		"h2]\n",
		5, "links[1]", "port sw1:eth0 has a link already"},
	{"port name too long",
		"switches: [sw1]\nhosts: [h1]\nlinks: [[sw1:e123456789012345, h1]]\n", 3,
		"links[0][0]", "too long"},
	{"named parallel links",
		"switches: [a, b]\nlinks:\n  - {ends: [a, b], name: x, parallel: 2}\n", 3,
		"links[0].parallel", "fit one link only"},
	{"two links of one name",
		"switches: [a, b]\nlinks:\n  - {ends: [a, b], name: x}\n  - {ends: [a, b], name: "
		"x}\n",
		4, "links[1]", "named 'x' already"},

	// ---- addresses
	{"not an address", "switches: [s]\nhosts: {h1: {ip: 10.0.0}}\nlinks: [[s, h1]]\n", 2,
		"hosts.h1.ip", "is not an IPv4 address"},
	{"prefix too long", "switches: [s]\nhosts: {h1: {ip: 10.0.0.1/33}}\nlinks: [[s, h1]]\n", 2,
		"hosts.h1.ip", "wrong prefix length"},
	{"multicast", "switches: [s]\nhosts: {h1: {ip: 224.0.0.1}}\nlinks: [[s, h1]]\n", 2,
		"hosts.h1.ip", "expected unicast"},
	{"link-local", "switches: [s]\nhosts: {h1: {ip6: 'fe80::1'}}\nlinks: [[s, h1]]\n", 2,
		"hosts.h1.ip6", "not link-local"},
	{"MAC", "switches: [s]\nhosts: {h1: {mac: '02:00:00:00:00:0g'}}\nlinks: [[s, h1]]\n", 2,
		"hosts.h1.mac", "is not a unicast MAC"},
	{"multicast MAC",
		"switches: [s]\nhosts: {h1: {mac: '01:00:00:00:00:01'}}\nlinks: [[s, h1]]\n", 2,
		"hosts.h1.mac", "is not a unicast MAC"},
	{"address twice",
		"switches: [s]\nhosts:\n  h1: {ip: 10.1.1.1}\n  h2: {ip: 10.1.1.1}\n"
		"links: [[s, h1], [s, h2]]\n",
		4, "hosts.h2.ip", "already that of h1"},
	{"more addresses than ports",
		"switches: [s]\nhosts: {h1: {ip: [10.1.1.1, 10.1.1.2]}}\nlinks: [[s, h1]]\n", 2,
		"hosts.h1.ip", "2 addresses for 1 ports"},

	// ---- endpoints
	{"attach without kind",
		"switches: [s]\nhosts: {h1: {attach: {mtu: 1500}}}\nlinks: [[s, h1]]\n", 2,
		"hosts.h1.attach.kind", "missing"},
	{"attach kind", "clock: wall\nhosts: {h1: {attach: {kind: vhostuser}}}\n", 2,
		"hosts.h1.attach.kind", "did you mean vhost-user?"},
	{"an algorithm that needs more than CNPs at an edge",
		"clock: wall\nhosts: {h1: {attach: {kind: tap, cc: timely}}}\n", 2,
		"hosts.h1.attach.cc", "expected one of: none, dcqcn"},
	{"DCQCN out of range at an edge",
		"clock: wall\nhosts: {h1: {attach: {kind: tap, dcqcn: {dce_tcp_g: 1024}}}}\n", 2,
		"hosts.h1.attach.dcqcn.dce_tcp_g", "expected 0 to 1023"},
	{"netdev without interface", "clock: wall\nhosts: {h1: {attach: {kind: netdev}}}\n", 2,
		"hosts.h1.attach.ifname", "missing"},
	{"dpdk without devargs", "clock: wall\nhosts: {h1: {attach: {kind: dpdk}}}\n", 2,
		"hosts.h1.attach.devargs", "missing"},
	{"run in a tap", "clock: wall\nhosts: {h1: {attach: {kind: tap, run: [ls]}}}\n", 2,
		"hosts.h1.attach.run", "nothing runs in this kind"},
	{"interface name too long",
		"clock: wall\nhosts: {h1: {attach: {kind: tap, ifname: abcdefghijklmnop}}}\n", 2,
		"hosts.h1.attach.ifname", "at most 15"},
	{"real endpoint under the virtual clock",
		"switches: [s]\nhosts:\n  h1: {attach: {kind: tap}}\nlinks: [[s, h1]]\n", 3,
		"hosts.h1.attach", "expected `clock: wall`"},
	{"attach and replay",
		"clock: wall\nhosts: {h1: {attach: {kind: tap}, replay: {file: x}}}\n", 2,
		"hosts.h1.attach", "together with replay"},
	{"replay without file", "hosts: {h1: {replay: {loops: 2}}}\n", 1, "hosts.h1.replay.file",
		"missing"},
	{"replay speed", "hosts: {h1: {replay: {file: x, speed: fast}}}\n", 1,
		"hosts.h1.replay.speed", "is not a number"},
	{"endless replay in an endless run", "hosts: {h1: {replay: {file: x, loops: endless}}}\n",
		1, "hosts.h1.replay", "expected `duration:`"},

	// ---- topology
	{"unknown generator", "topology:\n  torus: {hosts: 3}\n", 2, "topology.torus",
		"unknown key"},
	{"star without hosts", "topology:\n  star: {prefix: a}\n", 2, "topology.star.hosts",
		"missing"},
	{"ring of two", "topology:\n  ring: {switches: 2}\n", 2, "topology.ring.switches",
		"expected 3 to 1024"},
	{"odd fat tree", "topology:\n  fat_tree: {k: 5}\n", 2, "topology.fat_tree.k", "is odd"},
	{"too many nodes", "topology:\n  ring: {switches: 1000, hosts_per_switch: 100}\n", 2,
		"topology.ring", "more than 8192 nodes"},
	{"generated name taken", "topology: {star: {hosts: 2}}\nhosts: [sw1]\n", 2, "hosts[0]",
		"already a switch"},
	{"two generators of the same names",
		"topology:\n  star: {hosts: 2}\n  ring: {switches: 3}\n", 2, "topology",
		"'sw1' exists already"},

	// ---- routing
	{"route without dst", NET "routing:\n  - {switch: sw1, via: h1}\n", 5, "routing[0].dst",
		"missing"},
	{"route without via", NET "routing:\n  - {switch: sw1, dst: h1}\n", 5, "routing[0].via",
		"missing"},
	{"route at a host", NET "routing:\n  - {switch: h1, dst: h2, via: sw1}\n", 5,
		"routing[0].switch", "is a host, expected a switch"},
	{"route to a switch", NET "routing:\n  - {switch: sw1, dst: sw1, via: h1}\n", 5,
		"routing[0].dst", "is a switch, expected a host"},
	{"route via a stranger",
		"switches: [s, t]\nhosts: [h1, h2]\nlinks: [[s, h1], [t, h2], [s, t]]\n"
		"routing: [{switch: s, dst: h2, via: h2}]\n",
		4, "routing[0].via", "h2 is not a neighbour of s"},
	{"route via another's port", NET "routing:\n  - {switch: sw1, dst: h1, via: 'h1:eth0'}\n",
		5, "routing[0].via", "a port of another node"},
	{"unknown port", NET "routing:\n  - {switch: sw1, dst: h1, via: 'sw1:eth7'}\n", 5,
		"routing[0].via", "sw1 has no port 'eth7', expected one of eth0 to eth1"},
	{"prefix of nobody", NET "routing:\n  - {switch: sw1, dst: 192.168.0.0/16, via: h1}\n", 5,
		"routing[0].dst", "no host has an address in"},
	{"path of one", NET "routing:\n  - {dst: h1, path: [sw1]}\n", 5, "routing[0].path",
		"two or more switches"},

	// ---- workloads
	{"flow without src", NET "workloads:\n  f: {dst: h2}\n", 5, "workloads.f.src", "missing"},
	{"flow without dst", NET "workloads:\n  f: {src: h1}\n", 5, "workloads.f.dst", "missing"},
	{"flow to nobody", NET "workloads:\n  f: {src: h1, dst: h22}\n", 5, "workloads.f.dst",
		"did you mean h2?"},
	{"flow to itself", NET "workloads:\n  f: {src: h1, dst: h1}\n", 5, "workloads.f.dst",
		"is the source itself"},
	{"flow from a switch", NET "workloads:\n  f: {src: sw1, dst: h1}\n", 5, "workloads.f.src",
		"is a switch, expected a host"},
	{"unreachable host",
		"switches: [a, b]\nhosts: [h1, h2]\nlinks: [[a, h1], [b, h2]]\n"
		"workloads:\n  f: {src: h1, dst: h2, bytes: 1MB}\n",
		5, "workloads.f", "h2 is not reachable from h1"},
	{"workload type", NET "workloads:\n  f: {type: incats, dst: h1}\n", 5, "workloads.f.type",
		"did you mean incast?"},
	{"key of another type", NET "workloads:\n  f: {src: h1, dst: h2, shift: 2}\n", 5,
		"workloads.f.shift", "has no meaning for this type"},
	{"message too long", NET "workloads:\n  f: {src: h1, dst: h2, bytes: 3GiB}\n", 5,
		"workloads.f.bytes", "out of range"},
	{"message of nothing", NET "workloads:\n  f: {src: h1, dst: h2, bytes: 0}\n", 5,
		"workloads.f.bytes", "out of range"},
	{"endless flow in an endless run", NET "workloads:\n  f: {src: h1, dst: h2}\n", 5,
		"workloads.f", "is endless in a run without end"},
	{"event-started endless flow in an endless run",
		NET "workloads:\n  f: {src: h1, dst: h2, start: event}\n", 5, "workloads.f",
		"is endless in a run without end"},
	{"endless storm in an endless run", NET "events:\n  - {at: 1ms, pause_storm: {host: h1}}\n",
		5, "events", "pause storm of h1 is endless"},
	{"timeouts the wrong way round",
		"switches: [s]\nhosts:\n  h1:\n    nic: {recovery: selective-repeat,\n"
		"      rto_low: 1ms}\nlinks: [[s, h1]]\n",
		5, "hosts.h1.nic.rto_low", "is above rto_high at h1"},
	{"timeouts the wrong way round by default",
		NET "defaults: {nic: {recovery: selective-repeat, rto_high: 1us}}\n", 4,
		"defaults.nic.rto_high", "is below rto_low at h1"},
	{"a tolerance of time but not of packets", NET "defaults: {nic: {ooo_time: 1us}}\n", 4,
		"defaults.nic.ooo_time", "has no meaning at h1, whose ooo is 0"},
	{"a bitmap too large",
		NET "defaults:\n  nic: {recovery: selective-repeat,\n    window: 65537}\n", 6,
		"defaults.nic.window", "is 65537 packets at h1, expected at most 65536"},
	{"ends that recover differently",
		"switches: [s]\nhosts:\n  h1: {nic: {recovery: selective-repeat}}\n  h2:\n"
		"links: [[s, h1], [s, h2]]\nworkloads:\n  f: {src: h1, dst: h2, bytes: 1B}\n",
		7, "workloads.f",
		"joins h1 with recovery selective-repeat and h2 with go-back-N, expected the same"},

	// ---- operation, transport, RoCE version
	{"op unknown", NET "workloads:\n  f: {src: h1, dst: h2, op: RECV}\n", 5, "workloads.f.op",
		"expected one of: WRITE, WRITE_IMM, SEND, SEND_IMM, READ, CMP_SWAP, FETCH_ADD"},
	{"READ over UC", NET "workloads:\n  f: {src: h1, dst: h2, transport: UC, op: READ}\n", 5,
		"workloads.f.op", "READ is not carried by UC, expected WRITE"},
	{"WRITE over UD", NET "workloads:\n  f: {src: h1, dst: h2, transport: UD}\n", 5,
		"workloads.f.op", "WRITE is not carried by UD, expected SEND or SEND_IMM"},
	{"long datagram",
		NET "workloads:\n"
		    "  f: {src: h1, dst: h2, transport: UD, op: SEND, bytes: 1025B}\n",
		5, "workloads.f", "more `bytes` than a UD packet carries"},
	{"atomic of another size",
		NET "workloads:\n  f: {src: h1, dst: h2, op: CMP_SWAP, bytes: 4B}\n", 5,
		"workloads.f.bytes", "not what an atomic works on, expected 8B"},
	{"RoCE version", NET "workloads:\n  f: {src: h1, dst: h2, roce: v3}\n", 5,
		"workloads.f.roce", "expected one of: v2, v1"},
	{"READ with tolerance",
		NET "defaults: {nic: {ooo: 4}}\nworkloads:\n  f: {src: h1, dst: h2, op: READ}\n", 6,
		"workloads.f", "READ and atomics with `ooo` or selective-repeat"},
	{"more READs than the peer takes",
		"switches: [s]\nhosts:\n  h1:\n  h2: {nic: {max_rd_atomic: 4}}\n"
		"links: [[s, h1], [s, h2]]\nworkloads:\n  f: {src: h1, dst: h2, op: READ}\n",
		7, "workloads.f", "a larger `max_rd_atomic` at src"},
	{"RoCE v1 with selective repeat",
		NET "defaults: {nic: {recovery: selective-repeat}}\n"
		    "workloads:\n  f: {src: h1, dst: h2, roce: v1}\n",
		6, "workloads.f", "RoCE v1 with selective-repeat"},
	{"adaptive with selective repeat",
		NET "defaults: {nic: {recovery: selective-repeat, adaptive_retrans: yes}}\n", 4,
		"defaults", "h1 has adaptive_retrans and recovery selective-repeat"},
	{"no READ at all", NET "defaults: {nic: {max_rd_atomic: 0}}\n", 4,
		"defaults.nic.max_rd_atomic", "expected 1"},
	{"READ data too large for the link it leaves by",
		"switches: [s]\nhosts: [h1, h2]\nlinks:\n  - [s, h1]\n  - {ends: [s, h2], mtu: "
		"1000}\n"
		"workloads:\n  f: {src: h1, dst: h2, op: READ}\n",
		7, "workloads.f", "do not fit link"},
	{"RNR timer out of range", NET "defaults: {nic: {min_rnr_timer: 32}}\n", 4,
		"defaults.nic.min_rnr_timer", "expected 0"},
	// 4096 + 20 + 40 bytes of headers
	{"packets that do not fit the link",
		NET "workloads:\n  f: {src: h1, dst: h2, bytes: 1MB}\n"
		    "defaults: {nic: {mtu: 4096}, link: {mtu: 4155}}\n",
		5, "workloads.f", "packets of 4156 bytes do not fit link sw1:eth0-h1:eth0"},
	{"endpoint of a larger MTU than its link",
		"clock: wall\nswitches: [s]\nhosts:\n  h1: {attach: {kind: tap, mtu: 9500}}\n"
		"links: [[s, h1]]\n",
		4, "hosts.h1.attach", "its MTU 9500 is above the 9100 of link"},
	{"stop before start",
		NET "workloads:\n  f: {src: h1, dst: h2, bytes: 1MB, start: 2ms, stop: 1ms}\n", 5,
		"workloads.f.stop", "is not after start"},
	{"dscp 64", NET "workloads:\n  f: {src: h1, dst: h2, dscp: 64}\n", 5, "workloads.f.dscp",
		"from 0 to 63"},
	{"dscp and priority",
		NET "workloads:\n  f: {src: h1, dst: h2, bytes: 1MB, dscp: 3, priority: 3}\n", 5,
		"workloads.f.priority", "together with dscp"},
	{"priority that no DSCP has",
		NET "workloads:\n  f: {src: h1, dst: h2, bytes: 1MB, priority: 7}\n", 5,
		"workloads.f.priority", "no DSCP maps to traffic class 7"},
	{"incast from itself", NET "workloads:\n  f: {type: incast, src: [h1, h2], dst: h2}\n", 5,
		"workloads.f.src[1]", "is named twice"},
	{"fan-in too wide", NET "workloads:\n  f: {type: incast, dst: h2, fanin: 4}\n", 5,
		"workloads.f.fanin", "only 1 senders"},
	{"permutation onto itself", NET "workloads:\n  f: {type: permutation, shift: 2}\n", 5,
		"workloads.f.shift", "sends to oneself"},
	{"all to all of one", NET "workloads:\n  f: {type: all_to_all, hosts: [h1]}\n", 5,
		"workloads.f.hosts", "expected two or more"},
	{"workloads a list", NET "workloads:\n  - {src: h1, dst: h2}\n", 5, "workloads",
		"expected a mapping of workloads"},
	{"source ports run out",
		NET "workloads:\n  f: {src: h1, dst: h2, bytes: 1B, qps: 4, udp_sport: 65533}\n", 5,
		"workloads.f.udp_sport", "no room for 4 QPs"},

	// ---- events
	{"event without time", NET "events:\n  - {link_down: 'sw1:eth0'}\n", 5, "events[0].at",
		"missing"},
	{"event of nothing", NET "events:\n  - {at: 1ms}\n", 5, "events[0]",
		"expected exactly one"},
	{"two at once", NET "events:\n  - {at: 1ms, link_down: 'sw1:eth0', link_up: 'sw1:eth0'}\n",
		5, "events[0]", "2 things happen at once"},
	{"unknown link", NET "events:\n  - {at: 1ms, link_down: uplink}\n", 5,
		"events[0].link_down", "no link 'uplink'"},
	{"no such link", NET "events:\n  - {at: 1ms, link_down: [h1, h2]}\n", 5,
		"events[0].link_down", "no link between h1 and h2"},
	{"storm of a switch", NET "events:\n  - {at: 1ms, pause_storm: {host: sw1}}\n", 5,
		"events[0].pause_storm.host", "is not a built-in NIC"},
	{"storm of nobody", NET "events:\n  - {at: 1ms, pause_storm: {priority: 3}}\n", 5,
		"events[0].pause_storm.host", "missing"},
	{"storm of no priority",
		NET "events:\n  - {at: 1ms, pause_storm: {host: h1, priority: []}}\n", 5,
		"events[0].pause_storm.priority", "is empty"},
	{"unknown flow", NET "events:\n  - {at: 1ms, flow_stop: f1}\n", 5, "events[0].flow_stop",
		"no workload or flow 'f1'"},
	{"start of a flow that starts by itself",
		NET "workloads: {f: {src: h1, dst: h2, bytes: 1MB}}\n"
		    "events:\n  - {at: 1ms, flow_start: f}\n",
		6, "events[0].flow_start", "expected `start: event`"},
	{"corrupt without probability",
		NET "events:\n  - {at: 1ms, set_corrupt: {link: 'h1:eth0'}}\n", 5,
		"events[0].set_corrupt.probability", "missing"},
	{"fault without action", NET "faults:\n  - {link: 'h1:eth0'}\n", 5, "faults[0].action",
		"missing"},
	{"fault nowhere", NET "faults:\n  - {action: drop}\n", 5, "faults[0].link", "missing"},
	{"unknown action", NET "faults:\n  - {link: 'h1:eth0', action: lose}\n", 5,
		"faults[0].action", "expected"},
	{"unknown kind of frame", NET "faults:\n  - {link: 'h1:eth0', action: drop, op: writes}\n",
		5, "faults[0].op", "no kind of frame"},
	{"no kind of frame", NET "faults:\n  - {link: 'h1:eth0', action: drop, op: []}\n", 5,
		"faults[0].op", "is empty"},
	{"no priority", NET "faults:\n  - {link: 'h1:eth0', action: drop, priority: []}\n", 5,
		"faults[0].priority", "is empty"},
	{"two ways to pick", NET "faults:\n  - {link: 'h1:eth0', action: drop, nth: 1, every: 2}\n",
		5, "faults[0]", "picks frames in 2 ways"},
	{"message without packet", NET "faults:\n  - {link: 'h1:eth0', action: drop, message: 2}\n",
		5, "faults[0].message", "needs packet"},
	{"packet 0", NET "faults:\n  - {link: 'h1:eth0', action: drop, packet: 0}\n", 5,
		"faults[0].packet", "out of range"},
	{"delay of nothing", NET "faults:\n  - {link: 'h1:eth0', action: delay}\n", 5, "faults[0]",
		"needs delay"},
	{"drop with a delay", NET "faults:\n  - {link: 'h1:eth0', action: drop, delay: 1us}\n", 5,
		"faults[0].delay", "means nothing to action drop"},
	{"truncate to a runt",
		NET "faults:\n  - {link: 'h1:eth0', action: truncate, length: 20B}\n", 5,
		"faults[0].length", "out of range"},
	{"until before from",
		NET "faults:\n  - {link: 'h1:eth0', action: drop, from: 2us, until: 1us}\n", 5,
		"faults[0].until", "not after"},
	{"fault of an unknown flow", NET "faults:\n  - {link: 'h1:eth0', action: drop, flow: f}\n",
		5, "faults[0].flow", "no flow"},
	{"fault from a switch", NET "faults:\n  - {link: 'h1:eth0', action: drop, src: sw1}\n", 5,
		"faults[0].src", "is a switch"},
	{"queue pair 0", NET "faults:\n  - {link: 'h1:eth0', action: drop, qp: 0}\n", 5,
		"faults[0].qp", "out of range"},
	{"half a chain", NET "faults:\n  - {link: 'h1:eth0', action: drop, gilbert: {p: 1%}}\n", 5,
		"faults[0].gilbert.r", "missing"},
	{"more than certain", NET "faults:\n  - {link: 'h1:eth0', action: drop, probability: 2}\n",
		5, "faults[0].probability", "out of range"},
	{"two rules of one name",
		NET "faults:\n  - {name: x, link: 'h1:eth0', action: drop}\n"
		    "  - {name: x, link: 'h1:eth0', action: drop}\n",
		6, "faults[1]", "named 'x' already"},
	{"an application of no kind",
		"switches: [s]\nhosts:\n  a:\n    apps: {x: {type: netperf}}\n  b: {}\nlinks: "
		"[[a, s], [b, s]]\n",
		4, "hosts.a.apps.x.type", "rping-server"},
	{"a client without a server",
		"switches: [s]\nhosts:\n  a:\n    apps: {x: {type: initiator}}\n  b: {}\nlinks: "
		"[[a, s], [b, s]]\n",
		4, "hosts.a.apps.x.type", "expected a `peer`"},
	{"a server with a peer",
		"switches: [s]\nhosts:\n  a:\n    apps: {x: {type: target, peer: b}}\n  b: "
		"{}\nlinks: [[a, s], [b, s]]\n",
		4, "hosts.a.apps.x.peer", "expected none with target"},
	{"a ping too short",
		"switches: [s]\nhosts:\n  a:\n    apps: {x: {type: rping-client, peer: b, size: "
		"1B}}\n  b: {}\nlinks: [[a, s], [b, s]]\n",
		4, "hosts.a.apps.x.size", "for rping-client"},
	{"two applications of one name",
		"switches: [s]\nhosts:\n  a:\n    apps: {x: {type: target}}\n  b:\n    apps: {x: "
		"{type: target}}\nlinks: [[a, s], [b, s]]\n",
		6, "hosts.b.apps.x", "exists already"},
	{"an application at a replay",
		"switches: [s]\nhosts:\n  a:\n    replay: {file: x.pcap}\n    apps: {x: {type: "
		"target}}\n  b: {}\nlinks: [[a, s], [b, s]]\n",
		5, "hosts.a.apps", "built-in NICs"},
	{"faults as a map", NET "faults: {a: 1}\n", 4, "faults", "expected a list of rules"},
	{"bit error rate of a percent sign",
		NET "events:\n  - {at: 1ms, set_ber: {link: 'h1:eth0', ber: x}}\n", 5,
		"events[0].set_ber.ber", "not a number"},
	{"a rate of nothing", NET "events:\n  - {at: 1ms, set_rate: {link: 'h1:eth0', rate: 0}}\n",
		5, "events[0].set_rate.rate", "out of range"},
	{"flap without end", NET "events:\n  - {at: 1ms, flap: {link: 'h1:eth0', period: 1ms}}\n",
		5, "events[0].flap.count", "missing"},
	{"flap always up",
		NET "events:\n  - {at: 1ms, flap: {link: 'h1:eth0', period: 1ms, duty: 100%, "
		    "count: 1}}\n",
		5, "events[0].flap.duty", "out of range"},
	{"reboot of a host", NET "events:\n  - {at: 1ms, reboot: {switch: h1, duration: 1ms}}\n", 5,
		"events[0].reboot.switch", "is a host"},
	{"slow switch", NET "events:\n  - {at: 1ms, slow_receiver: {host: sw1, rate: 1Gbps}}\n", 5,
		"events[0].slow_receiver.host", "is not a built-in NIC"},
	{"unknown direction",
		NET "events:\n  - {at: 1ms, link_down: {link: 'h1:eth0', direction: up}}\n", 5,
		"events[0].link_down.direction", "expected"},
	{"path in an event", NET "events:\n  - {at: 1ms, route: {dst: h1, path: [sw1, h1]}}\n", 5,
		"events[0].route.path", "is not possible here"},

	// ---- captures
	{"capture without file", NET "captures:\n  - {taps: sw1}\n", 5, "captures[0].file",
		"missing"},
	{"tap of nobody", NET "captures:\n  - {file: a, taps: [sw1, sw3]}\n", 5,
		"captures[0].taps[1]", "did you mean sw1?"},
	{"ring without size", NET "captures:\n  - {file: a, ring: 4}\n", 5, "captures[0].ring",
		"needs max_size"},
	{"two captures in one file", NET "captures:\n  - {file: a}\n  - {file: a}\n", 6,
		"captures[1].file", "another capture's file"},
	{"captures a map", NET "captures: {file: a}\n", 4, "captures", "expected a list"},

	// ---- expectations
	{"assertion without operator", NET "expect:\n  - deadlock\n", 5, "expect[0]",
		"is not an assertion"},
	{"assertion without value", NET "expect:\n  - drops.total ==\n", 5, "expect[0]",
		"has no value"},
	{"assertion with a wrong unit", NET "expect:\n  - flow.f.goodput > 10ms\n", 5, "expect[0]",
		"wrong unit, expected a rate"},
	{"assertion of a truth value", NET "expect:\n  - deadlock == 3\n", 5, "expect[0]",
		"expected yes or no"},
	{"assertion with a list", NET "expect:\n  - drops.total: [1, 2]\n", 5,
		"expect[0].drops.total", "is a list"},
};

#define N_BAD (sizeof(table) / sizeof(table[0]))

// Loads `yaml` and returns what it printed (caller frees).
static char *load_messages(const char *yaml, int *rc)
{
	char *text = NULL;
	size_t len = 0;
	FILE *err = open_memstream(&text, &len);
	struct scenario *s = NULL;

	assert_non_null(err);
	*rc = scenario_load_text("t.yaml", yaml, strlen(yaml), NULL, &s, err);
	fclose(err);
	if (*rc != 0)
		assert_null(s);
	scenario_free(s);
	return text;
}

// True if one line of `text` has the position, the key and the problem of `b`.
static bool has_message(const char *text, const struct bad *b)
{
	char position[40];

	snprintf(position, sizeof(position), "t.yaml:%u:", b->line);
	for (const char *line = text; *line != '\0';) {
		size_t len = strcspn(line, "\n");
		char *copy = strndup(line, len);
		bool ok = strncmp(copy, position, strlen(position)) == 0 &&
			  strstr(copy, b->key) != NULL && strstr(copy, b->says) != NULL;
		free(copy);
		if (ok)
			return true;
		line += len + (line[len] == '\n');
	}
	return false;
}

static void every_malformed_scenario_is_refused_with_line_and_key(void **state)
{
	unsigned failed = 0;

	for (size_t i = 0; i < N_BAD; i++) {
		int rc;
		char *text = load_messages(table[i].yaml, &rc);

		if (rc != -EINVAL || !has_message(text, &table[i])) {
			print_error("%s: rc %d, expected line %u, '%s', '%s', got:\n%s",
				table[i].what, rc, table[i].line, table[i].key, table[i].says,
				text);
			failed++;
		}
		free(text);
	}
	assert_int_equal(failed, 0);
}

static void several_errors_are_reported_at_once(void **state)
{
	static const char yaml[] = NET "defaults:\n  link: {rate: 5}\n  nic: {mtu: 5}\n";
	int rc;
	char *text = load_messages(yaml, &rc);

	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(text, "t.yaml:5:16: defaults.link.rate: "));
	assert_non_null(strstr(text, "t.yaml:6:14: defaults.nic.mtu: "));
	free(text);
}

static void errors_stop_at_twenty(void **state)
{
	char yaml[4096] = NET "expect:\n";
	unsigned lines = 0;
	int rc;

	for (int i = 0; i < 40; i++)
		strcat(yaml, "  - nonsense\n");
	char *text = load_messages(yaml, &rc);
	for (const char *c = text; *c != '\0'; c++)
		lines += *c == '\n';
	assert_int_equal(rc, -EINVAL);
	assert_int_equal(lines, 21); // and one that says so
	assert_non_null(strstr(text, "too many errors"));
	free(text);
}

// Ten levels of ten aliases each would expand to 10^10 values.
static void an_alias_bomb_is_refused(void **state)
{
	char yaml[4096] = "a0: &a0 x\n", line[128];
	int rc;

	for (int i = 1; i <= 10; i++) {
		snprintf(line, sizeof(line),
			"a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1,
			i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
		strcat(yaml, line);
	}
	char *text = load_messages(yaml, &rc);
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(text, "too many values"));
	free(text);
}

static void deep_nesting_is_refused(void **state)
{
	char yaml[2001];
	int rc;

	memset(yaml, '[', 900);
	memset(yaml + 900, ']', 900);
	yaml[1800] = '\0';
	char *text = load_messages(yaml, &rc);
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(text, "nested too deeply"));
	free(text);
}

static void a_huge_file_is_refused(void **state)
{
	size_t len = 3u << 20;
	char *yaml = malloc(len + 1);
	int rc;

	memset(yaml, '\n', len);
	yaml[len] = '\0';
	char *text = load_messages(yaml, &rc);
	assert_int_equal(rc, -EINVAL);
	assert_non_null(strstr(text, "t.yaml: the file is larger than"));
	free(text);
	free(yaml);
}

static void a_missing_file_says_so(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *err = open_memstream(&text, &len);
	struct scenario *s;

	assert_int_equal(scenario_load("/nonexistent/x.yaml", NULL, &s, err), -ENOENT);
	fclose(err);
	assert_string_equal(text, "/nonexistent/x.yaml: cannot open: No such file or directory\n");
	free(text);
}

static void a_folder_is_no_scenario(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *err = open_memstream(&text, &len);
	struct scenario *s;

	assert_int_equal(scenario_load("/", NULL, &s, err), -EISDIR);
	fclose(err);
	assert_non_null(strstr(text, "cannot read: Is a directory"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_malformed_scenario_is_refused_with_line_and_key),
		cmocka_unit_test(several_errors_are_reported_at_once),
		cmocka_unit_test(errors_stop_at_twenty),
		cmocka_unit_test(an_alias_bomb_is_refused),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(a_huge_file_is_refused),
		cmocka_unit_test(a_missing_file_says_so),
		cmocka_unit_test(a_folder_is_no_scenario),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
