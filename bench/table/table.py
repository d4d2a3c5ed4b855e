"""Prints one table of what brigade costs. Each row is one figure, with the least that the machine allows and its bar."""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import row
from sources import BRIGADE, SOURCES


def arguments():
    keys = [key for _, keys, _ in SOURCES for key in keys]
    parser = argparse.ArgumentParser(prog="bench/table/run", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a small team and a short history only")
    parser.add_argument("--only", action="append", choices=keys, metavar="ROW", help=f"only this row: {', '.join(keys)}")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    return parser.parse_args()


def main():
    options = arguments()
    start, load = time.monotonic(), os.getloadavg()[0]
    rows, missing = [], []
    for source, keys, is_in_short in SOURCES:
        wanted = [key for key in keys if not options.only or key in options.only]
        if not wanted or (options.short and not is_in_short and not options.only):
            continue
        try:
            rows += [one for one in source(options.short) if one.key in wanted]
        except (LookupError, ValueError, OSError) as error:
            missing += [f"{', '.join(wanted)}: {error}"]
    version = subprocess.run([BRIGADE, "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    print(f"\n{version}; {os.cpu_count()} cores; load average {load:.1f} before and {os.getloadavg()[0]:.1f} after; "
          f"{time.monotonic() - start:.0f} s\n")
    print("\n".join(row.lines([one.cells() for one in rows])))
    for text in missing:
        print(f"not measured: {text}")
    if options.json:
        options.json.write_text(json.dumps([one._asdict() | {"is_met": one.is_met} for one in rows], indent=1) + "\n")
    missed = sum(not one.is_met for one in rows)
    print(f"\n{len(rows) - missed} passed, {missed} missed, {len(missing)} benchmarks without figures")
    sys.exit(1 if missed or missing else 0)


if __name__ == "__main__":
    main()
