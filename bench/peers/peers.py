"""The peers (the measured programs). For each peer: how to set up a team, start a member and read an inbox."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

from clients import CLIENT, Command, HttpServer, Library, Refused, Server, message_text

TEAM, READER = "bench", "reader"
INBOX = f"claude/teams/{TEAM}/inboxes/{READER}.json"
# The largest team has sixteen writers and one reader.
WRITERS = [f"w{number}" for number in range(16)]
KEEP = {name: os.environ[name] for name in ("PATH", "LANG")}


def program(name):
    return os.environ[name]


class Peer:
    """One interface (library, tools or commands) of one program."""

    native = False  # Uses Claude Code's own files, so that both programs can share an inbox.
    board = True    # Has tasks that can be claimed.
    slow = False    # Is measured only in every fourth round.
    sizes = (10, 1_000, 10_000)
    why = {}        # The operations that the peer does not support, each with the reason.

    def env(self, root):
        return KEEP | {"HOME": str(root / "home"), "CLAUDE_CONFIG_DIR": str(root / "claude"),
                       "XDG_STATE_HOME": str(root / "state"), "PYTHONDONTWRITEBYTECODE": "1",
                       # Prevents the library litellm, which a peer uses, from downloading prices.
                       "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def prepare(self, root, history=0, tasks=0):
        """Creates a home with a team, `history` read messages, and `tasks` free tasks."""
        (root / "home").mkdir(parents=True)
        self.fill(root, history, tasks)

    def close(self, root):
        """Stops the processes that `prepare` started."""


def add_tasks(member, count):
    for number in range(count):
        member.add(number)
    member.close()


def native_team(root):
    """Creates a team in the file format of Claude Code 2.1.50, with brigade."""
    (root / "claude").mkdir()
    (root / "home/.claude").symlink_to(root / "claude")
    env = Peer().env(root)
    for line in (["team", "create", TEAM], *(["team", "join", name] for name in [READER, *WRITERS])):
        subprocess.run([program("BRIGADE"), *line], env=env, check=True, cwd=root, stdout=subprocess.DEVNULL)
    inbox = root / INBOX
    inbox.parent.mkdir(exist_ok=True)
    if not inbox.exists():
        inbox.write_text("[]")


class Native(Peer):
    """Base class of all peers that store teams in Claude Code's files."""

    native = True

    def inbox(self, root):
        return root / INBOX

    def fill(self, root, history, tasks):
        native_team(root)
        if history:
            self.inbox(root).write_text(json.dumps([self.entry(number) for number in range(history)], indent=2))
        if tasks:
            add_tasks(self.member(root, WRITERS[0]), tasks)

    def entry(self, number):
        return {"from": "old", "text": message_text("old", number), "timestamp": "2026-01-01T00:00:00.000Z",
                "color": "blue", "read": True, "summary": "a message"}

    def texts(self, root):
        """Returns the texts of all messages in the inbox, or None if the file is not valid JSON."""
        try:
            entries = json.loads(self.inbox(root).read_text())
        except ValueError:
            return None
        return [str(entry.get("text") or entry.get("content")).split(" ")[0] for entry in entries]


class Ours(Native):
    """Base class of the three interfaces of brigade. A history is created by sending and reading messages, because
    brigade moves read messages from the inbox to the journal."""

    made = {}

    def fill(self, root, history, tasks):
        if history not in Ours.made:
            first = root.parent / f"ours-{history}"
            (first / "home").mkdir(parents=True)
            native_team(first)
            if history:
                writer, reader = (worker(first, "brigade", name) for name in (WRITERS[0], READER))
                for number in range(0, history, 16):
                    writer.burst(number, min(16, history - number))
                    writer.over()
                    reader.mark()
                writer.close()
                reader.close()
            Ours.made[history] = first
        shutil.rmtree(root)
        shutil.copytree(Ours.made[history], root, symlinks=True)
        # The symbolic link in the copied home still points into the original home.
        (root / "home/.claude").unlink()
        (root / "home/.claude").symlink_to(root / "claude")
        if tasks:
            add_tasks(worker(root, "brigade", WRITERS[0]), tasks)

    def texts(self, root):
        done = subprocess.run([program("BRIGADE"), "--team", TEAM, "inbox", READER, "--json"],
                              env=self.env(root), capture_output=True, text=True)
        if done.returncode not in (0, 4):
            return None
        json.loads(self.inbox(root).read_text())
        return [entry["text"].split(" ")[0] for entry in json.loads(done.stdout or "[]")]


def worker(root, kind, name):
    return Library([program("WORKER"), kind, root, TEAM, name, READER], KEEP)


class OursLibrary(Ours):
    name, kind = "brigade-core", "library"
    durability = "brigade"

    def member(self, root, name):
        return worker(root, self.durability, name)


class OursPower(OursLibrary):
    name, durability = "brigade-core, `power`", "power"


class OursTools(Ours):
    name, kind = "brigade mcp", "tools"

    def member(self, root, name):
        calls = {
            "send": lambda n: ("send_message", {"to": READER, "message": message_text(name, n), "summary": "a message"}),
            "read": lambda _: ("read_messages", {}),
            "claim": lambda n: ("task_claim", {"taskId": n}),
            "wait": lambda _: ("wait_for_messages", {"timeout_seconds": 60}),
        }
        return Server([program("BRIGADE"), "--team", TEAM, "--as", name, "mcp"], self.env(root), calls, root)

    why = {"mark": "reading marks"}


class OursCommand(Ours):
    name, kind = "brigade", "command"

    def member(self, root, name):
        def line(what, about):
            rest = {"send": ["send", READER, message_text(name, about)], "read": ["inbox", "--unread", "--json"],
                    "mark": ["inbox", "--unread", "--mark-read", "--json"],
                    "claim": ["task", "claim", str(about)]}[what]
            return [program("BRIGADE"), "--team", TEAM, "--as", name, *rest]

        return Command(line, self.env(root), root)


class Node(Native):
    name, kind = "native protocol in Node", "library"
    why = {"wake": "Claude Code polls about once a second"}

    def fill(self, root, history, tasks):
        # The native protocol removes read messages from the inbox, so there is no history to create.
        super().fill(root, 0, tasks)

    def member(self, root, name):
        script = Path(__file__).with_name("native.js")
        return Library(["node", script, program("NODE_MODULES"), root, TEAM, name, READER], KEEP)


class AgentTeams(Native):
    name, kind = "agent-teams 0.1.0", "library"

    def entry(self, number):
        return {"id": f"00000000-0000-4000-8000-{number:012}", "from": "old", "to": READER,
                "content": message_text("old", number), "timestamp": "2026-01-01T00:00:00.000Z", "read": True}

    def member(self, root, name):
        return worker(root, "agent-teams", name)


class Anyteam(Native):
    name, kind, slow = "claude-anyteam 0.8.4", "library", True

    def member(self, root, name):
        script = Path(__file__).with_name("anyteam.py")
        return Library([program("ANYTEAM") + "/bin/python", script, root, TEAM, name, READER], self.env(root))


class AnyteamTools(Anyteam):
    """The MCP server of claude-code-teams-mcp, which claude-anyteam bundles."""

    name, kind, slow = "claude_teams.server (claude-anyteam 0.8.4)", "tools", True
    why = {"mark": "reading marks", "wake": "no tool waits"}

    def env(self, root):
        return super().env(root) | {"PATH": f"{root}/bin:{KEEP['PATH']}"}

    def fill(self, root, history, tasks):
        # The server does not start without a `claude` program on the path. It never runs that program.
        (root / "bin").mkdir()
        (root / "bin/claude").write_text("#!/bin/sh\n")
        (root / "bin/claude").chmod(0o755)
        Anyteam.fill(self, root, history, 0)
        if tasks:
            add_tasks(Anyteam.member(self, root, WRITERS[0]), tasks)

    def member(self, root, name):
        calls = {
            "send": lambda n: ("send_message", {"team_name": TEAM, "type": "message", "recipient": READER,
                                                "content": message_text(name, n), "summary": "a message", "sender": name}),
            "read": lambda _: ("read_inbox", {"team_name": TEAM, "agent_name": READER}),
            "claim": lambda n: ("task_update", {"team_name": TEAM, "task_id": n, "owner": name,
                                                "status": "in_progress"}),
            "get": lambda n: ("task_get", {"team_name": TEAM, "task_id": n}),
        }
        return CheckingServer([program("ANYTEAM") + "/bin/python", "-m", "claude_teams.server"], self.env(root), calls,
                              root)


class CheckingServer(Server):
    """A member of a peer without a claim operation: it checks whether a task is free, and then sets the owner."""

    def claim(self, task):
        seen, first = self.call("get", task)
        if seen.get("owner") or seen["status"] != "pending":
            return first, False
        return first + self.call("claim", task)[1], True


class TeamMcp(Peer):
    name, kind, board = "team-mcp 0.11.0 (teamctl)", "tools", False
    why = {"claim": "has no board", "share": "keeps mail in SQLite of its own"}

    def fill(self, root, history, tasks):
        self.member(root, READER).close()
        if history:
            member = self.member(root, "old")
            member.send(0)
            member.close()
            # Insert copies of the first message, because only the number and size of the messages matter.
            with sqlite3.connect(root / "mailbox.db") as base:
                base.execute("update messages set acked_at = sent_at, delivered_at = sent_at")
                columns = [row[1] for row in base.execute("pragma table_info(messages)") if row[1] != "id"]
                names = ", ".join(columns)
                for _ in range(history - 1):
                    base.execute(f"insert into messages ({names}) select {names} from messages where id = 1")
            base.close()

    def member(self, root, name):
        calls = {
            "send": lambda n: ("dm", {"to": READER, "text": message_text(name, n)}),
            "read": lambda _: ("inbox_peek", {"limit": 100}),
            "ack": lambda ids: ("inbox_ack", {"ids": ids}),
            "wait": lambda _: ("inbox_watch", {"timeout_ms": 60_000}),
        }
        command = [program("TEAM_MCP"), "--agent-id", f"bench:{name}", "--mailbox", root / "mailbox.db"]
        return AckServer(command, self.env(root), calls, root)

    def texts(self, root):
        with sqlite3.connect(root / "mailbox.db") as base:
            rows = base.execute("select text from messages where recipient = ?", (f"bench:{READER}",)).fetchall()
        base.close()
        return [text.split(" ")[0] for (text,) in rows]


class AckServer(Server):
    """A member that marks messages as read by id, in a separate call."""

    def read(self):
        given, took = self.call("read")
        messages = given["messages"] if isinstance(given, dict) and "messages" in given else given["result"]
        self.ids = [message["id"] for message in messages]
        return took

    def mark(self):
        self.read()
        return self.call("ack", self.ids)[1]


class MailHttpServer(AckServer, HttpServer):
    """A member of mcp-agent-mail, which marks one message as read per call."""

    def mark(self):
        self.read()
        return sum(self.call("ack", number)[1] for number in self.ids)


class AgentMailServer(Peer):
    name, kind, board, slow = "mcp-agent-mail 0.1.0", "tools", False, True
    sizes = (10,)
    why = {"claim": "has no board", "share": "keeps mail in SQLite and git of its own", "wake": "no tool waits"}
    running = {}

    def command(self):
        return [program("AGENT_MAIL_SERVER") + "/bin/python", "-m", "mcp_agent_mail.cli", "serve-http"]

    def start(self, root):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        env = self.env(root) | {"HTTP_PORT": str(port), "STORAGE_ROOT": str(root / "store"),
                                "DATABASE_URL": f"sqlite+aiosqlite:///{root}/storage.sqlite3"}
        child = subprocess.Popen(self.command(), env=env, cwd=root, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.running[root] = child, port
        until = time.monotonic() + 300
        while True:
            member = HttpServer(child, port, None)
            try:
                member.ask("initialize", CLIENT)
                return member
            except Refused:
                if child.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.02)

    def fill(self, root, history, tasks):
        member = self.start(root)
        member.call_tool("ensure_project", {"human_key": "/bench"})
        for name in [READER, *WRITERS]:
            member.call_tool("register_agent", {"project_key": "/bench", "program": "bench", "model": "none", "name": name})
        writer, reader = self.member(root, WRITERS[0]), self.member(root, READER)
        for number in range(history):
            writer.send(number)
            if number % 20 == 19 or number == history - 1:
                reader.mark()

    def member(self, root, name):
        if root not in self.running or self.running[root][0].poll() is not None:
            self.start(root)
        calls = {
            "send": lambda n: ("send_message", {"project_key": "/bench", "sender_name": name, "to": [READER],
                                                "subject": f"{name}/{n}", "body_md": message_text(name, n)}),
            "read": lambda _: ("fetch_inbox", {"project_key": "/bench", "agent_name": name, "limit": 20,
                                               "include_bodies": True}),
            "ack": lambda n: ("mark_message_read", {"project_key": "/bench", "agent_name": name, "message_id": n}),
        }
        return MailHttpServer(*self.running[root], calls)

    def texts(self, root):
        with sqlite3.connect(root / "storage.sqlite3") as base:
            rows = base.execute("select subject from messages").fetchall()
        base.close()
        return [subject for (subject,) in rows]

    def close(self, root):
        child, _ = self.running.pop(root, (None, None))
        if child and child.poll() is None:
            child.kill()
            child.wait()


class Maildir(Peer):
    name, kind, board = "agent-mail 0.2.3", "command", False
    why = {"claim": "has no board", "share": "keeps mail in a Maildir of its own", "wake": "no command waits"}

    def env(self, root):
        return super().env(root) | {"AGENT_MAIL_ROOT": str(root / "mail")}

    def fill(self, root, history, tasks):
        self.member(root, "old").send(0)
        new = next((root / "mail").rglob("new/*.md"))
        seen = new.parent.parent / "cur"
        seen.mkdir(exist_ok=True)
        message = new.read_text()
        new.unlink()
        for number in range(history):
            (seen / f"01AAAAAAAA{number:016}.md").write_text(message)

    def member(self, root, name):
        def line(what, about):
            rest = {"send": ["send", "--to", READER, "--from", name, "--subject", f"{name}/{about}",
                             "--body", message_text(name, about)],
                    "read": ["scan", "--to", READER, "--json"], "take": ["read", about]}[what]
            return [program("AGENT_MAIL"), *rest]

        return ScanCommand(line, self.env(root), root)

    def texts(self, root):
        out, _ = self.member(root, READER).run("read")
        return [entry["subject"] for entry in json.loads(out)]


class ScanCommand(Command):
    """A member that marks messages as read by reading them one at a time."""

    def mark(self):
        out, _ = self.run("read")
        return sum(self.run("take", entry["id"])[1] for entry in json.loads(out))


class Omc(Peer):
    name, kind, board, slow = "oh-my-claudecode 5.5.0", "command", False, True
    sizes = (10,)
    why = {"share": "keeps mail in files of its own", "wake": "types into the reader's pane",
           "claim": "a board comes with the panes that `omc team` opens"}

    def state(self, root):
        return root / "home/.omc/state/team" / TEAM

    def fill(self, root, history, tasks):
        (self.state(root) / "mailbox").mkdir(parents=True)
        messages = [{"message_id": f"old-{number}", "from_worker": "w0", "to_worker": READER,
                     "body": message_text("old", number), "created_at": "2026-01-01T00:00:00.000Z",
                     "delivered_at": "2026-01-01T00:00:00.000Z"} for number in range(history)]
        (self.state(root) / f"mailbox/{READER}.json").write_text(
            json.dumps({"worker": READER, "messages": messages}, indent=2))

    def member(self, root, name):
        def line(what, about):
            operation, given = {
                "send": ("send-message", {"from_worker": name, "to_worker": READER, "body": message_text(name, about)}),
                "read": ("mailbox-list", {"worker": READER}),
                "take": ("mailbox-mark-delivered", {"worker": READER, "message_id": about}),
            }[what]
            return [program("OMC"), "team", "api", operation, "--input",
                    json.dumps({"team_name": TEAM} | given), "--json"]

        return ListCommand(line, self.env(root), root)

    def texts(self, root):
        try:
            box = json.loads((self.state(root) / f"mailbox/{READER}.json").read_text())
        except ValueError:
            return None
        return [message["body"].split(" ")[0] for message in box["messages"]]


class ListCommand(Command):
    """A member whose commands print JSON, and which marks one message as read per command."""

    def mark(self):
        out, _ = self.run("read")
        messages = json.loads(out)["data"]["messages"]
        fresh = [entry["message_id"] for entry in messages if not entry.get("delivered_at")]
        return sum(self.run("take", number)[1] for number in fresh)


PEERS = [OursLibrary(), OursPower(), Node(), AgentTeams(), Anyteam(), OursTools(), AnyteamTools(), TeamMcp(),
         AgentMailServer(), OursCommand(), Maildir(), Omc()]
