# SPDX-License-Identifier: BSD-3-Clause
"""OVS-DPDK with one flow rule between the same source and sink as the other forwarders: its own
database and switch in a temporary directory, nothing of the system's Open vSwitch is touched.
"""

import os
import re
import shutil
import statistics
import subprocess
import time

SWITCHD = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
BRIDGE = "br0"


def installed():
    return os.path.exists(SWITCHD) and os.path.exists(SCHEMA) and shutil.which("ovsdb-tool")


class Switch:
    """A running ovsdb-server and ovs-vswitchd; stops them on exit."""

    def __init__(self, tmp):
        self.dir = os.path.join(tmp, "ovs")
        os.mkdir(self.dir)
        self.env = dict(os.environ, OVS_RUNDIR=self.dir, OVS_LOGDIR=self.dir, OVS_DBDIR=self.dir)
        self.db = "unix:" + os.path.join(self.dir, "db.sock")
        self.children = []

    def start(self, *argv):
        self.children.append(subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.DEVNULL,
                                              stderr=subprocess.DEVNULL))

    def run(self, *argv):
        return subprocess.run(argv, env=self.env, stdin=subprocess.DEVNULL, text=True, timeout=60,
                              capture_output=True, check=True).stdout

    def vsctl(self, *argv):
        return self.run("ovs-vsctl", "--db=" + self.db, "--timeout=30", *argv)

    def __enter__(self):
        db = os.path.join(self.dir, "conf.db")
        self.run("ovsdb-tool", "create", db, SCHEMA)
        self.start("ovsdb-server", db, "--remote=p" + self.db,
                   "--unixctl=" + os.path.join(self.dir, "db.ctl"))
        for _ in range(50):
            if os.path.exists(self.db[len("unix:"):]):
                break
            time.sleep(0.1)
        self.vsctl("--no-wait", "init")
        self.vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:dpdk-init=true",
                   "other_config:dpdk-extra=--no-huge --legacy-mem -m 1024 --no-pci",
                   "other_config:pmd-cpu-mask=0x2")
        self.start(SWITCHD, self.db, "--unixctl=" + os.path.join(self.dir, "switchd.ctl"))
        return self

    def __exit__(self, *_):
        for child in reversed(self.children):
            child.terminate()
        for child in self.children:
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def add_port(self, name, devargs):
        self.vsctl("add-port", BRIDGE, name, "--", "set", "Interface", name, "type=dpdk",
                   "options:dpdk-devargs=" + devargs)

    def tx_packets(self, name):
        """As the port counts now: the database's copy is up to 5 seconds old."""
        ports = self.run("ovs-ofctl", "dump-ports", BRIDGE, name)
        return int(re.search(r"tx pkts=(\d+)", ports).group(1))


def mpps(pcap, tmp, seconds):
    """Median rate in Mpps, or None with the reason."""
    try:
        with Switch(tmp) as ovs:
            ovs.vsctl("add-br", BRIDGE, "--", "set", "Bridge", BRIDGE, "datapath_type=netdev")
            ovs.run("ovs-ofctl", "del-flows", BRIDGE)
            ovs.add_port("sink", "net_null0,no-rx=1")
            ovs.add_port("source", "net_pcap0,rx_pcap=%s,infinite_rx=1" % pcap)
            ovs.run("ovs-ofctl", "add-flow", BRIDGE, "in_port=source,actions=output:sink")
            rates = []
            time.sleep(2)
            before, then = ovs.tx_packets("sink"), time.monotonic()
            for _ in range(seconds):
                time.sleep(1)
                now, t = ovs.tx_packets("sink"), time.monotonic()
                rates.append((now - before) / (t - then) / 1e6)
                before, then = now, t
            rate = statistics.median(rates)
            return (rate, None) if rate > 0 else (None, "it forwarded nothing")
    except subprocess.CalledProcessError as e:
        lines = (e.stderr or "").strip().splitlines()
        return None, lines[-1] if lines else str(e)
    except subprocess.TimeoutExpired as e:
        return None, "%s did not answer" % e.cmd[0]
