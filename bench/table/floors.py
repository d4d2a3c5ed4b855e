"""The least that the machine allows: an empty process, a bare rename. Measured before and after each benchmark, because other
work on the machine slows down both."""

import os
import statistics
import tempfile
import time
from pathlib import Path

ROUNDS = 40
TRUE = "/bin/true"


class Floors:
    def __init__(self):
        self._starts, self._processor, self._renames = [], [], []

    def measure(self):
        null = os.open(os.devnull, os.O_RDWR)
        with tempfile.TemporaryDirectory(prefix="brigade-floor-") as folder:
            for _ in range(ROUNDS):
                start = time.perf_counter()
                child = os.posix_spawn(TRUE, [TRUE], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
                _, _, usage = os.wait4(child, 0)
                self._starts.append(time.perf_counter() - start)
                self._processor.append(usage.ru_utime + usage.ru_stime)
                start = time.perf_counter()
                new = Path(folder, "new")
                new.write_bytes(b"." * 500)
                new.rename(Path(folder, "old"))
                self._renames.append(time.perf_counter() - start)
        os.close(null)

    @property
    def process_ms(self):
        """The time from the start to the end of an empty process."""
        return statistics.median(self._starts) * 1e3

    @property
    def process_processor_ms(self):
        return statistics.median(self._processor) * 1e3

    @property
    def rename_ms(self):
        """The time to write 500 bytes to a file and rename it."""
        return statistics.median(self._renames) * 1e3


def process_memory_mb():
    """Returns the proportional memory of a process that only sleeps."""
    child = os.posix_spawn("/bin/sleep", ["sleep", "10"], os.environ)
    try:
        time.sleep(0.2)
        rollup = Path(f"/proc/{child}/smaps_rollup").read_text()
        return int(rollup.split("Pss:")[1].split()[0]) / 1024
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
