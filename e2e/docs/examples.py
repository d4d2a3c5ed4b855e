"""Runs the examples of the guide, page by page, and compares their output with the pages.

In a `console` block, each line after `$` is a command, and the lines below are its expected output, apart from times,
ids and process numbers. A line `…` matches any lines, a `…` at the end of a line matches the rest of the line.
Commands that only read are repeated for a while. A command has to exit with 0, unless the page shows an error."""

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from setups import SETUPS, Setup

from lib.util import SLACK

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
TIMEOUT = 20 * SLACK
# Commands that may be repeated: they only read, or change nothing the second time.
REPEATABLE = ("org apply", "status", "approvals", "log", "inbox", "agents", "doctor", "team show", "task list")
MASKS = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", "TIME"),
    (r"\d\d:\d\d:\d\d", "TIME"),
    (r"perm-\d+-\w+|(shutdown|plan_approval)-\d+", "REQUEST"),
    (r"process \d+", "process N"),
    (r"(\d+ (ms|s|min|h))( ago)?|just now", "AGE"),
    (r"/\S*/(bin|proj|\.claude|parser)\b", r"/\1"),
    (r"[ \t]+", " "),
)


class GuideBlock:
    def __init__(self, page, line, language, text):
        self.page, self.line, self.language, self.text = page, line, language, text
        self.steps = []
        if language == "sh":
            self.steps = [(text, None)]
            return
        continued = False
        for line in text.splitlines():
            if line.startswith("$ "):
                self.steps.append((line[2:], []))
            elif continued:
                command, expected = self.steps[-1]
                self.steps[-1] = (command + "\n" + line, expected)
            elif self.steps:
                self.steps[-1][1].append(line)
            continued = line.endswith("\\") and (line.startswith("$ ") or continued)

    @property
    def first_command(self):
        return self.steps[0][0].strip() if self.steps else ""


def blocks(page):
    """The blocks of a page with commands."""
    text = (ROOT / page).read_text()
    for fence in re.finditer(r"^```(console|sh)\n(.*?)^```$", text, re.S | re.M):
        yield GuideBlock(page, text[: fence.start()].count("\n") + 1, fence[1], fence[2])


def masked(line, home):
    line = line.replace(str(home), "/home/dev").rstrip()
    for pattern, replacement in MASKS:
        line = re.sub(pattern, replacement, line)
    return line


def matches(expected, output, home):
    expected = [masked(line, home) for line in expected]
    output = [masked(line, home) for line in output]
    pattern = ""
    for line in expected:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*"
        elif line.endswith("…"):
            pattern += re.escape(line[:-1].rstrip()) + r".*\n"
        else:
            pattern += re.escape(line) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in output)) is not None


class PageShell:
    """A shell in an empty home, for one page."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.bin = folder / "bin"
        for path in (self.home / "proj", self.bin, folder / "tmp"):
            path.mkdir(parents=True)
        self.install()
        environ = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "USER": "dev",
            "TERM": "xterm-256color",
            "COLUMNS": "120",
            "TMUX_TMPDIR": str(folder / "tmp"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        self.shell = subprocess.Popen(
            ["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environ, cwd=self.home / "proj", start_new_session=True,
        )  # fmt: skip

    def install(self, *names):
        """Puts brigade and fake agents with these names on the path, and removes all others."""
        for path in self.bin.iterdir():
            path.unlink()
        (self.bin / "brigade").symlink_to(os.environ["BRIGADE"])
        (self.bin / "nats-server").symlink_to(os.environ["NATS_SERVER"])
        (self.bin / "python3").symlink_to(sys.executable)
        for name in names:
            (self.bin / name).symlink_to(HERE / "fake_agent.py")

    def run(self, command, keys=None):
        """Runs a command; returns its exit code and its output. With `keys` it runs in a pseudo-terminal."""
        if keys is not None:
            command = shlex.join([sys.executable, str(HERE / "run_in_pty.py"), keys, command])
        end = f"end-{time.monotonic_ns()}"
        # The end mark is on its own line, even if the output does not end with a newline.
        script = f"{{\n{command}\n}} </dev/null 2>&1\nprintf '\\n{end} %s\\n' $?\n"
        self.shell.stdin.write(script.encode())
        self.shell.stdin.flush()
        lines = []
        for line in self.shell.stdout:
            line = line.decode(errors="replace").rstrip("\n")
            if line.startswith(end):
                if lines and lines[-1] == "":
                    lines.pop()
                return int(line.split()[1]), lines
            lines.append(line)
        return 127, [*lines, "(the shell has ended)"]

    def close(self):
        """Ends the shell, and kills every process with a path of this home in its environment."""
        self.shell.stdin.close()
        self.shell.wait(timeout=10)
        mark = str(self.home).encode()
        for _ in range(5):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if mark in (process / "environ").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)
                except OSError:
                    pass  # It has ended meanwhile.
            time.sleep(0.1)


def may_fail(command, expected):
    """Whether the page shows an error, or findings of `brigade doctor`."""
    return "brigade doctor" in command and expected or any(line.startswith("error:") for line in expected or [])


def run_step(shell, command, expected, keys):
    """Runs one command; returns the difference to the page, None if there is none."""
    until = time.monotonic() + TIMEOUT
    while True:
        code, output = shell.run(command, keys)
        if os.environ.get("SHOW"):
            print(f"    $ {command}", *(f"    {line}" for line in output), sep="\n")
        passed = code == 0 or may_fail(command, expected)
        if passed and (not expected or matches(expected, output, shell.home)):
            return None
        repeatable = any(f"brigade {name}" in command for name in REPEATABLE) and expected
        if not repeatable or time.monotonic() > until:
            break
        time.sleep(0.3)
    page = "\n".join(f"      | {line}" for line in expected or ["(exit code 0)"])
    actual = "\n".join(f"      | {line}" for line in [*output, f"(exit code {code})"])
    return f"    $ {command}\n    the page has\n{page}\n    the output is\n{actual}"


def run_page(page, setups, report):
    """Runs the blocks of a page in order."""
    page_setup = next((setup for setup in setups if not setup.command), Setup(page))
    to_run = []
    for block in blocks(page):
        found = (setup for setup in setups if setup.command and block.first_command.startswith(setup.command))
        setup = next(found, None)
        report.used.update({setup, page_setup} - {None})
        setup = setup or Setup(page)
        if run_by := setup.run_by or page_setup.run_by:
            report.run_elsewhere(run_by)
        else:
            to_run.append((block, setup))
    if not to_run:
        return
    with tempfile.TemporaryDirectory(prefix="guide-") as folder:
        shell = PageShell(Path(folder))
        try:
            shell.install(*page_setup.agents)
            prepare(shell, page_setup)
            for block, setup in to_run:
                if setup.agents:
                    shell.install(*setup.agents)
                prepare(shell, setup)
                for command, expected in commands(block, setup):
                    report.add(block, run_step(shell, command, expected, setup.keys))
        finally:
            shell.close()


def commands(block, setup):
    """The commands of a block. In a terminal, each line of an `sh` block is a command."""
    if block.language == "sh" and setup.keys:
        return [(line, None) for line in block.text.splitlines() if line.strip()]
    return block.steps


def prepare(shell, setup):
    if setup.before:
        code, output = shell.run(setup.before)
        if code != 0:
            raise RuntimeError(f"{setup.page}: {setup.before} failed: {output}")


class PageReport:
    def __init__(self):
        self.used, self.count, self.failures = set(), 0, []
        self.elsewhere = {}

    def add(self, block, difference):
        self.count += 1
        if difference:
            self.failures.append(f"{block.page}:{block.line}")
            print(f"{block.page}:{block.line}\n{difference}", flush=True)

    def run_elsewhere(self, run_by):
        self.elsewhere[run_by] = self.elsewhere.get(run_by, 0) + 1


def external_links(pages):
    texts = ((ROOT / page).read_text() for page in pages)
    return sorted({link for text in texts for link in re.findall(r"\]\((\w+://[^)\s]+)\)", text)})


def main():
    subprocess.run(["ip", "address", "add", "10.0.0.5/32", "dev", "lo"], check=True)
    selected = sys.argv[1:]
    pages = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    report = PageReport()
    for page in pages:
        if not selected or Path(page).stem in selected:
            started = time.monotonic()
            before = report.count
            run_page(page, [setup for setup in SETUPS if setup.page == page], report)
            if report.count > before:
                print(f"{page}: {report.count - before} commands, {time.monotonic() - started:.1f} s", flush=True)
    stale = [setup for setup in SETUPS if setup not in report.used and (ROOT / setup.page).exists() and not selected]
    for setup in stale:
        print(f"FAIL {setup.page}: no block starts with {setup.command!r}, or the page has no block")
    for name, count in sorted(report.elsewhere.items()):
        print(f"{count} blocks are run by {name}")
    links = external_links(pages)
    print(f"{len(links)} external links, which are not followed:", *links, sep="\n  ")
    print(f"{report.count} commands were run, {len(report.failures)} differ from the page")
    sys.exit(1 if report.failures or stale else 0)


main()
