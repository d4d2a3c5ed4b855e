"""What a scenario says: figures, which are only told, and checks, which must hold."""

import time


class Report:
    def __init__(self, title):
        self.failures = 0
        self._begun = time.monotonic()
        print(f"== {title}", flush=True)

    def figure(self, what, value):
        print(f"      {what}: {value}", flush=True)

    def check(self, what, holds, found=None):
        """One line for one promise; `found` is told only when the promise is broken."""
        if holds:
            print(f"PASS  {what}", flush=True)
        else:
            self.failures += 1
            told = "" if found is None else f"; found {str(found)[:1000]}"
            print(f"FAIL  {what}{told}", flush=True)

    def end(self):
        took = time.monotonic() - self._begun
        verdict = "all hold" if self.failures == 0 else f"{self.failures} FAILED"
        print(f"   -- {verdict}, {took:.0f} s", flush=True)
