"""kill -9, of one process of a member, of a member, of the supervising process, of everything."""

import random
import time

from crowd import PLAIN, REAL, STEADY
from house import eventually
from teammate import at_home, processes

# What is killed in a storm, over and over, and in the long middle. However long it takes to come back, the first
# three are in every storm.
STORM = ("everything", "supervisor", "link", "agent", "player", "guard", "agent", "player")
AT_LEAST = 3
MIDDLE = ("agent", "player", "agent", "guard")
# Whoever is not there for so long is brought back by `brigade resume`.
ABSENT = 60
# For how many seconds `brigade resume` waits until everybody is ready.
READY_WITHIN = 120


class Havoc:
    def __init__(self, house):
        self._house = house
        self._dice = random.Random(13)
        # When each was last hit, so that nobody is hit over and over.
        self._hit = {name: self._dice.random() for name in (*REAL, *PLAIN)}
        self._missed = {}
        # What was killed, when, by the clock that only goes forward.
        self.kills = []
        self.resumes = 0
        self.brought_back = []
        self.resume_took = []
        self.trouble = []
        # What it said when it had waited for as long as it waits.
        self.late = []

    def players(self):
        """Who plays whom."""
        found = [one for one in at_home(self._house.home) if "play" in one.words and "--as" in one.words]
        return {one.words[one.words.index("--as") + 1]: one for one in found}

    def strike(self, kind, spare=()):
        """Kills something of this kind; gives what, None if there was nothing."""
        if kind == "supervisor":
            found = [one for one in at_home(self._house.home) if "supervise" in one.words]
        elif kind == "everything":
            return self._everything()
        else:
            found = self._of_a_member(kind, spare)
        for process in found:
            process.kill()
        if found:
            self.kills.append((time.monotonic(), kind, len(found)))
        if kind == "supervisor" and found:
            eventually(lambda: not any(one.is_alive() for one in found), 5)
            time.sleep(self._dice.choice([0, self._dice.uniform(0, 2)]))
            self.resume()
        return found

    def _of_a_member(self, kind, spare):
        there = self.players()
        names = [name for name in sorted(there, key=self._hit.get) if name not in spare]
        if not names:
            return []
        name = names[0]
        self._hit[name] = time.monotonic()
        tree = below(there[name])
        if kind == "player":
            return tree[:1]
        guards = [one for one in tree if one.is_brigade("guard")]
        if kind == "guard":
            # The real Claude Code in its window has none.
            return guards or tree[:1]
        vendor = [one for one in tree[1:] if one not in guards and not one.is_brigade("mcp")]
        return self._dice.choice([vendor[:1], vendor[-1:], vendor])

    def _everything(self):
        self._house.gate.clear()
        try:
            killed = 0
            while left := at_home(self._house.home):
                killed += len(left)
                for process in self._dice.sample(left, len(left)):
                    process.kill()
            self.kills.append((time.monotonic(), "everything", killed))
            time.sleep(self._dice.choice([0, self._dice.uniform(0, 2)]))
        finally:
            self._house.gate.set()
        self.resume()

    def resume(self):
        begun = time.monotonic()
        done = self._house.run("resume", timeout=300)
        self.resumes += 1
        self.resume_took.append(time.monotonic() - begun)
        if done.returncode != 0 and self.resume_took[-1] >= READY_WITHIN:
            # It has given up waiting; whoever is still starting is there a little later, or is missed in the end.
            self.late.append(done.stderr.strip()[-200:])
        elif done.returncode != 0:
            self.trouble.append(f"resume: {done.returncode}: {done.stderr.strip()[-600:]}")

    def bring_back(self):
        """Who was killed too often is given up; a person would ask for it again, and so is done here."""
        there, now = self.players(), time.monotonic()
        for name in (*REAL, *PLAIN):
            if name in there:
                self._missed.pop(name, None)
            elif now - self._missed.setdefault(name, now) > ABSENT:
                self.brought_back.append(name)
                self._missed.clear()
                self.resume()
                return

    def all_there(self):
        return len(self.players()) == len(REAL) + len(PLAIN)


def below(process):
    """A process and all below, parents first."""
    found, everybody = [process], processes()
    for one in found:
        found += [child for child in everybody if child.parent == one.pid]
    return found


def spared(middle):
    return STEADY if middle else ()
