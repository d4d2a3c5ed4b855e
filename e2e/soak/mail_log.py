"""Every message: who wrote it, whether its sender was told that it was sent, and how often its reader was told it."""

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
# What a tool says that has sent it, whatever its agent wraps that in.
SENT = re.compile(r'\\*"success\\*"\s*:\s*true|\bsent to ')


class Letter(NamedTuple):
    mark: str
    by: str
    to: str


class Post:
    """The messages of one team."""

    def __init__(self):
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.letters = {}
        # By mark: when its sender was told that it was sent.
        self.acknowledged = {}
        # By mark: how often its reader was told it, in one mind at one time.
        self.told = {}
        # By mark: when that was first seen.
        self.seen = {}
        # By mark: how often the model of its writer called the tool that sends it.
        self.calls = Counter()

    def letter(self, by, to):
        """A mark for a message that is about to be written."""
        with self._lock:
            mark = f"«{to} {next(self._numbers)}»"
            self.letters[mark] = Letter(mark, by, to)
            return mark

    def acknowledge(self, mark):
        self.acknowledged.setdefault(mark, time.monotonic())

    def hear(self, counts):
        """A reader has these marks in mind, so often."""
        now = time.monotonic()
        for mark, times in counts.items():
            if times > self.told.get(mark, 0):
                self.told[mark] = times
                self.seen.setdefault(mark, now)

    def missing(self):
        """What was acknowledged and not told. Only what is acknowledged is promised to come."""
        return [self.letters[mark] for mark in list(self.acknowledged) if mark not in self.told]

    def twice(self):
        """What was told more often than it was written, and what was written more than once, each with how often
        it was told. A model writes again what it no longer knows to have written: its agent was killed after the
        tool had sent it, and before that stood in its session."""
        found = {self.letters[mark]: times for mark, times in list(self.told.items()) if times > 1}
        rewritten = {letter: times for letter, times in found.items() if times <= self.calls[letter.mark]}
        return {letter: times for letter, times in found.items() if letter not in rewritten}, rewritten

    def delays(self):
        """Seconds from the acknowledgement until it was seen that it was told, sorted."""
        both = self.acknowledged.keys() & self.seen.keys()
        return sorted(max(0.0, self.seen[mark] - self.acknowledged[mark]) for mark in both)


class Ear:
    """What the scripted model of one member is asked: read as it comes and thrown away, for every request
    carries the whole conversation, and there are hours of them."""

    def __init__(self, name, folder, post):
        self._name, self._folder, self._post = name, Path(folder), post
        self._place = 0
        self._rest = ""
        self._call = None
        self._thrown = 0
        self._mind = Counter()
        self.said = set()
        self.requests = 0
        # Of the conversation, in bytes.
        self.longest = 0

    def listen(self):
        with (self._folder / "log").open() as log:
            log.seek(self._place)
            text = log.read()
            self._place = log.tell()
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            record = json.loads(line)
            if record.get("tools"):
                self._turn(record)
            self._throw_away(record["number"] - 20)

    def _turn(self, record):
        self.requests += 1
        body = (self._folder / "bodies" / f"{record['number']:04}.json").read_text()
        self.longest = max(self.longest, len(body))
        own = f"«{self._name} "
        mind = Counter(mark for mark in MARK.findall(body) if mark.startswith(own))
        self._post.hear(mind)
        self._mind = mind
        if self._call and record["results"] == self._call[1] + 1 and record["returned"]:
            if SENT.search(record["returned"]["text"]):
                for mark in MARK.findall(json.dumps(self._call[0], ensure_ascii=False)):
                    self._post.acknowledge(mark)
        call = record["answer"].get("call")
        self._call = (call["args"], record["results"]) if call else None
        if call:
            self._post.calls.update(MARK.findall(json.dumps(call["args"], ensure_ascii=False)))
        if words := record["answer"].get("say"):
            self.said.add(words)

    def forgotten(self):
        """What its model was told and is not told with the latest request: a session that was lost."""
        own = f"«{self._name} "
        return [mark for mark in list(self._post.told) if mark.startswith(own) and mark not in self._mind]

    def _throw_away(self, last):
        for number in range(self._thrown + 1, last + 1):
            (self._folder / "bodies" / f"{number:04}.json").unlink(missing_ok=True)
        self._thrown = max(self._thrown, last)


class Notebook:
    """What an agent without a model was told, which it has written down itself."""

    def __init__(self, name, folder, post):
        self._own, self._path, self._post = f"«{name} ", Path(folder) / "heard", post
        self._place = 0
        self._counts = Counter()

    def listen(self):
        if not self._path.exists():
            return
        with self._path.open("rb") as heard:
            heard.seek(self._place)
            text = heard.read()
        # The last line may be cut off; it is read the next time.
        whole = text[: text.rfind(b"\n") + 1]
        self._place += len(whole)
        new = Counter(mark for mark in MARK.findall(whole.decode()) if mark.startswith(self._own))
        if new:
            self._counts += new
            self._post.hear({mark: self._counts[mark] for mark in new})


class LeadsDesk:
    """What the lead has read. One message shows up as often as it is looked at; two have two ids."""

    def __init__(self, post):
        self._post = post
        self._ids = {}

    def read(self, messages):
        for message in messages:
            for mark in MARK.findall(message["text"]):
                if mark.startswith(f"«{LEAD} "):
                    ids = self._ids.setdefault(mark, set())
                    ids.add(message.get("msg_id") or message["timestamp"])
                    self._post.hear({mark: len(ids)})
