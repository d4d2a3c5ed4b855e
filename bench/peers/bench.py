"""Measures brigade and similar programs (peers) on the same work. Writes figures to a file and tables to a page.

    bench.py [--short] [--results FILE] [--page FILE] [--only PART]... [--peers NAME]...
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import tempfile
from pathlib import Path

import render
from peers import Ours, program
from parts import Bench, size

PARTS = ("costs", "share", "writers", "claims", "kill", "wake", "servers")
INSTALLS = {
    "brigade": "BRIGADE", "team-mcp 0.11.0 (teamctl)": "TEAM_MCP", "agent-mail 0.2.3": "AGENT_MAIL",
    "claude-anyteam 0.8.4": "ANYTEAM", "mcp-agent-mail 0.1.0": "AGENT_MAIL_SERVER",
    "cli-agent-orchestrator 2.5.4": "CAO", "oh-my-claudecode 5.5.0": "OMC_FOLDER",
}


def machine(root):
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    kind = subprocess.run(["df", "--output=fstype", root], text=True, stdout=subprocess.PIPE).stdout.split()[-1]
    version = subprocess.run([program("BRIGADE"), "--version"], text=True, stdout=subprocess.PIPE).stdout
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": os.cpu_count(), "processor": cpu, "kernel": platform.release().split("-")[0],
        "file system": kind, "load before": os.getloadavg()[0], "brigade": version.strip().splitlines()[0],
        "node": subprocess.run(["node", "--version"], text=True, stdout=subprocess.PIPE).stdout.strip(),
        "python": platform.python_version(),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--results")
    parser.add_argument("--page")
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--peers", action="append")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="brigade-peers-", ignore_cleanup_errors=True) as root:
        bench = Bench(root, given.short, given.peers)
        results = {"machine": machine(root), "short": given.short}
        for part in given.only or PARTS:
            results[part] = getattr(bench, part)()
            bench.say(f"part {part} is done")
            if given.results:
                # Save the figures so far, in case a later part fails.
                Path(given.results).write_text(json.dumps(results, indent=1) + "\n")
        results["installs"] = {name: size(program(variable)) for name, variable in INSTALLS.items()
                               if os.path.exists(program(variable))}
        results["failed"] = bench.failed
        results["cannot"] = {peer.name: peer.why for peer in bench.peers}
        results["kinds"] = {peer.name: peer.kind for peer in bench.peers}
        results["machine"]["load after"] = os.getloadavg()[0]
        results["machine"]["seconds"] = round(bench.elapsed())
        Ours.made.clear()
    if given.results:
        Path(given.results).write_text(json.dumps(results, indent=1) + "\n")
    tables = render.tables(results)
    if given.page:
        render.into(Path(given.page), tables)
        render.chart(results, Path(given.page).with_name("pictures") / "benchmarks.svg")
    for name, text in tables.items():
        print(f"\n{name}\n\n{text}")
    broken = render.ours_broken(results)
    for line in broken:
        print(f"FAIL {line}")
    raise SystemExit(1 if broken else 0)


main()
