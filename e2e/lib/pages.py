"""The commands in a Markdown page, a shell that runs them, and the comparison of their output with the page.

In a `console` block, each line after `$` is a command, and the lines below are its expected output, apart from times,
ids and process numbers. A line `…` matches any lines, a `…` at the end of a line matches the rest of the line.
"""

import os
import re
import signal
import subprocess
import uuid
from typing import NamedTuple

# Patterns for text that differs from run to run, and their replacements.
MASKS = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?|\d\d:\d\d:\d\d", "TIME"),
    (r"perm-\d+-\w+|(shutdown|plan_approval)-\d+", "REQUEST"),
    (r"process \d+", "process N"),
    (r"(\d+ (ms|s|min|h))( ago)?|just now", "AGE"),
    (r"/\S*/(bin|proj|\.claude|parser)\b", r"/\1"),
    # The widths of columns depend on their contents.
    (r"[ \t]+", " "),
)


class Step(NamedTuple):
    """A command, and the output that the page shows; None for an `sh` block, which shows none."""

    command: str
    expected: list | None


class Block(NamedTuple):
    """A fenced block with commands."""

    line: int
    language: str
    text: str
    # The quoted prompt for an agent below the block.
    prompt: str | None

    def steps(self):
        if self.language == "sh":
            return [Step(line, None) for line in self.text.splitlines() if line.strip()]
        found, continued = [], False
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:], []))
            elif continued:
                found[-1] = found[-1]._replace(command=f"{found[-1].command}\n{line}")
            elif not found:
                raise ValueError(f"output before the first command: {line}")
            else:
                found[-1].expected.append(line)
            continued = line.endswith("\\") and (line.startswith("$ ") or continued)
        return found


def blocks(path):
    """The blocks of a page with commands, in order."""
    text = path.read_text()
    found = []
    for fence in re.finditer(r"^```(console|sh)\n(.*?)^```$", text, re.S | re.M):
        prompt = re.match(r"\n\n> (.*)\n", text[fence.end() :])
        found.append(Block(text[: fence.start()].count("\n") + 1, *fence.groups(), prompt and prompt[1]))
    return found


def masked(line, masks):
    for pattern, replacement in (*masks, *MASKS):
        line = re.sub(pattern, replacement, line)
    return line.rstrip()


def matches(expected, output, masks=()):
    """Whether the output has the expected lines. `masks` are more patterns for text that differs from run to run."""
    pattern = ""
    for line in (masked(line, masks) for line in expected):
        if line.strip() == "…":
            pattern += r"(?:.*\n)*"
        elif line.endswith("…"):
            pattern += re.escape(line[:-1].rstrip()) + r".*\n"
        else:
            pattern += re.escape(line) + r"\n"
    return re.fullmatch(pattern, "".join(masked(line, masks) + "\n" for line in output)) is not None


class Shell:
    """A context manager for a shell. Its variables and background processes end with it."""

    def __init__(self, environ, folder):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], env=environ, cwd=folder, start_new_session=True, **pipes
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()

    def run(self, command):
        """Runs a command; returns its exit code and the lines of its output."""
        end = str(uuid.uuid4())
        # The end mark is on its own line, even if the output does not end with a newline.
        script = f"{{\n{command}\n}} </dev/null\nprintf '\\n{end} %s\\n' $?\n"
        self._process.stdin.write(script.encode())
        self._process.stdin.flush()
        lines = []
        for line in self._process.stdout:
            line = line.decode(errors="replace").rstrip("\n")
            if line.startswith(end):
                return int(line.split()[1]), lines[:-1] if lines[-1:] == [""] else lines
            lines.append(line)
        raise RuntimeError(f"the shell ended at: {command}")
