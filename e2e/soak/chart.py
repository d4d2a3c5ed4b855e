"""The chart of a run: a picture in SVG of what its samples say."""

from html import escape

WIDTH, LEFT, RIGHT, TOP = 860, 70, 16, 54
PLOT, GAP = 84, 34
INK, FAINT, LINE, CUT = "#24292f", "#8c959f", "#0969da", "#fff1c2"
KINDS = {"agent": "#bf8700", "guard": "#bf8700", "player": "#8250df", "supervisor": "#cf222e", "everything": "#cf222e", "link": "#1a7f37"}


def draw(samples, kills, cuts, title):
    """Samples in time; kills as (second, kind); cuts as (from, to) seconds."""
    end = max(samples[-1]["t"], 1)
    mb = 1 << 20
    plots = [
        ("memory of brigade's processes, MB", [(one["t"], one["memory"] / mb) for one in samples]),
        ("their descriptors", [(one["t"], one["descriptors"]) for one in samples]),
        ("processes of all kinds", [(one["t"], one["processes"]) for one in samples]),
        ("messages told", [(one["t"], one["told"]) for one in samples]),
        ("tasks completed", [(one["t"], one["tasks"]) for one in samples]),
    ]
    height = TOP + len(plots) * (PLOT + GAP) + 60
    across = lambda second: LEFT + (WIDTH - LEFT - RIGHT) * second / end  # noqa: E731
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14" fill="{INK}">{escape(title)}</text>',
        f'<text x="{LEFT}" y="38" fill="{FAINT}">yellow: the second host is cut off; the marks at the bottom: kill -9</text>',
    ]
    for begun, ended in cuts:
        wide = max(across(ended) - across(begun), 1)
        out.append(f'<rect x="{across(begun):.1f}" y="{TOP}" width="{wide:.1f}" height="{height - TOP - 60}" fill="{CUT}"/>')
    for place, (name, points) in enumerate(plots):
        out += plot(name, points, TOP + place * (PLOT + GAP), across)
    base = TOP + len(plots) * (PLOT + GAP)
    out += strip(kills, base, across)
    out += ruler(end, base + 26, across)
    return "\n".join([*out, "</svg>"]) + "\n"


def plot(name, points, top, across):
    most = max(max(value for _, value in points), 1)
    high = lambda value: top + 16 + PLOT * (1 - value / most)  # noqa: E731
    # A picture of hours has no room for every sample: of those on one pixel the highest and the lowest are drawn.
    columns = {}
    for second, value in points:
        columns.setdefault(round(across(second)), []).append(value)
    line = " ".join(f"{x},{high(value):.1f}" for x, values in sorted(columns.items()) for value in dict.fromkeys((min(values), max(values))))
    return [
        f'<text x="{LEFT}" y="{top + 11}" fill="{INK}">{escape(name)}</text>',
        f'<line x1="{LEFT}" y1="{high(0):.1f}" x2="{WIDTH - RIGHT}" y2="{high(0):.1f}" stroke="{FAINT}" stroke-width="0.5"/>',
        f'<text x="{LEFT - 6}" y="{high(most) + 8:.1f}" text-anchor="end" fill="{FAINT}">{most:,.0f}</text>',
        f'<text x="{LEFT - 6}" y="{high(0):.1f}" text-anchor="end" fill="{FAINT}">0</text>',
        f'<polyline points="{line}" fill="none" stroke="{LINE}" stroke-width="1.2"/>',
    ]


def strip(kills, top, across):
    out = [f'<text x="{LEFT - 6}" y="{top + 12}" text-anchor="end" fill="{FAINT}">kills</text>']
    for second, kind in kills:
        x, tall = across(second), 16 if kind == "everything" else 9
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + tall}" stroke="{KINDS[kind]}" stroke-width="1.4"/>')
    words = {"agent, guard": "agent", "player": "player", "supervisor, everything": "everything", "link": "link"}
    x = LEFT
    for text, kind in words.items():
        out.append(f'<rect x="{x}" y="{top + 44}" width="9" height="9" fill="{KINDS[kind]}"/>')
        out.append(f'<text x="{x + 13}" y="{top + 52}" fill="{FAINT}">{text}</text>')
        x += 30 + 7 * len(text)
    return out


def ruler(end, top, across):
    minutes = end / 60
    step = next(step for step in (1, 2, 5, 10, 15, 30, 60, 120) if minutes / step <= 12)
    marks = range(0, int(minutes) + 1, step)
    return [f'<text x="{across(mark * 60):.1f}" y="{top}" text-anchor="middle" fill="{FAINT}">{mark} min</text>' for mark in marks]
