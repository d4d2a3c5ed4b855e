"""The program scripted-model as a process, the log of the requests it received, and scripts for it.

The model follows the script in the latest user message: `[script]STEPS[/script]`, with a JSON list of steps.
"""

import json
import os
import subprocess

from lib.util import eventually, json_lines


class ScriptedModel:
    """A context manager that runs the model. It logs all requests in `folder`, with their bodies if `bodies` is set.
    `prefix` is a command that runs the model elsewhere, such as in a network namespace."""

    def __init__(self, folder, bodies=True, prefix=()):
        self._folder = folder
        self._bodies = bodies
        self._prefix = prefix
        self._outage = folder / "outage"
        folder.mkdir(parents=True)

    def __enter__(self):
        address, log, bodies = (self._folder / name for name in ("address", "log", "bodies"))
        log.touch()
        arguments = ["--address", address, "--log", log, "--outage", self._outage]
        if self._bodies:
            arguments += ["--bodies", bodies]
        self._process = subprocess.Popen([*self._prefix, os.environ["SCRIPTED_MODEL"], *arguments])
        if not eventually(address.exists, 10):
            self._process.kill()
            raise RuntimeError("the scripted model does not listen")
        self.url = address.read_text().strip()
        self._seen = 0
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def fail(self, status, body):
        """From now on every request gets this error."""
        draft = self._outage.with_suffix(".draft")
        draft.write_text(json.dumps({"status": status, "body": body}))
        draft.rename(self._outage)

    def recover(self):
        """Ends `fail`."""
        self._outage.unlink()

    def body(self, number):
        """The body of the request with this number."""
        return (self._folder / "bodies" / f"{number:04}.json").read_text()

    def turns(self):
        """The log records of all requests that offered tools; an agent's requests for titles and the like do not."""
        # The last line may be incomplete.
        whole_lines = (self._folder / "log").read_text().rpartition("\n")[0]
        return [record for record in json_lines(whole_lines) if record.get("tools")]

    def new_turns(self):
        """Those of `turns` that came since the last call."""
        turns = self.turns()
        new, self._seen = turns[self._seen :], len(turns)
        return new

    def last_input(self):
        """The body of the latest of these requests, which carries the whole conversation."""
        turns = self.turns()
        return self.body(turns[-1]["number"]) if turns else ""


def team_tools(turn):
    """The tools of the MCP server `team` in a request: from their own name to the name the agent offered them by."""
    found = {}
    for offered in turn["tools"]:
        _, server, name = offered["name"].partition("team")
        if server and not offered["deferred"]:
            found[name.lstrip("_/")] = offered["name"]
    return found


def tool_results(turns):
    """The result of each tool call, as the agent reported it to its model, in call order."""
    latest = {turn["results"]: turn["returned"] for turn in turns if turn["returned"]}
    return [latest[number] for number in sorted(latest)]


def tool_calls(turns):
    """The tools that a model called: name, arguments, and the result, which is None while there is none."""
    found = []
    for turn, after in zip(turns, [*turns[1:], None]):
        if call := turn["answer"].get("call"):
            result = after and after["results"] == turn["results"] + 1 and after["returned"]
            found.append((call["wanted"], call["args"], result or None))
    return found


# Scripts.


def script(*steps):
    """Text that makes the scripted model follow these steps."""
    return f"[script]{json.dumps(steps)}[/script]"


def say(text):
    """A step that ends the turn with this text."""
    return {"say": text}


def tool(name, /, **args):
    """A step that calls a tool."""
    return {"tool": name, "args": args}


def team_tool(name, /, **args):
    """A step that calls a tool of `brigade mcp`."""
    return tool(f"team/{name}", **args)


def claim_step(name, task, native):
    """A step by which a member claims a task; `native` is a real Claude Code with its own tools."""
    if native:
        return tool("TaskUpdate", taskId=task, status="in_progress", owner=name)
    return team_tool("task_claim", taskId=task)


def complete_step(task, native):
    return tool("TaskUpdate" if native else "team/task_update", taskId=task, status="completed")


def shutdown_steps(native, version="new"):
    """The steps by which a member agrees to the shutdown request that it has just received."""
    if not native:
        agree = team_tool("answer_shutdown", request_id="{heard:request_id}", approve=True)
    else:
        agree = tool("SendMessage", **shutdown_response("{heard:requestId}", version))
    return [agree, say("Goodbye.")]


def shutdown_response(request, version):
    """The arguments of Claude Code's SendMessage that agree to a shutdown request."""
    answer = {"type": "shutdown_response", "request_id": request, "approve": True}
    return answer if version == "old" else {"to": "team-lead", "message": answer}
