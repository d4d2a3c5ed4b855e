"""The engine: three nodes of the real nats-server, one on each host.

So a host that is cut off takes a node with it: its programs have a node that answers, and has no say, while
the others go on with two. With the engine on a host of its own only the way to it could be cut.
"""

import os
import signal
import subprocess

from house import eventually
from teammate import processes

CONFIG = """
server_name: {name}
listen: {address}:4222
max_payload: 8MB
jetstream {{ store_dir: "{store}", sync_interval: always }}
cluster {{
  name: proof
  listen: {address}:6222
  routes: [{routes}]
  # A cable that is out is not told. Without these a node waits for the next try of its old connections when
  # it is back, which is after half a minute and more.
  ping_interval: "2s"
  ping_max: 2
}}
"""


class Cluster:
    """A node on each machine, while it is entered."""

    def __init__(self, machines, folder):
        self._machines, self._folder = machines, folder
        self._nodes, self._configs = [], []

    def __enter__(self):
        routes = ", ".join(f'"nats://{machine.address}:6222"' for machine in self._machines)
        for machine in self._machines:
            place = self._folder / machine.name
            place.mkdir(parents=True)
            config = place / "nats.conf"
            words = {"name": machine.name, "address": machine.address, "store": place / "store", "routes": routes}
            config.write_text(CONFIG.format(**words))
            with (place / "log").open("wb") as log:
                command = [*machine.inside(), os.environ["NATS_SERVER"], "--config", config]
                self._nodes.append(subprocess.Popen(command, stdout=log, stderr=log))
            self._configs.append(str(config))
        return self

    def __exit__(self, *_):
        # What was started is the way into each host; it ends with the node.
        for process in processes():
            if process.words[:1] == (os.environ["NATS_SERVER"],) and process.words[-1] in self._configs:
                os.kill(process.pid, signal.SIGTERM)
        for node in self._nodes:
            node.wait()

    def store(self, machine):
        """Where brigade finds the engine from this machine: its own node first."""
        others = [other for other in self._machines if other is not machine]
        return ",".join(f"nats://{each.address}:4222" for each in [machine, *others])

    def agrees(self, patience=30):
        """Whether every node has been told who leads them."""
        logs = [self._folder / machine.name / "log" for machine in self._machines]
        return eventually(lambda: all("metadata leader" in log.read_text() for log in logs), patience)
