"""Compares the terminal state of a shell in tmux before and after `brigade ui`."""

from lib.grid import Grid
from lib.terminals import COLUMNS, ROWS
from lib.util import eventually

# Private terminal modes: mouse, focus, cursor keys, alternate screen, bracketed paste, synchronized output.
MOUSE = {9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016}
CHECKED_MODES = MOUSE | {1, 47, 1047, 1049, 2004, 2026}


class ShellState:
    """Stores the initial state of the terminal, and compares later states with it."""

    def __init__(self, env, tmux):
        self._tmux = tmux
        self._folder = env.root
        self._commands = 0
        tmux.run("echo written-$((40+2))-before")
        tmux.shows("written-42-before")
        # Keep bash from turning bracketed paste on and off between two commands.
        tmux.run("bind 'set enable-bracketed-paste off'")
        self._settings = self.output("stty -a")
        self._modes = tmux.modes()
        self._offset = len(tmux.raw())

    def output(self, command):
        """Types a command into the shell and returns its output."""
        self._commands += 1
        out, done = (self._folder / f"command-{self._commands}{end}" for end in ("", ".done"))
        self._tmux.run(f"{command} >{out}; touch {done}")
        if not eventually(done.exists, 10):
            raise TimeoutError(f"the shell does not run {command}; it shows {self._tmux.screen()[-600:]}")
        return out.read_text()

    def check(self, report, when, code=None):
        """Checks that the terminal is in its initial state. `code` is the expected exit code of the last command."""
        # Wait for the shell to be in the foreground; until then, another program would read the input.
        if not eventually(self._is_in_foreground, 10):
            report.check(f"{when}: the shell is in the foreground again", False, self._tmux.screen())
        actual = self.output("echo $?").strip()
        if code is None:
            report.figure(f"{when}: exit code", actual)
        else:
            report.check(f"{when}: the exit code is {code}", actual == str(code), actual)
        settings = self.output("stty -a")
        same = settings == self._settings
        report.check(f"{when}: the terminal settings are as before", same, (self._settings, settings))
        modes = self._tmux.modes()
        same = modes == self._modes and modes["alternate_on"] == "0" and modes["cursor_flag"] == "1"
        report.check(f"{when}: tmux reports the main screen, a visible cursor and no mouse reporting", same, modes)
        left = self.modes_left_on()
        report.check(f"{when}: every terminal mode that was changed is reset", not left, left)
        back = "written-42-before" in self._tmux.screen()
        report.check(f"{when}: the earlier output of the shell is visible again", back, self._tmux.screen()[-600:])
        self._tmux.run("clear; echo written-$((40+2))-before")
        self._tmux.run("echo still-$((6*7))-here")
        echoed = self._tmux.shows("echo still-$((6*7))-here", "still-42-here")
        report.check(f"{when}: input is echoed and executed", echoed, self._tmux.screen()[-600:])

    def _is_in_foreground(self):
        return self._tmux.foreground_group() == self._tmux.shell()

    def modes_left_on(self):
        """Returns the private modes that are not in their default state after all output so far."""
        grid = Grid(COLUMNS, ROWS)
        # Mode 25, the visible cursor, is on by default.
        grid.modes.add(25)
        grid.feed(self._tmux.raw()[self._offset :].decode(errors="replace"))
        return sorted(grid.modes & CHECKED_MODES) + ([] if 25 in grid.modes else ["hidden cursor"])

    def was_used(self):
        """Returns whether a program used screen, cursor and mouse modes at all. If not, the checks prove nothing."""
        raw = self._tmux.raw()[self._offset :]
        return all(mode in raw for mode in (b"\x1b[?1049h", b"\x1b[?25l", b"\x1b[?1000h"))
