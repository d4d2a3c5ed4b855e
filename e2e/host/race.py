"""Two who bring a team up at the same moment, and ten who want one more member of one name: there is one of
each. The agent is a small script of our own, for this is about brigade."""

import json
import random
import time

from crew import FAKE, Member, prove_team
from house import eventually, read_json
from teammate import at_home

NAMES = ("alice", "bob")
TASKS = {"one": [], "two": ["one"], "three": ["one", "two"]}
SPAWNS = 10


def scenario(house, report, short):
    rounds = 10 if short else 100
    fake = Member(f"acp:{FAKE}")
    broken, took = {}, []
    for number in range(rounds):
        for folder in (*NAMES, "carl"):
            (house.project / folder).mkdir(exist_ok=True)
            (house.project / folder / "heard").unlink(missing_ok=True)
        members = {name: (fake, {"dir": name, "prompt": f"hello {name}"}) for name in NAMES}
        house.write_file(members, TASKS)
        begun = time.monotonic()
        for promise, found in one_round(house).items():
            broken.setdefault(promise, []).extend([(number, found)] if found else [])
        took.append(time.monotonic() - begun)
    for promise, found in broken.items():
        report.check(f"{rounds} rounds: {promise}", not found, found)
    report.figure("a round", f"{sum(took) / rounds:.1f} s")


def one_round(house):
    """What broke of each promise."""
    ups = together(house, 2, "up", "--json")
    agent = f"acp:{FAKE}"
    # It works in the folder it is asked for in.
    spawns = together(house, SPAWNS, "spawn", "carl", "--agent", agent, "--prompt", "hello carl", "--json")
    new = [json.loads(out)["new"] for code, out, _ in spawns if code == 0]
    members = [member["name"] for member in read_json(house.config)["members"]]
    tasks = [task["subject"] for task in house.brigade("task", "list")]
    heard = {name: house.project / name / "heard" for name in NAMES} | {"carl": house.project / "heard"}
    told = lambda: {name: counts(path, name) for name, path in heard.items()}
    once = dict.fromkeys(heard, (1, 1))
    eventually(lambda: told() == once, 10)
    plays = [process for process in at_home(house.home) if "play" in process.words]
    supervisors = [process for process in at_home(house.home) if "supervise" in process.words]
    was = told()
    down = house.run("down", "--now")
    heard["carl"].unlink(missing_ok=True)
    wanted = ["Do one", "Do three", "Do two"]
    return {
        "both who bring it up succeed": [each for each in ups if each[0] != 0],
        "all ten who ask for carl succeed": [each for each in spawns if each[0] != 0],
        "one of them is told that carl is new": [] if new.count(True) == 1 else [new],
        "each is on the roster once": [] if sorted(members) == ["alice", "bob", "carl", "team-lead"] else [members],
        "each task is on the board once": [] if sorted(tasks) == wanted else [tasks],
        "each agent was started once and told its prompt once": [] if was == once else [was],
        "each is played by one process": [] if len(plays) == 3 else [plays],
        "one process supervises": [] if len(supervisors) == 1 else [supervisors],
        "the team goes down": [] if down.returncode == 0 else [down],
        "no process is left": house.nobody(),
    }


def counts(path, name):
    """How often the agent was started, and told its prompt."""
    lines = path.read_text().splitlines() if path.exists() else []
    return lines.count("started"), sum(f"hello {name}" in line for line in lines)


def together(house, count, *arguments):
    """Runs the same several times at the same moment; gives the exit code and what each said."""
    # At once, or as far apart as the other needs for its first steps.
    apart = random.choice([0, random.uniform(0, 0.05)])
    running = []
    for _ in range(count):
        running.append(house.start(*arguments))
        time.sleep(apart)
    outcome = []
    for process in running:
        out, err = process.communicate(timeout=120)
        outcome.append((process.returncode, out, err))
    return outcome


prove_team(scenario)
