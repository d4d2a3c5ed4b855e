"""Runs each command many times, kills it before another system call each time, and checks that the same command then
completes: the home must be as after an undisturbed run."""

import argparse
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from cases import CASES as COMMANDS
from kill_env import KillEnv
from kill_points import kill_options, read_points
from process_cases import CASES as PROCESSES

from lib.env import copy_kept, exit_on_sigterm
from lib.report import Report
from lib.util import eventually

# How long the state of a home may take to settle after a command.
SETTLE = 15


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="CASE")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    exit_on_sigterm()
    report = Report(f"kills, seed {options.seed}")
    cases = [case for case in COMMANDS + PROCESSES if not options.names or case.name in options.names]

    def run(case):
        with KillEnv() as env, report.scenario(lambda: None):
            run_case(env, report, case, options)

    # Most of the time is spent waiting, so two cases run at once.
    with ThreadPoolExecutor(2) as workers:
        list(workers.map(run, cases))
    sys.exit(report.end())


def run_case(env, report, case, options):
    started = time.monotonic()
    case.prepare(env)
    env.save("start")
    points, expected = undisturbed(env, case)
    total = len(points)
    if options.only:
        points = [point for point in points if options.only in str(point)]
    if options.short:
        points = random.Random(f"{options.seed} {case.name}").sample(points, min(case.sample, total))
    missed, failures = 0, 0
    for point in points:
        killed, problems = one_try(env, case, point, expected)
        missed += not killed
        if problems:
            failures += 1
            report.check(f"{case.name}: killed before {point}", False, "\n      ".join(["", *problems]))
            copy_kept(report, {"": env.live}, f"{case.name}-{point.call}-{point.number}")
    took = time.monotonic() - started
    report.figure(f"{case.name}: calls not reached again", missed)
    report.check(f"{case.name}: {len(points)} of {total} kills, {took:.0f} s", failures == 0, f"{failures} failures")


def undisturbed(env, case):
    """Runs the command without a kill; returns its kill points, and the state after it."""
    env.restore("start")
    case.start(env)
    case.attempt(env, case, [])
    points = read_points(env.log)
    if case.next_command:
        env.run(*case.next_command)
    run_later(env, case)
    return points, stable_state(env, case) | {"doctor": env.doctor()}


def stable_state(env, case):
    """Returns the state of the home once it no longer changes."""
    before, end = None, time.monotonic() + SETTLE
    while (now := env.describe()) != before and case.has_processes and time.monotonic() < end:
        before = now
        time.sleep(1)
    return now


def one_try(env, case, point, expected):
    """Kills the program before one system call and runs the next command; returns whether it was killed, and what is wrong."""
    env.restore("start")
    case.start(env)
    killed = case.attempt(env, case, kill_options(point))
    problems = []
    again = env.run(*(case.next_command or case.command))
    is_done = any(text in again.stdout + again.stderr for text in case.already_done)
    if again.returncode and not is_done:
        problems.append(f"the next command fails with {again.returncode}: {again.stderr.strip()}")
    run_later(env, case)
    last = {}

    def is_settled():
        last.update(env.describe())
        return all(last[key] == expected[key] for key in last)

    if not eventually(is_settled, SETTLE if case.has_processes else 0):
        problems += differences(expected, last)
    found = [one for one in env.doctor() if one not in expected["doctor"]]
    problems += [f"doctor: {one}" for one in found]
    return killed, problems


def run_later(env, case):
    for command in case.later:
        env.run(*command)


def differences(expected, actual):
    """Describes where two states differ, one line for each difference."""
    lines = []
    for key, value in actual.items():
        before = expected[key]
        if value == before:
            continue
        if isinstance(value, list):
            lines += [f"{key}: extra {one}" for one in value if one not in before]
            lines += [f"{key}: missing {one}" for one in before if one not in value]
        elif isinstance(value, dict):
            for name in sorted(before.keys() | value.keys()):
                if before.get(name) != value.get(name):
                    lines.append(f"{key} of {name}: {value.get(name)} instead of {before.get(name)}")
        else:
            lines.append(f"{key}: {value!r} instead of {before!r}")
    return lines


main()
