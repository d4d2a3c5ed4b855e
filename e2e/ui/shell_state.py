"""A shell in tmux before, beneath and after `brigade ui`: whether its terminal is as it was."""

from grid import Grid
from house import eventually
from terminals import COLUMNS, ROWS

# Private modes of a terminal: the mouse in its forms, focus, pasting, the cursor's keys, the other screen.
MOUSE = {9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016}
LEFT_OFF = MOUSE | {1, 47, 1047, 1049, 2004, 2026}


class Shell:
    """Knows how the terminal was before anything ran in it."""

    def __init__(self, desk, tmux):
        self._tmux = tmux
        self._folder = desk.root
        self._asked = 0
        tmux.run("echo written-$((40+2))-before")
        tmux.shows("written-42-before")
        # Between two commands bash asks for pasted text to be marked; that is the shell's, not ours.
        tmux.run("bind 'set enable-bracketed-paste off'")
        self._settings = self.settings()
        self._modes = tmux.modes()
        self._seen = len(tmux.raw())

    def settings(self):
        """What `stty -a` says."""
        return self.ask("stty -a")

    def ask(self, command):
        """What a command prints."""
        self._asked += 1
        out, done = (self._folder / f"asked-{self._asked}{end}" for end in ("", ".done"))
        self._tmux.run(f"{command} >{out}; touch {done}")
        if not eventually(done.exists, 10):
            raise TimeoutError(f"the shell does not run {command}; it shows {self._tmux.screen()[-600:]}")
        return out.read_text()

    def check(self, report, when, code=None):
        """Whether all is as it was; `code` is the exit code that the last command must have had."""
        # What is typed before the shell has its terminal again would be taken by whoever has it.
        if not eventually(self._is_in_front, 10):
            report.check(f"{when}: the shell has its terminal again", False, self._tmux.screen())
        came = self.ask("echo $?").strip()
        if code is None:
            report.figure(f"{when}: exit code", came)
        else:
            report.check(f"{when}: the exit code is {code}", came == str(code), came)
        settings = self.settings()
        same = settings == self._settings
        report.check(f"{when}: the terminal's settings are as before", same, (self._settings, settings))
        modes = self._tmux.modes()
        same = modes == self._modes and modes["alternate_on"] == "0" and modes["cursor_flag"] == "1"
        report.check(f"{when}: the first screen, the cursor, no mouse, as tmux has it", same, modes)
        left = self.left_on()
        report.check(f"{when}: every mode that was set is unset again", not left, left)
        back = "written-42-before" in self._tmux.screen()
        report.check(f"{when}: the shell's earlier text is back", back, self._tmux.screen()[-600:])
        self._tmux.run("clear; echo written-$((40+2))-before")
        self._tmux.run("echo still-$((6*7))-here")
        heard = self._tmux.shows("echo still-$((6*7))-here", "still-42-here")
        report.check(f"{when}: what is typed is seen, and done", heard, self._tmux.screen()[-600:])

    def _is_in_front(self):
        return self._tmux.in_front() == self._tmux.shell()

    def left_on(self):
        """The private modes that are not as a terminal begins, by the bytes that were written since."""
        grid = Grid(COLUMNS, ROWS)
        # A cursor that shows is a mode that is on from the beginning.
        grid.modes.add(25)
        grid.feed(self._tmux.raw()[self._seen :].decode(errors="replace"))
        return sorted(grid.modes & LEFT_OFF) + ([] if 25 in grid.modes else ["hidden cursor"])

    def was_taken(self):
        """Whether the screen was ever taken since: a check of the checks."""
        raw = self._tmux.raw()[self._seen :]
        return all(mode in raw for mode in (b"\x1b[?1049h", b"\x1b[?25l", b"\x1b[?1000h"))
