"""The agents: how each is registered and run (docs/agents.md says it, word for word), and what this
house has to answer beforehand: where the model is, and what a first start would ask a person."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from house import KEY
from scripted import ScriptedModel

DOCUMENT = Path(__file__).parents[2] / "docs" / "agents.md"
TITLES = {"codex": "Codex", "gemini": "Gemini CLI", "claude": "Claude Code", "opencode": "opencode"}
PATIENCE = 120


class Ran(NamedTuple):
    """A command's exit code, None if it had to be ended, and what it printed."""

    code: int | None
    output: str


class Vendor:
    """One vendor's program in a house, with a model of its own while it is entered."""

    def __init__(self, name, program, house):
        self.name = name
        self.model = ScriptedModel(house.root / "models" / name)
        self._house = house
        section = DOCUMENT.read_text().split(f"\n## {TITLES[name]}\n")[1].split("\n## ")[0]
        self.register_command, self.run_command = (
            re.sub(r"\bdemo\b", house.team, block)
            for block in re.findall(r"^```sh\n(.*?)^```$", section, re.S | re.M)
        )
        folder = house.root / "bin"
        folder.mkdir(exist_ok=True)
        for link, target in ((name, program), ("brigade", os.environ["BRIGADE"])):
            if not (folder / link).exists():
                (folder / link).symlink_to(target)
        self._env = house.plain_env | {"PATH": f"{folder}:{house.plain_env['PATH']}"}

    def __enter__(self):
        self.model.__enter__()
        self._env |= SETTLE_IN[self.name](self._house, self.model.url)
        return self

    def __exit__(self, *_):
        self.model.__exit__()

    def register(self):
        return self.shell(self.register_command)

    def follow(self, script):
        """Runs the program with a prompt that carries this script."""
        return self.shell(self.run_command, PROMPT=f"Do your work. [script]{json.dumps(script)}[/script]")

    def shell(self, command, **more):
        # A session of its own, so that whatever it starts can be ended with it.
        process = subprocess.Popen(
            ["sh", "-ec", command],
            env=self._env | more,
            cwd=self._house.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=PATIENCE)
            return Ran(process.returncode, output)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return Ran(None, process.communicate()[0])


def vendors(house):
    """The agents this run is about, as `run` names them: AGENT=PATH:AGENT=PATH."""
    pairs = (agent.split("=", 1) for agent in os.environ["AGENTS"].split(":"))
    return [Vendor(name, program, house) for name, program in pairs]


def served_tools(house, name):
    """The names of the tools that the server lists for a member, asked without any agent."""
    here = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "proof", "version": "1"}}
    said = [
        {"id": 1, "method": "initialize", "params": here},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    server = [os.environ["BRIGADE"], "mcp", "--team", house.team, "--as", name]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(server, env=house.plain_env, cwd=house.project, **pipes) as process:
        for message in said:
            process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout)
        listed = next(answer["result"]["tools"] for answer in answers if answer.get("id") == 2)
        process.stdin.close()
    return {tool["name"] for tool in listed}


def codex(house, url):
    folder = house.home / ".codex"
    folder.mkdir()
    provider = {"name": "scripted", "base_url": f"{url}/v1", "wire_api": "responses", "env_key": "KEY"}
    lines = ['model_provider = "scripted"', "[model_providers.scripted]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in provider.items()]
    (folder / "config.toml").write_text("\n".join(lines) + "\n")
    return {"KEY": KEY}


def gemini(house, url):
    folder = house.home / ".gemini"
    folder.mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "trustedFolders.json").write_text(json.dumps({str(house.project): "TRUST_FOLDER"}))
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}


def claude(house, url):
    # What it would ask is answered already: it shares the lead's home.
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def opencode(house, url):
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted": {}},
    }
    settings = {"model": "scripted/scripted", "provider": {"scripted": provider}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(settings)}


def copilot(house, url):
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "scripted",
    }


def qwen(house, url):
    folder = house.home / ".qwen"
    folder.mkdir()
    # Otherwise it asks its model two questions of its own at the end of each turn, which takes seconds.
    quiet = {"ui": {"enableFollowupSuggestions": False}, "memory": {"enableManagedAutoMemory": False}}
    (folder / "settings.json").write_text(json.dumps(quiet))
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"}


# Each gives the variables its program needs to find the model.
SETTLE_IN = {
    "codex": codex,
    "gemini": gemini,
    "claude": claude,
    "opencode": opencode,
    "copilot": copilot,
    "qwen": qwen,
}
