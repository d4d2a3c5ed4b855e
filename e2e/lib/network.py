"""Simulated hosts: namespaces for network, processes and host name, connected by a network bridge.

The bridge is in the network namespace of this program, which has no other network. None of the namespaces has
a name, so the kernel removes them when their processes end.
"""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

from lib.util import eventually

SWITCH = "switch"
NETWORK = "10.77.0"
# Process 1 of a host: sets the host name, and reaps orphaned processes.
INIT = 'echo "$0" >/proc/sys/kernel/hostname && ip link set lo up && while :; do sleep 3600 & wait $!; done'


class Machines:
    """A context manager for hosts with these names."""

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
        unshare = ["unshare", "--net", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child"]
        no_output = {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen([*unshare, "bash", "-c", INIT, self.name], **no_output)
        self._init = eventually(self._child, 5)
        if not self._init:
            raise RuntimeError(f"cannot create namespaces for {self.name}")
        ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", str(self._init))
        ip("link", "set", self._cable, "master", SWITCH)
        self.plug()
        for arguments in (["address", "add", f"{self.address}/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
            subprocess.run([*self.enter(), "ip", *arguments], check=True)
        return self

    def _child(self):
        """Process 1 of the host, by its id in our process namespace."""
        pid = self._process.pid
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # Before it is in its own namespaces, it is still `unshare`.
        own = os.readlink("/proc/self/ns/pid")
        return next((int(child) for child in found if os.readlink(f"/proc/{child}/ns/pid") != own), None)

    def __exit__(self, *_):
        # The kernel kills all other processes of the host with process 1.
        os.kill(self._init, 9)
        self._process.wait()

    def enter(self, folder="/"):
        """The prefix of a command that is to run on this host, in this folder."""
        namespaces = ["--net", "--uts", "--pid", "--mount"]
        return ["nsenter", "--target", str(self._init), *namespaces, "--", "env", f"--chdir={folder}"]

    def unplug(self):
        """Unplugs the host from the switch. Packets are lost silently from now on."""
        ip("link", "set", self._cable, "down")

    def plug(self):
        ip("link", "set", self._cable, "up")


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)
