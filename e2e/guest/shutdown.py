"""Being asked to stop: no, and then yes; and what is left behind."""

from guest import say, script, team
from house import eventually


def shutdown(house, report, mate):
    name, vendor = mate
    house.lead.call("TaskCreate", {"subject": f"left by {name}", "description": "half done"})
    task = next(task["id"] for task in house.brigade("task", "list") if task["subject"] == f"left by {name}")
    house.order(name, "Begin.", team("task_claim", taskId=task), say("I have begun."))
    eventually(lambda: house.brigade("task", "show", task)["status"] == "in_progress", 20)
    house.idle(name)

    no = team("answer_shutdown", request_id="{heard:request_id}", approve=False, reason=f"not yet, says {name}")
    house.ask_to_stop(name, script("Time to stop.", no, say("I stay.")))
    heard = house.listens(f"not yet, says {name}")
    if house.lost_by_lead(f"not yet, says {name}"):
        report.figure(f"{name}: refused to stop; lost by the lead itself", "old")
    else:
        report.check(f"{name}: may refuse to stop, and the lead hears why", heard, house.calls(vendor, name)[-1:])
    report.check(f"{name}: is still there", name in house.members() and house.processes(name))
    house.idle(name)

    pane, processes = house.member(name)["tmuxPaneId"], house.processes(name)
    report.figure(f"{name}: its processes", len(processes))
    yes = team("answer_shutdown", request_id="{heard:request_id}", approve=True)
    house.ask_to_stop(name, script("Now, please.", yes, say("Goodbye.")))
    left = eventually(lambda: name not in house.members(), 20)
    report.check(f"{name}: leaves the team when it agrees", left, house.members())
    free = eventually(lambda: is_free(house.brigade("task", "show", task)), 5)
    report.check(f"{name}: its task is free again", free, house.brigade("task", "show", task))
    heard = house.listens(f"{name} has shut down")
    report.check(f"{name}: the lead is told that it is gone", heard, house.lead.heard()[-600:])
    running = lambda: {pid: run for pid, run in processes.items() if house.runs(pid, run)}
    gone = eventually(lambda: not running(), 15)
    report.check(f"{name}: no process of its is left", gone, running())
    closed = eventually(lambda: pane not in house.panes(), 10)
    report.check(f"{name}: its pane is closed", closed, house.panes())
    report.check(f"{name}: it does not come back", name not in house.members(), house.members())


def is_free(task):
    return task["status"] == "pending" and not task.get("owner")
