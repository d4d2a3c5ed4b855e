"""Draws an SVG chart of a run: processor time, memory and messages over time, with a mark for each kill."""

from html import escape

WIDTH, LEFT, RIGHT, TOP = 860, 76, 24, 62
PLOT, GAP = 120, 44
INK, FAINT, GRID = "#24292f", "#57606a", "#d8dee4"
KILL_COLORS = {"member": "#8250df", "supervisor": "#cf222e", "agent": "#bf8700", "guard": "#1a7f37", "mcp": "#0969da"}
KILL_ROW = 14


def draw(intervals, kills, title):
    """Returns the chart as SVG. `kills` has tuples (second, kind)."""
    end = max(intervals[-1].end, 1)
    plots = [
        ("processor time of all processes of brigade, % of a core", "#0969da", [one.core_percent for one in intervals]),
        ("memory of all processes of brigade (PSS), MB", "#8250df", [one.memory_mb for one in intervals]),
        ("messages acknowledged each second", "#1a7f37", [one.rate for one in intervals]),
    ]
    base = TOP + len(plots) * (PLOT + GAP)
    height = base + 84
    x_of = lambda second: LEFT + (WIDTH - LEFT - RIGHT) * second / end  # noqa: E731
    seconds = [one.end for one in intervals]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="26" font-size="16" font-weight="600" fill="{INK}">{escape(title)}</text>',
        f'<text x="{LEFT}" y="44" fill="{FAINT}">Every point is the mean of some seconds. '
        "The marks below are processes killed with SIGKILL.</text>",
    ]
    for index, (name, color, values) in enumerate(plots):
        out += plot(name, color, list(zip(seconds, values)), TOP + index * (PLOT + GAP), x_of, end)
    out += draw_kills(kills, base, x_of)
    out += time_axis(end, base + KILL_ROW + 18, x_of)
    return "\n".join([*out, "</svg>"]) + "\n"


def step_of(most, count):
    """Returns a round distance between grid lines, so that there are at most `count` of them."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if most / (power * factor) <= count:
                return power * factor
        power *= 10


def time_marks(end):
    minutes = end / 60
    step = next((step for step in (0.1, 0.5, 1, 2, 5, 10, 20, 60) if minutes / step <= 10), 120)
    return [(number * step * 60, f"{number * step:g}") for number in range(int(minutes / step + 1e-6) + 1)]


def plot(name, color, points, top, x_of, end):
    most = max(max(value for _, value in points), 1)
    step = step_of(most, 4)
    limit = -(-most // step) * step
    top += 20
    y_of = lambda value: top + PLOT * (1 - value / limit)  # noqa: E731
    out = [f'<text x="{LEFT}" y="{top - 8}" font-weight="600" fill="{INK}">{escape(name)}</text>']
    for second, _ in time_marks(end):
        x = x_of(second)
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + PLOT}" stroke="{GRID}" stroke-width="0.6"/>')
    for number in range(round(limit / step) + 1):
        y, line_color = y_of(number * step), GRID if number else FAINT
        out.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="{line_color}" stroke-width="0.8"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="{FAINT}">{number * step:,g}</text>')
    line = " ".join(f"{x_of(second):.1f},{y_of(value):.1f}" for second, value in points)
    out.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="1.4" stroke-linejoin="round"/>')
    return out


def draw_kills(kills, top, x_of):
    out = [f'<text x="{LEFT - 8}" y="{top + 11}" text-anchor="end" fill="{FAINT}">kills</text>']
    for second, kind in kills:
        x, color = x_of(second), KILL_COLORS[kind]
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + KILL_ROW}" stroke="{color}" stroke-width="1.6"/>')
    x = LEFT
    for kind, color in KILL_COLORS.items():
        text = {"mcp": "MCP server"}.get(kind, kind)
        out.append(f'<rect x="{x}" y="{top + 58}" width="10" height="10" rx="2" fill="{color}"/>')
        out.append(f'<text x="{x + 15}" y="{top + 67}" fill="{FAINT}">{text}</text>')
        x += 38 + 7 * len(text)
    return out


def time_axis(end, top, x_of):
    mark = '<text x="{:.1f}" y="{}" text-anchor="middle" fill="{}">{}</text>'
    out = [mark.format(x_of(second), top, FAINT, text) for second, text in time_marks(end)]
    out.append(f'<text x="{WIDTH - RIGHT}" y="{top + 16}" text-anchor="end" fill="{FAINT}">minutes since the start</text>')
    return out
