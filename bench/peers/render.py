"""Renders the figures of a benchmark run as tables and a chart."""

import math
import statistics

OURS = {"library": "brigade-core", "tools": "brigade mcp", "command": "brigade"}
KINDS = {"library": "By library call", "tools": "By tool of an MCP server", "command": "By command, one process each"}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(["---"] + ["---:"] * (len(head) - 1)) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def short(us):
    """Formats microseconds with about three digits."""
    if us == 0:
        return "0"
    if us >= 1e6:
        return f"{us / 1e6:.1f} s"
    if us >= 10_000:
        return f"{us / 1e3:.0f} ms"
    if us >= 1_000:
        return f"{us / 1e3:.1f} ms"
    return f"{us:.0f} µs"


def times(value, ours):
    ratio = value / ours if ours else math.nan
    return f"{ratio:.1f}×" if ratio < 100 else f"{ratio:.0f}×"


def middle(rows, key):
    return statistics.median(row[key] for row in rows)


def span(rows, key):
    """Formats the median over all rounds, with minimum and maximum if they differ."""
    values = sorted(row[key] for row in rows)
    middle_one, least, most = (f"{value:.1f}" if 0 < value < 10 and value % 1 else f"{value:.0f}"
                               for value in (statistics.median(values), values[0], values[-1]))
    return middle_one if least == most else f"{middle_one} ({least}–{most})"


def of_kind(results, kind, part):
    return [(name, results[part][name]) for name, its in results["kinds"].items()
            if its == kind and name in results.get(part, {})]


def costs(results):
    text = []
    sizes = sorted({int(size) for row in results["costs"].values() for size in row["send"]})
    for kind, title in KINDS.items():
        rows = []
        for what in ("send", "read", "mark"):
            for name, row in of_kind(results, kind, "costs"):
                if what not in row:
                    continue
                cells = []
                for size in map(str, sizes):
                    cell = row[what].get(size)
                    if cell is None:
                        cells.append("not tried")
                        continue
                    ours = results["costs"].get(OURS[kind], {}).get(what, {}).get(size)
                    ratio = ""
                    if ours and name != OURS[kind]:
                        # Also show the 10th percentile: other work on the machine affects it least.
                        ratio = f" **{times(cell['p50'], ours['p50'])}**, p10 {times(cell['p10'], ours['p10'])}"
                    noise = f"{short(cell['p10'])}–{short(cell['p90'])}, p99 {short(cell['p99'])}"
                    cells.append(f"{short(cell['p50'])}{ratio} ({noise})")
                rows.append([f"{what}: {name}", *cells])
        if rows:
            text.append(f"**{title}**\n\n" + table([""] + [f"{size:,} read before" for size in sizes], rows))
    return "\n\n".join(text)


def share(results):
    rows = []
    for name, its in results["share"].items():
        rows.append([
            name, f"{span(its, 'peer there')} of {span(its, 'peer acked')}",
            f"{span(its, 'native there')} of {span(its, 'native acked')}", span(its, "refused"),
            yes(its, "json"), yes(its, "whole"), yes(its, "unknown kept")])
    return table(["writes beside the native protocol", "its acknowledged messages found", "native messages found",
                  "refused", "file still JSON", "native entries unchanged", "unknown field kept"], rows)


def yes(its, key):
    good = sum(row[key] for row in its)
    return "yes" if good == len(its) else "no" if good == 0 else f"{good} of {len(its)} times"


def writers(results):
    rows = []
    for kind in KINDS:
        for name, its in of_kind(results, kind, "writers"):
            cells = []
            for many in ("4", "16"):
                if many not in its:
                    cells += ["not tried", ""]
                    continue
                ours = results["writers"].get(OURS[kind], {}).get(many)
                ratio = ""
                if ours and name != OURS[kind] and middle(ours, "rate"):
                    ratio = f" **{middle(its[many], 'rate') / middle(ours, 'rate'):.2f}×**"
                cells += [span(its[many], "rate") + ratio, losses(its[many])]
            rows.append([name, *cells])
    return table(["", "4 writers: messages per second", "failures", "16 writers: messages per second", "failures"], rows)


def losses(its):
    asked, acked = (sum(row[key] for row in its) for key in ("asked", "acked"))
    lost, twice = (sum(row[key] for row in its) for key in ("lost", "twice"))
    words = [f"{lost} of {acked} acknowledged lost" if lost else "none lost"]
    if asked > acked:
        words.append(f"{asked - acked} refused")
    if twice:
        words.append(f"{twice} stored twice")
    torn = sum(not row["json"] for row in its)
    if torn:
        words.append(f"file not valid JSON {torn} of {len(its)} times")
    return ", ".join(words)


def reason(results, name, operation, default=""):
    """Returns why a peer has no figures for an operation."""
    why = results["cannot"][name].get(operation, default)
    return f"cannot: {why}" if why else "not measured"


def claims(results):
    rows = []
    for name, kind in results["kinds"].items():
        its = results["claims"].get(name)
        if its is None:
            rows.append([name, "", reason(results, name, "claim"), "", "", ""])
            continue
        ours = results["claims"].get(OURS[kind])
        ratio = f" **{middle(its, 'rate') / middle(ours, 'rate'):.2f}×**" if ours and name != OURS[kind] else ""
        rows.append([name, len(its), span(its, "rate") + ratio, *(sum(row[key] for row in its)
                                                                   for key in ("twice", "lost", "failed"))])
    return table(["", "rounds", "claims per second", "claimed twice", "not claimed", "failed calls"], rows)


def kill(results):
    rows = []
    for name, row in results["kill"].items():
        rows.append([name, row["rounds"], row["acked"], row["lost"], row["twice"], row["torn"], row["stuck"],
                     f"{row['slowest next send']:.1f} s"])
    return table(["", "rounds", "acknowledged", "of these lost", "stored twice", "file torn", "next send refused",
                  "slowest next send, including startup"], rows)


def wake(results):
    rows = []
    for name, kind in results["kinds"].items():
        row = results["wake"].get(name)
        if row is None:
            if name.endswith("`power`"):
                continue
            default = "no command waits" if kind == "command" else ""
            rows.append([name, reason(results, name, "wake", default), "", "", ""])
            continue
        ours = results["wake"].get(OURS[kind], {})
        if "p50" not in row:
            rows.append([name, "never heard", "", "", f"0 of {row['sent']}"])
            continue
        ratio = f" **{times(row['p50'], ours['p50'])}**" if ours.get("p50") and name != OURS[kind] else ""
        rows.append([name, short(row["p50"]) + ratio, f"{short(row['p10'])}–{short(row['p90'])}", short(row["p99"]),
                     f"{row['n']} of {row['sent']}"])
    return table(["", "median", "p10–p90", "p99", "heard"], rows)


def servers(results):
    rows = []
    ours = results["servers"].get(OURS["tools"])
    for name, row in results["servers"].items():
        ratio = [""] * 3
        if ours and row is not ours:
            ratio = [f" **{times(row[key]['p50'], ours[key]['p50'])}**" for key in ("start", "memory")]
            ratio.append(f" **{times(row['tokens'], ours['tokens'])}**")
        start, memory = row["start"], row["memory"]
        rows.append([name, f"{short(start['p50'] * 1e3)}{ratio[0]} ({short(start['p10'] * 1e3)}–"
                     f"{short(start['p90'] * 1e3)})", f"{memory['p50']:.1f} MB{ratio[1]}", row["tools"],
                     f"{row['tokens']:,}{ratio[2]}"])
    return table(["", "start to tool list", "idle memory", "tools", "tokens in tool list"], rows)


def installs(results):
    least = results["installs"]["brigade"]
    rows = [[name, f"{taken / 1e6:.1f} MB", times(taken, least) if name != "brigade" else ""]
            for name, taken in sorted(results["installs"].items(), key=lambda item: item[1])]
    return table(["", "disk usage", "relative to brigade"], rows)


def about(results):
    its = results["machine"]
    return (f"{its['date']}; {its['brigade']}; {its['cores']} cores ({its['processor']}), Linux {its['kernel']}, "
            f"{its['file system']}; Node {its['node'].lstrip('v')}, Python {its['python']}; {its['seconds']} s, load average "
            f"{its['load before']:.1f} before and {its['load after']:.1f} after.")


def tables(results):
    made = {"about": about(results)}
    for name in ("costs", "share", "writers", "claims", "kill", "wake", "servers"):
        if name in results:
            made[name] = globals()[name](results)
    return made | {"installs": installs(results)}


def into(page, made):
    """Writes each table into the page, between the two HTML comments that name it."""
    text = page.read_text()
    for name, table_text in made.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, found, rest = text.partition(begin)
        _, closed, tail = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"{page} does not contain {begin} and {end}")
        text = f"{head}{begin}\n\n{table_text}\n\n{end}{tail}"
    page.write_text(text)


def ours_broken(results):
    """Returns the results in which brigade violated one of its guarantees."""
    broken = []
    for name in ("brigade-core", "brigade-core, `power`", "brigade mcp", "brigade"):
        for many, its in results.get("writers", {}).get(name, {}).items():
            broken += [f"{name}, {many} writers: {row}" for row in its
                       if row["lost"] or row["twice"] or not row["json"] or row["acked"] < row["asked"]]
        for row in results.get("share", {}).get(name, []):
            if not row["json"] or row["peer there"] < row["peer acked"] or row["native there"] < row["native acked"]:
                broken.append(f"{name}, two writers: {row}")
        for row in results.get("claims", {}).get(name, []):
            if row["twice"] or row["lost"] or row["failed"]:
                broken.append(f"{name}, claims: {row}")
        row = results.get("kill", {}).get(name)
        if row and (row["lost"] or row["twice"] or row["torn"] or row["stuck"]):
            broken.append(f"{name}, kill: {row}")
    return broken


def chart(results, path):
    """Draws the cost of a send as the history grows, on logarithmic axes."""
    lines = {name: {int(size): cell["p50"] for size, cell in row["send"].items()}
             for name, row in results.get("costs", {}).items() if len(row["send"]) > 1}
    if not lines:
        return
    width, height, left, right, top, bottom = 760, 400, 70, 250, 20, 40
    low, high = 1, math.ceil(math.log10(max(max(points.values()) for points in lines.values())))
    low = math.floor(math.log10(min(min(points.values()) for points in lines.values())))

    def at(size, us):
        across = left + (math.log10(size) - 1) / 3 * (width - left - right)
        return across, top + (high - math.log10(us)) / (high - low) * (height - top - bottom)

    colours = ["#0072b2", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#999999", "#8b5a2b", "#5b3fa0"]
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
           f'font-size="12"><rect width="{width}" height="{height}" fill="#fff"/>']
    for power in range(low, high + 1):
        x, y = at(10, 10 ** power)
        out.append(f'<path d="M{x:.0f} {y:.0f}H{width - right}" stroke="#ddd"/>'
                   f'<text x="{x - 8:.0f}" y="{y + 4:.0f}" text-anchor="end">{short(10 ** power)}</text>')
    for size in (10, 100, 1_000, 10_000):
        x, _ = at(size, 10 ** low)
        out.append(f'<text x="{x:.0f}" y="{height - 18}" text-anchor="middle">{size:,}</text>')
    out.append(f'<text x="{(left + width - right) / 2:.0f}" y="{height - 2}" text-anchor="middle">'
               'messages sent and read before</text>')
    ends = sorted((at(max(points), points[max(points)]), name) for name, points in lines.items())
    ends.sort(key=lambda end: end[0][1])
    last = top - 14
    for (x, y), name in ends:
        colour = colours[list(lines).index(name) % len(colours)]
        dash = ' stroke-dasharray="5 3"' if results["kinds"][name] != "library" else ""
        points = " ".join(f"{px:.1f},{py:.1f}" for px, py in (at(*point) for point in sorted(lines[name].items())))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        last = max(y, last + 15)
        out.append(f'<path d="M{x:.0f} {y:.0f}L{width - right + 8} {last:.0f}" stroke="{colour}" stroke-width="0.5"/>'
                   f'<text x="{width - right + 12}" y="{last + 4:.0f}" fill="{colour}">{name.split(" (")[0].replace("`", "")}</text>')
    path.write_text("\n".join(out) + "\n</svg>\n")
