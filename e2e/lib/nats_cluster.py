"""Real nats-server processes: one on one host, or a cluster with a node on each of three hosts.

In a cluster, a host that is cut off has a node that answers but has no quorum, while the other two go on. With the
NATS servers on other hosts, only the connection to them could be cut.
"""

import os
import signal
import subprocess

from lib.processes import all_processes
from lib.util import eventually

CONFIG = """
server_name: {name}
listen: {address}:4222
max_payload: 8MB
jetstream {{ store_dir: "{store}", sync_interval: always }}
"""
CLUSTER = """
cluster {{
  name: e2e
  listen: {address}:6222
  routes: [{routes}]
  # An unplugged cable closes no connection. Without these settings, a node that is plugged in again waits half a
  # minute or more until its old connections fail.
  ping_interval: "2s"
  ping_max: 2
}}
"""


class NatsCluster:
    """A context manager that runs a node on each machine."""

    def __init__(self, machines, folder):
        self._machines, self._folder = machines, folder
        self._nodes, self._configs = [], []

    def __enter__(self):
        routes = ", ".join(f'"nats://{machine.address}:6222"' for machine in self._machines)
        for machine in self._machines:
            folder = self._folder / machine.name
            folder.mkdir(parents=True)
            config = folder / "nats.conf"
            values = {"name": machine.name, "address": machine.address, "store": folder / "store", "routes": routes}
            text = CONFIG + (CLUSTER if len(self._machines) > 1 else "")
            config.write_text(text.format(**values))
            with (folder / "log").open("wb") as log:
                command = [*machine.enter(), os.environ["NATS_SERVER"], "--config", config]
                self._nodes.append(subprocess.Popen(command, stdout=log, stderr=log))
            self._configs.append(str(config))
        return self

    def __exit__(self, *_):
        # Our children are the nsenter processes; each ends with its node.
        for process in all_processes():
            if process.argv[:1] == (os.environ["NATS_SERVER"],) and process.argv[-1] in self._configs:
                os.kill(process.pid, signal.SIGTERM)
        for node in self._nodes:
            node.wait()

    def store(self, machine):
        """The addresses of the NATS servers for this machine, its own node first."""
        others = [other for other in self._machines if other is not machine]
        return ",".join(f"nats://{each.address}:4222" for each in [machine, *others])

    def is_ready(self, timeout=30):
        """Whether every node accepts clients, and knows the leader of a cluster."""
        sign = "metadata leader" if len(self._machines) > 1 else "Server is ready"
        logs = [self._folder / machine.name / "log" for machine in self._machines]
        return eventually(lambda: all(sign in log.read_text() for log in logs), timeout)
