"""A real Claude Code is a native member of a team that brigade leads. Checks that it verifies its lead's messages,
that it is resumed after SIGKILL, and that it leaves the team when asked to stop."""

import json
import os
import random
import signal
import subprocess
import time

from lib.env import MODEL, TestEnv, run_scenario
from lib.inbox_entry import inbox_entry, shutdown_request, sign_with_wrong_key
from lib.processes import in_home
from lib.scripted_model import shutdown_response
from lib.util import capture, eventually, read_json

NAME = "alice"
TEAM_FILE = f"""
team = "native"

[members.{NAME}]
agent = "claude"
model = "{MODEL}"
access = "full"
place = "native"
prompt = "[agent:{NAME}] Wait for messages."
"""


class NativeEnv(TestEnv):
    """A test environment in which brigade leads the team."""

    def __init__(self, version, teammate_mode):
        super().__init__(version, teammate_mode)
        self.team = "native"
        (self.project / "brigade.toml").write_text(TEAM_FILE)
        # brigade starts members with the environment of its caller.
        self.environ = self.lead_environ | {"BRIGADE_CLAUDE": self.claude}

    def up(self):
        self.brigade("up")

    def stop_lead(self):
        self.try_brigade("down", "--now")
        super().stop_lead()

    def screen(self):
        sockets = (self.root / "tmp").glob("tmux-*/brigade-*")
        return "\n".join(capture(["tmux", "-S", path, "capture-pane", "-p"]).stdout for path in sockets)

    def runner(self):
        """Returns the brigade process that runs the member."""
        found = in_home(self.home)
        return next((one for one in found if one.argv[:1] == (self.program,) and "play" in one.argv), None)

    def native(self):
        """Returns the member's Claude Code process. It is found by its parent, because the old Claude Code hides
        its command line."""
        runner = self.runner()
        children = [one for one in in_home(self.home) if runner and one.parent == runner.pid]
        return next((one for one in children if "--version" not in one.argv), None)

    def repair_config(self, process, backup):
        """Restores config.json if the killed process left the file incomplete, because the old Claude Code writes
        the file in place. Returns 1 if the file was restored, 0 otherwise."""
        eventually(lambda: not process.is_alive(), 5)
        try:
            json.loads(self.config.read_bytes())
            return 0
        except json.JSONDecodeError:
            self.config.write_bytes(backup)
            return 1

    def sessions(self):
        return list(self.claude_dir.glob("projects/*/*.jsonl"))

    def sent_texts(self):
        """Returns the texts of all messages that were sent through brigade."""
        return [record["event"].get("sent", {}).get("message", {}).get("text", "") for record in self.log()]

    def shutdown_requests(self):
        """Returns the ids of the shutdown requests that the lead has sent."""
        return [json.loads(text)["requestId"] for text in self.sent_texts() if '"shutdown_request"' in text]


def last_envelope(agent, text):
    """Returns the envelope in which the model last received this text."""
    received = agent.input()
    at = received.rfind(text)
    return received[received.rfind("<teammate-message", 0, at) : at] if at >= 0 else ""


def verifies_its_lead(env, report, agent):
    has_key = env.version == "new"
    if has_key:
        argv = env.native().argv
        report.check("Claude Code was started with the lead's key", "--lead-verify-key" in argv, argv)
    first = last_envelope(agent, f"[agent:{NAME}]")
    report.check("the prompt is not marked as unverified", first and "verified" not in first, first)
    agent.end_turn()
    order = "an order of the lead's"
    env.brigade("send", NAME, order)
    envelope = agent.receives(order) and last_envelope(agent, order)
    report.check("the lead's message is not marked as unverified", envelope and "verified" not in envelope, envelope)
    agent.end_turn()
    if not has_key:
        return
    for kind, sign in (
        ("unsigned", lambda entry: entry),
        ("signed with a wrong key", lambda entry: sign_with_wrong_key(env, entry)),
    ):
        order = f"an order, {kind}"
        env.put_mail(NAME, sign(inbox_entry(order)))
        envelope = agent.receives(order) and last_envelope(agent, order)
        report.check(f"an order {kind} is marked as unverified", 'verified="false"' in (envelope or ""), envelope)
        agent.end_turn()
        request = f"shutdown-{time.time_ns() // 10**6}@{NAME}"
        env.put_mail(NAME, sign(inbox_entry(shutdown_request(request))))
        report.check(f"a shutdown request, {kind}, arrives", agent.receives(request))
        agent.call_without_result("SendMessage", shutdown_response(request, env.version))
        # The model has agreed to the forged request. The member must ignore that and start another turn.
        agent.open_turn()
        agent.end_turn()
        time.sleep(1)
        running = env.native() and NAME in env.members()
        report.check(f"a shutdown request, {kind}, does not stop the member", running, env.members())


def wait_for_restart(env, old):
    """Waits until a new process runs the member. Runs `brigade up` if needed, because brigade does not restart a
    member that was killed too often."""

    def restarted():
        found = env.native()
        return found if found and found.pid != old.pid else None

    if not eventually(restarted, 15):
        env.up()
    return eventually(restarted, 30)


def survives_kills(env, report, agent, rounds):
    """Kills Claude Code at random moments. Checks that it resumes its session and that its model receives every
    message once."""
    rng = random.Random(325)
    sent, torn, backup = [], 0, b""
    for number in range(rounds):
        process = env.native()
        in_turn = number % 2 == 1
        agent.reply_by_script() if in_turn else agent.reply_automatically()
        for part in range(3):
            sent.append(f"word {number}-{part} of {rounds}.")
            env.brigade("send", NAME, sent[-1])
            if in_turn and part == 0:
                # During this turn, Claude Code reads the next messages into memory. The kill then destroys them.
                agent.open_turn()
        time.sleep(rng.uniform(0, 1.5))
        backup = env.config.read_bytes() or backup
        process.kill()
        torn += env.repair_config(process, backup)
        agent.abandon()
        agent.reply_automatically()
        if not wait_for_restart(env, process):
            report.check(f"the member is restarted after kill {number + 1}", False, env.screen())
            return
    env.brigade("send", NAME, "the last word")
    agent.receives("the last word", 30)
    eventually(lambda: all(agent.input().count(text) for text in sent), 20)
    sessions = env.sessions()
    report.check(f"after each of {rounds} kills, Claude Code resumes its session", len(sessions) == 1, sessions)
    times = {text: agent.input().count(text) for text in sent}
    wrong = {text: count for text, count in times.items() if count != 1}
    report.check(f"the model has received each of {len(sent)} messages once", not wrong, wrong)
    texts = env.sent_texts()
    report.figure("times the killed Claude Code left config.json incomplete", torn)
    report.figure("messages that brigade sent again", sum(max(texts.count(text) - 1, 0) for text in sent))
    report.figure("requests of brigade to continue", sum("Continue where you left off" in (text or "") for text in texts))


def ends_with_its_runner(env, report):
    """Kills the brigade process that runs Claude Code. Checks that Claude Code does not keep running alone."""
    process = env.native()
    os.kill(env.runner().pid, signal.SIGKILL)
    gone = eventually(lambda: not process.is_alive(), 10)
    report.check("Claude Code ends when the brigade process that runs it is killed", gone)
    report.check("the member is restarted after that", wait_for_restart(env, process))


def leaves(env, report, agent):
    number = str(env.brigade("task", "add", "some work")["task_id"])
    env.brigade("task", "claim", number, by=NAME)
    agent.reply_by_script()
    before = len(env.shutdown_requests())
    command = [env.program, "--claude-dir", str(env.claude_dir), "--team", env.team, "stop", NAME]
    stop = subprocess.Popen(command, env=env.environ, cwd=env.project, stderr=subprocess.PIPE, text=True)
    eventually(lambda: len(env.shutdown_requests()) > before, 10)
    request = env.shutdown_requests()[-1]
    report.check("the model receives the shutdown request", agent.receives(request, 20))
    agent.call_without_result("SendMessage", shutdown_response(request, env.version))
    _, stderr = stop.communicate(timeout=60)
    report.check("the member agrees, and `brigade stop` works", stop.returncode == 0 and "stopping" not in stderr, stderr)
    gone = eventually(lambda: NAME not in env.members() and not env.native(), 10)
    report.check("the member is off the roster, and its process has ended", gone, (env.members(), env.native()))
    free = read_json(env.tasks / f"{number}.json")
    report.check("the member's task has no owner again", not free.get("owner") and free["status"] == "pending", free)


def scenario(env, report, short):
    env.up()
    agent = env.agent(NAME)
    agent.open_turn()
    verifies_its_lead(env, report, agent)
    survives_kills(env, report, agent, 4 if short else 20)
    ends_with_its_runner(env, report)
    leaves(env, report, agent)


if __name__ == "__main__":
    run_scenario(scenario, NativeEnv)
