"""Runs what the guide shows, page by page, and compares what comes with what the guide says comes.

Of a `console` block each line behind a `$` is typed, and what stands below it has to come, but for times, ids and
process numbers; a line `…` stands for any lines, a `…` at the end of one for its rest. A command that only looks
is asked again for a while. It has to end with 0, unless an error is shown."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stages import ROWS, Row

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PATIENCE = 20 * float(os.environ.get("BENCH_SLACK", "1"))
# What may be asked again: it only looks, or changes nothing the second time.
AGAIN = ("org apply", "status", "approvals", "log", "inbox", "agents", "doctor", "team show", "task list")
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


class Block:
    def __init__(self, page, line, language, text):
        self.page, self.line, self.language, self.text = page, line, language, text
        self.steps = []
        if language == "sh":
            self.steps = [(text, None)]
            return
        goes_on = False
        for line in text.splitlines():
            if line.startswith("$ "):
                self.steps.append((line[2:], []))
            elif goes_on:
                command, shown = self.steps[-1]
                self.steps[-1] = (command + "\n" + line, shown)
            elif self.steps:
                self.steps[-1][1].append(line)
            goes_on = line.endswith("\\") and (line.startswith("$ ") or goes_on)

    @property
    def begins(self):
        return self.steps[0][0].strip() if self.steps else ""


def blocks(page):
    """The blocks of a page that somebody could type."""
    text = (ROOT / page).read_text()
    for fence in re.finditer(r"^```(console|sh)\n(.*?)^```$", text, re.S | re.M):
        yield Block(page, text[: fence.start()].count("\n") + 1, fence[1], fence[2])


def masked(line, home):
    line = line.replace(str(home), "/home/dev").rstrip()
    for pattern, word in MASKS:
        line = re.sub(pattern, word, line)
    return line


def fits(shown, came, home):
    """Whether what came is what is shown."""
    shown = [masked(line, home) for line in shown]
    came = [masked(line, home) for line in came]
    pattern = ""
    for line in shown:
        if line.strip() == "…":
            pattern += r"(?:.*\n)*"
        elif line.endswith("…"):
            pattern += re.escape(line[:-1].rstrip()) + r".*\n"
        else:
            pattern += re.escape(line) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in came)) is not None


class Shell:
    """A shell in an empty home, for one page."""

    def __init__(self, folder):
        self.home = folder / "home"
        self.bin = folder / "bin"
        for path in (self.home / "proj", self.bin, folder / "tmp"):
            path.mkdir(parents=True)
        self.installed()
        env = {
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
            env=env, cwd=self.home / "proj", start_new_session=True,
        )  # fmt: skip

    def installed(self, *names):
        """Has these agents, and brigade, on the path."""
        for path in self.bin.iterdir():
            path.unlink()
        (self.bin / "brigade").symlink_to(os.environ["BRIGADE"])
        (self.bin / "nats-server").symlink_to(os.environ["NATS_SERVER"])
        (self.bin / "python3").symlink_to(sys.executable)
        for name in names:
            (self.bin / name).symlink_to(HERE / "stand_in.py")

    def run(self, command, keys=None):
        """Runs a command, and gives its code and what it printed."""
        if keys is not None:
            command = f"{sys.executable} {HERE}/terminal.py {quoted(keys)} {quoted(command)}"
        end = f"end-{time.monotonic_ns()}"
        # On a line of its own, whatever the command printed last.
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
        """Ends the shell, and whatever of this home still runs."""
        self.shell.stdin.close()
        self.shell.wait(timeout=10)
        mark = str(self.home).encode()
        for _ in range(5):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if mark in (process / "environ").read_bytes():
                        os.kill(int(process.name), signal.SIGKILL)
                except OSError:
                    pass  # It has ended by itself.
            time.sleep(0.1)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def tells_of_trouble(command, shown):
    """Whether the page means the command to end with something else than 0."""
    return "brigade doctor" in command and shown or any(line.startswith("error:") for line in shown or [])


def step(shell, command, shown, keys):
    """Runs one command; gives what is wrong with what came."""
    until = time.monotonic() + PATIENCE
    while True:
        code, came = shell.run(command, keys)
        if os.environ.get("SHOW"):
            print(f"    $ {command}", *(f"    {line}" for line in came), sep="\n")
        well = code == 0 or tells_of_trouble(command, shown)
        if well and (not shown or fits(shown, came, shell.home)):
            return None
        looks = any(f"brigade {word}" in command for word in AGAIN) and shown
        if not looks or time.monotonic() > until:
            break
        time.sleep(0.3)
    expected = "\n".join(f"      | {line}" for line in shown or ["(exit code 0)"])
    came = "\n".join(f"      | {line}" for line in [*came, f"(exit code {code})"])
    return f"    $ {command}\n    the page says\n{expected}\n    and it was\n{came}"


def run_page(page, rows, report):
    """Runs the blocks of a page in their order."""
    whole = next((row for row in rows if not row.begins), Row(page))
    here = []
    for block in blocks(page):
        row = next((row for row in rows if row.begins and block.begins.startswith(row.begins)), None)
        report.used.update({row, whole} - {None})
        row = row or Row(page)
        if row.cannot or row.elsewhere or whole.elsewhere:
            report.passed_over(block, row.cannot, row.elsewhere or whole.elsewhere)
        else:
            here.append((block, row))
    if not here:
        return
    with tempfile.TemporaryDirectory(prefix="guide-") as folder:
        shell = Shell(Path(folder))
        try:
            shell.installed(*whole.installed)
            stage(shell, whole)
            for block, row in here:
                if row.installed:
                    shell.installed(*row.installed)
                stage(shell, row)
                for command, shown in typed(block, row):
                    report.told(block, command, step(shell, command, shown, row.keys))
        finally:
            shell.close()


def typed(block, row):
    """The commands of a block; at a terminal a script is typed line by line."""
    if block.language == "sh" and row.keys:
        return [(line, None) for line in block.text.splitlines() if line.strip()]
    return block.steps


def stage(shell, row):
    if row.before:
        code, came = shell.run(row.before)
        if code != 0:
            raise RuntimeError(f"{row.page}: the stage could not be set: {came}")


class Report:
    def __init__(self):
        self.used, self.ran, self.wrong = set(), 0, []
        self.elsewhere, self.cannot = {}, []

    def told(self, block, command, wrong):
        self.ran += 1
        if wrong:
            self.wrong.append(f"{block.page}:{block.line}")
            print(f"{block.page}:{block.line}\n{wrong}", flush=True)

    def passed_over(self, block, cannot, elsewhere):
        if cannot:
            self.cannot.append(f"{block.page}:{block.line}: {cannot}")
        else:
            self.elsewhere[elsewhere] = self.elsewhere.get(elsewhere, 0) + 1


def outside(pages):
    """The links that lead out of the repository."""
    texts = ((ROOT / page).read_text() for page in pages)
    return sorted({link for text in texts for link in re.findall(r"\]\((\w+://[^)\s]+)\)", text)})


def main():
    subprocess.run(["ip", "address", "add", "10.0.0.5/32", "dev", "lo"], check=True)
    asked = sys.argv[1:]
    pages = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]
    report = Report()
    for page in pages:
        if not asked or Path(page).stem in asked:
            begun = time.monotonic()
            before = report.ran
            run_page(page, [row for row in ROWS if row.page == page], report)
            if report.ran > before:
                print(f"{page}: {report.ran - before} commands, {time.monotonic() - begun:.1f} s", flush=True)
    stale = [row for row in ROWS if row not in report.used and (ROOT / row.page).exists() and not asked]
    for row in stale:
        print(f"FAIL {row.page}: no block begins with {row.begins!r}, or the page has none")
    for who, count in sorted(report.elsewhere.items()):
        print(f"{count} blocks are run by {who}")
    links = outside(pages)
    print(f"{len(links)} links lead outside, and are not followed:", *links, sep="\n  ")
    print(f"{len(report.cannot)} blocks are not run:", *report.cannot, sep="\n  ")
    print(f"{report.ran} commands were run, {len(report.wrong)} were not as the page says")
    sys.exit(1 if report.wrong or stale else 0)


main()
