"""Tracks every message: its sender, whether the sender got an acknowledgement, and how often the recipient got
it."""

import itertools
import json
import re
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

LEAD = "team-lead"
MARK = re.compile("«[a-z-]+ [0-9]+»")
# Matches the result of a tool call that sent a message, in the result format of any agent.
SENT = re.compile(r'\\*"success\\*"\s*:\s*true|\bsent to ')


class SoakMessage(NamedTuple):
    mark: str
    by: str
    to: str


class MailLog:
    """The messages of one team."""

    def __init__(self):
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.messages = {}
        # Maps the mark of each message to the time at which its sender got the acknowledgement.
        self.acknowledged = {}
        # Maps the mark of each message to the number of times it occurs in the recipient's conversation.
        self.received = {}
        # Maps the mark of each message to the time at which it was first found in the recipient's conversation.
        self.received_at = {}
        # Maps the mark of each message to the number of times that the sender's model called the tool to send it.
        self.calls = Counter()

    def new_mark(self, by, to):
        """Returns a new mark, the unique text that identifies a message which is about to be sent."""
        with self._lock:
            mark = f"«{to} {next(self._numbers)}»"
            self.messages[mark] = SoakMessage(mark, by, to)
            return mark

    def acknowledge(self, mark):
        self.acknowledged.setdefault(mark, time.monotonic())

    def record(self, counts):
        """Records how often a recipient's conversation contains each mark."""
        now = time.monotonic()
        for mark, times in counts.items():
            if times > self.received.get(mark, 0):
                self.received[mark] = times
                self.received_at.setdefault(mark, now)

    def missing(self):
        """Returns the acknowledged messages that were not received. Only acknowledged messages are guaranteed to
        arrive."""
        return [self.messages[mark] for mark in list(self.acknowledged) if mark not in self.received]

    def repeated(self):
        """Returns two dictionaries with the messages that were received more than once, and how often: messages
        that brigade repeated, and messages that the sender's model sent again. A model sends a message again if
        its agent was killed after the tool had sent the message, but before the session recorded the result."""
        found = {self.messages[mark]: times for mark, times in list(self.received.items()) if times > 1}
        resent = {message: times for message, times in found.items() if times <= self.calls[message.mark]}
        return {message: times for message, times in found.items() if message not in resent}, resent

    def delays(self):
        """Returns the seconds from each message's acknowledgement until the message was found in the recipient's
        conversation, sorted."""
        both = self.acknowledged.keys() & self.received_at.keys()
        return sorted(max(0.0, self.received_at[mark] - self.acknowledged[mark]) for mark in both)


class ModelReader:
    """Reads the requests of one member's scripted model. Deletes each request after reading it, because every
    request contains the whole conversation and the test takes hours."""

    def __init__(self, name, folder, mail_log):
        self._name, self._folder, self._mail_log = name, Path(folder), mail_log
        self._offset = 0
        self._partial_line = ""
        self._call = None
        self._deleted = 0
        self._latest = Counter()
        self.said = set()
        self.requests = 0
        # The longest conversation, in bytes.
        self.longest = 0

    def poll(self):
        with (self._folder / "log").open() as log:
            log.seek(self._offset)
            text = log.read()
            self._offset = log.tell()
        *lines, self._partial_line = (self._partial_line + text).split("\n")
        for line in lines:
            record = json.loads(line)
            if record.get("tools"):
                self._read_turn(record)
            self._delete_until(record["number"] - 20)

    def _read_turn(self, record):
        self.requests += 1
        body = (self._folder / "bodies" / f"{record['number']:04}.json").read_text()
        self.longest = max(self.longest, len(body))
        own = f"«{self._name} "
        self._latest = Counter(mark for mark in MARK.findall(body) if mark.startswith(own))
        self._mail_log.record(self._latest)
        if self._call and record["results"] == self._call[1] + 1 and record["returned"]:
            if SENT.search(record["returned"]["text"]):
                for mark in MARK.findall(json.dumps(self._call[0], ensure_ascii=False)):
                    self._mail_log.acknowledge(mark)
        call = record["answer"].get("call")
        self._call = (call["args"], record["results"]) if call else None
        if call:
            self._mail_log.calls.update(MARK.findall(json.dumps(call["args"], ensure_ascii=False)))
        if text := record["answer"].get("say"):
            self.said.add(text)

    def forgotten(self):
        """Returns the messages that the model once received, but that its latest request does not contain. A lost
        session causes this."""
        own = f"«{self._name} "
        return [mark for mark in list(self._mail_log.received) if mark.startswith(own) and mark not in self._latest]

    def _delete_until(self, last):
        for number in range(self._deleted + 1, last + 1):
            (self._folder / "bodies" / f"{number:04}.json").unlink(missing_ok=True)
        self._deleted = max(self._deleted, last)


class PromptFileReader:
    """Reads the file in which an agent without a model logs its prompts."""

    def __init__(self, name, folder, mail_log):
        self._own, self._path, self._mail_log = f"«{name} ", Path(folder) / "heard", mail_log
        self._offset = 0
        self._counts = Counter()

    def poll(self):
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        # The last line may be incomplete. Then the next poll reads that line again.
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        new = Counter(mark for mark in MARK.findall(complete.decode()) if mark.startswith(self._own))
        if new:
            self._counts += new
            self._mail_log.record({mark: self._counts[mark] for mark in new})


class LeadInbox:
    """Counts the messages that the lead has read. A message that is only listed again keeps its id, while a
    message that was delivered twice has two ids."""

    def __init__(self, mail_log):
        self._mail_log = mail_log
        self._ids = {}

    def poll(self, list_inbox):
        """Reads the lead's mail with one command, and marks it as read with a second, so that a kill in between
        loses no message."""
        for flags in (["--unread"], ["--unread", "--mark-read"]):
            self._read(list_inbox(*flags) or [])

    def _read(self, messages):
        for message in messages:
            for mark in MARK.findall(message["text"]):
                if mark.startswith(f"«{LEAD} "):
                    ids = self._ids.setdefault(mark, set())
                    ids.add(message.get("msg_id") or message["timestamp"])
                    self._mail_log.record({mark: len(ids)})
