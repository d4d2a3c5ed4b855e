"""Configures each vendor's agent to use a test's model, and runs the agent with the commands of docs/agents.md."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from lib.env import API_KEY
from lib.scripted_model import ScriptedModel, script

AGENTS_PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
TITLES = {"codex": "Codex", "gemini": "Gemini CLI", "claude": "Claude Code", "opencode": "opencode"}
TIMEOUT = 120


class CommandResult(NamedTuple):
    """A command's output and exit code; the exit code is None if the command timed out."""

    code: int | None
    output: str


class Vendor:
    """A context manager that runs one vendor's program in a test environment, with a scripted model of its own."""

    def __init__(self, name, program, env):
        self.name = name
        self.model = ScriptedModel(env.root / "models" / name)
        self._env = env
        section = AGENTS_PAGE.read_text().split(f"\n## {TITLES[name]}\n")[1].split("\n## ")[0]
        self.register_command, self.run_command = (
            re.sub(r"\bdemo\b", env.team, block)
            for block in re.findall(r"^```sh\n(.*?)^```$", section, re.S | re.M)
        )
        self._environ = env.environ | {"PATH": link_programs(env, {name: program, "brigade": env.program})}

    def __enter__(self):
        self.model.__enter__()
        self._environ |= CONFIGURE[self.name](self._env, self.model.url)
        return self

    def __exit__(self, *_):
        self.model.__exit__()

    def register(self):
        return self.shell(self.register_command)

    def follow(self, steps):
        """Runs the program with a prompt whose script makes the model follow these steps."""
        return self.shell(self.run_command, PROMPT=f"Do your work. {script(*steps)}")

    def shell(self, command, **more):
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        options = {"env": self._environ | more, "cwd": self._env.project} | pipes
        # Start a new process group, so that a timeout can kill everything that the command started.
        process = subprocess.Popen(["sh", "-ec", command], start_new_session=True, **options)
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
            return CommandResult(process.returncode, output)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return CommandResult(None, process.communicate()[0])


def selected_programs():
    """Returns the path of each agent's program, by agent. $AGENTS lists them as AGENT=PATH:AGENT=PATH."""
    return dict(agent.split("=", 1) for agent in os.environ["AGENTS"].split(":"))


def link_programs(env, programs):
    """Creates symbolic links to programs in a folder; returns a value for PATH that begins with this folder."""
    folder = env.root / "bin"
    folder.mkdir(exist_ok=True)
    for name, program in programs.items():
        if not (folder / name).exists():
            (folder / name).symlink_to(program)
    return f"{folder}:{env.environ['PATH']}"


def vendors(env):
    return [Vendor(name, program, env) for name, program in selected_programs().items()]


def served_tools(env, name):
    """Returns the names of the tools that `brigade mcp` lists for a member."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    server = [os.environ["BRIGADE"], "mcp", "--team", env.team, "--as", name]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(server, env=env.environ, cwd=env.project, **pipes) as process:
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout)
        listed = next(answer["result"]["tools"] for answer in answers if answer.get("id") == 2)
        process.stdin.close()
    return {tool["name"] for tool in listed}


# Google's error response when the daily quota of requests is used up.
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

# Codex does not know the model `scripted`. So it offers this model all tools directly, not through JavaScript or a
# search.
CODEX_PLAIN_TOOLS = {"BRIGADE_CODEX_ARGS": '-c model="scripted"'}


def codex(env, url, *more, first=()):
    """`first` and `more` are further lines at the start and the end of Codex's settings."""
    folder = env.home / ".codex"
    folder.mkdir()
    provider = {"name": "scripted", "base_url": f"{url}/v1", "wire_api": "responses", "env_key": "KEY"}
    lines = [*first, 'model_provider = "scripted"', "[model_providers.scripted]"]
    lines += [*(f"{key} = {json.dumps(value)}" for key, value in provider.items()), *more]
    (folder / "config.toml").write_text("\n".join(lines) + "\n")
    return {"KEY": API_KEY, "BRIGADE_AGENT_ENV": "KEY"}


def gemini(env, url):
    folder = env.home / ".gemini"
    folder.mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "trustedFolders.json").write_text(json.dumps({str(env.project): "TRUST_FOLDER"}))
    return {"GEMINI_API_KEY": API_KEY, "GOOGLE_GEMINI_BASE_URL": url}


def claude(env, url):
    # Claude Code's settings in the home directory already answer everything it asks at its first start.
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": API_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def opencode(env, url, models=None, **more):
    """`models` are the provider's models; `more` are further settings of opencode."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": API_KEY},
        "models": models or {"scripted": {}},
    }
    settings = {"model": "scripted/scripted", "provider": {"scripted": provider}} | more
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)}


def copilot(env, url):
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": API_KEY,
        "COPILOT_MODEL": "scripted",
    }


def qwen(env, url):
    folder = env.home / ".qwen"
    folder.mkdir()
    # Without these settings, Qwen Code sends two more requests at the end of each turn, which takes seconds.
    settings = {"ui": {"enableFollowupSuggestions": False}, "memory": {"enableManagedAutoMemory": False}}
    (folder / "settings.json").write_text(json.dumps(settings))
    return {"OPENAI_API_KEY": API_KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"}


# Each function writes the settings of one vendor's program, and returns the environment variables that the program
# needs to use the model.
CONFIGURE = {
    "codex": codex,
    "gemini": gemini,
    "claude": claude,
    "opencode": opencode,
    "copilot": copilot,
    "qwen": qwen,
}
