"""The recipes of the page, and the commands of one recipe while its check runs."""

import re
import shlex
import time
from typing import NamedTuple

from lib.pages import Block, Step, matches
from lib.util import eventually

# Maps the title of a recipe to the function that runs its commands and checks their effect.
CHECKS = {}
EXCHANGED = {"codex": "gemini", "gemini": "codex"}


def check(title):
    """Registers the check of a recipe. It is called with a `RecipeRun` and the `Homes`."""

    def register(function):
        if title in CHECKS:
            raise ValueError(f"two checks for {title}")
        CHECKS[title] = function
        return function

    return register


class Recipe(NamedTuple):
    group: str
    title: str
    line: int
    steps: list

    def count(self):
        """Returns the number of commands. The parts of a pipeline are one command."""
        return sum(1 + separators(step.command) for step in self.steps)


def separators(command):
    """Returns how many `&&`, `||` and `;` a command line has outside of quotes."""
    return sum(word in ("&&", "||", ";") for word in shlex.shlex(command, posix=True, punctuation_chars=True))


def read_recipes(path):
    """Returns the recipes of the page: each heading of the third level, and the block of commands below it."""
    found = []
    text = path.read_text()
    for group in re.split(r"^## ", text, flags=re.M)[1:]:
        name, *sections = re.split(r"^### ", group, flags=re.M)
        for section in sections:
            title = section.split("\n", 1)[0].strip()
            fences = re.findall(r"^```console\n(.*?)^```$", section, re.S | re.M)
            if len(fences) != 1:
                raise ValueError(f"{title}: {len(fences)} blocks of commands")
            line = text[: text.index(f"### {title}\n")].count("\n") + 1
            found.append(Recipe(name.split("\n", 1)[0].strip(), title, line, Block(line, "console", fences[0], None).steps()))
    return found


class RecipeFailed(Exception):
    """A command failed, or its effect is missing."""


class RecipeRun:
    """Runs the commands of one recipe, each of them once and in order."""

    def __init__(self, recipe, exchange):
        self._left = list(recipe.steps)
        self._exchange = exchange
        self._replace = {}
        # The time that the commands took, in seconds, and their output so far.
        self.seconds, self.output = 0.0, []

    def replace(self, **words):
        """Replaces numbers and words of the page in all commands: `n1="7"` replaces the word 1, `bob="rob"` the word bob."""
        self._replace |= {name.removeprefix("n") if name[1:].isdigit() else name: str(word) for name, word in words.items()}

    def keep_agents(self):
        """Runs the commands with the agents of the page, also if the agents are exchanged."""
        self._exchange = False

    def _next(self):
        step = self._left.pop(0)
        command = step.command
        if self._exchange:
            command = re.sub(r"(?<![\w-])(codex|gemini)\b", lambda found: EXCHANGED[found[0]], command)
        if self._replace:
            pattern = r"(?<![\w.-])(" + "|".join(map(re.escape, self._replace)) + r")(?![\w-])"
            command = re.sub(pattern, lambda found: self._replace[found[0]], command)
        return Step(command, step.expected)

    def all(self, home, shell=None):
        """Runs the commands that are left in one shell; returns their output as one text."""
        shell = shell or home.shell()
        return "\n".join(self._run(shell, home) for _ in list(self._left))

    def one(self, home):
        """Runs the next command; returns its output."""
        return self._run(home.shell(), home)

    def _run(self, shell, home):
        command, expected = self._next()
        started = time.monotonic()
        code, lines = shell.run(command)
        self.seconds += time.monotonic() - started
        self.output += [f"$ {command}", *lines]
        if code != 0:
            raise RecipeFailed(f"{command}: exit code {code}")
        if expected and not matches(expected, lines, [(re.escape(str(home.home)), "/home/dev")]):
            raise RecipeFailed(f"{command}: the output differs from the page")
        return "\n".join(lines)

    def in_terminal(self, home, *shown, keys=(), meanwhile=None, after=(), columns=120):
        """Runs the next command in a terminal. Waits until the texts are on the screen, presses keys, calls a function
        while the command runs, and waits until further texts are on the screen. Returns the terminal."""
        command, _ = self._next()
        terminal = home.terminal(columns)
        started = time.monotonic()
        terminal.run(command)
        self.output.append(f"$ {command}")
        self._wait_for_texts(terminal, shown)
        for key in keys:
            terminal.press(key)
        if meanwhile:
            meanwhile()
        self._wait_for_texts(terminal, after)
        self.seconds += time.monotonic() - started
        self.output.append(terminal.screen())
        return terminal

    def _wait_for_texts(self, terminal, texts):
        if not terminal.shows(*texts, timeout=30):
            self.output.append(terminal.screen())
            missing = [text for text in texts if text not in terminal.screen()]
            raise RecipeFailed(f"not on the screen: {missing}")

    def finish(self):
        if self._left:
            raise RecipeFailed(f"not run: {self._left[0].command}")

    # Methods with which a check states what it expects.

    def contains(self, text, *parts):
        missing = [part for part in parts if part not in text]
        if missing:
            raise RecipeFailed(f"not in the output: {missing}")

    def holds(self, what, value, actual=None):
        if not value:
            raise RecipeFailed(f"{what}; found {str(actual)[:600]}")

    def eventually(self, what, condition, timeout=60):
        if not eventually(condition, timeout):
            raise RecipeFailed(what)
