"""Takes a member's session over in the agent's own program, types a turn there, and leaves; then does the same and kills
`brigade attach` in the middle. Checks that the member continues the same session, that its model knows the typed turn, and
that mail that came meanwhile is delivered once."""

import os
import signal
import time
from typing import NamedTuple

from lib import processes
from lib.env import run_scenario
from lib.scripted_model import say, script
from lib.steer_env import ANSWER_WITHIN, NAME, SteerEnv
from lib.util import eventually

# How long an agent may take to open a session in its own program. Gemini CLI may have to wait for the next minute.
OPENS_WITHIN = 150
# The command that leaves each agent's own program.
LEAVE = {
    "codex": "/quit",
    "gemini": "/quit",
    "claude": "/exit",
    "opencode": "/exit",
    "copilot": "/exit",
    "qwen": "/quit",
}
# Texts of dialogs at the start of a program, and the keys that answer them.
DIALOGS = {
    "codex": [("Do you trust the contents", "Enter")],
    "copilot": [("Confirm folder trust", "Enter")],
}


class Row(NamedTuple):
    """A line of the table: a case, and durations in seconds."""

    case: str
    opened: float
    continued: float
    mail: int
    typed: int
    same: bool


class AttachEnv(SteerEnv):
    """Runs `brigade attach` in a terminal of a private tmux server."""

    def open_terminal(self):
        environ = self.environ | {"TERM": "screen-256color", "PS1": "$ "}
        variables = [f"{name}={value}" for name, value in environ.items()]
        size = ["-x", "120", "-y", "40", "-c", str(self.project)]
        self._tmux("-f", os.devnull, "new-session", "-d", *size, "--", "env", "-i", *variables, "sh")
        eventually(lambda: "$" in self.terminal(), 10)

    def close_terminal(self):
        self._tmux("kill-server")
        time.sleep(0.5)

    def terminal(self):
        return self._tmux("capture-pane", "-p").stdout

    def screen(self):
        return self.terminal() + super().screen()

    def press(self, *keys):
        self._tmux("send-keys", *keys)

    def type(self, text):
        """Types a line. The programs take fast typing for a paste, so Enter follows later."""
        self.press("-l", text)
        time.sleep(1)
        self.press("Enter")

    def take_over(self, mark):
        """Runs `brigade attach --takeover`. Returns its process id when the program shows the message with this mark."""
        file = self.root / "attach-pid"
        file.unlink(missing_ok=True)
        scope = f"--claude-dir {self.claude_dir} --team {self.team}"
        self.type(f"sh -c 'echo $$ > {file}; exec {self.program} {scope} attach {NAME} --takeover'; echo code=$?")
        answered = set()

        def shows():
            screen = self.terminal()
            for text, key in DIALOGS.get(self.version, []):
                if text in screen and text not in answered:
                    answered.add(text)
                    self.press(key)
            return "opens bob's session" not in screen and mark in screen

        if not eventually(shows, OPENS_WITHIN):
            raise TimeoutError(f"{self.version} does not show the session:\n{self.terminal()}")
        time.sleep(2)
        return int(file.read_text())

    def agent_processes(self):
        """Returns the processes below a guard in a terminal."""
        return [process for process in processes.all_processes() if "terminal-guard" in process.argv]


def scenario(env, report, short):
    env.start_member()
    env.open_terminal()
    session = env.session()
    rows = [left(env, report, session), killed(env, report, session)]
    print_table(env.version, rows)
    env.close_terminal()
    env.run_ok("down", "--now")
    env.check_no_process_left(report)


def typed_turn(env, report, case, mark):
    """Takes the session over, types a turn, and sends mail meanwhile. Returns the process of `brigade attach`, and how long
    the program took to open the session."""
    began = time.monotonic()
    pid = env.take_over("«hello»" if case == "left" else "«mail left»")
    opened = time.monotonic() - began
    state = env.member()
    report.check(f"{case}: the state says who uses the session", "terminal" in state["words"], state)
    env.type(f"{mark} {script(say('typed answer'))}")
    answered = eventually(lambda: env.answered(mark), OPENS_WITHIN)
    report.check(f"{case}: the program answers a typed turn", answered, env.terminal())
    env.send(f"«mail {case}»", say("fine"))
    time.sleep(2)
    report.check(f"{case}: mail waits", not heard(env, f"«mail {case}»"))
    return pid, opened


def continued(env, report, session, case, mark, opened, began):
    """Waits until the member has answered its mail. Returns a line of the table."""
    answered = eventually(lambda: env.answered(f"«mail {case}»"), OPENS_WITHIN)
    seconds = time.monotonic() - began
    report.check(f"{case}: the mail is delivered", answered, env.member())
    eventually(env.is_idle, ANSWER_WITHIN)
    body = env.model.last_input()
    mail, typed = body.count(f"«mail {case}»"), body.count(mark)
    report.check(f"{case}: the mail is delivered once", mail == 1, mail)
    report.check(f"{case}: the model knows the typed turn once", typed == 1, typed)
    report.check(f"{case}: the model knows the first turn", "«hello»" in body)
    same = env.session() == session
    report.check(f"{case}: the session is the same", same, env.session())
    return Row(case, opened, seconds, mail, typed, same)


def left(env, report, session):
    _, opened = typed_turn(env, report, "left", "«typed one»")
    began = time.monotonic()
    env.type(LEAVE[env.version])
    row = continued(env, report, session, "left", "«typed one»", opened, began)
    code = eventually(lambda: "code=0" in env.terminal(), ANSWER_WITHIN)
    report.check("left: the command ends with code 0", code, env.terminal())
    return row


def killed(env, report, session):
    env.type("clear")
    pid, opened = typed_turn(env, report, "killed", "«typed two»")
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    row = continued(env, report, session, "killed", "«typed two»", opened, began)
    report.check("killed: the program is gone", not env.agent_processes(), env.agent_processes())
    return row


def heard(env, mark):
    return any(mark in turn["heard"] for turn in env.model.turns())


def print_table(agent, rows):
    print(f"      {agent:9}{'case':8}{'opened':>8}{'continued':>11}  mail  typed turn  session", flush=True)
    for row in rows:
        times = f"{row.opened:6.1f} s{row.continued:9.1f} s"
        session = "kept" if row.same else "other"
        print(f"      {agent:9}{row.case:8}{times}  {row.mail:<5} {row.typed:<11} {session}", flush=True)


run_scenario(scenario, AttachEnv)
