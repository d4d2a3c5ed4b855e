"""A row of the table."""

import os
from typing import NamedTuple

SLACK = float(os.environ.get("BENCH_SLACK", "1"))


class Row(NamedTuple):
    key: str
    name: str
    # The cost of brigade, and the cost to which it is compared, as text. Empty if the bar is for the figure itself.
    ours: str
    other: str
    # The least that the machine allows, as text.
    floor: str
    # The figure that the bar is for: a ratio, or the value in the unit of the bar.
    figure: float
    bar: float
    unit: str = "x"
    # Whether the figure may not be lower than the bar, instead of not higher.
    is_minimum: bool = False

    @property
    def is_met(self):
        if self.is_minimum:
            return self.figure * SLACK >= self.bar
        return self.figure <= self.bar * SLACK

    def cells(self):
        sign = "≥" if self.is_minimum else "≤"
        result = "PASS" if self.is_met else "MISS"
        return (self.key, self.name, self.ours, self.other, self.floor, f"{self.figure:.2f} {self.unit}",
                f"{sign} {self.bar:g} {self.unit}", result)


HEADINGS = ("row", "measured", "brigade", "compared with", "floor", "figure", "bar", "")


def ms(value):
    """Formats milliseconds with about three digits."""
    if value >= 10_000:
        return f"{value / 1000:.1f} s"
    if value >= 100:
        return f"{value:.0f} ms"
    return f"{value:.1f} ms" if value >= 10 else f"{value:.2f} ms"


def lines(cells):
    """Formats the rows as a Markdown table with aligned columns."""
    cells = [HEADINGS, *cells]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return text
