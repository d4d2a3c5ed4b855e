"""Captures the screens and writes them as text and as pictures. Checks that no text is hard to read."""

import os
import re
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import scene

from lib import svg
from lib.env import exit_on_sigterm
from lib.grid import Cell, Grid
from lib.report import Report
from lib.script_proxy import ScriptProxy
from lib.scripted_model import ScriptedModel

OUT, PICTURES = Path(os.environ["OUT"]), Path(os.environ["PICTURES"])
WIDTHS = {80: 24, 200: 50}
THEMES = {"dark": svg.DARK, "light": svg.LIGHT}
# Text with less contrast to its background counts as hard to read.
MIN_CONTRAST = 2.4


class Screen(NamedTuple):
    name: str
    command: str
    # The keys to press, each after the text that has to be on the screen before it.
    keys: tuple = ()
    # The text that is on the screen at the end.
    shown: str = "$"
    # Whether the program fills the screen until q or ctrl-c.
    interactive: bool = False
    # Whether the picture is part of the documentation.
    is_picture: bool = False


UI = "brigade ui"
SCREENS = (
    Screen("overview", "brigade"),
    Screen("status", "brigade status", is_picture=True),
    Screen("status-watch", "brigade status --watch", shown="WAITING FOR YOU", interactive=True),
    Screen("approvals", "brigade approvals"),
    Screen("inbox", "brigade inbox"),
    Screen("logs", "brigade logs -n 20", is_picture=True),
    Screen("logs-member", "brigade logs --member dave --work"),
    Screen("tasks", "brigade tasks", is_picture=True),
    Screen("task-show", "brigade task show 4", is_picture=True),
    Screen("task-graph", "brigade task graph", is_picture=True),
    Screen("team-show", "brigade team show"),
    Screen("policy", "brigade policy list"),
    Screen("policy-test", "brigade policy test 'git log | head -3' --member alice"),
    Screen("diff", "brigade diff dave"),
    Screen("history", "brigade history size"),
    Screen("agents", "brigade agents"),
    Screen("doctor", "brigade doctor"),
    Screen("ui-team", UI, ((("1",), "6 Member"),), "alice", True),
    Screen("ui-mail", UI, ((("2",), "6 Member"),), "All mail", True),
    Screen("ui-board", UI, ((("3",), "6 Member"),), "Write the lexer", True),
    Screen("ui-graph", UI, ((("3", "v"), "6 Member"),), "Write the lexer", True),
    Screen("ui-approvals", UI, ((("4",), "6 Member"),), "cargo publish", True),
    Screen("ui-timeline", UI, ((("5",), "6 Member"),), "per column", True),
    Screen("ui-member", UI, ((("6",), "6 Member"),), "alice", True),
    Screen("ui-keys", UI, ((("?",), "6 Member"),), "quit", True),
    Screen("attach", "brigade attach dave", shown="dave", interactive=True, is_picture=True),
    Screen("attach-request", "brigade attach bob", shown="cargo publish", interactive=True),
    Screen("help", "brigade --help"),
    Screen("help-short", "brigade -h"),
    Screen("help-spawn", "brigade spawn --help"),
    Screen("unknown-command", "brigade staus"),
)


def one_for_one(characters):
    """Returns a function that replaces the letters and digits of a match with these characters, again and again."""

    def replace(found):
        source = cycle(characters)
        return "".join(next(source) if letter.isalnum() else letter for letter in found[0])

    return replace


# Patterns for text that differs from run to run, and functions that return replacements of the same length.
MASKS = (
    (r"\b20\d\d-\d\d-\d\d\b", lambda _: "2026-11-18"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", one_for_one("26ee4886")),
    (r"(?<=perm-)\d+-\w+", one_for_one("1794700029486afwy1mc")),
    (r"(?<=plan_approval-)\d+|(?<=process )\d+", one_for_one("1794700029486")),
    (r"\b\d+(?= (s|min)\b)", one_for_one("12")),
    (r"(?<=brigade-)[0-9a-f]{8,}", one_for_one("26ee4886")),
)


def masked(number, row, folders):
    """Returns a row of cells without text that differs from run to run. The times depend on the number of the row.
    `folders` maps paths to shorter ones."""
    text = "".join(cell.text or "\0" for cell in row)
    for pattern, replacement in MASKS:
        text = re.sub(pattern, replacement, text)
    seconds = 3 * number + 5
    text = re.sub(r"\b\d\d:\d\d:\d\d\b", f"14:{20 + seconds // 60 % 40:02}:{seconds % 60:02}", text)
    text = re.sub(r"(?<![:\d])\d\d:\d\d(?![:\d])", "14:20", text)
    row = [cell._replace(text="" if letter == "\0" else letter) for cell, letter in zip(row, text)]
    for folder, shorter in folders.items():
        while (at := "".join(cell.text or "\0" for cell in row).find(folder)) >= 0:
            name = [row[at]._replace(text=letter) for letter in shorter]
            row = row[:at] + name + row[at + len(folder) :] + [Cell()] * (len(folder) - len(name))
    return row


def captured(home, screen, columns):
    """Runs the command in a terminal; returns its screen as cells, without empty rows at the end."""
    rows = WIDTHS[columns] if screen.interactive else 160
    tmux = home.terminal(columns, rows)
    tmux.run(screen.command)
    for keys, before in screen.keys:
        if not tmux.shows(before):
            raise TimeoutError(f"{screen.name}: no {before} on\n{tmux.screen()}")
        for key in keys:
            tmux.press(key)
    if screen.interactive:
        if not tmux.shows(screen.shown):
            raise TimeoutError(f"{screen.name}: no {screen.shown} on\n{tmux.screen()}")
        time.sleep(0.3)
    else:
        # The prompt of the shell follows the output.
        while len(re.findall(r"^\$", tmux.screen(), re.M)) < 2:
            time.sleep(0.05)
    grid = Grid(columns, rows)
    grid.feed(tmux.drawn().rstrip("\n").replace("\n", "\r\n"))
    tmux.close()
    folders = {str(home.home): "/home/dev", str(home.root / "bin"): "/usr/local/bin"}
    # The first line of a screen that is updated has the present time.
    found = [masked(number or 80 * screen.interactive, row, folders) for number, row in enumerate(grid.cells())]
    while len(found) > 1 and not "".join(cell.text for cell in found[-1]).strip("$ "):
        found.pop()
    return found


def hard_to_read(cells, theme):
    """Returns the texts with little contrast."""
    found = set()
    for row in cells:
        for cell in row:
            if cell.text.strip() and svg.contrast(cell.style, theme) < MIN_CONTRAST:
                found.add((cell.style.fg, cell.style.bg, tuple(sorted(cell.style.flags))))
    return found


def save(screen, columns, cells, write_pictures):
    name = f"{screen.name}-{columns}"
    (OUT / f"{name}.txt").write_text("\n".join("".join(cell.text for cell in row).rstrip() for row in cells) + "\n")
    for title, theme in THEMES.items():
        (OUT / f"{name}-{title}.svg").write_text(svg.film([cells], [1], theme))
    if write_pictures and screen.is_picture and columns == 80:
        (PICTURES / f"{screen.name}.svg").write_text(svg.film([cells], [1]))


def main():
    exit_on_sigterm()
    write_pictures = "pictures" in sys.argv
    report = Report("screens")
    root = Path(tempfile.mkdtemp(prefix="screens-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        model = stack.enter_context(ScriptedModel(root / "model", bodies=False))
        proxy = stack.enter_context(ScriptProxy(model.url, scene.SCRIPTS))
        home = stack.enter_context(scene.prepare(root, proxy.url))
        # From now on all ages have two digits, for most of a minute.
        time.sleep(10)
        started = time.monotonic()
        chosen = [screen for screen in SCREENS if screen.name.startswith(os.environ["ONLY"])]
        for screen in chosen:
            for columns in WIDTHS:
                cells = captured(home, screen, columns)
                save(screen, columns, cells, write_pictures)
                for title, theme in THEMES.items():
                    low = hard_to_read(cells, theme)
                    report.check(f"{screen.name}, {columns} columns, {title}: every text is readable", not low, low)
        report.figure("screens", f"{len(chosen)} in {time.monotonic() - started:.0f} s, in {OUT.name}")
    sys.exit(report.end())


main()
