"""A minimal terminal emulator: turns the bytes that a program writes into rows of cells."""

import re
import unicodedata
from typing import NamedTuple

# A complete escape sequence, or one control character.
SEQUENCE = re.compile(
    r"\x1b\[(?P<mark>[?<=>]?)(?P<numbers>[\d;:]*)[ -/]*(?P<end>[@-~])"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-9=>A-Z\\c]"
    r"|[\x00-\x1a\x1c-\x1f\x7f]"
)
# The start of an escape sequence whose end has not arrived yet.
BEGUN = re.compile(r"\x1b(?:\[[?<=>]?[\d;:]*[ -/]*|\][^\x07\x1b]*\x1b?|[ -/]*)?\Z")
FLAGS = {1: "bold", 2: "dim", 3: "italic", 4: "underlined", 7: "reversed"}


class Style(NamedTuple):
    """The style of a cell. A colour is an index of the terminal's palette, or None for the default."""

    fg: int | None = None
    bg: int | None = None
    flags: frozenset = frozenset()


class Cell(NamedTuple):
    """One cell. The second cell of a wide character has an empty text."""

    text: str = " "
    style: Style = Style()


class Grid:
    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        # The private terminal modes that are on, such as 1049 for the alternate screen.
        self.modes = set()
        self._rest = ""
        self._style = Style()
        self._wipe()

    def _wipe(self):
        self._cells = [[Cell()] * self.columns for _ in range(self.rows)]
        self._x = self._y = 0

    def feed(self, data):
        """Processes output of the program. The output may end in the middle of an escape sequence."""
        text = self._rest + data
        started = BEGUN.search(text)
        text, self._rest = (text[: started.start()], text[started.start() :]) if started else (text, "")
        place = 0
        for found in SEQUENCE.finditer(text):
            self._put(text[place : found.start()])
            self._obey(found)
            place = found.end()
        self._put(text[place:])

    def _put(self, text):
        for letter in text:
            width = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
            if unicodedata.combining(letter) or self._x + width > self.columns or self._y >= self.rows:
                continue
            row = self._cells[self._y]
            row[self._x] = Cell(letter, self._style)
            if width == 2:
                row[self._x + 1] = Cell("", self._style)
            self._x += width

    def _obey(self, found):
        end = found["end"]
        if end is None:
            self._control(found[0])
            return
        numbers = [int(number or 0) for number in re.split("[;:]", found["numbers"])]
        if found["mark"] == "?":
            if end == "h":
                self.modes |= set(numbers)
            elif end == "l":
                self.modes -= set(numbers)
            if 1049 in numbers:
                self._wipe()
        elif end == "m" and not found["mark"]:
            self._style = restyled(self._style, numbers)
        elif end in "Hf":
            row, column = (*numbers, 1)[:2]
            self._y, self._x = max(row, 1) - 1, max(column, 1) - 1
        elif end == "J":
            self._erase_below() if numbers[0] == 0 else self._wipe()
        elif end == "K":
            self._erase(self._y, self._x)
        elif end in "ABCDG":
            step = max(numbers[0], 1)
            self._x += {"C": step, "D": -step}.get(end, 0)
            self._y += {"B": step, "A": -step}.get(end, 0)
            self._x = step - 1 if end == "G" else max(self._x, 0)
            self._y = max(self._y, 0)

    def _control(self, letter):
        if letter == "\r":
            self._x = 0
        elif letter == "\n":
            self._y += 1
        elif letter == "\b":
            self._x = max(self._x - 1, 0)

    def _erase(self, y, x):
        if y < self.rows:
            self._cells[y][x:] = [Cell(" ", Style(bg=self._style.bg))] * (self.columns - x)

    def _erase_below(self):
        self._erase(self._y, self._x)
        for y in range(self._y + 1, self.rows):
            self._erase(y, 0)

    def cells(self):
        return self._cells

    def lines(self):
        return ["".join(cell.text for cell in row).rstrip() for row in self._cells]

    def text(self):
        return "\n".join(self.lines())


def restyled(style, numbers):
    """Returns the style after an SGR sequence is applied to it."""
    numbers = iter(numbers)
    for number in numbers:
        if number == 0:
            style = Style()
        elif number in FLAGS:
            style = style._replace(flags=style.flags | {FLAGS[number]})
        elif number in (21, 22, 23, 24, 27):
            gone = {"bold", "dim"} if number < 23 else {FLAGS[number - 20]}
            style = style._replace(flags=style.flags - gone)
        elif number in (38, 48):
            color = next(numbers, 0) == 5 and next(numbers, None)
            style = style._replace(**{"fg" if number == 38 else "bg": color})
        elif 30 <= number % 60 <= 37 and number < 98:
            style = style._replace(fg=number % 60 - 30 + 8 * (number > 60))
        elif 40 <= number % 60 <= 47 and number < 108:
            style = style._replace(bg=number % 60 - 40 + 8 * (number > 60))
        elif number == 39:
            style = style._replace(fg=None)
        elif number == 49:
            style = style._replace(bg=None)
    return style
