"""Simulates hosts. Each host has its own namespaces for network, processes and host name. A bridge connects the hosts.

The bridge is in the network namespace of this program, which has no other network. The namespaces have no names,
so the kernel removes them when their processes end.
"""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

from lib.util import eventually

SWITCH = "switch"
NETWORK = "10.77.0"
# The shell script of process 1 on a host: it sets the host name, and reaps orphaned processes.
INIT = 'echo "$0" >/proc/sys/kernel/hostname && ip link set lo up && while :; do sleep 3600 & wait $!; done'


class Machines:
    """A context manager that creates hosts with these names."""

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
        """Returns the id that the host's process 1 has in our process namespace; None if it does not exist yet."""
        pid = self._process.pid
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # A child process that is still in our process namespace is not the host's process 1 yet.
        own = os.readlink("/proc/self/ns/pid")
        return next((int(child) for child in found if os.readlink(f"/proc/{child}/ns/pid") != own), None)

    def __exit__(self, *_):
        # When process 1 dies, the kernel kills all other processes of the host.
        os.kill(self._init, 9)
        self._process.wait()

    def enter(self, folder="/"):
        """Returns the prefix that makes a command run on this host, in this folder."""
        namespaces = ["--net", "--uts", "--pid", "--mount"]
        return ["nsenter", "--target", str(self._init), *namespaces, "--", "env", f"--chdir={folder}"]

    def unplug(self):
        """Disconnects the host from the bridge. From now on, its packets are lost silently."""
        ip("link", "set", self._cable, "down")

    def plug(self):
        ip("link", "set", self._cable, "up")


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)
