"""Two processes run `brigade up` at the same moment, and ten run `brigade spawn` for a member with the same name.
Checks that each member, each task and the supervisor exist once. The agent is a small script, because only brigade
is tested."""

import json
import random
import time

from lib.processes import in_home
from lib.team_env import FAKE_AGENT, Member, run_team_scenario
from lib.util import eventually, read_json

NAMES = ("alice", "bob")
TASKS = {"one": [], "two": ["one"], "three": ["one", "two"]}
SPAWNS = 10


def scenario(env, report, short):
    rounds = 10 if short else 100
    fake = Member(f"acp:{FAKE_AGENT}")
    failures, took = {}, []
    for number in range(rounds):
        for folder in (*NAMES, "carl"):
            (env.project / folder).mkdir(exist_ok=True)
            (env.project / folder / "heard").unlink(missing_ok=True)
        members = {name: (fake, {"dir": name, "prompt": f"hello {name}"}) for name in NAMES}
        env.write_team_file(members, TASKS)
        started = time.monotonic()
        for claim, found in one_round(env).items():
            failures.setdefault(claim, []).extend([(number, found)] if found else [])
        took.append(time.monotonic() - started)
    for claim, found in failures.items():
        report.check(f"{rounds} rounds: {claim}", not found, found)
    report.figure("average time of a round", f"{sum(took) / rounds:.1f} s")


def one_round(env):
    """Starts the team, spawns carl, and takes the team down. Returns the violations of each claim, as a list that is
    empty if the claim holds."""
    ups = together(env, 2, "up", "--json")
    agent = f"acp:{FAKE_AGENT}"
    # The new member works in the folder in which `spawn` runs.
    spawns = together(env, SPAWNS, "spawn", "carl", "--agent", agent, "--prompt", "hello carl", "--json")
    new = [json.loads(out)["new"] for code, out, _ in spawns if code == 0]
    members = [member["name"] for member in read_json(env.config)["members"]]
    tasks = [task["subject"] for task in env.brigade("task", "list")]
    logs = {name: env.project / name / "heard" for name in NAMES} | {"carl": env.project / "heard"}

    def all_counts():
        return {name: counts(path, name) for name, path in logs.items()}

    once = dict.fromkeys(logs, (1, 1))
    eventually(lambda: all_counts() == once, 10)
    runners = [process for process in in_home(env.home) if "play" in process.argv]
    supervisors = [process for process in in_home(env.home) if "supervise" in process.argv]
    counted = all_counts()
    down = env.run("down", "--now")
    logs["carl"].unlink(missing_ok=True)
    expected = ["Do one", "Do three", "Do two"]
    return {
        "both `up` succeed": [each for each in ups if each[0] != 0],
        "all ten `spawn` succeed": [each for each in spawns if each[0] != 0],
        "one `spawn` reports that carl is new": [] if new.count(True) == 1 else [new],
        "each member is on the roster once": [] if sorted(members) == ["alice", "bob", "carl", "team-lead"] else [members],
        "each task is on the board once": [] if sorted(tasks) == expected else [tasks],
        "each agent is started once and gets its prompt once": [] if counted == once else [counted],
        "one process runs each member": [] if len(runners) == 3 else [runners],
        "there is one supervisor": [] if len(supervisors) == 1 else [supervisors],
        "the team goes down": [] if down.returncode == 0 else [down],
        "no process is left": env.left(),
    }


def counts(path, name):
    """Returns how often the agent was started, and how often the agent got its prompt."""
    lines = path.read_text().splitlines() if path.exists() else []
    return lines.count("started"), sum(f"hello {name}" in line for line in lines)


def together(env, count, *arguments):
    """Runs a brigade command several times at the same moment. Returns the exit code, stdout and stderr of each
    process."""
    # Start the processes at once, or slightly apart, so that a process may start while another is half done.
    apart = random.choice([0, random.uniform(0, 0.05)])
    running = []
    for _ in range(count):
        running.append(env.start(*arguments))
        time.sleep(apart)
    results = []
    for process in running:
        out, err = process.communicate(timeout=120)
        results.append((process.returncode, out, err))
    return results


run_team_scenario(scenario)
