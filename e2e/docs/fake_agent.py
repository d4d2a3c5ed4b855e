#!/usr/bin/env python3
"""A fake agent that implements the Agent Client Protocol. Symbolic links to this file give it the names of real agents.
It requests permission for a command on the prompt "run `COMMAND`", submits a plan in plan mode, and agrees to every
shutdown request."""

import json
import os
import re
import subprocess
import sys

VERSIONS = {"codex": "0.166.0", "claude": "2.1.325", "gemini": "0.61.0", "opencode": "1.18.33"}
NAME = os.path.basename(sys.argv[0])


def write(**message):
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


class FakeAgent:
    def __init__(self):
        self.tools = None
        self.mode = None

    def call(self, tool, **arguments):
        """Calls a tool of the team's MCP server."""
        environ = os.environ | {pair["name"]: pair["value"] for pair in self.tools["env"]}
        command = [self.tools["command"], *self.tools["args"]]
        greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": NAME, "version": "1"}}
        with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            for message in (
                {"id": 1, "method": "initialize", "params": greeting},
                {"method": "notifications/initialized"},
                {"id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
            ):
                server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
                server.stdin.flush()
            for line in server.stdout:
                if json.loads(line).get("id") == 2:
                    break
            server.stdin.close()

    def ask(self, command):
        """Requests permission to run a command, and waits for the answer."""
        call = {"toolCallId": "1", "title": command, "kind": "execute", "rawInput": {"command": command}}
        options = [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        params = {"sessionId": "s", "toolCall": call, "options": options}
        write(id=900, method="session/request_permission", params=params)
        for line in sys.stdin:
            message = json.loads(line)
            if message.get("id") == 900:
                return
            self.handle(message)

    def prompt(self, text):
        if question := re.search(r"shutdown-\d+@[\w-]+", text):
            self.call("answer_shutdown", request_id=question[0], approve=True)
        elif self.mode == "plan":
            self.call("submit_plan", plan="# Plan\n1. Read the parser\n2. Write the tests")
        elif command := re.search(r"run `(.+?)`", text):
            self.ask(command[1])
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Done."}}
        write(method="session/update", params={"sessionId": "s", "update": update})

    def handle(self, message):
        params = message.get("params", {})
        result = {}
        match message.get("method"):
            case "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
            case "session/new" | "session/load":
                self.tools = params["mcpServers"][0]
                result = {"sessionId": "s"}
            case "session/set_mode":
                self.mode = params["modeId"]
            case "session/prompt":
                self.prompt("".join(part.get("text", "") for part in params["prompt"]))
                result = {"stopReason": "end_turn"}
        if "id" in message and "method" in message:
            write(id=message["id"], result=result)


if "--version" in sys.argv:
    print(VERSIONS[NAME])
    sys.exit()
agent = FakeAgent()
for line in sys.stdin:
    agent.handle(json.loads(line))
