"""What teammates cost that have nothing to do: eight of them, each with its agent, in brigade's own
processes. What the agents themselves use is told beside it."""

import time

from house import SLACK, eventually, prove
from teammate import Teammate, idle_notifications, nobody_left, script, team

MEMBERS = 8
# Of one core, and of memory, for a teammate and its guard together.
MOST_CPU = 0.2
MOST_MEMORY = 15.0
MB = 1024 * 1024


def scenario(house, report, short):
    seconds = 20 if short else 120
    with team(house, report, house.version, record=False) as (_, env):
        members = [Teammate(house, f"m{number}", house.version, env) for number in range(MEMBERS)]
        for member in members:
            house.brigade("send", member.name, f"hello {script({'say': 'fine'})}")
            member.start()
        idle = eventually(lambda: all(idle_notifications(house, member.name) for member in members), 120)
        report.check(f"{MEMBERS} teammates have had a turn and are idle", bool(idle))
        # What they do after a turn is not idleness yet.
        time.sleep(5)
        trees = [member.tree() for member in members]
        teammates = [[process for process in tree if process.is_brigade("--agent-id")] for tree in trees]
        guards = [[process for process in tree if process.is_brigade("guard")] for tree in trees]
        servers = [[process for process in tree if process.is_brigade("mcp")] for tree in trees]
        own = [one + other for one, other in zip(teammates, guards)]
        whole = all(len(processes) == 2 for processes in own)
        report.check("each is a teammate and its guard", whole, [len(processes) for processes in own])
        before = {process.pid: process.used() for tree in trees for process in tree}
        begun = time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - begun

        def cpu(processes):
            return sum(process.used() - before[process.pid] for process in processes) / took * 100

        def memory(processes):
            # Processes of one program have its pages in common: those are in memory once, however many map them.
            held = [process.resident() for process in processes]
            return (sum(own for own, _ in held) + max((file for _, file in held), default=0)) / MB

        agents = [[one for one in tree if one not in mine] for tree, mine in zip(trees, own)]
        agents = [[one for one in rest if not one.is_brigade("mcp")] for rest in agents]
        kinds = {"teammate": teammates, "guard": guards, "both": own, "tools": servers, "agent": agents}
        for kind, groups in kinds.items():
            used, held = sorted(map(cpu, groups)), sorted(map(memory, groups))
            figure = f"CPU {used[len(used) // 2]:.3f} %, most {used[-1]:.3f} %"
            report.figure(kind, f"{figure}; resident {held[len(held) // 2]:.1f} MB, most {held[-1]:.1f} MB")
        used, held = max(map(cpu, own)), max(map(memory, own))
        report.check(f"none uses much of a core (bar {MOST_CPU * SLACK:.1f} %)", used <= MOST_CPU * SLACK, used)
        report.check(f"none holds much memory (bar {MOST_MEMORY:.0f} MB)", held <= MOST_MEMORY, held)
        for member in members:
            member.kill()
        report.check("no process is left", not nobody_left(house), nobody_left(house))


prove(scenario, "tmux")
