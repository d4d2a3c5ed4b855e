"""A team of real agents from a brigade.toml does twenty tasks that block each other. Checks that every task is
done once and after its blockers, and that each model receives every message once."""

import time

from lib.task_graph import Dispatcher, build_graph
from lib.team_env import MEMBERS, run_team_scenario, selected_members


def scenario(env, report, short):
    names = selected_members()
    env.write_team_file({name: (MEMBERS[name], {}) for name in names}, build_graph())
    started = time.monotonic()
    env.run_ok("up")
    report.figure(f"{len(names)} members up after", f"{time.monotonic() - started:.1f} s")
    dispatcher = Dispatcher(env, names)
    histories = dispatcher.finish(report, 240)
    idle = [name for name in names if not any(history.owner == name for history in histories.values())]
    report.check("every member did a task", not idle, idle)
    for name in names:
        sent, wrong = dispatcher.sent[name], dispatcher.wrong_deliveries(name)
        report.check(f"{name}: its model received each of {len(sent)} messages once", not wrong, wrong)
    env.shut_down(report, names)


run_team_scenario(scenario)
