"""Measures the cost of a team: processor time at rest and for each message, memory, and the seconds of `up` and `down`.

Only brigade's own processes count. The members' agent is a shell script without a model.
"""

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path

from mcp_server import McpServer
from team import Team

# Members start slowly on a busy machine, and their first reports come a moment later.
SETTLE_SECONDS = 5


def difference(before, after):
    return sum(ms - before.get(pid, 0) for pid, ms in after.items())


def children_ms():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1000


def finish_tasks(team, count):
    """Puts finished tasks on the board of a running team."""
    server = McpServer(team, "team-lead")
    for number in range(1, count + 1):
        calls = [("task_create", {"subject": f"task {number}", "description": "x" * 200}),
                 ("task_update", {"taskId": str(number), "status": "completed"})]
        for name, arguments in calls:
            result = server.tool(name, arguments)
            if result["isError"]:
                sys.exit(f"{name} failed: {result['content']}")
    server.close()


def measure(sizes, messages, tasks, idle_seconds):
    """Returns the costs of teams of these sizes by name, and the idle cost of 2 members with finished tasks on their board. The
    teams run at the same time and get messages in turn, so that other work on the machine affects all of them alike."""
    *teams, with_tasks = [Team(size) for size in (*sizes, 2)]
    costs = [{} for _ in teams]
    try:
        with_tasks.run("up")
        finish_tasks(with_tasks, tasks)
        for team, cost in zip(teams, costs):
            cost["up, s"] = team.run("up")
        time.sleep(SETTLE_SECONDS)
        first = [team.processor_ms() for team in (*teams, with_tasks)]
        time.sleep(idle_seconds)
        *second, idle_with_tasks = [team.processor_ms() for team in (*teams, with_tasks)]
        seconds_of_sends, by_senders = [0] * len(teams), [0] * len(teams)
        for number in range(messages):
            for index, team in enumerate(teams):
                before_send = children_ms()
                seconds_of_sends[index] += team.run("send", f"m{number % 2}", f"message {number} " + "x" * 300)
                by_senders[index] += children_ms() - before_send
        time.sleep(3)
        for index, (team, cost) in enumerate(zip(teams, costs)):
            by_team = difference(second[index], team.processor_ms())
            cost["idle, % of a core"] = difference(first[index], second[index]) / idle_seconds / 10
            cost["memory, MB for each member"] = team.memory_mb() / team.members
            cost["sends each second"] = messages / seconds_of_sends[index]
            cost["processor time of the team, ms for each message"] = by_team / messages
            cost["processor time of `brigade send`, ms"] = by_senders[index] / messages
            cost["processor time, ms for each message"] = (by_team + by_senders[index]) / messages
        for team, cost in zip(teams, costs):
            cost["down --now, s"] = team.run("down", "--now")
    finally:
        for team in (*teams, with_tasks):
            team.remove()
    return *costs, difference(first[-1], idle_with_tasks) / idle_seconds / 10


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--members", type=int, default=100, help="the size of the large team")
    parser.add_argument("--messages", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=5000, help="finished tasks on the board of a team of 2 members")
    parser.add_argument("--idle", type=float, default=20, help="seconds without a message")
    parser.add_argument("--short", action="store_true", help="30 members, 40 messages, 500 tasks")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if options.short:
        options.members, options.messages, options.tasks = 30, 40, 500
    return options


def main():
    options = arguments()
    large, tasks = options.members, options.tasks
    slack = float(os.environ.get("BENCH_SLACK", "1"))
    small_costs, large_costs, idle_with_tasks = measure((2, large), options.messages, tasks, options.idle)
    print(f"{'':50} {'2 members':>12} {f'{large} members':>12}")
    for name, cost in large_costs.items():
        print(f"{name:50} {small_costs[name]:12.2f} {cost:12.2f}")
    print(f"{f'idle with {tasks} finished tasks, % of a core':50} {idle_with_tasks:12.2f}")
    if options.json:
        figures = {"members": large, "tasks": tasks, "small": small_costs, "large": large_costs, "idle with tasks": idle_with_tasks}
        options.json.write_text(json.dumps(figures))
    per_message = "processor time, ms for each message"
    bars = [
        (f"processor time per message, {large} members against 2", large_costs[per_message] / small_costs[per_message], 1.3),
        (f"idle, {large} members, % of a core", large_costs["idle, % of a core"], 0.5),
        (f"idle, 2 members with {tasks} finished tasks, % of a core", idle_with_tasks, 0.3),
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
