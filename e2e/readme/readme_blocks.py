"""The code blocks of a page, and the comparison of their output."""

import re
from typing import NamedTuple


class Step(NamedTuple):
    """A command, and the output that the page shows; None for an `sh` block, which shows none."""

    command: str
    expected: list | None


class ReadmeBlock(NamedTuple):
    """A fenced block."""

    line: int
    kind: str
    steps: list
    # The quoted prompt for an agent below the block.
    prompt: str | None


def blocks(path):
    """The blocks of a page with commands, in order."""
    text = path.read_text()
    found = []
    for match in re.finditer(r"^```(console|sh)\n(.*?)^```$", text, re.S | re.M):
        kind, body = match.groups()
        prompt = re.match(r"\n\n> (.*)\n", text[match.end() :])
        line = text[: match.start()].count("\n") + 1
        found.append(ReadmeBlock(line, kind, steps(kind, body), prompt and prompt.group(1)))
    return found


def steps(kind, body):
    if kind == "sh":
        return [Step(line, None) for line in body.splitlines() if line.strip()]
    found = []
    for line in body.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append(Step(line[2:], []))
        elif not found:
            raise ValueError(f"output before the first command: {line}")
        else:
            found[-1].expected.append(line)
    return found


# Patterns for text that differs from run to run, and their replacements.
MASKS = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"perm-\d+-\w+", "PERM"),
    (r"\d{4}-\d\d-\d\d", "DATE"),
    (r"\d\d:\d\d:\d\d", "TIME"),
    (r"\bprocess \d+, .* for \d+ \w+", "PROCESS"),
    (r"^(\w+): (starting|idle|working) \(.*\)", r"\1: \2"),
    (r"\b\d+/\d+\b", "TOKENS"),
    (r"just now|\d+ (s|min) ago", "AGE"),
    (r"/\S*/parser\b", "PROJECT"),
    # The widths of columns depend on their contents.
    (r"\s+", " "),
]


def masked(line):
    for pattern, replacement in MASKS:
        line = re.sub(pattern, replacement, line)
    return line.strip()


def difference(expected, output):
    """The first difference between the page and the output; None if there is none. A line `…` matches any number of
    lines."""
    wanted = [masked(line) for line in expected if line.strip()]
    actual = [masked(line) for line in output.splitlines() if line.strip()]
    at = 0
    skip = False
    for line in wanted:
        if line == "…":
            skip = True
            continue
        if skip and line in actual[at:]:
            at = actual.index(line, at)
        if at >= len(actual) or actual[at] != line:
            found = actual[at] if at < len(actual) else "the end of the output"
            return f"the page has «{line}», the output has «{found}»"
        at += 1
        skip = False
    if not skip and at < len(actual):
        return f"the page does not have «{actual[at]}»"
    return None
