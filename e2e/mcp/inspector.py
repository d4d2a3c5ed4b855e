"""The official MCP Inspector calls every tool, resource and prompt of `brigade mcp`.

Each call starts a new Inspector process and a new server process, so that all state between two calls is in the
team's files.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lib.report import Report
from lib.util import capture

TEAM = "inspected"
# Maximum number of Inspector processes that run at the same time.
PARALLEL = 2


class InspectorEnv:
    """A temporary home with one team, and an MCP server for each of its members."""

    def __init__(self, root):
        self.root = Path(root)
        for name in ("home", "work"):
            (self.root / name).mkdir()
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "CLAUDE_CONFIG_DIR": str(self.root / "claude"),
            "XDG_STATE_HOME": str(self.root / "state"),
            # A script that implements just enough of ACP to act as a teammate.
            "BRIGADE_OPENCODE": os.environ["FAKE_AGENT"],
        }
        servers = {
            name: {"command": os.environ["BRIGADE"], "args": ["mcp", "--team", TEAM, "--as", name], "env": self.environ}
            for name in ("team-lead", "bob", "carl")
        }
        self.config = self.root / "servers.json"
        self.config.write_text(json.dumps({"mcpServers": servers}))

    def brigade(self, *args):
        subprocess.run([os.environ["BRIGADE"], "--team", TEAM, *args], env=self.environ, check=True,
                       cwd=self.root / "work", stdout=subprocess.DEVNULL)

    def inspect(self, member, method, *args):
        """Runs the Inspector; returns its JSON output and its exit code."""
        command = [os.environ["INSPECTOR"], "--cli", "--config", str(self.config), "--server", member,
                   "--format", "json", "--method", method, *args]
        environ = self.environ | {"MCP_INSPECTOR_SECRET_STORE": "memory"}
        done = capture(command, env=environ, cwd=self.root / "work", timeout=60)
        try:
            output = json.loads(done.stdout)
        except ValueError:
            output = {"stdout": done.stdout, "stderr": done.stderr}
        return output.get("result", output), done.returncode

    def shutdown_request(self, name):
        """Waits for a shutdown request to a member and returns the id of the request."""
        for _ in range(100):
            done = capture([os.environ["BRIGADE"], "--team", TEAM, "inbox", name, "--json"], env=self.environ)
            for entry in json.loads(done.stdout or "[]"):
                if "shutdown_request" in entry["text"]:
                    return json.loads(entry["text"])["requestId"]
            time.sleep(0.1)
        return ""

    def request_permission(self):
        """Writes a permission request from bob, as Claude Code would. brigade has no tool for that."""
        request = {
            "type": "permission_request", "request_id": "perm-1-abcdefg", "agent_id": "bob",
            "tool_name": "Bash", "tool_use_id": "t", "description": "List",
            "input": {"command": "ls"}, "permission_suggestions": [],
        }
        path = self.root / "claude" / "teams" / TEAM / "inboxes" / "team-lead.json"
        inbox = json.loads(path.read_text()) if path.exists() else []
        inbox.append({"from": "bob", "text": json.dumps(request), "read": False,
                      "timestamp": "2026-11-15T12:00:00.000Z"})
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(inbox))


def schema_errors(value, schema, where="result"):
    """Validates a value against a schema. A schema keyword that is not implemented here also counts as an error."""
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
    found = [f"{where}: cannot check the keyword {word}" for word in schema.keys() - {"type", "properties", "required"}]
    name = schema.get("type")
    if name is not None and (name not in types or not isinstance(value, types[name])):
        return found + [f"{where}: not a {name}: {value!r}"]
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{where}: no {key}" for key in schema.get("required", []) if key not in value]
        found += [f"{where}: {key} is not in the schema" for key in value if properties and key not in properties]
        for key in properties.keys() & value.keys():
            found += schema_errors(value[key], properties[key], f"{where}.{key}")
    return found


class Inspection:
    def __init__(self, env, report):
        self.env, self.report = env, report
        self.schemas, self.called = {}, {}

    def list_tools(self, role, member):
        listed, code = self.env.inspect(member, "tools/list", "--strict")
        tools = listed.get("tools", [])
        self.report.check(f"{role}: tools/list returns {len(tools)} tools that every client accepts",
                          code == 0 and tools, (code, listed))
        self.schemas[role] = {tool["name"]: tool["outputSchema"] for tool in tools}

    def call(self, role, member, tool, **arguments):
        result, code = self.env.inspect(member, "tools/call", "--tool-name", tool,
                                          "--tool-args-json", json.dumps(arguments))
        data = result.get("structuredContent")
        schema = self.schemas[role].get(tool, {"type": "a tool that is listed"})
        errors = schema_errors(data, schema) if code == 0 and result.get("isError") is False else [result]
        self.report.check(f"{role}: the result of {tool} matches its schema", not errors, (code, errors))
        self.called.setdefault(role, set()).add(tool)
        return data or {}

    def not_offered(self, role, member, *tools):
        for tool in tools:
            output, code = self.env.inspect(member, "tools/call", "--tool-name", tool, "--tool-args-json", "{}")
            listed = tool in self.schemas[role]
            self.report.check(f"{role}: {tool} is not offered, and a call fails", code != 0 and not listed,
                              (code, output))

    def all_called(self, role):
        left = self.schemas[role].keys() - self.called[role]
        self.report.check(f"{role}: every tool was called", not left, sorted(left))

    def read_all(self, role, member):
        """Lists and reads every resource and every prompt."""
        kinds = [("resources", "uri", "resources/read", "--uri", "contents"),
                 ("prompts", "name", "prompts/get", "--prompt-name", "messages")]
        for kind, key, method, option, field in kinds:
            listed, code = self.env.inspect(member, f"{kind}/list")
            found = [item[key] for item in listed.get(kind, [])]
            self.report.check(f"{role}: {kind}/list returns {len(found)} entries", code == 0 and found, (code, listed))
            with ThreadPoolExecutor(PARALLEL) as pool:
                answers = pool.map(lambda one: self.env.inspect(member, method, option, one), found)
            for one, (answer, code) in zip(found, answers):
                self.report.check(f"{role}: {method} {one}", code == 0 and answer.get(field), (code, answer))


def inspect(env, report):
    i = Inspection(env, report)
    founder = lead = "team-lead"
    i.list_tools("founder", founder)
    i.not_offered("founder", founder, "submit_plan", "answer_shutdown")
    i.call("founder", founder, "team_create", team_name=TEAM, description="to be inspected")
    env.brigade("team", "join", "bob")
    env.request_permission()

    i.list_tools("lead", lead)
    i.list_tools("teammate", "bob")
    i.not_offered("lead", lead, "team_create", "submit_plan", "answer_shutdown")
    i.not_offered("teammate", "bob", "answer_plan", "answer_permission", "request_shutdown", "team_delete")

    i.call("lead", lead, "list_members")
    i.call("lead", lead, "task_create", subject="Parser", description="Write it", metadata={"k": 1})
    i.call("lead", lead, "task_create", subject="Docs", description="Of it", addBlockedBy=["1"])
    i.call("lead", lead, "task_list")
    i.call("lead", lead, "task_get", taskId="2")
    i.call("lead", lead, "task_claim", taskId="1")
    i.call("lead", lead, "task_update", taskId="1", owner="bob", status="pending")
    i.call("lead", lead, "send_message", to="bob", message="hello", summary="a greeting")
    i.call("lead", lead, "broadcast", message="hello, all")
    stop = i.call("lead", lead, "request_shutdown", to="bob", reason="for the night")

    bob = "teammate", "bob"
    i.call(*bob, "list_members")
    got = i.call(*bob, "read_messages")
    report.check("teammate: reads its messages", len(got.get("messages", [])) == 4, got)
    i.call(*bob, "wait_for_messages", timeout_seconds=0)
    i.call(*bob, "answer_shutdown", request_id=stop.get("request_id", ""), approve=False, reason="not yet")
    i.call(*bob, "task_list")
    i.call(*bob, "task_get", taskId="1")
    i.call(*bob, "task_claim", taskId="1")
    i.call(*bob, "task_update", taskId="1", status="completed")
    i.call(*bob, "task_create", subject="Review", description="Of it all")
    i.call(*bob, "send_message", to="team-lead", message="done")
    i.call(*bob, "broadcast", message="done, all")
    plan = i.call(*bob, "submit_plan", plan="# Plan")

    got = i.call("lead", lead, "read_messages")
    report.check("lead: reads its messages", len(got.get("messages", [])) == 5, got)
    i.call("lead", lead, "wait_for_messages", timeout_seconds=0)
    i.call("lead", lead, "answer_plan", request_id=plan.get("request_id", ""), approve=True)
    i.call("lead", lead, "answer_permission", request_id="perm-1-abcdefg", approve=False, reason="no")

    i.read_all("teammate", "bob")
    i.read_all("lead", lead)
    output, code = env.inspect("bob", "resources/read", "--uri", "brigade://other/log")
    report.check("teammate: cannot read a resource of another team", code != 0, output)

    i.call("lead", lead, "spawn_teammate", name="carl", agent="opencode", prompt="hello")
    with ThreadPoolExecutor(1) as pool:
        stopped = pool.submit(i.call, "lead", lead, "stop_teammate", name="carl", reason="enough")
        answer = {"request_id": env.shutdown_request("carl"), "approve": True}
        output, code = env.inspect("carl", "tools/call", "--tool-name", "answer_shutdown",
                                   "--tool-args-json", json.dumps(answer))
        report.check("the spawned member agrees to stop", code == 0, output)
        stopped.result()

    i.call("lead", lead, "team_delete")
    i.all_called("teammate")
    i.all_called("lead")
    # The founder of a team becomes its lead, so the lead's calls count for the founder too.
    i.called["founder"] |= i.called["lead"]
    i.all_called("founder")


if __name__ == "__main__":
    report = Report("the MCP Inspector and brigade mcp")
    with tempfile.TemporaryDirectory(prefix="brigade-inspected-") as root:
        inspect(InspectorEnv(root), report)
    sys.exit(report.end())
