"""Where nobody watches: no terminal, no tmux, `brigade up --until-done --json` with the real Codex. The exit
code is 0 if every task was done and only then, and standard output is lines of JSON and nothing else."""

import json
import os
import subprocess
import time
from pathlib import Path

from crew import CREW, prove_team, script
from house import SLACK

CHAIN = {"one": [], "two": ["one"], "three": ["two"]}


def scenario(house, report, short):
    env = house.plain_env | {"PATH": without_tmux(house.root / "bin", house.plain_env["PATH"])}
    del env["TERM"]
    everything = one_run(house, report, env, "all is done", ["1", "2", "3"], 120)
    report.check("all is done: the exit code is 0", everything.returncode == 0, everything.stderr[-500:])
    report.check("all is done: the last line says so", last(everything).get("done") is True, last(everything))
    done = {"total": 3, "done": 3, "in_progress": 0}
    report.check("all is done: and counts three of three", last(everything).get("tasks") == done, last(everything))
    lacking = one_run(house, report, env, "one is never done", ["1", "2"], int(10 * SLACK))
    report.check("one is never done: the exit code is 1", lacking.returncode == 1, lacking.returncode)
    report.check("one is never done: the last line says so", last(lacking).get("done") is False, last(lacking))
    told = "1 task" in lacking.stderr
    report.check("one is never done: standard error says how many", told, lacking.stderr[-500:])
    dead = one_run(house, report, env | {"BRIGADE_CODEX": "/bin/false"}, "no agent lives", ["1"], 60, restart="never")
    report.check("no agent lives: the exit code is 1", dead.returncode == 1, dead.returncode)


def one_run(house, report, env, what, tasks, limit, **more):
    """Has Codex do these tasks of the chain, as its prompt says."""
    cody = CREW["cody"]
    steps = [step for task in tasks for step in cody.work("cody", task, 0.2)[:-1]]
    house.write_file({"cody": (cody, {"prompt": f"Do it. {script(*steps, {'say': 'done'})}"} | more)}, CHAIN)
    begun = time.monotonic()
    # A session of its own has no terminal.
    done = subprocess.run(
        [os.environ["BRIGADE"], "up", "--until-done", "--json", "--limit", str(limit)],
        env=env,
        cwd=house.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=300,
    )
    report.figure(f"{what}: took", f"{time.monotonic() - begun:.1f} s")
    odd = [line for line in done.stdout.splitlines() if not is_object(line)]
    report.check(f"{what}: standard output is lines of JSON", done.stdout and not odd, odd or done)
    report.check(f"{what}: no process is left", not house.nobody(), house.nobody(0))
    return done


def last(done):
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines and is_object(lines[-1]) else {}


def is_object(line):
    try:
        return isinstance(json.loads(line), dict)
    except json.JSONDecodeError:
        return False


def without_tmux(folder, path):
    """A folder with every program of the path but tmux."""
    folder.mkdir()
    for place in path.split(":"):
        for program in Path(place).glob("*"):
            link = folder / program.name
            if program.name != "tmux" and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


prove_team(scenario)
