"""How soon `brigade ui` is there: from its start to the last byte of the first whole drawing of a small team."""

from desk import TEAM, prove_at_desk
from house import SLACK

TIMES, SHORT_TIMES = 40, 20
BAR = 0.050


def scenario(desk, report, short):
    desk.small_team()
    took = sorted(start(desk) for _ in range(SHORT_TIMES if short else TIMES))
    half = took[len(took) // 2]
    told = f"p50 {ms(half)}, least {ms(took[0])}, most {ms(took[-1])}"
    report.figure("from the start to the first whole drawing", told)
    report.check(f"half of them in time (bar {ms(BAR * SLACK)})", half <= BAR * SLACK, ms(half))


def start(desk):
    with desk.bare(desk.ui()) as bare:
        came = bare.until(whole, 10)
        if came is None:
            raise TimeoutError(bare.grid.text())
        # What belongs to the same drawing may come in more than one piece.
        came = bare.settle(0.02) or came
        bare.write("q")
        bare.wait(5)
        return came - bare.begun


def whole(grid):
    """The team, its members with what they said last, and the keys."""
    text = grid.text()
    return all(words in text for words in (TEAM, "3 members", "ann", "bob says hello", "quit"))


def ms(seconds):
    return f"{seconds * 1e3:.1f} ms"


prove_at_desk(scenario)
