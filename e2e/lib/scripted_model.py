"""Runs the program scripted-model, reads the log of the requests it received, and builds scripts for it.

The model follows the script in the latest user message: `[script]STEPS[/script]`, where STEPS is a JSON list.
"""

import json
import os
import subprocess

from lib.util import eventually, json_lines


class ScriptedModel:
    """A context manager that runs the model. The model logs all requests in `folder`, with bodies if `bodies` is set.
    `prefix` is put before the model's command, for example to run it in a network namespace."""

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
        """Makes the model answer every request with this error from now on."""
        draft = self._outage.with_suffix(".draft")
        draft.write_text(json.dumps({"status": status, "body": body}))
        draft.rename(self._outage)

    def recover(self):
        """Ends the outage that `fail` started."""
        self._outage.unlink()

    def body(self, number):
        """Returns the body of the request with this number."""
        return (self._folder / "bodies" / f"{number:04}.json").read_text()

    def turns(self):
        """Returns the log records of all requests that offer tools. An agent's requests for titles offer none."""
        # Ignore the last line if it is incomplete.
        whole_lines = (self._folder / "log").read_text().rpartition("\n")[0]
        return [record for record in json_lines(whole_lines) if record.get("tools")]

    def new_turns(self):
        """Like `turns`, but returns only the requests since the last call of this method."""
        turns = self.turns()
        new, self._seen = turns[self._seen :], len(turns)
        return new

    def last_input(self):
        """Returns the body of the latest request in `turns`, which contains the whole conversation."""
        turns = self.turns()
        return self.body(turns[-1]["number"]) if turns else ""


def team_tools(turn):
    """Maps the name of each tool of the MCP server `team` to the name that the agent uses for it in a request."""
    found = {}
    for offered in turn["tools"]:
        _, server, name = offered["name"].partition("team")
        if server and not offered["deferred"]:
            found[name.lstrip("_/")] = offered["name"]
    return found


def tool_results(turns):
    """Returns the result of each tool call, as the agent reported it to its model, in the order of the calls."""
    latest = {turn["results"]: turn["returned"] for turn in turns if turn["returned"]}
    return [latest[number] for number in sorted(latest)]


def tool_calls(turns):
    """Returns name, arguments and result of each tool call of a model. A result is None if it is not known yet."""
    found = []
    for turn, after in zip(turns, [*turns[1:], None]):
        if call := turn["answer"].get("call"):
            result = after and after["results"] == turn["results"] + 1 and after["returned"]
            found.append((call["wanted"], call["args"], result or None))
    return found


# Functions that build scripts.


def script(*steps):
    """Returns a text that makes the scripted model follow these steps."""
    return f"[script]{json.dumps(steps)}[/script]"


def say(text):
    """Returns a step that ends the turn with this text."""
    return {"say": text}


def tool(name, /, **args):
    """Returns a step that calls a tool."""
    return {"tool": name, "args": args}


def team_tool(name, /, **args):
    """Returns a step that calls a tool of `brigade mcp`."""
    return tool(f"team/{name}", **args)


def claim_step(name, task, native):
    """Returns a step in which a member claims a task. A `native` member is a Claude Code with its own tools."""
    if native:
        return tool("TaskUpdate", taskId=task, status="in_progress", owner=name)
    return team_tool("task_claim", taskId=task)


def complete_step(task, native):
    return tool("TaskUpdate" if native else "team/task_update", taskId=task, status="completed")


def shutdown_steps(native, version="new"):
    """Returns the steps in which a member agrees to the shutdown request that it has just received."""
    if not native:
        agree = team_tool("answer_shutdown", request_id="{heard:request_id}", approve=True)
    else:
        agree = tool("SendMessage", **shutdown_response("{heard:requestId}", version))
    return [agree, say("Goodbye.")]


def shutdown_response(request, version):
    """Returns the arguments with which Claude Code's SendMessage agrees to a shutdown request."""
    answer = {"type": "shutdown_response", "request_id": request, "approve": True}
    return answer if version == "old" else {"to": "team-lead", "message": answer}
