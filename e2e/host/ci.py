"""Runs `brigade up --until-done --json` with a real Codex, without a terminal and without tmux, as on a CI
machine. Checks that the exit code is 0 only if every task was done, and that every line of standard output is
JSON."""

import json
import time
from pathlib import Path

from lib.scripted_model import say, script
from lib.team_env import MEMBERS, run_team_scenario
from lib.util import SLACK, capture

CHAIN = {"one": [], "two": ["one"], "three": ["two"]}


def scenario(env, report, short):
    environ = env.environ | {"PATH": without_tmux(env.root / "bin", env.environ["PATH"])}
    del environ["TERM"]
    done = one_run(env, report, environ, "all done", ["1", "2", "3"], 120)
    report.check("all done: the exit code is 0", done.returncode == 0, done.stderr[-500:])
    report.check("all done: the last line has `done` true", last(done).get("done") is True, last(done))
    counts = {"total": 3, "done": 3, "in_progress": 0}
    report.check("all done: the last line counts three done tasks", last(done).get("tasks") == counts, last(done))
    partial = one_run(env, report, environ, "one not done", ["1", "2"], int(10 * SLACK))
    report.check("one not done: the exit code is 1", partial.returncode == 1, partial.returncode)
    report.check("one not done: the last line has `done` false", last(partial).get("done") is False, last(partial))
    counted = "1 task" in partial.stderr
    report.check("one not done: standard error has the number of open tasks", counted, partial.stderr[-500:])
    no_agent = environ | {"BRIGADE_CODEX": "/bin/false"}
    dead = one_run(env, report, no_agent, "agent crashes", ["1"], 60, restart="never")
    report.check("agent crashes: the exit code is 1", dead.returncode == 1, dead.returncode)


def one_run(env, report, environ, case, tasks, limit, **more):
    """Runs `brigade up` for a team with one Codex, whose prompt makes it do these tasks."""
    cody = MEMBERS["cody"]
    steps = [step for task in tasks for step in cody.task_steps("cody", task, 0.2)[:-1]]
    env.write_team_file({"cody": (cody, {"prompt": f"Do it. {script(*steps, say('done'))}"} | more)}, CHAIN)
    started = time.monotonic()
    # `start_new_session` detaches brigade from the controlling terminal.
    command = [env.program, "up", "--until-done", "--json", "--limit", str(limit)]
    done = capture(command, env=environ, cwd=env.project, start_new_session=True, timeout=300)
    report.figure(f"{case}: took", f"{time.monotonic() - started:.1f} s")
    other = [line for line in done.stdout.splitlines() if not is_object(line)]
    report.check(f"{case}: every line of standard output is JSON", done.stdout and not other, other or done)
    env.check_no_process_left(report, f"{case}: no process is left")
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
    """Fills a new folder with links to every program on `path` except tmux."""
    folder.mkdir()
    for directory in path.split(":"):
        for program in Path(directory).glob("*"):
            link = folder / program.name
            if program.name != "tmux" and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


run_team_scenario(scenario)
