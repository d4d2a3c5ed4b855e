"""Team members that use a peer through one of three interfaces: a library, a command line, or an MCP server.

A member does one operation at a time and returns how many microseconds the operation took. A library call is timed
inside the process that uses the library, a command from the start of its process to the exit, and a tool call from
the request to the response.
"""

import http.client
import json
import os
import signal
import subprocess
import threading
import time

from lib.processes import tree

TIMEOUT = 120
# The parameters of the MCP request `initialize`.
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Refused(Exception):
    """The peer returned an error, or its process has exited."""


def message_text(name, number):
    """Returns a message text of 500 bytes that starts with the sender and the message number."""
    return f"{name}/{number} ".ljust(500, ".")


class Member:
    """Base class of all members. `send`, `read`, `mark` and `claim` return microseconds; `claim` also returns whether
    the member got the task."""

    def burst(self, first, count):
        """Starts a thread that sends `count` messages; `over` waits for that thread."""
        self.acked, self.refused, self.end = [], [], None

        def run():
            try:
                for number in range(first, first + count):
                    try:
                        self.send(number)
                    except Refused as error:
                        if self.dead():
                            return
                        self.refused.append(str(error))
                    else:
                        self.acked.append(number)
                        self.end = time.monotonic()
            except (OSError, ValueError):
                return

        self.start(run)

    def claims(self, count):
        """Starts a thread that claims all tasks in order and stores the results in `got` and `refused`."""
        self.got, self.refused, self.end = [], [], None

        def run():
            for task in self.tasks(count):
                try:
                    _, got = self.claim(task)
                except Refused as error:
                    self.refused.append(str(error))
                    continue
                if got:
                    self.got.append(task)
                    self.end = time.monotonic()

        self.start(run)

    def start(self, work):
        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def tasks(self, count):
        return [str(task) for task in range(1, count + 1)]

    def over(self):
        self.thread.join(TIMEOUT)
        return not self.thread.is_alive()

    def dead(self):
        return False


class Library(Member):
    """A process that uses the peer's library and reads one command per line from standard input."""

    def __init__(self, command, env):
        self.child = subprocess.Popen(command, env=env, text=True, bufsize=1, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.read_reply("ready")

    def read_reply(self, *expected):
        line = self.child.stdout.readline()
        if not line.endswith("\n"):
            raise Refused("the library process has exited")
        reply = line.split()
        if reply[0] not in expected:
            raise Refused(line.strip())
        return reply

    def request(self, line, *expected):
        try:
            self.child.stdin.write(line + "\n")
            self.child.stdin.flush()
        except OSError as error:
            raise Refused(str(error)) from error
        return self.read_reply(*expected)

    def send(self, number):
        return int(self.request(f"send {number}", "sent")[2])

    def read(self):
        return int(self.request("read", "read")[2])

    def mark(self):
        return int(self.request("mark", "marked")[2])

    def add(self, number):
        return self.request(f"add {number}", "added")[1]

    def claim(self, task):
        reply = self.request(f"claim {task}", "claimed", "taken")
        return int(reply[2]), reply[0] == "claimed"

    def burst(self, first, count):
        self.acked, self.refused, self.end = [], [], None
        self.child.stdin.write(f"burst {first} {count}\n")
        self.listen("acked", self.acked, int)

    def claims(self, count):
        self.got, self.refused, self.end = [], [], None
        self.child.stdin.write(f"claims {count}\n")
        self.listen("claimed", self.got, str)

    def listen(self, good, into, kind):
        def run():
            for line in self.child.stdout:
                what, _, rest = line.rstrip("\n").partition(" ")
                if not line.endswith("\n") or what == "end":
                    return
                if what == good:
                    into.append(kind(rest.split()[0]))
                    self.end = time.monotonic()
                elif "status transition" not in rest:
                    # agent-teams reports "status transition" if another member claimed the task first.
                    self.refused.append(rest)

        self.start(run)

    def watch(self, heard):
        """Calls `heard` from a thread, with the sender and number of each message and its time of arrival."""
        self.request("watch", "ready")

        def run():
            for line in self.child.stdout:
                _, what, at = line.split()
                heard(what, int(at))

        threading.Thread(target=run, daemon=True).start()

    def dead(self):
        return self.child.poll() is not None

    def kill(self):
        self.child.kill()
        self.child.wait()

    close = kill


class Command(Member):
    """A member that runs a process for each operation. `line` returns the command for an operation."""

    def __init__(self, line, env, cwd):
        self.line, self.env, self.cwd, self.child = line, env, cwd, None
        self.killed = False

    def run(self, what, about="", codes=(0,)):
        """Runs the command; returns its output and the microseconds from start to exit."""
        start = time.perf_counter()
        self.child = subprocess.Popen(self.line(what, about), env=self.env, cwd=self.cwd, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.killed:
            self.child.kill()
        out, problem = self.child.communicate(timeout=TIMEOUT)
        took = int((time.perf_counter() - start) * 1e6)
        if self.child.returncode not in codes:
            raise Refused((problem or out).strip()[:200])
        return out, took

    def send(self, number):
        return self.run("send", number)[1]

    def read(self):
        return self.run("read", codes=(0, 4))[1]

    def mark(self):
        return self.run("mark", codes=(0, 4))[1]

    def claim(self, task):
        out, took = self.run("claim", task, codes=(0, 1))
        return took, self.child.returncode == 0

    def dead(self):
        return self.killed

    def kill(self):
        self.killed = True
        if self.child:
            self.child.kill()

    def close(self):
        pass


class Server(Member):
    """A member that calls an MCP server over standard input and output. `calls` has a function for each operation,
    which returns the name and the arguments of a tool call."""

    def __init__(self, command, env, calls, cwd):
        self.calls, self.last = calls, 0
        self.child = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        self.ask("initialize", CLIENT)
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def write(self, message):
        try:
            self.child.stdin.write(json.dumps(message).encode() + b"\n")
            self.child.stdin.flush()
        except OSError as error:
            raise Refused(str(error)) from error

    def ask(self, method, params):
        self.last += 1
        self.write({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            line = self.child.stdout.readline()
            if not line.endswith(b"\n"):
                raise Refused("the MCP server has exited")
            answer = json.loads(line)
            if answer.get("id") == self.last:
                return self.result(answer)

    @staticmethod
    def result(answer):
        if "error" in answer:
            raise Refused(str(answer["error"])[:200])
        return answer["result"]

    def call(self, what, about=""):
        """Calls the tool for an operation; returns the result and the microseconds that the call took."""
        return self.call_tool(*self.calls[what](about))

    def call_tool(self, tool, arguments):
        start = time.perf_counter()
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        took = int((time.perf_counter() - start) * 1e6)
        if result.get("isError"):
            raise Refused(str(result.get("content"))[:300])
        given = result.get("structuredContent")
        if given is None:
            given = json.loads(result["content"][0]["text"]) if result.get("content") else {}
        return given, took

    def send(self, number):
        return self.call("send", number)[1]

    def read(self):
        return self.call("read")[1]

    def mark(self):
        return self.call("mark")[1]

    def claim(self, task):
        try:
            return self.call("claim", task)[1], True
        except Refused as error:
            if self.dead():
                raise
            # An error that says that another member owns the task is a valid answer. Any other error is a failure.
            if not any(sign in str(error) for sign in ("already", "is taken", "belongs to", "somebody", "'s")):
                raise
            return 0, False

    def tools(self):
        return self.ask("tools/list", {})

    def memory(self):
        """Returns the proportional set size (PSS) of the server and its children, in bytes."""
        return sum(proportional_memory(process.pid) for process in tree(self.child.pid))

    def dead(self):
        return self.child.poll() is not None

    def kill(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()

    close = kill


class HttpServer(Server):
    """A member that calls an MCP server over HTTP. Several members share one server."""

    def __init__(self, child, port, calls):
        self.child, self.calls, self.last = child, calls, 0
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
        self.used = time.monotonic()

    def ask(self, method, params):
        self.last += 1
        if time.monotonic() > self.used + 2:
            # The server closes a connection that is idle for five seconds.
            self.connection.close()
        body = json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        try:
            self.connection.request("POST", "/mcp/", body, {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
            response = self.connection.getresponse()
            answer_text = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Refused(repr(error)) from error
        self.used = time.monotonic()
        if response.status != 200:
            raise Refused(f"{response.status} {answer_text[:200]}")
        data = [line[6:] for line in answer_text.splitlines() if line.startswith("data: ")]
        return self.result(json.loads(data[-1] if data else answer_text))

    def close(self):
        self.connection.close()


def proportional_memory(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except OSError:
        return 0
