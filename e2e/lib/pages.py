"""Finds the commands in a Markdown page, runs them in a shell, and compares their output with the page.

In a `console` block, each line that begins with `$` is a command, and the lines below it are its expected output.
Times, ids and process numbers may differ. A line `…` matches any number of lines; a `…` at the end of a line
matches the rest of that line.
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
    # The logins in `brigade agents`: the programs of a test are not logged in.
    (r"\b(credentials present|logged out|unknown)\b", "LOGIN"),
    # The tokens in `brigade status`.
    (r"\b\d+k\b", "TOKENS"),
)


class Step(NamedTuple):
    """A command, and its expected output. The output is None in an `sh` block, because such a block shows none."""

    command: str
    expected: list | None


class Block(NamedTuple):
    """A fenced block of commands in a page."""

    line: int
    language: str
    text: str
    # A prompt for an agent, if the page quotes one below the block.
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
    """Returns the blocks of commands in a page, in order."""
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
    """Returns whether the output matches the expected lines. `masks` are more patterns for text that may differ."""
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
    """A context manager for a shell. At its end, the shell and its background processes are terminated."""

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
        # Print the end marker on its own line, even if the command's output does not end with a newline.
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
