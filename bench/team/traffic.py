"""Messages between members and from the person, and the count of what the agents received."""

import json
import os
import random
import re
import subprocess
import threading
import time
from collections import Counter

from mcp_server import McpServer
from team import BRIGADE

MARK = re.compile(r"mark-(\d{7})")
# A sender that is late by more than this many seconds does not catch up.
MAX_LATE = 2


class MailLog:
    """Which messages were sent, acknowledged and received. A message has a number, which its text contains."""

    def __init__(self, team):
        self._team = team
        self._lock = threading.Lock()
        self._offsets = [0] * team.members
        # For each number, the sender and the recipient.
        self.sent = []
        self.acknowledged = set()
        self.refused = []
        # How often each agent received each number, as (member, number).
        self.received = Counter()
        # The numbers in the order in which each agent received them.
        self.orders = [[] for _ in range(team.members)]
        # Lines that are incomplete, because their agent was killed while it wrote them.
        self.torn = 0
        self.send_command_ms = 0.0

    def new_message(self, sender, recipient):
        """Returns the number and the text of a message that is about to be sent."""
        with self._lock:
            number = len(self.sent)
            self.sent.append((sender, recipient))
        return number, f"mark-{number:07} for m{recipient} ".ljust(300, ".")

    def acknowledge(self, number):
        with self._lock:
            self.acknowledged.add(number)

    def refuse(self, reason):
        with self._lock:
            self.refused.append(reason)

    def read_agents(self):
        """Reads the prompts that the agents have appended to their files since the last call."""
        for member in range(self._team.members):
            path = self._team.home / f"d{member}" / "heard"
            if not path.exists():
                continue
            with path.open("rb") as file:
                file.seek(self._offsets[member])
                text = file.read()
            # The last line may still grow.
            complete = text[: text.rfind(b"\n") + 1]
            self._offsets[member] += len(complete)
            for line in complete.splitlines():
                try:
                    prompt = json.loads(line)["params"]["prompt"]
                except ValueError:
                    self.torn += 1
                    continue
                numbers = [int(number) for part in prompt for number in MARK.findall(part["text"])]
                self.received.update((member, number) for number in numbers)
                self.orders[member] += numbers

    def lost(self):
        """Returns the numbers that were acknowledged, but that the recipient's agent did not receive."""
        return sorted(n for n in self.acknowledged.copy() if not self.received[self.sent[n][1], n])

    def repeated(self):
        """Returns what an agent received more than once, as (member, number)."""
        return sorted(key for key, times in self.received.items() if times > 1)

    def misdirected(self):
        """Returns what the agent of another member received, as (member, number)."""
        return sorted((member, n) for member, n in self.received if self.sent[n][1] != member)

    def reordered(self):
        """Returns the numbers that an agent first received after a later message of the same sender."""
        found = []
        for order in self.orders:
            latest = {}
            for number in dict.fromkeys(order):
                sender = self.sent[number][0]
                if number < latest.get(sender, 0):
                    found.append(number)
                latest[sender] = max(number, latest.get(sender, 0))
        return found


class Sender(threading.Thread):
    """Sends messages at a steady rate to random members, until `stopping` is set."""

    def __init__(self, log, team, member, rate, seed):
        super().__init__(daemon=True)
        self._log, self._team, self.member, self._interval = log, team, member, 1 / rate
        self._random = random.Random(seed)
        self.stopping = threading.Event()

    def run(self):
        due = time.monotonic() + self._random.random() * self._interval
        while not self.stopping.wait(max(0, due - time.monotonic())):
            others = [number for number in range(self._team.members) if number != self.member]
            recipient = self._random.choice(others)
            number, text = self._log.new_message(self.member, recipient)
            if self.send(f"m{recipient}", text):
                self._log.acknowledge(number)
            due = max(due + self._interval, time.monotonic() - MAX_LATE)
        self.close()

    def close(self):
        """Ends the process that sends."""


class Person(Sender):
    """Sends each message with a command."""

    def __init__(self, log, team, rate, seed):
        super().__init__(log, team, None, rate, seed)

    def send(self, to, text):
        child = subprocess.Popen([BRIGADE, "send", to, text], env=self._team.environ, cwd=self._team.home,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        error = child.stderr.read().decode()
        child.stderr.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self._log.send_command_ms += (usage.ru_utime + usage.ru_stime) * 1000
        if child.returncode:
            self._log.refuse(f"brigade send {to}: {error.strip()[-300:]}")
        return not child.returncode


class Member(Sender):
    """Sends with the tool of one `brigade mcp` process, as an agent does, and starts another one if that was killed."""

    server = None

    def send(self, to, text):
        try:
            if self.server is None:
                self.server = McpServer(self._team, f"m{self.member}")
            result = self.server.tool("send_message", {"to": to, "message": text, "summary": "a message"})
        except OSError:
            self.close()
            return False
        if result["isError"]:
            self._log.refuse(f"send_message to {to}: {result['content']}")
        return not result["isError"]

    def close(self):
        if self.server is not None:
            self.server.close()
            self.server = None
