"""While a team does twenty tasks, kills the team's supervisor, and then all its processes, with SIGKILL. Runs `brigade
resume` after each of these two steps. Checks that every task was done once and after its blockers, that each model
received every message once, and that `brigade down` leaves no process."""

import random
import time

from lib.processes import in_home, members_in_home
from lib.task_graph import TASKS, Dispatcher, build_graph
from lib.team_env import MEMBERS, run_team_scenario, selected_members
from lib.util import eventually

# The number of teams, and how often the processes of each team are killed.
LONG, SHORT = (5, 4), (1, 3)
# The timeout in seconds. Gemini CLI cannot resume a session in the minute in which that session began, so a restart
# may take a minute.
TIMEOUT = 150


def scenario(env, report, short):
    teams, kills = SHORT if short else LONG
    names = selected_members()
    for number in range(teams):
        if teams > 1:
            report.figure("team", f"{number + 1} of {teams}")
        env.team = f"team-{number}"
        one_team(env, report, names, kills)
        if report.failures:
            break


def one_team(env, report, names, kills):
    env.write_team_file({name: (MEMBERS[name], {}) for name in names}, build_graph())
    env.run_ok("up")
    dispatcher = Dispatcher(env, names)
    for number in range(1, kills + 1):
        # The kills are spread evenly over the tasks, each with a random delay.
        enough = TASKS * number // (kills + 1)
        eventually(lambda: dispatcher.poll() or dispatcher.done >= enough, TIMEOUT)
        time.sleep(random.uniform(0, 1.5))
        one_round(env, report, f"at {dispatcher.done} tasks")
    dispatcher.finish(report, TIMEOUT * 2)
    for name in names:
        sent, wrong = dispatcher.sent[name], dispatcher.wrong_deliveries(name)
        if MEMBERS[name].native:
            # If a killed Claude Code held the inbox lock, brigade cannot tell whether the holder is dead or asleep.
            # So brigade puts the messages that Claude Code had removed back into the inbox, once (docs/store.md).
            twice = [mark for mark, times in wrong.items() if times == 2]
            report.figure(f"{name}: messages repeated because a killed process held the inbox lock", len(twice))
            wrong = {mark: times for mark, times in wrong.items() if mark not in twice}
        report.check(f"{name}: its model received each of {len(sent)} messages once", not wrong, wrong)
    env.run_ok("down", "--now")
    env.check_no_process_left(report)


def one_round(env, report, when):
    before = member_processes(env)
    supervisor = next(process for process in in_home(env.home) if "supervise" in process.argv)
    supervisor.kill()
    eventually(lambda: not supervisor.is_alive(), 5)
    time.sleep(random.choice([0, random.uniform(0, 1)]))
    env.run_ok("resume")
    after = member_processes(env)
    name = f"{when}: the members keep running without a supervisor, and the next supervisor adopts them"
    report.check(name, before == after, (before, after))
    time.sleep(random.choice([0, random.uniform(0, 2)]))
    killed = 0
    while left := in_home(env.home):
        killed += len(left)
        for process in random.sample(left, len(left)):
            process.kill()
    started = time.monotonic()
    env.run_ok("resume", timeout=300)
    took = time.monotonic() - started
    report.figure(f"{when}", f"all {killed} processes killed, every member is up again after {took:.1f} s")


def member_processes(env):
    """Returns the process id of each member that brigade runs, by member name."""
    return {name: process.pid for name, process in members_in_home(env.home).items()}


run_team_scenario(scenario)
