"""How long a message takes from being acknowledged to being in a request to the model, at a teammate that
is idle; and beside it, in the same run, at a native Claude Code, which looks at its inbox by the clock."""

import random
import time

from house import SLACK, eventually, prove
from teammate import Teammate, nobody_left, script, team

# Half of the messages are with the model within so many milliseconds.
BAR = 100.0


def scenario(house, report, short):
    with team(house, report, house.version, record=False) as (model, env):
        member = Teammate(house, "rev", house.version, env)
        member.start()
        native = house.sit_down("alice")
        native.rest()
        ours(house, model, "warm up")
        count = 20 if short else 100
        mine = [ours(house, model, f"ping {number}") for number in range(count)]
        count = 5 if short else 25
        theirs = [beside(house, native, f"ping {number}") for number in range(count)]
        told = tell(report, house.version, [took for took, _ in mine])
        tell(report, f"{house.version}, from the start of the command", [took for _, took in mine])
        beaten = tell(report, "Claude Code", theirs)
        report.figure("the native teammate takes", f"{beaten / told:.1f} times as long")
        bar = f"half are with the model in time (bar {BAR * SLACK:.0f} ms)"
        report.check(bar, told <= BAR * SLACK, f"{told:.1f} ms")
        turns = [turn["heard"] for turn in model.turns()]
        once = all(sum(f"ping {number} [" in heard for heard in turns) == 1 for number in range(len(mine)))
        report.check("each message is one turn", once and len(turns) == len(mine) + 1, len(turns))
        member.kill()
        house.leave()
        report.check("no process is left", not nobody_left(house), nobody_left(house))


def ours(house, model, words):
    """Sends a message once the teammate is idle; the milliseconds until it is with the model, from the
    acknowledgement and from the start of the command."""
    time.sleep(random.uniform(0.2, 0.4))
    begun = time.time()
    house.brigade("send", "rev", f"{words} {script({'say': 'fine'})}")
    acknowledged = time.time()

    def found():
        return next((turn for turn in model.turns() if f"{words} [" in turn["heard"]), None)

    turn = eventually(found, 60)
    if turn is None:
        raise TimeoutError(f"{words} has not come to the model")
    return turn["at"] / 1e3 - acknowledged * 1e3, turn["at"] / 1e3 - begun * 1e3


def beside(house, native, words):
    # Any moment of the native teammate's second.
    time.sleep(random.uniform(0.5, 1.5))
    house.brigade("send", "alice", words)
    acknowledged = time.time()
    if not native.hears(words, 30):
        raise TimeoutError(f"{words} has not come to the native teammate's model")
    return (time.time() - acknowledged) * 1e3


def tell(report, who, took):
    took = sorted(took)
    half, most = took[len(took) // 2], took[len(took) * 95 // 100]
    report.figure(who, f"p50 {half:.1f} ms, p95 {most:.1f} ms, most {took[-1]:.1f} ms, of {len(took)}")
    return half


prove(scenario, "tmux")
