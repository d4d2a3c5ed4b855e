"""Tests that brigade finds out whether each vendor's real program is logged in, with fake credentials and no network."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from lib.report import Report

BRIGADE = os.environ["BRIGADE"]
PROGRAMS = dict(program.split("=", 1) for program in os.environ["LOGIN_AGENTS"].split(":"))
ATTEMPTS = 3
# The answer of each agent without credentials.
LOGGED_OUT = {
    "codex": "logged_out",
    "claude": "logged_out",
    "gemini": "logged_out",
    # opencode also works without credentials.
    "opencode": "unknown",
    "copilot": "logged_out",
    "qwen": "logged_out",
}
# Variables with which an agent has credentials. GitHub Copilot CLI asks its vendor about a token.
KEYS = {
    "ANTHROPIC_API_KEY": "fake",
    "GEMINI_API_KEY": "fake",
    "OPENAI_API_KEY": "fake",
}
WITH_KEYS = {
    # Codex ignores keys in variables.
    "codex": "logged_out",
    "claude": "credentials_present",
    "gemini": "credentials_present",
    "opencode": "credentials_present",
}


def agents(home, names, **variables):
    """Runs `brigade agents` with these agents and returns its seconds and its answer for each of them."""
    env = {"PATH": "/usr/bin:/bin", "HOME": home, **variables}
    # The agents are Node programs.
    env["PATH"] = os.path.dirname(shutil.which("node")) + ":" + env["PATH"]
    for name in PROGRAMS:
        env[f"BRIGADE_{name.upper()}"] = PROGRAMS[name] if name in names else "/nowhere"
    work = os.path.join(home, "work")
    os.makedirs(work, exist_ok=True)
    began = time.monotonic()
    done = subprocess.run([BRIGADE, "agents", "--json"], env=env, cwd=work, capture_output=True, text=True)
    seconds = time.monotonic() - began
    found = {agent["name"]: agent["login"] for agent in json.loads(done.stdout)}
    return seconds, {name: found[name] for name in names}


def codex_provider(home):
    """Configures a model provider that needs no login."""
    os.makedirs(f"{home}/.codex", exist_ok=True)
    with open(f"{home}/.codex/config.toml", "w") as file:
        file.write('model_provider = "own"\n[model_providers.own]\nname = "own"\nbase_url = "http://127.0.0.1:9/v1"\n')


def each(report, title, home, expected, **variables):
    """Asks each agent alone. On a busy machine some need more than the five seconds that brigade waits: asks those again."""
    for name, state in expected.items():
        if name not in PROGRAMS:
            continue
        for _ in range(ATTEMPTS):
            seconds, found = agents(home, [name], **variables)
            if found[name] != "unknown" or state == "unknown":
                break
        report.check(f"{title}: {name} is {state}", found[name] == state, found)
        report.figure(f"{title}: seconds of {name}", round(seconds, 1))


def main():
    report = Report("logins")
    slack = float(os.environ.get("BENCH_SLACK", "1"))
    with tempfile.TemporaryDirectory() as home:
        # The first start of a program in a new home takes longer, because it unpacks its files.
        agents(home, PROGRAMS)
        each(report, "no credentials", home, LOGGED_OUT)
        each(report, "keys in the environment", home, WITH_KEYS, **KEYS)
        # All at once they share the processors, and may not answer in time. No answer may be wrong.
        seconds, found = agents(home, PROGRAMS)
        wrong = {name: state for name, state in found.items() if state not in (LOGGED_OUT[name], "unknown")}
        report.check("no credentials: all agents at once give no wrong answer", wrong == {}, wrong)
        report.check("no credentials: all agents at once take at most seven seconds", seconds < 7 * slack, seconds)
        codex_provider(home)
        _, found = agents(home, ["codex"])
        report.check("codex: an own provider needs no login", found["codex"] == "credentials_present", found)
    sys.exit(report.end())


main()
