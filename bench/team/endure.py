"""A team at work for a long time, in which processes are killed: every acknowledged message reaches its agent once, and
processor time and memory do not grow."""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import chart
import samples
from team import BRIGADE, Team
from traffic import MailLog, Member, Person

# The kinds of processes that are killed, in turn.
KINDS = ("member", "supervisor", "agent", "guard", "mcp")
SAMPLE_SECONDS = 3
PROGRESS_SECONDS = 10
# The person reads the mail of the lead this often, because each turn sends the lead a notification.
READ_SECONDS = 5
# How long the last messages may take, and the processes of the team until they have ended.
LAST_SECONDS = 120
END_SECONDS = 10
# How much more processor time and memory the last third of the run may need than the second third.
MAX_GROWTH = 1.2
# A shorter run does not show whether they grow.
MIN_MINUTES = 3
# How long an agent works on a prompt before its first output, in seconds. If a process is killed in that time, brigade has to
# find out from the agent's session that the agent has the prompt.
PAUSE_SECONDS = 0.5
# The share of messages that the person sends, by command. Members send the others, by tool.
SHARE_OF_PERSON = 0.2
SLACK = float(os.environ.get("BENCH_SLACK", "1"))


class Endurance:
    def __init__(self, options):
        self._options = options
        self._random = random.Random(options.seed)
        self.team = Team(options.members)
        for number in range(options.members):
            (self.team.home / f"d{number}" / "pause").write_text(f"{PAUSE_SECONDS}\n")
        self.log = MailLog(self.team)
        self.kills, self.samples, self.resume_errors, self.left = [], [], [], []
        self.evidence = None
        self.largest_inbox = 0
        rate = options.rate * (1 - SHARE_OF_PERSON) / options.senders
        members = self._random.sample(range(options.members), options.senders)
        self._members = [Member(self.log, self.team, member, rate, f"{options.seed} {member}") for member in members]
        self._senders = [*self._members, Person(self.log, self.team, options.rate * SHARE_OF_PERSON, options.seed)]

    def run(self):
        took = self.team.run("up")
        print(f"{self._options.members} members are up after {took:.1f} s", flush=True)
        time.sleep(2)
        self._start = time.monotonic()
        for sender in self._senders:
            sender.start()
        seconds = self._options.minutes * 60
        due = sorted(self._random.uniform(0.03, 0.97) * seconds for _ in range(self._options.kills))
        due = [(second, KINDS[number % len(KINDS)]) for number, second in enumerate(due)]
        next_sample = next_progress = next_read = 0
        while (now := self._elapsed()) < seconds:
            if now >= next_sample:
                self.samples.append(samples.take(self.team, self.log, self._start))
                next_sample = now + SAMPLE_SECONDS
            if now >= next_read:
                self._read_mail_of_lead()
                next_read = now + READ_SECONDS
            if now >= next_progress:
                self._print_progress()
                next_progress = now + PROGRESS_SECONDS - 1
            if due and now >= due[0][0]:
                self._kill(due.pop(0)[1])
            time.sleep(0.05)
        self.samples.append(samples.take(self.team, self.log, self._start))
        self._send_seconds = self._elapsed()
        for sender in self._senders:
            sender.stopping.set()
        for sender in self._senders:
            sender.join(30)
        self._wait_for_last_messages()
        if self.log.lost() or self.log.repeated() or self.log.reordered():
            # `down` deletes the mail of the team.
            self.evidence = Path(f"{self.team.home}.failed")
            shutil.copytree(self.team.home, self.evidence, symlinks=True, ignore_dangling_symlinks=True)
        self._down()

    def _elapsed(self):
        return time.monotonic() - self._start

    def _read_mail_of_lead(self):
        subprocess.run([BRIGADE, "inbox", "--unread", "--mark-read", "--json"], env=self.team.environ, cwd=self.team.home,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        inbox = self.team.home / ".claude/teams/cost/inboxes/team-lead.json"
        if inbox.exists():
            self.largest_inbox = max(self.largest_inbox, inbox.stat().st_size)

    def _print_progress(self):
        self.log.read_agents()
        last = samples.intervals(self.samples[-2:])
        use = f"{last[0].core_percent:.0f} % of a core, {last[0].memory_mb:.0f} MB" if last else ""
        waiting = len(self.log.lost())
        print(f"{self._elapsed():6.0f} s  {len(self.log.acknowledged)} messages acknowledged, {waiting} not shown yet, "
              f"{len(self.log.repeated())} twice; {len(self.kills)} kills; {use}", flush=True)

    def _kill(self, kind):
        found = self._find(kind)
        if not found:
            return
        os.kill(found, 9)
        self.kills.append((self._elapsed(), kind))
        if kind == "supervisor":
            time.sleep(self._random.uniform(0, 2))
            done = subprocess.run([BRIGADE, "resume"], env=self.team.environ, cwd=self.team.home, capture_output=True, text=True)
            if done.returncode:
                self.resume_errors.append(done.stderr.strip()[-300:])

    def _find(self, kind):
        """Returns the id of a random process of this kind."""
        if kind == "mcp":
            servers = [member.server for member in self._members]
            running = [server.child.pid for server in servers if server is not None]
        else:
            command = {"member": b"play", "supervisor": b"supervise", "guard": b"guard", "agent": b"/bin/sh"}[kind]
            running = []
            for folder in self.team.all_processes():
                try:
                    if command in (folder / "cmdline").read_bytes().split(b"\0"):
                        running.append(int(folder.name))
                except OSError:
                    continue
        return self._random.choice(running) if running else None

    def _wait_for_last_messages(self):
        until = time.monotonic() + LAST_SECONDS * SLACK
        self._print_progress()
        next_progress = time.monotonic() + PROGRESS_SECONDS
        while self.log.lost() and time.monotonic() < until:
            time.sleep(0.5)
            self.log.read_agents()
            if time.monotonic() > next_progress:
                self._print_progress()
                next_progress += PROGRESS_SECONDS
        # A message that is shown again would be shown now.
        time.sleep(3)
        self.log.read_agents()

    def _down(self):
        self.team.run("down", "--now")
        until = time.monotonic() + END_SECONDS * SLACK
        while self.team.all_processes() and time.monotonic() < until:
            time.sleep(0.1)
        self.left = [(folder / "cmdline").read_bytes().replace(b"\0", b" ").decode() for folder in self.team.all_processes()]

    def checks(self):
        """Returns tuples of the result and the text of each check."""
        log, options = self.log, self._options
        sent = len(log.acknowledged)
        rate = sent / self._send_seconds
        yield not log.lost(), f"acknowledged messages that their agent did not receive: {of(log.lost(), sent)}"
        yield not log.repeated(), f"messages that an agent received twice: {of(log.repeated(), sent)}"
        yield not log.misdirected(), f"messages that another agent received: {of(log.misdirected(), sent)}"
        yield not log.reordered(), f"messages after a later one of the same sender: {of(log.reordered(), sent)}"
        yield not log.refused, f"sends that failed: {of(log.refused, sent)}"
        yield not self.resume_errors, f"`brigade resume` that failed: {of(self.resume_errors)}"
        yield len(self.kills) >= options.kills * 0.9, f"kills: {len(self.kills)} of {options.kills}"
        yield not self.left, f"processes left after `down`: {of(self.left)}"
        yield rate * SLACK >= options.rate * 0.9, f"messages each second: {rate:.1f} (bar {options.rate * 0.9:g})"
        for name, (second, last) in self._growth():
            ratio = last / second
            text = f"{name}, last third against the second: {ratio:.2f} x (bar {MAX_GROWTH} x; {second:.2f}, then {last:.2f})"
            yield ratio <= MAX_GROWTH * SLACK, text

    def _growth(self):
        minutes = self._options.minutes
        found = samples.growth(self.samples, self.kills, minutes * 60) if minutes >= MIN_MINUTES else []
        if not found:
            print("growth is not checked: the run is too short, or has no time without kills")
        return found

    def summary(self):
        killed = ", ".join(f"{sum(kind == one for _, one in self.kills)} {kind}" for kind in KINDS)
        unacknowledged = len(self.log.sent) - len(self.log.acknowledged) - len(self.log.refused)
        return (f"{len(self.log.acknowledged)} messages acknowledged, {unacknowledged} not, because their sender was killed; "
                f"{self.log.torn} prompts interrupted by a kill; killed: {killed}; "
                f"largest inbox of the lead: {self.largest_inbox / 1000:.0f} kB")

    def draw(self, path):
        options = self._options
        title = f"{options.members} members, {options.rate:g} messages each second, {len(self.kills)} kills"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(chart.draw(samples.intervals(self.samples), self.kills, title))


def of(found, total=None):
    some = f", such as {found[:3]}" if found else ""
    return f"{len(found)}{'' if total is None else f' of {total}'}{some}"


def arguments():
    parser = argparse.ArgumentParser(prog="endure", description=__doc__)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--rate", type=float, default=50, help="messages each second")
    parser.add_argument("--senders", type=int, default=20, help="members that send")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--svg", type=Path, default=Path(__file__).parents[2] / "target/endure.svg")
    parser.add_argument("--short", action="store_true", help="10 members, 30 seconds, 5 kills")
    options = parser.parse_args()
    if options.short:
        options.members, options.minutes, options.kills, options.senders = 10, 0.5, 5, 4
    return options


def main():
    options = arguments()
    # Ends the team's processes also if the run is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"seed {options.seed}, {BRIGADE}", flush=True)
    endurance = Endurance(options)
    try:
        endurance.run()
        endurance.draw(options.svg)
        print(endurance.summary())
        results = list(endurance.checks())
    finally:
        endurance.team.remove()
    for is_met, text in results:
        print(f"{'PASS' if is_met else 'FAIL'}  {text}")
    if endurance.evidence:
        print(f"the files of the team are in {endurance.evidence}")
    failed = sum(not is_met for is_met, _ in results)
    print(f"{len(results) - failed} passed, {failed} failed; chart in {options.svg.resolve()}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
