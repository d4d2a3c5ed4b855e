"""The scripted model as a process, and what its log says of an agent's requests."""

import json
import os
import subprocess

from house import eventually


class ScriptedModel:
    """Runs while it is entered. Everything it was asked is kept in `folder`, whole with `bodies`. `inside` is
    what its command begins with, if it is to run elsewhere."""

    def __init__(self, folder, bodies=True, inside=()):
        self._folder = folder
        self._bodies = bodies
        self._inside = inside
        self._outage = folder / "outage"
        folder.mkdir(parents=True)

    def __enter__(self):
        address, log, bodies = (self._folder / name for name in ("address", "log", "bodies"))
        log.touch()
        arguments = ["--address", address, "--log", log, "--outage", self._outage]
        if self._bodies:
            arguments += ["--bodies", bodies]
        self._process = subprocess.Popen([*self._inside, os.environ["SCRIPTED_MODEL"], *arguments])
        if not eventually(address.exists, 10):
            self._process.kill()
            raise RuntimeError("the scripted model does not listen")
        self.url = address.read_text().strip()
        self._told = 0
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()

    def fail(self, status, body):
        """From now on every question is answered with this."""
        draft = self._outage.with_suffix(".draft")
        draft.write_text(json.dumps({"status": status, "body": body}))
        draft.rename(self._outage)

    def recover(self):
        """Questions are answered again."""
        self._outage.unlink()

    def log(self):
        """A line of JSON for each request."""
        return (self._folder / "log").read_text()

    def body(self, number):
        """The request of that number, as it came."""
        return (self._folder / "bodies" / f"{number:04}.json").read_text()

    def new_turns(self):
        """The requests since the last look that could have used a tool; the agent's own small questions
        offer none."""
        records = as_json_lines(self.log())
        new, self._told = records[self._told :], len(records)
        return [record for record in new if record.get("tools")]

    def turns(self):
        """All requests so far that could have used a tool."""
        records = as_json_lines((self._folder / "log").read_text().rpartition("\n")[0])
        return [record for record in records if record.get("tools")]

    def last_input(self):
        """The whole of the latest such request, which carries the whole conversation."""
        turns = self.turns()
        return (self._folder / "bodies" / f"{turns[-1]['number']:04}.json").read_text() if turns else ""


def as_json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def team_tools(turn):
    """The tools of the server `team` in a request: from their name there to the name it was offered by."""
    found = {}
    for tool in turn["tools"]:
        _, mark, name = tool["name"].partition("team")
        if mark and not tool["deferred"]:
            found[name.lstrip("_/")] = tool["name"]
    return found


def results(turns):
    """What each tool gave back, as its agent showed it to the model, in the order of the calls."""
    latest = {turn["results"]: turn["returned"] for turn in turns if turn["returned"]}
    return [latest[number] for number in sorted(latest)]
