"""Prints the results of a scenario: figures, which are only printed, and checks, which must pass."""

import sys
import time
import traceback
from contextlib import contextmanager


class Report:
    def __init__(self, title):
        self.failures = 0
        self._started = time.monotonic()
        print(f"== {title}", flush=True)

    def figure(self, name, value):
        print(f"      {name}: {value}", flush=True)

    def check(self, name, passed, actual=None):
        """Prints PASS or FAIL. `actual` is the value found, printed only on failure."""
        if passed:
            print(f"PASS  {name}", flush=True)
        else:
            self.failures += 1
            details = "" if actual is None else f"; found {str(actual)[:1000]}"
            print(f"FAIL  {name}{details}", flush=True)

    @contextmanager
    def scenario(self, keep):
        """Turns an exception in the scenario into a failed check. Calls `keep` to copy files if a check failed."""
        try:
            yield
        except Exception:
            traceback.print_exc()
            self.check("the scenario runs to its end", False)
        finally:
            if self.failures or sys.exception():
                keep()

    def end(self):
        """Prints the result; returns the exit code for the test program."""
        result = "all passed" if self.failures == 0 else f"{self.failures} FAILED"
        print(f"   -- {result}, {time.monotonic() - self._started:.0f} s", flush=True)
        return 1 if self.failures else 0
