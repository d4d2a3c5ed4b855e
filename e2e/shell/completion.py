"""Completes command lines in bash, zsh and fish, and checks which values they offer, how long that takes, and that
nothing is written."""

import hashlib
import json
import os
import pty
import re
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lib.report import Report

BRIGADE = Path(os.environ["BRIGADE"])
SLACK = float(os.environ.get("BENCH_SLACK", "1"))
LIMIT_MS = 30 * SLACK
TEAMMATES = [f"mate{number:02}" for number in range(1, 20)]
TASKS = 200
RECORDS = 1_000_000
REQUESTS = ["1", "2"]

# Each line with some values that the shell must offer, and some that it must not offer.
LINES = {
    "brigade ": (["send", "task", "status"], ["supervise", "--team"]),
    "brigade send ": (["mate01", "mate19"], ["team-lead", "--summary"]),
    "brigade send mate1": (["mate10", "mate19"], ["mate01"]),
    "brigade stop ": (["mate01", "mate19"], ["team-lead", "--now"]),
    "brigade stop mate01 ": (["mate02"], ["mate01"]),
    "brigade interrupt ": (["mate01"], ["team-lead"]),
    "brigade task done ": (["1", "199"], ["200"]),
    "brigade task reopen ": (["200"], ["199"]),
    "brigade task add x --owner ": (["mate01", "team-lead"], ["demo"]),
    "brigade approve ": (REQUESTS, ["3"]),
    "brigade deny 1 ": (["2"], ["1"]),
    "brigade --team ": (["demo", "other"], ["mate01"]),
    "brigade send --team=": (["demo", "other"], ["mate01"]),
    "brigade --team other send ": (["carol"], ["mate01"]),
    "brigade status ": (["demo", "other"], ["mate01"]),
    "brigade spawn x --agent ": (["codex", "gemini", "claude"], ["run"]),
    "brigade logs --member ": (["mate01", "team-lead"], ["demo"]),
    "brigade history ": (["size", "keep", "compact", "export"], ["mate01"]),
    "brigade --store ": (["files", "work"], ["demo"]),
    "brigade completions ": (["bash", "zsh", "fish"], []),
    "brigade spawn x --": (["--agent", "--team"], ["mate01"]),
}


class Env:
    """A home with a team `demo` of 20 members and 200 tasks, and a small team `other`."""

    def __init__(self, root):
        self.root = root
        self.work = root / "work"
        self.work.mkdir()
        (root / "bin").mkdir()
        (root / "bin/brigade").symlink_to(BRIGADE)
        self.environ = {
            "PATH": f"{root}/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(root / "home"),
            "CLAUDE_CONFIG_DIR": str(root / "claude"),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "BRIGADE_TEAM": "demo",
            "TERM": "dumb",
            "LANG": "C.UTF-8",
        }
        (root / "home").mkdir()
        self.brigade("team", "create", "demo")
        for name in TEAMMATES:
            self.brigade("team", "join", name, "--agent-type", "codex")
        lines = "".join(f"- [ ] Task {number}: write the docs of part {number}\n" for number in range(TASKS))
        (self.work / "tasks.md").write_text(lines)
        self.brigade("task", "add", "--from", "tasks.md")
        self.brigade("task", "done", "200")
        self.brigade("team", "create", "other", team="other")
        self.brigade("team", "join", "carol", team="other")
        self.brigade("store", "add", "work", "nats://127.0.0.1:1")
        entries = [self.request(number) for number in REQUESTS]
        (root / "claude/teams/demo/inboxes/team-lead.json").write_text(json.dumps(entries))
        self.brigade("approvals")

    def brigade(self, *arguments, team="demo"):
        environ = self.environ | {"BRIGADE_TEAM": team}
        done = subprocess.run(["brigade", *arguments], cwd=self.work, env=environ, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{arguments}: {done.stderr}")
        return done.stdout

    @staticmethod
    def request(number):
        body = {
            "type": "permission_request", "request_id": f"perm-{number}", "agent_id": "mate01", "tool_name": "Bash",
            "tool_use_id": "t", "description": "", "input": {"command": f"echo {number}"}, "permission_suggestions": [],
        }  # fmt: skip
        at = "2026-11-15T12:00:00.000Z"
        return {"from": "mate01", "text": json.dumps(body), "timestamp": at, "read": False}

    def files(self):
        paths = sorted(path for path in self.root.rglob("*") if path.is_file() and "home" not in path.parts)
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}

    def grow_history(self, records):
        """Appends messages that the lead has read to the journal of its mailbox."""
        journal = next((self.root / "state").rglob("mail/team-lead.jsonl"))
        sample = next(line for line in journal.read_text().splitlines() if '"sent"' in line or '"text"' in line)
        record = json.loads(sample)
        with journal.open("a") as file:
            for number in range(records):
                text = json.dumps(record).replace("perm-1", f"past-{number}").replace("permission_request", "note")
                file.write(f"\n{text}\n")


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, env, command, setup):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(env.work)
            os.execvpe(command[0], command, env.environ)
        self.read()
        for line in setup:
            self.type(f"{line}\n")
        self.type("")

    def type(self, text):
        os.write(self.fd, text.encode())
        return self.read()

    def read(self, quiet=0.25):
        """Reads until nothing more comes."""
        data = b""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline and select.select([self.fd], [], [], quiet * SLACK)[0]:
            data += os.read(self.fd, 65536)
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r|\x07", "", data.decode(errors="replace"))

    def complete(self, line):
        """Returns the words that the shell shows after Tab, and clears the line."""
        shown = self.type(line + "\t\t")
        self.type("\x15\x03")
        # The shell shows the line again below the values.
        values = set(re.split(r"\s+", shown.replace(line.rstrip(), " ")))
        return values | {value.split("=")[-1] for value in values}

    def close(self):
        os.kill(self.pid, 9)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def bash(env):
    setup = [
        "bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'; bind 'set page-completions off'",
        "bind 'set enable-bracketed-paste off'; PS1='> '",
        "source <(brigade completions bash)",
    ]
    return Terminal(env, ["bash", "--norc", "--noprofile", "-i"], setup)


def zsh(env):
    setup = [
        "PS1='> '; unsetopt zle_bracketed_paste prompt_sp; setopt auto_list; unsetopt auto_menu menu_complete; LISTMAX=0",
        "autoload -Uz compinit && compinit -u -D; LISTMAX=100000",
        "source <(brigade completions zsh)",
    ]
    return Terminal(env, ["zsh", "-f", "-i"], setup)


class Fish:
    def __init__(self, env):
        self.env = env

    def complete(self, line):
        script = 'source (brigade completions fish | psub); complete --do-complete "$argv[1]"'
        done = subprocess.run(
            ["fish", "--no-config", "-c", script, line],
            cwd=self.env.work, env=self.env.environ, capture_output=True, text=True,
        )  # fmt: skip
        values = {shown.split("\t")[0] for shown in done.stdout.splitlines()}
        # For an option with its value in one word, fish shows the whole word.
        return values | {value.split("=")[-1] for value in values}

    def close(self):
        pass


def check_shell(report, name, shell):
    for line, (wanted, unwanted) in LINES.items():
        found = shell.complete(line)
        missing = [value for value in wanted if value not in found]
        wrong = [value for value in unwanted if value in found]
        report.check(f"{name}: {line}<Tab>", not missing and not wrong, f"missing {missing}, wrong {wrong}: {sorted(found)}")
    shell.close()


def measure(env, line):
    """Returns the times of 30 completions in milliseconds, and the processor time of all of them."""
    times = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(30):
        begin = time.perf_counter()
        subprocess.run(["brigade", "__complete", "bash", line], cwd=env.work, env=env.environ, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - begin) * 1000)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return times, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def check_times(env, report, when):
    for line in ("brigade send ", "brigade task done ", "brigade approve ", "brigade --team ", "brigade spawn x --agent "):
        times, processor = measure(env, line)
        figure = f"median {statistics.median(times):.1f} ms, slowest {max(times):.1f} ms, processor {processor / len(times):.1f} ms"
        report.figure(f"{when}, {line.strip()!r}", figure)
        report.check(f"{when}: {line}in {LIMIT_MS:.0f} ms", statistics.median(times) <= LIMIT_MS, times)


def check_quiet(env, report):
    """Something is wrong: the completion prints only the kind, and no error."""
    for title, environ in {
        "a variable that is not valid": {"BRIGADE_TEAM": "no such team!"},
        "a team that does not exist": {"BRIGADE_TEAM": "nothing"},
        "no home": {"HOME": "", "CLAUDE_CONFIG_DIR": "", "XDG_STATE_HOME": ""},
        "a NATS server that does not answer": {"BRIGADE_STORE": "nats://127.0.0.1:1"},
        "a log": {"BRIGADE_LOG": "debug"},
    }.items():
        begin = time.perf_counter()
        done = subprocess.run(
            ["brigade", "__complete", "bash", "brigade send "],
            cwd=env.work, env=env.environ | environ, capture_output=True, text=True,
        )  # fmt: skip
        took = (time.perf_counter() - begin) * 1000
        quiet = done.returncode == 0 and done.stderr == "" and (done.stdout == "words\n" or title == "a log")
        report.check(f"{title}: nothing is printed", quiet, done)
        report.check(f"{title}: at most 100 ms", took <= 100 * SLACK, took)


def check_unwritten(env, report):
    before = env.files()
    trace = env.root / "trace"
    for line in LINES:
        subprocess.run(
            ["strace", "-f", "-A", "-o", trace, "-e", "trace=%file,%network,ftruncate,write,pwrite64", "brigade", "__complete", "bash", line],
            cwd=env.work, env=env.environ, stdout=subprocess.DEVNULL,
        )  # fmt: skip
    calls = trace.read_text().splitlines()
    trace.unlink()
    created = [call for call in calls if re.search(r"mkdir|unlink|rename|ftruncate|O_TRUNC|connect\(|pwrite", call) and " = -1 " not in call]
    written = [call for call in calls if re.search(r"\bwrite\((?!1,)", call) and "eventfd" not in call]
    report.check("a completion creates, renames and removes nothing", not created, created[:5])
    # A write of eight bytes wakes a thread.
    written = [call for call in written if not call.endswith(", 8) = 8")]
    report.check("a completion writes only its output", not written, written[:5])
    after = env.files()
    changed = [path for path in before | after if before.get(path) != after.get(path)]
    report.check("no file is changed", not changed, changed)


def main():
    short = "--short" in sys.argv[1:]
    report = Report("completion")
    with tempfile.TemporaryDirectory() as root, report.scenario(lambda: None):
        env = Env(Path(root).resolve())
        check_shell(report, "fish", Fish(env))
        check_shell(report, "bash", bash(env))
        check_shell(report, "zsh", zsh(env))
        check_unwritten(env, report)
        check_quiet(env, report)
        check_times(env, report, "small history")
        env.grow_history(20_000 if short else RECORDS)
        env.brigade("approvals")
        check_times(env, report, "long history")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
