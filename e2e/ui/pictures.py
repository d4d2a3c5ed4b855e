"""Makes the screenshots of `brigade ui` for the documentation, from the real program in a real tmux: an SVG of each
view, and an animated SVG of a replay."""

import os
import sys
import tempfile
import time
from pathlib import Path

from lib import svg
from lib.grid import Grid
from lib.terminals import Tmux

DEMO = "fixtures/ui/demo.jsonl"
# For each screenshot: the view to start with, and the keys to press.
STILLS = {
    "team": ("team", ["Down"]),
    "mail": ("mail", []),
    "board": ("board", []),
    "graph": ("board", ["v"]),
    "approvals": ("approvals", []),
    "timeline": ("timeline", ["Down"]),
    "member": ("team", ["Down", "6"]),
}
COLUMNS, ROWS = 120, 36
# The animation: each key to press, and how many frames to capture after it, one second apart.
FRAMES = (("1", 9), ("2", 8), ("3", 7), ("5", 8), ("6", 5), ("4", 6))
SPEED = 60
FILM_COLUMNS, FILM_ROWS = 110, 30
MAX_SVG_BYTES = 400_000


def main():
    brigade, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="brigade-pictures-") as folder:
        environ = {"PATH": os.environ["PATH"], "HOME": folder, "TERM": "xterm-256color", "LANG": "C.UTF-8", "TZ": "UTC"}
        environ |= {"PS1": "$ ", "HISTFILE": os.devnull}
        for name, (view, keys) in STILLS.items():
            save(out / f"ui-{name}.svg", [still(brigade, view, keys, Path(folder), environ)], [1])
        save(out / "ui.svg", *film(brigade, Path(folder), environ))


def save(path, frames, seconds):
    path.write_text(svg.film(frames, seconds))
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB, {len(frames)} frames")
    if path.stat().st_size > MAX_SVG_BYTES:
        sys.exit(f"{path} is too big for a documentation page")


def open_ui(brigade, folder, environ, arguments, columns, rows):
    tmux = Tmux(folder / f"tmux-{time.monotonic_ns()}", environ, Path.cwd(), columns, rows)
    tmux.run(f"{brigade} ui --replay {DEMO} {arguments}")
    if not tmux.shows("1 Team", "6 Member"):
        raise RuntimeError(tmux.screen())
    return tmux


def still(brigade, view, keys, folder, environ):
    """Captures the end of the demo journal in one view."""
    with open_ui(brigade, folder, environ, f"--speed 0 --view {view}", COLUMNS, ROWS) as tmux:
        tmux.shows("replay over")
        for key in keys:
            tmux.press(key)
        time.sleep(0.5)
        return cells(tmux.drawn(), COLUMNS, ROWS)


def film(brigade, folder, environ):
    frames, seconds = [], []
    with open_ui(brigade, folder, environ, f"--speed {SPEED}", FILM_COLUMNS, FILM_ROWS) as tmux:
        started, taken = time.monotonic(), 0
        for key, count in FRAMES:
            tmux.press(key)
            for _ in range(count):
                taken += 1
                time.sleep(max(started + taken - time.monotonic(), 0))
                frame = cells(tmux.drawn(), FILM_COLUMNS, FILM_ROWS)
                if frames and frames[-1] == frame:
                    seconds[-1] += 0.6
                else:
                    frames.append(frame)
                    seconds.append(0.6)
    seconds[-1] += 3
    return frames, seconds


def cells(text, columns, rows):
    """Converts a screen that tmux captured to cells."""
    grid = Grid(columns, rows)
    grid.feed(text.rstrip("\n").replace("\n", "\r\n"))
    return grid.cells()


main()
