"""Lets an agent hit its vendor's rate limit. `brigade status` must report the limit within seconds, with the agent's
own error text, whether the agent fails the turn or retries for minutes. Once the vendor accepts requests again, the
member must continue and receive all its mail."""

import os
import subprocess

from teammate import idle_notifications, team

from lib.env import run_scenario
from lib.scripted_model import say, script
from lib.util import eventually
from lib.vendors import DAILY_QUOTA

# For each agent: the vendor's error responses, and part of the agent's error text for each. Codex and Gemini CLI fail
# the turn; Claude Code retries and reports that. Gemini CLI reports other limits only after minutes.
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
# Without a fixed model, Gemini CLI asks a second model which model to use, and keeps asking when it hits a limit.
MODELS = {"gemini": ["--model", "gemini-2.5-flash"]}
# Maximum seconds until the status reports a limit. Codex first retries four times, which takes three seconds.
REPORT_TIMEOUT = 10
# Maximum seconds until the member continues. After its third failure, Claude Code waits before it retries.
RECOVERY_TIMEOUT = 20


def scenario(env, report, short):
    agent = env.version
    with team(env, agent) as (model, environ):
        variable = {f"BRIGADE_{agent.upper()}": os.environ[f"PROGRAM_{agent.upper()}"]}
        spawn = [os.environ["BRIGADE"], "--claude-dir", env.claude_dir, "spawn", "rev", "--agent", agent]
        spawn += MODELS.get(agent, [])
        environ = env.environ | environ | variable
        subprocess.run(spawn, env=environ, cwd=env.project, check=True, capture_output=True)

        def liveness():
            found = env.brigade("status")[0]["members"]
            return next((member["liveness"], member["evidence"]) for member in found if member["name"] == "rev")

        for number, (status, body, text) in enumerate(LIMITS[agent][: 2 if short else None]):
            model.fail(status, body)
            env.brigade("send", "rev", f"during-{number} {script(say('fine'))}")
            eventually(lambda: liveness()[0] == "limited", REPORT_TIMEOUT)
            reported = liveness()
            report.figure(f"status, with {status}", reported)
            report.check(f"the status is limited: {text}", reported[0] == "limited" and text in reported[1], reported)
            model.recover()
            env.brigade("send", "rev", f"after-{number} {script(say('fine'))}")
            works = eventually(
                lambda: f"after-{number}" in model.last_input() and liveness()[0] == "idle", RECOVERY_TIMEOUT
            )
            report.check("once the vendor answers, the member finishes its work and is idle", works, liveness())
        expected = [f">\\n{word}-{n} [" for n in range(number + 1) for word in ("during", "after")]
        numbers = [model.last_input().count(mark) for mark in expected]
        report.check("each message is in the agent's session once", set(numbers) == {1}, numbers)
        reasons = [body.get("failureReason") for body in idle_notifications(env, "rev")]
        report.figure("failure reasons sent to the lead", reasons)
        env.brigade("down", "--now")
        env.check_no_process_left(report)


run_scenario(scenario)
