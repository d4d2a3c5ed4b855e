"""Draws an SVG chart of the samples of a soak test."""

from html import escape

WIDTH, LEFT, RIGHT, TOP = 860, 70, 16, 54
PLOT, GAP = 84, 34
INK, FAINT, LINE, CUT = "#24292f", "#8c959f", "#0969da", "#fff1c2"
KILL_COLORS = {"agent": "#bf8700", "guard": "#bf8700", "member": "#8250df", "supervisor": "#cf222e", "all": "#cf222e", "link": "#1a7f37"}


def draw(samples, kills, cuts, title):
    """Returns the chart as SVG. `kills` has tuples (second, kind), and `cuts` has tuples (first second, last
    second)."""
    end = max(samples[-1]["t"], 1)
    mb = 1 << 20
    plots = [
        ("memory of brigade's processes, MB", [(one["t"], one["memory"] / mb) for one in samples]),
        ("their file descriptors", [(one["t"], one["descriptors"]) for one in samples]),
        ("processes of all kinds", [(one["t"], one["processes"]) for one in samples]),
        ("messages received", [(one["t"], one["received"]) for one in samples]),
        ("tasks completed", [(one["t"], one["tasks"]) for one in samples]),
    ]
    height = TOP + len(plots) * (PLOT + GAP) + 60
    x_of = lambda second: LEFT + (WIDTH - LEFT - RIGHT) * second / end  # noqa: E731
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14" fill="{INK}">{escape(title)}</text>',
        f'<text x="{LEFT}" y="38" fill="{FAINT}">yellow: the second host is cut off; the marks at the bottom: kill -9</text>',
    ]
    for started, ended in cuts:
        width = max(x_of(ended) - x_of(started), 1)
        out.append(f'<rect x="{x_of(started):.1f}" y="{TOP}" width="{width:.1f}" height="{height - TOP - 60}" fill="{CUT}"/>')
    for index, (name, points) in enumerate(plots):
        out += plot(name, points, TOP + index * (PLOT + GAP), x_of)
    base = TOP + len(plots) * (PLOT + GAP)
    out += draw_kills(kills, base, x_of)
    out += ruler(end, base + 26, x_of)
    return "\n".join([*out, "</svg>"]) + "\n"


def plot(name, points, top, x_of):
    most = max(max(value for _, value in points), 1)
    y_of = lambda value: top + 16 + PLOT * (1 - value / most)  # noqa: E731
    # For each pixel column, draw only the highest and the lowest sample.
    columns = {}
    for second, value in points:
        columns.setdefault(round(x_of(second)), []).append(value)
    line = " ".join(f"{x},{y_of(value):.1f}" for x, values in sorted(columns.items()) for value in dict.fromkeys((min(values), max(values))))
    return [
        f'<text x="{LEFT}" y="{top + 11}" fill="{INK}">{escape(name)}</text>',
        f'<line x1="{LEFT}" y1="{y_of(0):.1f}" x2="{WIDTH - RIGHT}" y2="{y_of(0):.1f}" stroke="{FAINT}" stroke-width="0.5"/>',
        f'<text x="{LEFT - 6}" y="{y_of(most) + 8:.1f}" text-anchor="end" fill="{FAINT}">{most:,.0f}</text>',
        f'<text x="{LEFT - 6}" y="{y_of(0):.1f}" text-anchor="end" fill="{FAINT}">0</text>',
        f'<polyline points="{line}" fill="none" stroke="{LINE}" stroke-width="1.2"/>',
    ]


def draw_kills(kills, top, x_of):
    out = [f'<text x="{LEFT - 6}" y="{top + 12}" text-anchor="end" fill="{FAINT}">kills</text>']
    for second, kind in kills:
        x, height = x_of(second), 16 if kind == "all" else 9
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + height}" stroke="{KILL_COLORS[kind]}" stroke-width="1.4"/>')
    legend = {"agent, guard": "agent", "member": "member", "supervisor, all processes": "all", "link": "link"}
    x = LEFT
    for text, kind in legend.items():
        out.append(f'<rect x="{x}" y="{top + 44}" width="9" height="9" fill="{KILL_COLORS[kind]}"/>')
        out.append(f'<text x="{x + 13}" y="{top + 52}" fill="{FAINT}">{text}</text>')
        x += 30 + 7 * len(text)
    return out


def ruler(end, top, x_of):
    minutes = end / 60
    step = next(step for step in (1, 2, 5, 10, 15, 30, 60, 120) if minutes / step <= 12)
    marks = range(0, int(minutes) + 1, step)
    return [f'<text x="{x_of(mark * 60):.1f}" y="{top}" text-anchor="middle" fill="{FAINT}">{mark} min</text>' for mark in marks]
