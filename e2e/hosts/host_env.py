"""A host's own files and programs: a home, one native Claude Code, one Codex, a model for each."""

import json
import os
import re
import signal
import subprocess
from contextlib import ExitStack

from house import MODEL, House, read_json
from scripted import ScriptedModel, as_json_lines
from teammate import at_home, end_all
from vendors import SETTLE_IN

TEAM = "proof"
# What a tool says that has done what it was asked.
SUCCESS = re.compile(r'"success"\s*:\s*true')


class Member:
    """One of the team, wherever it runs. Whatever its model is asked is a request of this member's."""

    def __init__(self, name, home, native, model):
        self.name, self.home, self.native, self.model = name, home, native, model

    # The steps of its model.

    def claim(self, task):
        if self.native:
            return {"tool": "TaskUpdate", "args": {"taskId": task, "status": "in_progress", "owner": self.name}}
        return {"tool": "team/task_claim", "args": {"taskId": task}}

    def complete(self, task):
        tool = "TaskUpdate" if self.native else "team/task_update"
        return {"tool": tool, "args": {"taskId": task, "status": "completed"}}

    def write(self, to, text):
        if not self.native:
            return {"tool": "team/send_message", "args": {"to": to, "message": text, "summary": "a word"}}
        return dict(zip(("tool", "args"), self.home.message(to, text)))

    def goodbye(self):
        if not self.native:
            yes = {"tool": "team/answer_shutdown", "args": {"request_id": "{heard:request_id}", "approve": True}}
            return [yes, {"say": "Goodbye."}]
        form = {"type": "shutdown_response", "request_id": "{heard:requestId}", "approve": True}
        if self.home.version == "new":
            form = {"to": "team-lead", "message": form}
        return [{"tool": "SendMessage", "args": form}, {"say": "Goodbye."}]

    # What its model was asked.

    def told(self):
        """All it was told: its latest request, which carries the whole conversation."""
        turns = self.model.turns()
        return self.model.body(turns[-1]["number"]) if turns else ""

    def told_at(self, words):
        """When it was first told this, in seconds since 1970; None if it was not."""
        for turn in self.model.turns():
            if words in self.model.body(turn["number"]):
                return turn["at"] / 1e6
        return None

    def heard_at(self, words):
        """The same of what it was told last, which is quicker to find."""
        heard = (turn["at"] / 1e6 for turn in self.model.turns() if words in turn["heard"])
        return next(heard, None)

    def calls(self):
        """The tools its model has called: name, arguments, and what came back, None if nothing has yet."""
        turns = self.model.turns()
        found = []
        for turn, after in zip(turns, [*turns[1:], None]):
            if call := turn["answer"].get("call"):
                back = after and after["results"] == turn["results"] + 1 and after["returned"]
                found.append((call["wanted"], call["args"], back or None))
        return found

    def acknowledged(self):
        """The arguments of the calls that were told they had done it."""
        return [arguments for _, arguments, back in self.calls() if back and SUCCESS.search(back["text"])]

    def has_said(self, words):
        return any(turn["answer"].get("say") == words for turn in self.model.turns())


class Home(House):
    """The home of one host. Everything started in it is started on that host."""

    def __init__(self, machine, version, store):
        os.environ["CLAUDE"] = os.environ[f"CLAUDE_{version.upper()}"]
        super().__init__(version, "tmux")
        self.machine, self.store, self.team = machine, store, TEAM
        self._stack = ExitStack()
        letter = machine.name[-1]
        native, codex = (self._model_of(kind) for kind in ("native", "codex"))
        self.native = Member(f"nat-{letter}", self, True, native)
        self.codex = Member(f"cody-{letter}", self, False, codex)
        subprocess.run(["git", "init", "--quiet", self.project], env=self.plain_env, check=True)
        self.plain_env = self._lead_env | {
            "BRIGADE_CLAUDE": self._claude,
            "BRIGADE_CODEX": os.environ["PROGRAM_CODEX"],
            # A model that Codex does not know is offered its plain tools.
            "BRIGADE_CODEX_ARGS": '-c model="scripted"',
            "CLAUDE_CODE_ENABLE_TODO_TOOLS": "1",
            # Where tmux has its sockets; a long path would not do.
            "TMUX_TMPDIR": str(self.root / "tmp"),
        }
        self.plain_env |= SETTLE_IN["claude"](self, native.url) | SETTLE_IN["codex"](self, codex.url)
        keys = {"agent": "claude", "place": "native", "model": MODEL, "access": "full"}
        lines = [f'team = "{TEAM}"', f"[members.{self.native.name}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        (self.project / "brigade.toml").write_text("\n".join(lines) + "\n")

    def _model_of(self, kind):
        return self._stack.enter_context(ScriptedModel(self.root / "models" / kind, inside=self.machine.inside()))

    def __exit__(self, *failure):
        end_all(self)
        self._stack.close()
        super().__exit__(*failure)

    def leave(self):
        pass

    # brigade, on this host.

    def _command(self, arguments, store):
        where = ["--claude-dir", str(self.claude_dir), *(["--store", self.store] if store else [])]
        return [*self.machine.inside(self.project), self._brigade, *where, "--team", TEAM, *arguments]

    def try_here(self, *arguments, store, timeout=120):
        """Runs it once, on the engine (`store`) or on this host's files."""
        return subprocess.run(
            self._command(arguments, store),
            env=self.plain_env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def do(self, *arguments, store):
        done = self.try_here(*arguments, store=store)
        if done.returncode != 0:
            what = f"{self.machine.name}: brigade {' '.join(arguments)}"
            raise RuntimeError(f"{what}: {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def ask(self, *arguments, store):
        """The same; gives what it printed as JSON."""
        out = self.do("--json", *arguments, store=store)
        return json.loads(out) if out.strip() else None

    def _start(self, *arguments, store, **files):
        """Starts it without waiting for it."""
        place = {"env": self.plain_env, "stdin": subprocess.DEVNULL, "text": True}
        return subprocess.Popen(self._command(arguments, store), **place, **files)

    def start_link(self):
        with (self.root / "link.log").open("ab") as log:
            self._link = self._start("link", "--host", self.machine.name, store=True, stdout=log, stderr=log)

    def end_link(self):
        # What was started is the way into the host; what it runs there is to be ended.
        for process in self.left():
            if "link" in process.words and process.words[:1] == (self._brigade,):
                os.kill(process.pid, signal.SIGTERM)
        self._link.wait(10)

    def stop(self, member, reason):
        """Asks a member of this host to stop; gives what waits for how that ends."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        words = ["stop", member.name, "--json", "--limit", "60", "--reason", reason]
        process = self._start(*words, store=not member.native, **pipes)

        def wait():
            out, err = process.communicate(timeout=120)
            return json.loads(out)["members"][0]["ended"] if out.strip() else err

        return wait

    # What is in the engine.

    def log(self):
        """The journal."""
        return as_json_lines(self.do("--json", "log", store=True))

    def on_engine(self):
        """The names on the roster."""
        return {member["name"] for member in self.ask("team", "show", store=True)["members"]}

    def mailbox(self, name):
        done = self.try_here("--json", "inbox", name, store=True)
        return json.loads(done.stdout) if done.stdout.strip() else []

    # What is in the files.

    def texts(self):
        """Every message of every inbox of this host's files, with whose inbox it is in."""
        for path in (self.claude_dir / "teams" / TEAM / "inboxes").glob("*.json"):
            yield from ((path.stem, entry["text"]) for entry in read_json(path))

    def owners(self):
        """Whose each task is."""
        tasks = map(read_json, self.tasks.glob("[0-9]*.json"))
        return {str(task["id"]): task.get("owner") for task in tasks}

    def status_here(self, number):
        return read_json(self.tasks / f"{number}.json")["status"]

    def left(self):
        return at_home(self.home)


def marks(text):
    """The marks of messages in this text."""
    return re.findall("«[a-z-]+ [0-9]+»", text)
