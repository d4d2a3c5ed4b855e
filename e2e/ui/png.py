"""Draws a terminal screen as a PNG. Needs Pillow and the font DejaVu Sans Mono."""

from itertools import groupby

from PIL import Image, ImageDraw, ImageFont
from shapes import Line, shapes
from svg import BACKGROUND, colors, mixed

FONTS = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono"
SIZE = 26
MARGIN = 24


class Canvas:
    def __init__(self, columns, rows):
        faces = {"": "", "b": "-Bold", "i": "-Oblique", "bi": "-BoldOblique"}
        self._fonts = {}
        for look, name in faces.items():
            try:
                self._fonts[look] = ImageFont.truetype(f"{FONTS}{name}.ttf", SIZE)
            except OSError:
                # The smaller package of the font has no oblique styles.
                self._fonts[look] = self._fonts[look.replace("i", "")]
        self._width = round(self._fonts[""].getlength("M"))
        ascent, descent = self._fonts[""].getmetrics()
        self._height = ascent + descent + 2
        self._baseline = ascent + 1
        size = (columns * self._width + 2 * MARGIN, rows * self._height + 2 * MARGIN)
        self.image = Image.new("RGB", size, BACKGROUND)
        self._draw = ImageDraw.Draw(self.image)

    def screen(self, cells):
        for y, row in enumerate(cells):
            x = 0
            for style, same in groupby(row, key=lambda cell: cell.style):
                same = list(same)
                fg, bg = colors(style)
                if bg:
                    self._fill(x, y, 0, 0, len(same), 1, bg)
                for place, cell in enumerate(same):
                    self._cell(x + place, y, cell, fg, bg or BACKGROUND)
                x += len(same)

    def _corner(self, x, y):
        return MARGIN + x * self._width, MARGIN + y * self._height

    def _fill(self, x, y, left, top, right, bottom, color):
        x0, y0 = self._corner(x, y)
        box = [x0 + left * self._width, y0 + top * self._height, x0 + right * self._width, y0 + bottom * self._height]
        a, b, c, d = map(round, box)
        self._draw.rectangle([a, b, c - 1, d - 1], fill=color)

    def _cell(self, x, y, cell, fg, bg):
        found = shapes(cell.text) if cell.text.strip() else []
        if found is None:
            x0, y0 = self._corner(x, y)
            look = "b" * ("bold" in cell.style.flags) + "i" * ("italic" in cell.style.flags)
            self._draw.text((x0, y0 + self._baseline), cell.text, fill=fg, font=self._fonts[look], anchor="ls")
        for shape in found or ():
            if isinstance(shape, Line):
                self._line(x, y, shape, fg)
            else:
                self._fill(x, y, shape.left, shape.top, shape.right, shape.bottom, mixed(fg, bg, shape.opacity))
        if "underlined" in cell.style.flags:
            x0, y0 = self._corner(x, y)
            self._draw.rectangle([x0, y0 + self._baseline + 3, x0 + self._width - 1, y0 + self._baseline + 4], fill=fg)

    def _line(self, x, y, line, color):
        x0, y0 = self._corner(x, y)
        thick = 4 if line.weight == 2 else 2
        middle = (x0 + self._width // 2, y0 + self._height // 2)
        ends = [(x0 + px * self._width, y0 + py * self._height) for px, py in (line.from_, line.to)]
        if line.arc:
            self._arc(ends, middle, thick, color)
            return
        for off in (-3, 3) if line.weight == 3 else (0,):
            (ax, ay), (bx, by) = sorted(ends)
            if line.from_[1] == line.to[1]:
                top = middle[1] - thick // 2 + off
                box = [round(ax), top, round(bx) - 1, top + thick - 1]
            else:
                left = middle[0] - thick // 2 + off
                box = [left, round(min(ay, by)), left + thick - 1, round(max(ay, by)) - 1]
            self._draw.rectangle(dashed(box, line.dashes) if line.dashes else box, fill=color)

    def _arc(self, ends, middle, thick, color):
        """A quarter circle, and the straight ends of both arms."""
        radius = self._width // 2
        (hx, hy), (vx, vy) = sorted(ends, key=lambda point: abs(point[1] - middle[1]) > 1)
        right, down = hx > middle[0], vy > middle[1]
        center = (middle[0] + (radius if right else -radius), middle[1] + (radius if down else -radius))
        box = [center[0] - radius - 1, center[1] - radius - 1, center[0] + radius, center[1] + radius]
        start = {(True, True): 180, (False, True): 270, (True, False): 90, (False, False): 0}[right, down]
        self._draw.arc(box, start, start + 90, fill=color, width=thick)
        left = middle[0] - thick // 2
        top, bottom = sorted((center[1], round(vy)))
        if bottom > top:
            self._draw.rectangle([left, top, left + thick - 1, bottom - 1], fill=color)
        level = middle[1] - thick // 2
        near, far = sorted((center[0], round(hx)))
        if far > near:
            self._draw.rectangle([near, level, far - 1, level + thick - 1], fill=color)


def dashed(box, dashes):
    """One dash of a dashed line in each cell."""
    left, top, right, bottom = box
    if right - left > bottom - top:
        return [left + 2, top, right - 2, bottom]
    return [left, top + 2, right, bottom - 2]


def save(cells, path):
    canvas = Canvas(len(cells[0]), len(cells))
    canvas.screen(cells)
    # A terminal needs no more colours, and the file is only a third as big.
    canvas.image.quantize(256, Image.Quantize.MAXCOVERAGE).save(path, optimize=True)
