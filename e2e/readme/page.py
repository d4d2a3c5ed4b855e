"""The blocks of a page that are typed, and how what they print is compared."""

import re
from typing import NamedTuple


class Step(NamedTuple):
    """A line that is typed, and what is to be seen below it."""

    typed: str
    shown: list


class Block(NamedTuple):
    """A fenced block. Of an `sh` block nothing is said of what it prints, and `shown` is None."""

    line: int
    kind: str
    steps: list
    # The first words said to an agent below it.
    said: str | None


def blocks(path):
    """Every block of a page that is typed, in its order."""
    text = path.read_text()
    found = []
    for match in re.finditer(r"^```(console|sh)\n(.*?)^```$", text, re.S | re.M):
        kind, body = match.groups()
        said = re.match(r"\n\n> (.*)\n", text[match.end() :])
        line = text[: match.start()].count("\n") + 1
        found.append(Block(line, kind, steps(kind, body), said and said.group(1)))
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
            found[-1].shown.append(line)
    return found


# What differs from run to run, and what stands for it.
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
    # Columns are as wide as what is in them.
    (r"\s+", " "),
]


def masked(line):
    for pattern, stands in MASKS:
        line = re.sub(pattern, stands, line)
    return line.strip()


def differs(shown, printed):
    """What was shown and not printed, or printed and not shown; None if all is as it should be. A line `…` is
    any number of lines."""
    wanted = [masked(line) for line in shown if line.strip()]
    came = [masked(line) for line in printed.splitlines() if line.strip()]
    at = 0
    skips = False
    for line in wanted:
        if line == "…":
            skips = True
            continue
        if skips and line in came[at:]:
            at = came.index(line, at)
        if at >= len(came) or came[at] != line:
            found = came[at] if at < len(came) else "nothing more"
            return f"the page has «{line}», and there was «{found}»"
        at += 1
        skips = False
    if not skips and at < len(came):
        return f"the page does not have «{came[at]}»"
    return None
