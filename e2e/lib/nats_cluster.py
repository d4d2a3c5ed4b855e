"""Runs real nats-server processes: one on one host, or a cluster with a node on each of three hosts.

If a host of the cluster is cut off, its own node still answers but has no quorum, while the other two nodes
continue. If the nodes had hosts of their own, a host that is cut off would merely have no node to talk to.
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
  # Unplugging a cable closes no connection. Without these settings, a node whose cable is plugged in again waits
  # half a minute or more until its old connections fail.
  ping_interval: "2s"
  ping_max: 2
}}
"""


class NatsCluster:
    """A context manager that runs a NATS server on each machine."""

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
        # Our child processes are nsenter. Terminate the NATS servers themselves; each nsenter then ends as well.
        for process in all_processes():
            if process.argv[:1] == (os.environ["NATS_SERVER"],) and process.argv[-1] in self._configs:
                os.kill(process.pid, signal.SIGTERM)
        for node in self._nodes:
            node.wait()

    def store(self, machine):
        """Returns the addresses of all NATS servers, with this machine's own server first."""
        others = [other for other in self._machines if other is not machine]
        return ",".join(f"nats://{each.address}:4222" for each in [machine, *others])

    def is_ready(self, timeout=30):
        """Waits until every node accepts clients and, in a cluster, knows the leader; False at the timeout."""
        sign = "metadata leader" if len(self._machines) > 1 else "Server is ready"
        logs = [self._folder / machine.name / "log" for machine in self._machines]
        return eventually(lambda: all(sign in log.read_text() for log in logs), timeout)
