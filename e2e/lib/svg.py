"""Draws terminal screens as an SVG of shapes and text, without scripts. Several screens become an animation."""

from html import escape
from itertools import groupby
from typing import NamedTuple

from lib.shapes import Line, shapes

# Width and height of one cell, in SVG units.
WIDTH, HEIGHT = 8.4, 17.0
FONT = 14
MARGIN = 14


class Theme(NamedTuple):
    """The colours of a terminal."""

    background: str
    text: str
    # The sixteen colours that programs choose by number.
    palette: tuple


DARK = Theme(
    "#16181d",
    "#d7dae0",
    (
        "#3b4048", "#e5697a", "#8cc570", "#d9b45f", "#64a8e8", "#c17fdb", "#55b9c4", "#abb2bf",
        "#7a818e", "#f08b98", "#a8d992", "#ecd08b", "#8cc2f4", "#d6a3ea", "#7fd3dc", "#eef0f4",
    ),
)  # fmt: skip
# The colours of GNOME Terminal on a white background.
LIGHT = Theme(
    "#ffffff",
    "#2e3436",
    (
        "#2e3436", "#cc0000", "#4e9a06", "#c4a000", "#3465a4", "#75507b", "#06989a", "#d3d7cf",
        "#555753", "#ef2929", "#8ae234", "#fce94f", "#729fcf", "#ad7fa8", "#34e2e2", "#eeeeec",
    ),
)  # fmt: skip


def colors(style, theme):
    """Returns the colours of text and background; None stands for the default background."""
    fg = theme.palette[style.fg] if style.fg is not None and style.fg < 16 else theme.text
    bg = theme.palette[style.bg] if style.bg is not None and style.bg < 16 else None
    if "reversed" in style.flags:
        fg, bg = bg or theme.background, fg
    if "dim" in style.flags:
        fg = mixed(fg, bg or theme.background, 0.6)
    return fg, bg


def contrast(style, theme):
    """Returns the contrast between text and background, from 1 to 21, as WCAG defines it."""
    fg, bg = colors(style, theme)
    light, dark = sorted((luminance(fg), luminance(bg or theme.background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color):
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def mixed(one, other, share):
    parts = (int(int(one[at : at + 2], 16) * share + int(other[at : at + 2], 16) * (1 - share)) for at in (1, 3, 5))
    return "#" + "".join(f"{part:02x}" for part in parts)


def film(frames, seconds, theme=DARK):
    """Returns an SVG of screens of the same size. `seconds` says how long each screen is shown."""
    columns, rows = len(frames[0][0]), len(frames[0])
    width, height = columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN
    names, defs, groups = {}, [], []
    for number, frame in enumerate(frames):
        uses = []
        for y, row in enumerate(frame):
            drawn = row_of(row, theme)
            if not drawn:
                continue
            # Write identical rows only once.
            if drawn not in names:
                names[drawn] = f"r{len(names)}"
                defs.append(f'<g id="{names[drawn]}">{drawn}</g>')
            uses.append(f'<use href="#{names[drawn]}" y="{y * HEIGHT:g}"/>')
        groups.append(f'<g transform="translate({number * width:g})">{"".join(uses)}</g>')
    style = f"text{{font:{FONT}px 'DejaVu Sans Mono','Menlo','Consolas',monospace;white-space:pre}}"
    # Crisp edges avoid gaps between the backgrounds of adjacent rows.
    style += ".b{font-weight:bold}.i{font-style:italic}g rect{shape-rendering:crispEdges}"
    if len(frames) > 1:
        style += motion(seconds, width)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}">'
        f"<style>{style}</style><defs>{''.join(defs)}</defs>"
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{theme.background}"/>'
        f'<svg x="{MARGIN}" y="{MARGIN}" width="{columns * WIDTH:g}" height="{rows * HEIGHT:g}">'
        f'<g class="film">{"".join(groups)}</g></svg></svg>\n'
    )


def motion(seconds, width):
    """Returns the CSS animation. The frames are side by side, and each step moves one of them into view."""
    whole, at, steps = sum(seconds), 0.0, []
    for number, time in enumerate(seconds):
        steps.append(f"{at / whole * 100:.3g}%{{transform:translate({-number * width:g}px)}}")
        at += time
    last = f"translate({-(len(seconds) - 1) * width:g}px)"
    return (
        f".film{{animation:film {whole:g}s step-end infinite}}@keyframes film{{{''.join(steps)}}}"
        f"@media(prefers-reduced-motion){{.film{{animation:none;transform:{last}}}}}"
    )


def row_of(row, theme):
    """Returns the SVG of one row of a screen: backgrounds, texts and shapes."""
    grounds, texts, drawn, x = [], [], [], 0
    for style, cells in groupby(row, key=lambda cell: cell.style):
        cells = list(cells)
        fg, bg = colors(style, theme)
        if bg:
            grounds.append(f'<rect x="{x * WIDTH:g}" width="{len(cells) * WIDTH:g}" height="{HEIGHT:g}" fill="{bg}"/>')
        if "underlined" in style.flags:
            line = f"M{x * WIDTH:g} {HEIGHT - 2.5:g}h{len(cells) * WIDTH:g}"
            drawn.append(f'<path d="{line}" stroke="{fg}"/>')
        texts += texts_of(cells, x, fg, style.flags)
        drawn += shapes_of(cells, x, fg)
        x += len(cells)
    return "".join(grounds + texts + drawn)


def texts_of(cells, x, fg, flags):
    look = "".join(letter for letter, flag in (("b", "bold"), ("i", "italic")) if flag in flags)
    look = f' class="{" ".join(look)}"' if look else ""

    def kind(cell):
        # A character outside ASCII is wider in some fonts, so it gets a position of its own.
        return "none" if cell.text in ("", " ") or shapes(cell.text) else "plain" if cell.text.isascii() else "own"

    found, words = [], []
    for place, cell in enumerate(cells):
        if kind(cell) == "plain":
            words.append((place, cell.text))
            continue
        if cell.text == " " and words and place + 1 < len(cells) and kind(cells[place + 1]) == "plain":
            words.append((place, " "))
            continue
        found += [words] if words else []
        words = []
        if kind(cell) == "own":
            found.append([(place, cell.text)])
    found += [words] if words else []
    for words in found:
        at, text = (x + words[0][0]) * WIDTH, "".join(text for _, text in words)
        length = f' textLength="{len(text) * WIDTH:g}"' if len(text) > 1 else ""
        yield f'<text x="{at:.5g}" y="{HEIGHT * 0.76:.4g}" fill="{fg}"{length}{look}>{escape(text)}</text>'


def shapes_of(cells, x, fg):
    """Yields the SVG of lines and blocks; adjacent equal shapes are merged."""
    place = 0
    for letter, same in groupby(cells, key=lambda cell: cell.text):
        count = len(list(same))
        for shape in shapes(letter) or ():
            if isinstance(shape, Line):
                yield path(shape, x + place, count, fg)
            else:
                yield from rects(shape, x + place, count, fg)
        place += count


def path(line, x, count, fg):
    thick = 2.4 if line.weight == 2 else 1.2
    level = line.from_[1] == line.to[1] and not line.arc
    commands = []
    whole = level and abs(line.from_[0] - line.to[0]) == 1 and not line.dashes
    for at in range(1 if whole else count):
        (x1, y1), (x2, y2) = (((x + at + px) * WIDTH, py * HEIGHT) for px, py in (line.from_, line.to))
        x2 += (count - 1) * WIDTH if whole else 0
        middle = ((x + at + 0.5) * WIDTH, HEIGHT / 2)
        if line.arc:
            commands.append(f"M{x1:.5g} {y1:.4g}Q{middle[0]:.5g} {middle[1]:.4g} {x2:.5g} {y2:.4g}")
        else:
            apart = (-1.6, 1.6) if line.weight == 3 else (0,)
            for off in apart:
                dx, dy = (0, off) if level else (off, 0)
                commands.append(f"M{x1 + dx:.5g} {y1 + dy:.4g}L{x2 + dx:.5g} {y2 + dy:.4g}")
    dash = f' stroke-dasharray="{WIDTH / line.dashes / 2:.3g}"' if line.dashes else ""
    return f'<path d="{"".join(commands)}" stroke="{fg}" stroke-width="{thick}" fill="none"{dash}/>'


def rects(block, x, count, fg):
    opacity = f' opacity="{block.opacity:g}"' if block.opacity < 1 else ""
    top, height = block.top * HEIGHT, (block.bottom - block.top) * HEIGHT
    whole = block.left == 0 and block.right == 1
    for at in range(1 if whole else count):
        width = WIDTH * (count if whole else block.right - block.left)
        left = (x + at + block.left) * WIDTH
        yield f'<rect x="{left:.5g}" y="{top:.4g}" width="{width:.5g}" height="{height:.4g}" fill="{fg}"{opacity}/>'
