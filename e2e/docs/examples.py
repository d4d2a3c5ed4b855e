"""Runs the examples of the guide, page by page, and compares their output with the pages.

Read-only commands are repeated for a while until their output matches. Every command must exit with code 0, unless
the page shows an error."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from setups import SETUPS, Setup

from lib import pages
from lib.processes import kill_home
from lib.util import SLACK

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
TIMEOUT = 20 * SLACK
# Commands that may be repeated, because they only read or because a second run changes nothing.
REPEATABLE = ("org apply", "status", "approvals", "log", "inbox", "agents", "doctor", "team show", "task list")


class PageShell(pages.Shell):
    """A shell with an empty home, in which the commands of one page run."""

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
        super().__init__(environ, self.home / "proj")

    def __exit__(self, *failure):
        super().__exit__(*failure)
        kill_home(self.home)

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
        return super().run(command)


def may_fail(command, expected):
    """Returns whether the page shows an error, or problems that `brigade doctor` found."""
    return "brigade doctor" in command and expected or any(line.startswith("error:") for line in expected or [])


def run_step(shell, command, expected, keys):
    """Runs one command; returns how its output differs from the page, or None if it matches."""
    until = time.monotonic() + TIMEOUT
    while True:
        code, output = shell.run(command, keys)
        if os.environ.get("SHOW"):
            print(f"    $ {command}", *(f"    {line}" for line in output), sep="\n")
        passed = code == 0 or may_fail(command, expected)
        home = (re.escape(str(shell.home)), "/home/dev")
        if passed and (not expected or pages.matches(expected, output, [home])):
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
    for block in pages.blocks(ROOT / page):
        first = commands(block, Setup(page))[0].command.strip()
        found = (setup for setup in setups if setup.command and first.startswith(setup.command))
        setup = next(found, None)
        report.used.update({setup, page_setup} - {None})
        setup = setup or Setup(page)
        if run_by := setup.run_by or page_setup.run_by:
            report.elsewhere[run_by] += 1
        else:
            to_run.append((block, setup))
    if not to_run:
        return
    with tempfile.TemporaryDirectory(prefix="guide-") as folder:
        with PageShell(Path(folder)) as shell:
            shell.install(*page_setup.agents)
            prepare(shell, page_setup)
            for block, setup in to_run:
                if setup.agents:
                    shell.install(*setup.agents)
                prepare(shell, setup)
                for command, expected in commands(block, setup):
                    report.add(f"{page}:{block.line}", run_step(shell, command, expected, setup.keys))


def commands(block, setup):
    """Returns the commands of a block. An `sh` block is one command, or one command per line if keys are pressed."""
    if block.language == "sh" and not setup.keys:
        return [pages.Step(block.text, None)]
    return block.steps()


def prepare(shell, setup):
    if setup.before:
        code, output = shell.run(setup.before)
        if code != 0:
            raise RuntimeError(f"{setup.page}: {setup.before} failed: {output}")


class PageReport:
    def __init__(self):
        self.used, self.count, self.failures = set(), 0, []
        # For each other test, by name, the number of blocks that it runs.
        self.elsewhere = Counter()

    def add(self, place, difference):
        self.count += 1
        if difference:
            self.failures.append(place)
            print(f"{place}\n{difference}", flush=True)


def external_links(names):
    texts = ((ROOT / name).read_text() for name in names)
    return sorted({link for text in texts for link in re.findall(r"\]\((\w+://[^)\s]+)\)", text)})


def main():
    subprocess.run(["ip", "address", "add", "10.0.0.5/32", "dev", "lo"], check=True)
    selected = sys.argv[1:]
    names = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    report = PageReport()
    for page in names:
        if not selected or Path(page).stem in selected:
            started = time.monotonic()
            before = report.count
            run_page(page, [setup for setup in SETUPS if setup.page == page], report)
            if report.count > before:
                print(f"{page}: {report.count - before} commands, {time.monotonic() - started:.1f} s", flush=True)
    stale = [setup for setup in SETUPS if setup not in report.used and not selected]
    for setup in stale:
        print(f"FAIL {setup.page}: the setup in setups.py is unused: no block starts with {setup.command!r}")
    for name, count in sorted(report.elsewhere.items()):
        print(f"{count} blocks are not run here, because {name} runs them")
    links = external_links(names)
    print(f"{len(links)} external links, which this test does not check:", *links, sep="\n  ")
    print(f"{report.count} commands were run, {len(report.failures)} differ from the page")
    sys.exit(1 if report.failures or stale else 0)


main()
