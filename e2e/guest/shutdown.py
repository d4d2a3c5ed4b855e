"""A member refuses a shutdown request and agrees to the next one. Checks that it leaves no process, pane or roster
entry behind."""

from guest_env import instruction

from lib.scripted_model import say, team_tool
from lib.util import eventually


def refuse_then_agree(env, report, mate):
    name, vendor = mate
    env.lead.call("TaskCreate", {"subject": f"left by {name}", "description": "half done"})
    task = env.task_id(f"left by {name}")
    env.order(name, "Begin.", team_tool("task_claim", taskId=task), say("I have begun."))
    eventually(lambda: env.brigade("task", "show", task)["status"] == "in_progress", 20)
    env.becomes_idle(name)

    reason = f"not yet, says {name}"
    refuse = team_tool("answer_shutdown", request_id="{heard:request_id}", approve=False, reason=reason)
    env.ask_to_stop(name, instruction("Time to stop.", refuse, say("I stay.")))
    received = env.lead_receives(reason)
    claim = f"{name}: may refuse to stop, and the lead gets the reason"
    env.check_lead_receives(report, claim, reason, received, env.calls(vendor, name)[-1:])
    report.check(f"{name}: is still running", name in env.members() and env.processes(name))
    env.becomes_idle(name)

    pane, processes = env.member(name)["tmuxPaneId"], env.processes(name)
    report.figure(f"{name}: its processes", len(processes))
    env.ask_to_stop_and_agree(name, "Now, please.")
    left = eventually(lambda: name not in env.members(), 20)
    report.check(f"{name}: leaves the team when it agrees", left, env.members())
    free = eventually(lambda: is_free(env.brigade("task", "show", task)), 5)
    report.check(f"{name}: its task is free again", free, env.brigade("task", "show", task))
    received = env.lead_receives(f"{name} has shut down")
    report.check(f"{name}: the lead learns that the member has shut down", received, env.lead.input()[-600:])

    def running():
        return [process for process in processes if process.is_alive()]

    report.check(f"{name}: none of its processes is left", eventually(lambda: not running(), 15), running())
    closed = eventually(lambda: pane not in env.panes(), 10)
    report.check(f"{name}: its pane is closed", closed, env.panes())
    report.check(f"{name}: is still off the roster at the end", name not in env.members(), env.members())


def is_free(task):
    return task["status"] == "pending" and not task.get("owner")
