"""A team of real agents from a brigade.toml does twenty tasks that block each other. Every task is done once and after
its blockers, and each model receives every message once."""

import time

from lib.task_graph import Dispatcher, build_graph, check_histories, task_chart, task_histories
from lib.team_env import MEMBERS, run_team_scenario, selected_members


def scenario(env, report, short):
    names = selected_members()
    env.write_team_file({name: (MEMBERS[name], {}) for name in names}, build_graph())
    started = time.monotonic()
    env.run_ok("up")
    report.figure(f"{len(names)} members up after", f"{time.monotonic() - started:.1f} s")
    dispatcher = Dispatcher(env, names)
    started = time.monotonic()
    done = dispatcher.finish(240)
    report.check("all tasks are done", done, dispatcher.tasks() if not done else None)
    report.figure("that took", f"{time.monotonic() - started:.1f} s, {dispatcher.reminders} reminders")
    histories = task_histories(env)
    check_histories(report, histories, names)
    idle = [name for name in names if not any(history.owner == name for history in histories.values())]
    report.check("every member did a task", not idle, idle)
    print(task_chart(histories, names), flush=True)
    for name in names:
        sent, wrong = dispatcher.sent[name], env.wrong_deliveries(name, dispatcher.sent[name])
        report.check(f"{name}: its model received each of {len(sent)} messages once", not wrong, wrong)
    env.shut_down(report, names)


run_team_scenario(scenario)
