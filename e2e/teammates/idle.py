"""Measures CPU and memory of eight idle teammates. The limits apply only to brigade's own processes."""

import time

from teammate import Teammate, idle_notifications, team

from lib.env import run_scenario
from lib.scripted_model import say, script
from lib.util import SLACK, eventually

MEMBERS = 8
# Limits for a teammate's brigade process and its guard together: percent of a core, and MB.
MAX_CPU = 0.2
MAX_MEMORY = 15.0
MB = 1024 * 1024


def scenario(env, report, short):
    seconds = 20 if short else 120
    with team(env, env.version, bodies=False) as (_, environ):
        members = [Teammate(env, f"m{number}", env.version, environ) for number in range(MEMBERS)]
        for member in members:
            env.brigade("send", member.name, f"hello {script(say('fine'))}")
            member.start()
        idle = eventually(lambda: all(idle_notifications(env, member.name) for member in members), 120)
        report.check(f"{MEMBERS} teammates have had a turn and are idle", bool(idle))
        # Wait until the teammates have finished their work after the turn.
        time.sleep(5)
        trees = [member.tree() for member in members]
        teammates = [[process for process in tree if process.is_brigade("--agent-id")] for tree in trees]
        guards = [[process for process in tree if process.is_brigade("guard")] for tree in trees]
        servers = [[process for process in tree if process.is_brigade("mcp")] for tree in trees]
        own = [one + other for one, other in zip(teammates, guards)]
        complete = all(len(processes) == 2 for processes in own)
        report.check("each teammate has a brigade process and a guard", complete, [len(processes) for processes in own])
        before = {process.pid: process.cpu_seconds() for tree in trees for process in tree}
        started = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - started

        def cpu(processes):
            return sum(process.cpu_seconds() - before[process.pid] for process in processes) / took * 100

        def memory(processes):
            # Processes of the same program share its pages, so mapped files count only once.
            held = [process.resident() for process in processes]
            return (sum(own for own, _ in held) + max((file for _, file in held), default=0)) / MB

        agents = [
            [one for one in tree if one not in mine and not one.is_brigade("mcp")] for tree, mine in zip(trees, own)
        ]
        kinds = {"teammate": teammates, "guard": guards, "both": own, "tools": servers, "agent": agents}
        for kind, groups in kinds.items():
            used, held = sorted(map(cpu, groups)), sorted(map(memory, groups))
            cpu_text = f"CPU {used[len(used) // 2]:.3f} %, max {used[-1]:.3f} %"
            report.figure(kind, f"{cpu_text}; resident {held[len(held) // 2]:.1f} MB, max {held[-1]:.1f} MB")
        used, held = max(map(cpu, own)), max(map(memory, own))
        report.check(f"every teammate is below the CPU limit (bar {MAX_CPU * SLACK:.1f} %)", used <= MAX_CPU * SLACK, used)
        report.check(f"every teammate is below the memory limit (bar {MAX_MEMORY:.0f} MB)", held <= MAX_MEMORY, held)
        for member in members:
            member.kill()
        env.check_no_process_left(report)


run_scenario(scenario)
