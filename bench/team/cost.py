"""Measures the cost of a team: processor time at rest and for each message, memory, and the seconds of `up` and `down`.

Only brigade's own processes count. The members' agent is a shell script without a model.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
BRIGADE = Path(os.environ.get("BRIGADE", HERE / "../../target/release/brigade")).resolve()
# Members start slowly on a busy machine, and their first reports come a moment later.
SETTLE_SECONDS = 5
IDLE_SECONDS = 20


class Team:
    """A team of members in a throw-away home folder."""

    def __init__(self, members):
        self.members = members
        self.home = Path(tempfile.mkdtemp(prefix="team-cost-"))
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "BRIGADE_TRUST": "all"}
        lines = ['team = "cost"']
        for number in range(members):
            (self.home / f"d{number}").mkdir()
            lines.append(f'[members.m{number}]\nagent = "acp:{HERE / "agent.sh"}"\ndir = "d{number}"')
        (self.home / "brigade.toml").write_text("\n".join(lines) + "\n")

    def run(self, *arguments):
        """Runs a brigade command. Returns the seconds that it took."""
        began = time.monotonic()
        done = subprocess.run([BRIGADE, *arguments], env=self.environ, cwd=self.home, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"brigade {' '.join(arguments)} failed: {done.stderr}")
        return time.monotonic() - began

    def processes(self):
        """Returns the folders in /proc of brigade's processes of this team."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = f"HOME={self.home}\0".encode() in (folder / "environ").read_bytes() + b"\0"
                if is_ours and os.readlink(folder / "exe") == str(BRIGADE):
                    found.append(folder)
            except OSError:
                continue
        return found

    def processor_ms(self):
        """Returns the processor time of each process so far, in milliseconds."""
        used = {}
        for folder in self.processes():
            try:
                threads = [thread.read_text().split()[0] for thread in folder.glob("task/*/schedstat")]
                used[folder.name] = sum(map(int, threads)) / 1e6
            except OSError:
                continue
        return used

    def memory_mb(self):
        """Returns the proportional memory of all processes, in megabytes."""
        total = 0
        for folder in self.processes():
            rollup = (folder / "smaps_rollup").read_text()
            total += int(rollup.split("Pss:")[1].split()[0]) / 1024
        return total

    def remove(self):
        shutil.rmtree(self.home, ignore_errors=True)


def difference(before, after):
    return sum(ms - before.get(pid, 0) for pid, ms in after.items())


def children_ms():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1000


def measure(sizes, messages):
    """Returns the costs of teams of these sizes by name. The teams run at the same time and get messages in turn, so that other
    work on the machine affects all of them alike."""
    teams = [Team(size) for size in sizes]
    costs = [{} for _ in teams]
    try:
        for team, cost in zip(teams, costs):
            cost["up, s"] = team.run("up")
        time.sleep(SETTLE_SECONDS)
        first = [team.processor_ms() for team in teams]
        time.sleep(IDLE_SECONDS)
        second = [team.processor_ms() for team in teams]
        seconds_of_sends, by_senders = [0] * len(teams), [0] * len(teams)
        for number in range(messages):
            for index, team in enumerate(teams):
                before_send = children_ms()
                seconds_of_sends[index] += team.run("send", f"m{number % 2}", f"message {number} " + "x" * 300)
                by_senders[index] += children_ms() - before_send
        time.sleep(3)
        for index, (team, cost) in enumerate(zip(teams, costs)):
            by_team = difference(second[index], team.processor_ms())
            cost["idle, % of a core"] = difference(first[index], second[index]) / IDLE_SECONDS / 10
            cost["memory, MB for each member"] = team.memory_mb() / team.members
            cost["sends each second"] = messages / seconds_of_sends[index]
            cost["processor time of the team, ms for each message"] = by_team / messages
            cost["processor time of `brigade send`, ms"] = by_senders[index] / messages
            cost["processor time, ms for each message"] = (by_team + by_senders[index]) / messages
        for team, cost in zip(teams, costs):
            cost["down --now, s"] = team.run("down", "--now")
    finally:
        for team in teams:
            for folder in team.processes():
                os.kill(int(folder.name), 9)
            team.remove()
    return costs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--members", type=int, default=100, help="the size of the large team")
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--short", action="store_true", help="30 members, 40 messages")
    options = parser.parse_args()
    large, messages = (30, 40) if options.short else (options.members, options.messages)
    slack = float(os.environ.get("BENCH_SLACK", "1"))
    small_costs, large_costs = measure((2, large), messages)
    print(f"{'':50} {'2 members':>12} {f'{large} members':>12}")
    for name, cost in large_costs.items():
        print(f"{name:50} {small_costs[name]:12.2f} {cost:12.2f}")
    per_message = "processor time, ms for each message"
    bars = [
        (f"processor time per message, {large} members against 2", large_costs[per_message] / small_costs[per_message], 1.3),
        (f"idle, {large} members, % of a core", large_costs["idle, % of a core"], 0.5),
        (f"up of {large} members, s", large_costs["up, s"], 10),
        (f"down --now of {large} members, s", large_costs["down --now, s"], 5),
        ("memory for each member, MB", large_costs["memory, MB for each member"], 6),
    ]
    failed = 0
    for name, value, bar in bars:
        is_met = value <= bar * slack
        failed += not is_met
        print(f"{'PASS' if is_met else 'FAIL'}  {name}: {value:.2f} (bar {bar:g})")
    print(f"{len(bars) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
