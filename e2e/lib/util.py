"""Helpers that poll conditions, run programs, and read JSON that other programs write."""

import json
import os
import subprocess
import time

# A factor for every timeout and time limit, for tests on a machine that is busy with other work.
SLACK = float(os.environ.get("BENCH_SLACK", "1"))


def eventually(condition, timeout):
    """Polls a condition until it is true or the timeout has passed; returns its last value."""
    end = time.monotonic() + timeout * SLACK
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def capture(command, **more):
    """Runs a program without input; returns its exit code and its output as text."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)


def read_json(path):
    """Reads a JSON file. Retries for five seconds, because another program may be rewriting it in place."""
    end = time.monotonic() + 5
    while True:
        try:
            return json.loads(path.read_text())
        except (json.JSONDecodeError, UnicodeDecodeError):
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def json_lines(text):
    """Parses one JSON value per line."""
    return [json.loads(line) for line in text.splitlines()]


def percentiles(milliseconds):
    """Returns the median of some durations, and a line of text with median, 95th percentile and maximum."""
    ordered = sorted(milliseconds)
    median, p95 = ordered[len(ordered) // 2], ordered[len(ordered) * 95 // 100]
    return median, f"p50 {median:.1f} ms, p95 {p95:.1f} ms, max {ordered[-1]:.1f} ms, of {len(ordered)}"
