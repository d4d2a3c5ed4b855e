"""Measures `brigade attach` on a long transcript: the delay of new lines, and the cost of scrolling."""

import argparse
import datetime
import fcntl
import json
import os
import pty
import random
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

BRIGADE = Path(os.environ.get("BRIGADE", Path(__file__).resolve().parents[2] / "target/release/brigade")).resolve()
ROWS, COLUMNS = 50, 200
NEW_LINES = 60
KEYS = 300
# The bars: the delay of nine of ten new lines, and the processor time of a frame at 60 frames a second.
SLACK = float(os.environ.get("BENCH_SLACK", "1"))
MAX_DELAY_MS = 50 * SLACK
MAX_FRAME_MS = 1000 / 60 * SLACK
PAGE_UP, UP, CTRL_D = b"\x1b[5~", b"\x1b[A", b"\x04"


class Terminal:
    """A terminal with `brigade attach bob`."""

    def __init__(self, home, environ):
        self._seen = threading.Event()
        self._output, self._wanted = bytearray(), None
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execve(BRIGADE, [BRIGADE, "attach", "bob"], environ)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                self._output += os.read(self._fd, 1 << 16)
            except OSError:
                return
            if self._wanted and self._wanted in self._output:
                self._wanted = None
                self._seen.set()

    def delay_ms(self, text, write):
        """Returns how long it takes until the text is on the screen after `write` was called."""
        self._output.clear()
        self._seen.clear()
        self._wanted = text.encode()
        begin = time.perf_counter()
        write()
        if not self._seen.wait(10):
            sys.exit("FAIL  a new line was not shown within 10 s")
        return (time.perf_counter() - begin) * 1000

    def press(self, key):
        os.write(self._fd, key)

    def processor_ms(self):
        times = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, times)) * 1000 / os.sysconf("SC_CLK_TCK")


def record(text):
    now = datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    act = {"said": {"text": text}}
    document = {"at": now, "by": "bob", "event": {"worked": {"name": "bob", "act": act}}}
    return f"\n{json.dumps(document, separators=(',', ':'))}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000, help="the length of the transcript")
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory(prefix="brigade-attach-") as home:
        environ = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "xterm-256color"}
        for arguments in (["team", "create", "demo"], ["team", "join", "bob"], ["send", "bob", "hello"]):
            subprocess.run([BRIGADE, *arguments], env=environ, cwd=home, check=True, stdout=subprocess.DEVNULL)
        journal = next(Path(home, ".local/state/brigade/files").glob("*/demo/work")) / "bob.jsonl"

        def append(text):
            with journal.open("a") as file:
                file.write(text)

        for first in range(0, lines, 5):
            append(record("\n".join(f"line {first + n} of the transcript" for n in range(5))))
        terminal = Terminal(home, environ)
        time.sleep(4)
        delays = []
        for number in range(NEW_LINES):
            # The program draws only what differs, so no letter of a line may be in the line before it.
            letters = "ABCDEFGHJK" if number % 2 else "LMNPQRSTUV"
            text = "".join(random.choices(letters, k=12))
            delays.append(terminal.delay_ms(text, lambda: append(record(text))))
            time.sleep(0.08)
        before, begin = terminal.processor_ms(), time.monotonic()
        for number in range(KEYS):
            terminal.press(UP if number % 2 else PAGE_UP)
            time.sleep(max(0, begin + (number + 1) / 60 - time.monotonic()))
        frame = (terminal.processor_ms() - before) / KEYS
        terminal.press(CTRL_D)
        os.waitpid(terminal.pid, 0)
    delays.sort()
    median, most, worst = delays[len(delays) // 2], delays[len(delays) * 9 // 10], delays[-1]
    delay = f"median {median:.1f} ms, nine of ten {most:.1f} ms, longest {worst:.1f} ms (bar {MAX_DELAY_MS:.0f} ms)"
    results = [
        (f"{lines} lines, delay of {NEW_LINES} new lines: {delay}", most <= MAX_DELAY_MS),
        (f"{lines} lines, 60 keys a second: {frame:.1f} ms of processor time for each (bar {MAX_FRAME_MS:.1f} ms)",
         frame <= MAX_FRAME_MS),
    ]
    for text, is_met in results:
        print("PASS " if is_met else "FAIL ", text)
    sys.exit(0 if all(is_met for _, is_met in results) else 1)


main()
