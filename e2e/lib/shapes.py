"""Converts box-drawing and block characters to shapes, which join without gaps whatever the font."""

import re
import unicodedata
from typing import NamedTuple

ARMS = {"LEFT": "l", "RIGHT": "r", "UP": "u", "DOWN": "d", "HORIZONTAL": "lr", "VERTICAL": "ud"}
WEIGHTS = {"LIGHT": 1, "SINGLE": 1, "HEAVY": 2, "DOUBLE": 3}
DASHES = {"DOUBLE": 2, "TRIPLE": 3, "QUADRUPLE": 4}
# The end of each arm of a box-drawing character, in half cells from the centre.
ENDS = {"l": (-1, 0), "r": (1, 0), "u": (0, -1), "d": (0, 1)}
SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75}


class Line(NamedTuple):
    """A line between two points of a cell, with coordinates from 0 to 1; `weight` 1 is thin, 2 thick, 3 double."""

    from_: tuple
    to: tuple
    weight: int
    arc: bool = False
    dashes: int = 0


class Block(NamedTuple):
    """A filled part of a cell: left, top, right and bottom from 0 to 1."""

    left: float
    top: float
    right: float
    bottom: float
    opacity: float = 1.0


def shapes(letter):
    """Returns the shapes of a character, or None if the font has to draw the character."""
    if "\u2500" <= letter <= "\u257f":
        return lines(unicodedata.name(letter).removeprefix("BOX DRAWINGS "))
    if "\u2580" <= letter <= "\u259f":
        return blocks(letter)
    return None


def lines(name):
    if "DIAGONAL" in name:
        return None
    dashes = next((count for word, count in DASHES.items() if f"{word} DASH" in name), 0)
    words = re.sub(r"\w+ DASH", "", name)
    arms, weight = {}, 1
    for part in words.split(" AND "):
        own = [WEIGHTS[word] for word in part.split() if word in WEIGHTS]
        weight = own[0] if own else weight
        for word in part.split():
            arms |= dict.fromkeys(ARMS.get(word, ""), weight)
    if "ARC" in words:
        (first, _), (second, _) = arms.items()
        return [Line(end(first), end(second), 1, arc=True)]
    found = []
    for one, other in ("lr", "ud"):
        if arms.get(one) == arms.get(other) is not None:
            # If two opposite arms have the same weight, draw them as a single line.
            found.append(Line(end(one), end(other), arms.pop(one), dashes=dashes))
            arms.pop(other)
    return found + [Line((0.5, 0.5), end(arm), weight, dashes=dashes) for arm, weight in arms.items()]


def end(arm):
    x, y = ENDS[arm]
    return (0.5 + x / 2, 0.5 + y / 2)


def blocks(letter):
    if letter in SHADES:
        return [Block(0, 0, 1, 1, SHADES[letter])]
    number = ord(letter)
    if letter == "▀":
        return [Block(0, 0, 1, 0.5)]
    if "▁" <= letter <= "█":
        return [Block(0, 1 - (number - 0x2580) / 8, 1, 1)]
    if "▉" <= letter <= "▏":
        return [Block(0, 0, (0x2590 - number) / 8, 1)]
    if letter == "▐":
        return [Block(0.5, 0, 1, 1)]
    if letter == "▔":
        return [Block(0, 0, 1, 1 / 8)]
    if letter == "▕":
        return [Block(7 / 8, 0, 1, 1)]
    return None
