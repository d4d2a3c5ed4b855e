"""Counts what a running team writes to a NATS server: for each message, for each tool call, and for each second of an idle member.

The members' agent is a script without a model that answers each prompt with one word. Uses the programs $BRIGADE (default: target/release/brigade) and $BRIGADE_NATS_SERVER.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
BRIGADE = Path(os.environ.get("BRIGADE", HERE / "../../target/release/brigade")).resolve()
SERVER = os.environ.get("BRIGADE_NATS_SERVER", "nats-server")
MEMBERS = 2
TOOL_CALLS = 4
IDLE_SECONDS = 60
TOOL_CALL = """
            call='{"sessionUpdate":"tool_call","toolCallId":"call-NUMBER","title":"cargo test -p demo","kind":"execute"}'
            echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$call"'}}'
            call='{"sessionUpdate":"tool_call_update","toolCallId":"call-NUMBER","status":"completed"}'
            echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":'"$call"'}}'
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Team:
    """A team on a NATS server of its own, both in a throw-away folder."""

    def __init__(self, tool_calls):
        self.home = Path(tempfile.mkdtemp(prefix="capacity-writes-"))
        port, self.monitor = free_port(), free_port()
        (self.home / "nats.conf").write_text(
            f'listen: "127.0.0.1:{port}"\nhttp: "127.0.0.1:{self.monitor}"\n'
            f'jetstream {{ store_dir: "{self.home}/data", sync_interval: always }}\n'
        )
        log = (self.home / "nats.log").open("w")
        self.server = subprocess.Popen([SERVER, "-c", self.home / "nats.conf"], stdout=log, stderr=log)
        self.environ = {"HOME": str(self.home), "PATH": os.environ["PATH"], "BRIGADE_TRUST": "all"}
        self.environ["BRIGADE_STORE"] = f"nats://127.0.0.1:{port}"
        agent = self.home / "agent.sh"
        calls = "".join(TOOL_CALL.replace("NUMBER", str(number)) for number in range(tool_calls))
        plain = (HERE / "../team/agent.sh").read_text()
        prompt = """*'"method":"session/prompt"'*)"""
        agent.write_text(plain.replace(prompt, prompt + calls))
        agent.chmod(0o755)
        lines = ['team = "writes"']
        for number in range(MEMBERS):
            (self.home / f"d{number}").mkdir()
            lines.append(f'[members.m{number}]\nagent = "acp:{agent}"\ndir = "d{number}"')
        (self.home / "brigade.toml").write_text("\n".join(lines) + "\n")

    def run(self, *arguments):
        done = subprocess.run([BRIGADE, *arguments], env=self.environ, cwd=self.home, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"brigade {' '.join(arguments)} failed: {done.stderr}")

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/{path}", timeout=5) as answer:
            return json.load(answer)

    def wait_for_server(self):
        for _ in range(200):
            try:
                return self.ask("healthz")
            except OSError:
                time.sleep(0.05)
        sys.exit("the NATS server did not start: " + (self.home / "nats.log").read_text())

    def writes(self):
        """Returns the number of writes and the stored bytes of each stream so far."""
        accounts = self.ask("jsz?streams=1")["account_details"]
        streams = [stream for account in accounts for stream in account["stream_detail"]]
        return {stream["name"]: (stream["state"]["last_seq"], stream["state"]["bytes"]) for stream in streams}

    def connections(self):
        return self.ask("connz")["num_connections"]

    def end(self):
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_ours = f"HOME={self.home}\0".encode() in (folder / "environ").read_bytes() + b"\0"
            except OSError:
                continue
            if is_ours and folder.name != str(os.getpid()):
                try:
                    os.kill(int(folder.name), 9)
                except ProcessLookupError:
                    pass
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def count(messages, tool_calls):
    """Runs a team of two members whose agent makes this number of tool calls for each message, and sends messages to the
    first member. Returns the figures by name."""
    team = Team(tool_calls)
    try:
        team.wait_for_server()
        team.run("up")
        time.sleep(5)
        connections = team.connections()
        first, began = team.writes(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        second, idle_seconds = team.writes(), time.monotonic() - began
        began = time.monotonic()
        for number in range(messages):
            team.run("send", "m0", f"message {number} " + "x" * 488)
        time.sleep(5)
        seconds = time.monotonic() - began
        third = team.writes()
        team.run("down", "--now")
    finally:
        team.end()
    idle = sum(second[name][0] - first[name][0] for name in second) / idle_seconds
    # The members also write pulses while they get messages; those count for each second, not for each message.
    writes = sum(third[name][0] - second[name][0] for name in third) - idle * seconds
    stored = sum(third[name][1] - second[name][1] for name in third)
    mail = third["MB_0"][0] - second["MB_0"][0]
    return {
        "pulse_writes_per_member_second": idle / MEMBERS,
        "connections_per_member": (connections - 1) / MEMBERS,
        "writes_per_message": writes / messages,
        "kept_writes_per_message": mail / messages,
        "stored_bytes_per_message": stored / messages,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    # The read marks of a mailbox grow for about 220 messages and are then shortened, so the mean needs two rounds.
    parser.add_argument("--messages", type=int, default=440)
    messages = parser.parse_args().messages
    plain = count(messages, 0)
    with_tools = count(messages, TOOL_CALLS)
    for name, value in plain.items():
        print(f"{name}: {value:.3f}")
    for name in ("writes_per_message", "stored_bytes_per_message"):
        each = (with_tools[name] - plain[name]) / TOOL_CALLS
        print(f"{name.replace('message', 'tool_call')}: {each:.3f}")


if __name__ == "__main__":
    main()
