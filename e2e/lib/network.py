"""Hosts that have nothing in common but a cable to one switch: namespaces of network, processes and names.

The switch is in the namespace this program runs in, which has no way out and no address of its own. Nothing
of it has a name in the system, so all of it is gone with its processes.
"""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

from house import eventually

SWITCH = "switch"
NETWORK = "10.77.0"
# The first process of a host: it names it, and collects those whose parents have gone.
FIRST = 'echo "$0" >/proc/sys/kernel/hostname && ip link set lo up && while :; do sleep 3600 & wait $!; done'


class Machines:
    """The hosts of these names, while it is entered."""

    def __init__(self, names):
        self._names = names
        self._stack = ExitStack()

    def __enter__(self):
        ip("link", "add", SWITCH, "type", "bridge")
        self._stack.callback(ip, "link", "delete", SWITCH)
        ip("link", "set", SWITCH, "up")
        machines = enumerate(self._names, 1)
        return [self._stack.enter_context(Machine(name, f"{NETWORK}.{number}")) for number, name in machines]

    def __exit__(self, *failure):
        self._stack.close()


class Machine:
    def __init__(self, name, address):
        self.name, self.address = name, address
        self._cable = f"to-{name}"

    def __enter__(self):
        apart = ["unshare", "--net", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child"]
        silent = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([*apart, "bash", "-c", FIRST, self.name], **silent)
        self._first = eventually(self._child, 5)
        if not self._first:
            raise RuntimeError(f"no namespaces to be had for {self.name}")
        ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", str(self._first))
        ip("link", "set", self._cable, "master", SWITCH)
        self.plug()
        for words in (["address", "add", f"{self.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
            subprocess.run([*self.inside(), "ip", *words], check=True)
        return self

    def _child(self):
        """The first process of the host, as this program sees it."""
        pid = self._process.pid
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # It is itself only once it is in namespaces of its own.
        own = lambda child: os.readlink(f"/proc/{child}/ns/pid") != os.readlink("/proc/self/ns/pid")  # noqa: E731
        return next((int(child) for child in found if own(child)), None)

    def __exit__(self, *_):
        # What is left in the host ends with its first process.
        os.kill(self._first, 9)
        self._process.wait()

    def inside(self, folder="/"):
        """What a command begins with that is to run on this host, in this folder."""
        spaces = ["--net", "--uts", "--pid", "--mount"]
        return ["nsenter", "--target", str(self._first), *spaces, "--", "env", f"--chdir={folder}"]

    def unplug(self):
        """Takes the cable out of the switch. Nobody is told; packets are lost from now on."""
        ip("link", "set", self._cable, "down")

    def plug(self):
        ip("link", "set", self._cable, "up")


def ip(*words):
    subprocess.run(["ip", *words], check=True)
