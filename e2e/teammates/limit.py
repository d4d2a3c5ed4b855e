"""A vendor that takes no more for now: `brigade status` says so within seconds, in the agent's words, whether the
agent gives up at once or tries again for minutes; and once the vendor answers, the member works, and has all
its mail."""

import os
import subprocess

from house import eventually, prove
from teammate import idle_notifications, nobody_left, script, team

# As Google says that a day's requests are used up.
DAILY_QUOTA = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
            }
        ],
    }
}
# What each vendor answers, and what its agent says then. Codex and Gemini CLI fail the turn, Claude Code tries
# again, and says so. Of other limits Gemini CLI says nothing for minutes.
LIMITS = {
    "codex": [
        (429, {"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached"}}, "usage limit"),
        (429, {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, "429 Too Many Requests"),
        (503, {"error": {"message": "Overloaded", "code": "server_is_overloaded"}}, "at capacity"),
    ],
    "claude": [
        (429, {"type": "error", "error": {"type": "rate_limit_error", "message": "too fast"}}, "429"),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "529"),
    ],
    "gemini": [(429, DAILY_QUOTA, "daily quota")],
}
# Without a model of its own, Gemini CLI asks another which to take, and goes on asking at a limit.
MODELS = {"gemini": ["--model", "gemini-2.5-flash"]}
# Codex tries four times more before it says that a model is at capacity, which takes it three seconds.
TOLD = 10
# Claude Code's pause after its third failure, and what it does then.
WORKS = 20


def scenario(house, report, short):
    agent = house.version
    with team(house, report, agent) as (model, env):
        variable = {f"BRIGADE_{agent.upper()}": os.environ[f"PROGRAM_{agent.upper()}"]}
        spawn = [os.environ["BRIGADE"], "--claude-dir", house.claude_dir, "spawn", "rev", "--agent", agent]
        spawn += MODELS.get(agent, [])
        env = house.plain_env | env | variable
        subprocess.run(spawn, env=env, cwd=house.project, check=True, capture_output=True)

        def how():
            found = house.brigade("status")[0]["members"]
            return next((member["liveness"], member["evidence"]) for member in found if member["name"] == "rev")

        for number, (status, body, words) in enumerate(LIMITS[agent][: 2 if short else None]):
            model.fail(status, body)
            house.brigade("send", "rev", f"during-{number} {script({'say': 'fine'})}")
            eventually(lambda: how()[0] == "limited", TOLD)
            told = how()
            report.figure(f"status, with {status}", told)
            report.check(f"it is limited: {words}", told[0] == "limited" and words in told[1], told)
            model.recover()
            house.brigade("send", "rev", f"after-{number} {script({'say': 'fine'})}")
            works = eventually(lambda: f"after-{number}" in model.last_input() and how()[0] == "idle", WORKS)
            report.check("once the vendor answers, it works, and is idle then", works, how())
        expected = [f">\\n{word}-{n} [" for n in range(number + 1) for word in ("during", "after")]
        numbers = [model.last_input().count(mark) for mark in expected]
        report.check("what was sent to it is in its session, each once", set(numbers) == {1}, numbers)
        reasons = [told.get("failureReason") for told in idle_notifications(house, "rev")]
        report.figure("the lead is told", reasons)
        house.brigade("down", "--now")
        report.check("no process is left", not nobody_left(house), nobody_left(house))


prove(scenario, "tmux")
