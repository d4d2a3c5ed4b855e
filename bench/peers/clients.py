"""Members of a team through three kinds of interfaces: a library, a command line, and an MCP server.

A member does one thing at a time and says how many microseconds it took its caller. What a library
does is timed inside the process that has it; a command from the start of its process to its end; a
tool from the request to the answer.
"""

import http.client
import json
import os
import signal
import subprocess
import threading
import time

PATIENCE = 120


class Refused(Exception):
    """The peer returned an error, or has ended."""


def words(name, number):
    return f"{name}/{number} ".ljust(500, ".")


class Member:
    """Base of all members. `send`, `read`, `mark` and `claim` return microseconds; `claim` also returns whether it got
    the task."""

    def burst(self, first, count):
        """Starts sending in a thread; `over` waits for the end."""
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

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def claims(self, count):
        """Starts claiming all tasks in order; the results are in `got` and `refused`."""
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

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def tasks(self, count):
        return [str(task) for task in range(1, count + 1)]

    def over(self):
        self.thread.join(PATIENCE)
        return not self.thread.is_alive()

    def dead(self):
        return False


class Library(Member):
    """A process that uses the library and reads its commands line by line."""

    def __init__(self, command, env):
        self.child = subprocess.Popen(command, env=env, text=True, bufsize=1, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.hear("ready")

    def hear(self, *expected):
        line = self.child.stdout.readline()
        if not line.endswith("\n"):
            raise Refused("the process is gone")
        said = line.split()
        if said[0] not in expected:
            raise Refused(line.strip())
        return said

    def tell(self, line, *expected):
        try:
            self.child.stdin.write(line + "\n")
            self.child.stdin.flush()
        except OSError as error:
            raise Refused(str(error)) from error
        return self.hear(*expected)

    def send(self, number):
        return int(self.tell(f"send {number}", "sent")[2])

    def read(self):
        return int(self.tell("read", "read")[2])

    def mark(self):
        return int(self.tell("mark", "marked")[2])

    def add(self, number):
        return self.tell(f"add {number}", "added")[1]

    def claim(self, task):
        said = self.tell(f"claim {task}", "claimed", "taken")
        return int(said[2]), said[0] == "claimed"

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
                    # agent-teams reports this if another member was first.
                    self.refused.append(rest)

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def watch(self, heard):
        """Calls `heard` with the sender and number of each message, and the time."""
        self.tell("watch", "ready")

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
    """One process for each operation. `line` makes its arguments."""

    def __init__(self, line, env, name, cwd):
        self.line, self.env, self.name, self.cwd, self.child = line, env, name, cwd, None
        self.killed = False

    def run(self, what, about="", codes=(0,)):
        """Its output, and the microseconds from start to exit."""
        start = time.perf_counter()
        self.child = subprocess.Popen(self.line(self.name, what, about), env=self.env, cwd=self.cwd, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self.killed:
            self.child.kill()
        out, problem = self.child.communicate(timeout=PATIENCE)
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
    """An MCP server on standard input and output. `calls` maps an operation to a tool and its arguments."""

    def __init__(self, command, env, calls, name, cwd):
        self.calls, self.name, self.last = calls, name, 0
        self.child = subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        self.greet()

    def greet(self):
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "bench", "version": "1"}})
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
                raise Refused("the server is gone")
            answer = json.loads(line)
            if answer.get("id") == self.last:
                break
        if "error" in answer:
            raise Refused(str(answer["error"])[:200])
        return answer["result"]

    def call(self, what, about=""):
        """The result of a tool call, and its microseconds."""
        tool, arguments = self.calls(self.name, what, about)
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
            return 0, self.lost(str(error))

    @staticmethod
    def lost(said):
        """An error that reports another owner is a valid answer; any other is a failure."""
        if any(sign in said for sign in ("already", "is taken", "belongs to", "somebody", "'s")):
            return False
        raise Refused(said)

    def tools(self):
        return self.ask("tools/list", {})

    def memory(self):
        """The proportional memory of the server and its children, in bytes."""
        return sum(proportional(pid) for pid in family(self.child.pid))

    def dead(self):
        return self.child.poll() is not None

    def kill(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()

    close = kill


class Web(Server):
    """One of several clients of an MCP server over HTTP."""

    def __init__(self, child, port, calls, name):
        self.child, self.port, self.calls, self.name, self.last = child, port, calls, name, 0
        self.line = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self.used = time.monotonic()

    def ask(self, method, params):
        self.last += 1
        if time.monotonic() > self.used + 2:
            # The server closes a connection that is idle for five seconds.
            self.line.close()
        body = json.dumps({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        try:
            self.line.request("POST", "/mcp/", body, {
                "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
            response = self.line.getresponse()
            said = response.read().decode()
        except (OSError, http.client.HTTPException) as error:
            self.line.close()
            raise Refused(repr(error)) from error
        self.used = time.monotonic()
        if response.status != 200:
            raise Refused(f"{response.status} {said[:200]}")
        data = [line[6:] for line in said.splitlines() if line.startswith("data: ")]
        answer = json.loads(data[-1] if data else said)
        if "error" in answer:
            raise Refused(str(answer["error"])[:200])
        return answer["result"]

    def close(self):
        self.line.close()


def family(pid):
    """A process and its descendants."""
    found, todo = [], [pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as file:
                    todo += [int(child) for child in file.read().split()]
        except OSError:
            pass
    return found


def proportional(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except OSError:
        return 0
