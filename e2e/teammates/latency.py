"""Sends messages to an idle teammate, and measures the time from each acknowledgement until the teammate's model gets
the message. For comparison, measures the same for a native Claude Code, which polls its inbox."""

import random
import time

from teammate import Teammate, team

from lib.env import run_scenario
from lib.scripted_model import say, script
from lib.util import SLACK, eventually, percentiles

# The limit for the median, in milliseconds.
BAR = 100.0


def scenario(env, report, short):
    with team(env, env.version, bodies=False) as (model, environ):
        member = Teammate(env, "rev", env.version, environ)
        member.start()
        native = env.start_native_teammate("alice")
        native.only_listen()
        to_teammate(env, model, "warm up")
        count = 20 if short else 100
        ours = [to_teammate(env, model, f"ping {number}") for number in range(count)]
        count = 5 if short else 25
        theirs = [to_native(env, native, f"ping {number}") for number in range(count)]
        median = print_percentiles(report, env.version, [took for took, _ in ours])
        print_percentiles(report, f"{env.version}, from the start of brigade send", [took for _, took in ours])
        native_median = print_percentiles(report, "Claude Code", theirs)
        report.figure("the native teammate takes", f"{native_median / median:.1f} times as long")
        report.check(f"the median is in time (bar {BAR * SLACK:.0f} ms)", median <= BAR * SLACK, f"{median:.1f} ms")
        turns = [turn["heard"] for turn in model.turns()]
        once = all(sum(f"ping {number} [" in text for text in turns) == 1 for number in range(len(ours)))
        report.check("each message starts one turn", once and len(turns) == len(ours) + 1, len(turns))
        member.kill()
        env.stop_lead()
        env.check_no_process_left(report)


def to_teammate(env, model, text):
    """Sends a message to the idle teammate. Returns the milliseconds until the message is in a request to the model:
    from the acknowledgement, and from the start of the command."""
    time.sleep(random.uniform(0.2, 0.4))
    started = time.time()
    env.brigade("send", "rev", f"{text} {script(say('fine'))}")
    acknowledged = time.time()

    def found():
        return next((turn for turn in model.turns() if f"{text} [" in turn["heard"]), None)

    turn = eventually(found, 60)
    if turn is None:
        raise TimeoutError(f"{text} has not reached the model")
    return turn["at"] / 1e3 - acknowledged * 1e3, turn["at"] / 1e3 - started * 1e3


def to_native(env, native, text):
    # Send the message at a random moment of the native teammate's polling interval.
    time.sleep(random.uniform(0.5, 1.5))
    env.brigade("send", "alice", text)
    acknowledged = time.time()
    if not native.receives(text, 30):
        raise TimeoutError(f"{text} has not reached the native teammate's model")
    return (time.time() - acknowledged) * 1e3


def print_percentiles(report, name, milliseconds):
    median, line = percentiles(milliseconds)
    report.figure(name, line)
    return median


run_scenario(scenario)
