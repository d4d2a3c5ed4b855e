"""Ends the session of a real Claude Code lead in one way, resumes it, and checks that its teammate is back.

The teammate is a real Codex, which brigade runs. When the session ends, the teammate is in a turn and owns a task.
"""

import os
import signal
import time

from guest.guest_env import GuestEnv, instruction

from lib import processes
from lib.env import MODEL, run_scenario
from lib.scripted_model import say, team_tool, tool
from lib.util import eventually, read_json

NAME = "cody"
# The ends after which the panes of the teammates are closed.
CLOSES_PANES = {"exit", "sigterm", "close", "interrupt"}


class EndsEnv(GuestEnv):
    def session(self):
        """Returns the description of the lead's session, which Claude Code itself writes."""
        found = map(read_json, self.claude_dir.glob("sessions/*.json"))
        leads = [one for one in found if processes.find(one["pid"]) and one.get("kind", "interactive") == "interactive"]
        return leads[0] if leads else {}

    def lead_process(self):
        """Returns the process of the lead."""
        pane = int(self._tmux("display-message", "-p", "-t", "{top-left}", "#{pane_pid}").stdout)
        return processes.find(self.session().get("pid", pane))

    def end_session(self, how):
        lead = self.lead_process()
        if how == "exit":
            self.type_to_lead("/exit")
            # With teammates in panes, Claude Code asks. The first answer, which is selected, is to exit.
            if eventually(lambda: not lead.is_alive() or self.shows("❯1."), 15) and lead.is_alive():
                self.press("Enter")
        elif how == "sigterm":
            os.kill(lead.pid, signal.SIGTERM)
        elif how == "close":
            self._tmux("kill-pane", "-t", "{top-left}")
        elif how == "kill":
            lead.kill()
        elif how == "interrupt":
            self.press("C-c")
        else:
            self.type_to_lead(f"/{how}")
        return lead

    def is_led(self):
        """Returns whether the lead that runs now has claimed the team. After a resume, that takes a moment. Earlier versions of
        Claude Code do not name their process."""
        lead = read_json(self.config).get("leadProcess", {}) if self.config.exists() else {}
        return "pid" not in lead or lead["pid"] == self.session().get("pid")

    def resume(self, session):
        """Resumes the session in a new terminal."""
        self.lead.abandon()
        self.lead.reply_by_script()
        more = ["--model", MODEL, "--resume", session, "[agent:lead] Go on."]
        self._start_claude(self.columns, self.rows, *self.lead_arguments, *more)
        self.lead.open_turn()

    def teams_with(self, name):
        """Returns the teams on whose rosters the member is, once for each entry."""
        rosters = {path.parent.name: read_json(path) for path in self.claude_dir.glob("teams/*/config.json")}
        return [team for team, roster in rosters.items() for member in roster["members"] if member["name"] == name]

    def roster(self):
        """Returns the names on the roster; an empty list while there is no team."""
        return self.members() if self.config.exists() else []

    def newest_team(self):
        """Returns the team that was created last: the one of the resumed lead."""
        created = {path.parent.name: read_json(path)["createdAt"] for path in self.claude_dir.glob("teams/*/config.json")}
        return max(created, key=created.get, default=None)

    def runners(self, name):
        """Returns the brigade processes that run the member, in a pane or without one."""
        every = processes.in_home(self.home)
        return [one for one in every if one.executable() == self.program and is_runner(one.argv, name)]


def is_runner(argv, name):
    return ("--agent-name" in argv and name in argv) or ("play" in argv and argv[-1] == name)


def pids(env):
    """Returns the ids of the processes that run the teammate. Its parent is another process after its pane was closed."""
    return [one.pid for one in env.runners(NAME)]


def prepare(env, report):
    """Starts the team, with a teammate in a turn that has a task."""
    lead = env.start_lead("ends")
    prompt = instruction("The first words.", team_tool("send_message", to="team-lead", message="ready"), say("Done."))
    env.spawn_agent(NAME, "codex", prompt)
    report.check("the teammate works", env.lead_receives("ready", 60), env.pane(NAME)[-600:])
    env.becomes_idle(NAME)
    lead.call("TaskCreate", {"subject": "build it", "description": "the work"})
    lead.call("TaskUpdate", {"taskId": "1", "owner": NAME, "status": "in_progress"})
    env.receives("codex", NAME, "build it")
    env.becomes_idle(NAME)
    env.order(NAME, "A slow turn.", tool("exec_command", cmd="sleep 6; echo slept"), say("It took long."))
    env.receives("codex", NAME, "A slow turn.")
    env.lead.only_listen()
    eventually(lambda: env.session().get("status", "idle") == "idle", 10)


def scenario(env, report, short):
    how = os.environ["END"]
    prepare(env, report)
    if how == "life":
        life(env, report)
        return
    before = pids(env)
    session = env.session().get("sessionId") or read_json(env.config)["leadSessionId"]
    team = env.team
    lead = env.end_session(how)
    if how in ("interrupt", "clear", "branch", "compact"):
        stays(env, report, how, lead, before, session)
        return
    ended = eventually(lambda: not lead.is_alive(), 15)
    report.check(f"{how}: the lead ends", ended, env.screen())
    time.sleep(3)
    if env.version != "old" and how != "kill":
        report.check("the folder of the team is gone, and nothing creates it again", not env.config.parent.exists())
        status = env.run("status").stdout
        report.check("status shows how to continue", f"claude --resume {session}" in status, status)
    report.check("the teammate's process waits", pids(env) == before)
    print(env.run("status").stdout, flush=True)
    if env.version == "old":
        take_over(env, report, team)
    else:
        env.resume(session)
        returns(env, report, team, before)


def returns(env, report, team, before):
    """Checks that the teammate is back on the team of the resumed lead, with everything that it had."""
    started = time.monotonic()
    eventually(lambda: env.teams_with(NAME) == [env.newest_team()], 20)
    joined = env.teams_with(NAME)
    report.figure("seconds until the teammate is on the roster", f"{time.monotonic() - started:.1f}")
    report.check("the teammate is on the roster of the lead's team, once", joined == [env.newest_team()], joined)
    report.figure("team before and after", f"{team}, {joined and joined[0]}")
    report.check("one process runs it, the same as before", pids(env) == before, env.runners(NAME))
    model_team, env.team = env.team, joined[0] if joined else team
    task = env.lead.task_line(1)
    report.figure("the task, as the lead sees it", task)
    sent = env.order(NAME, "The lead is back.", team_tool("send_message", to="team-lead", message="heard it"), say("Yes."))
    report.check("the lead reaches the teammate with its own tool", not sent.failed, sent)
    # The instructions of the agent's session name the first team.
    lead_team, env.team = env.team, model_team
    received = env.receives("codex", NAME, "The lead is back.", 60)
    report.check("the teammate's model receives it", received, env.pane(NAME)[-600:])
    for text in ("The first words.", "A slow turn.", "The lead is back."):
        times = env.count_received("codex", NAME, text)
        report.check(f"its session continues: {text!r} is there once", times == 1, times)
    env.team = lead_team
    env.spawn_agent("newt", "codex", instruction("Wait.", say("Waiting.")))
    report.check("the lead receives the teammate's message", env.lead_receives("heard it", 40), env.lead.input()[-600:])
    stopped = env.run("--team", env.team, "stop", NAME, "--now")
    report.check("the person can stop the teammate", stopped.returncode == 0 and not env.teams_with(NAME), stopped)


def life(env, report):
    """Leads a session through everything that can happen to it, and prints the team after each step."""
    session = env.session()["sessionId"]
    (runner,) = pids(env)

    def row(step, members):
        found = eventually(lambda: env.is_led() and sorted(set(env.roster()) - {"team-lead"}) == members, 20)
        tasks = [f"{task['id']} {task['status']} {task.get('owner')}" for task in map(read_json, env.tasks.glob("*.json"))]
        unread = len(env.mail(NAME, "--unread")) if found else "?"
        report.figure(f"{step}", f"members {env.roster()}, processes {pids(env)}, tasks {tasks}, unread {unread}")
        report.check(f"{step}: every member is there, once", found, env.roster())
        report.check(f"{step}: the same process runs {NAME}", pids(env) == [runner], pids(env))
        report.check(f"{step}: the task has its owner", tasks == [f"1 in_progress {NAME}"], tasks)

    def resume(step, members):
        env.resume(session)
        row(f"{step}, then claude --resume", members)
        text = f"Hello after {step}."
        env.order(NAME, text, say("Hello."))
        report.check(f"{step}: {NAME} hears the lead again", env.receives("codex", NAME, text, 60), env.pane(NAME)[-400:])
        env.becomes_idle(NAME)
        env.lead.only_listen()
        eventually(lambda: env.session().get("status") == "idle", 10)

    def end(step, how):
        lead = env.end_session(how)
        if not eventually(lambda: not lead.is_alive(), 15):
            raise AssertionError(f"{step}: the lead has not ended:\n{env.screen()}")
        time.sleep(2)

    row("work", [NAME])
    env.end_session("compact")
    report.check("/compact: Claude Code summarizes its conversation", eventually(lambda: env.shows("Compacted"), 30), env.screen())
    row("/compact", [NAME])
    for step, how in (("/exit", "exit"), ("kill -9", "kill"), ("/exit again", "exit")):
        end(step, how)
        resume(step, [NAME])
    spawned = env.run("--team", env.team, "spawn", "luke", "--agent", "codex", environ=env.lead_environ)
    report.check("a member joins late", spawned.returncode == 0, spawned)
    row("late join", [NAME, "luke"])
    late = [one.pid for one in env.runners("luke")]
    end("/exit after the late join", "exit")
    resume("/exit after the late join", [NAME, "luke"])
    report.check("the same process runs luke", [one.pid for one in env.runners("luke")] == late, late)
    agents = [one for one in processes.tree(runner)[1:] if " guard " not in one.command_line]
    for agent in agents:
        agent.kill()
    env.lead.reply_by_script()
    env.type_to_lead("go on")
    env.lead.open_turn()
    env.order(NAME, "Hello after the kill of Codex.", say("Hello."))
    heard = env.receives("codex", NAME, "Hello after the kill of Codex.", 60)
    report.check("kill -9 of Codex: it is back", heard, env.pane(NAME)[-400:])
    row("kill -9 of Codex", [NAME, "luke"])
    for text in ["The first words.", "A slow turn.", "Hello after /exit.", "Hello after kill -9.", "Hello after the kill of Codex."]:
        times = env.count_received("codex", NAME, text)
        report.check(f"at the end, its model has {text!r} once", times == 1, times)
    for name in (NAME, "luke"):
        env.run("--team", env.team, "stop", name, "--now", environ=env.lead_environ)


def take_over(env, report, team):
    """Checks that a person can lead the team on. A resumed Claude Code of the old version has no team."""
    report.check("the teammate stays on the roster", env.teams_with(NAME) == [team], env.teams_with(NAME))
    taken = env.run("resume", team, "--take-over", "mine", environ=env.lead_environ)
    report.check("a person takes the team over", taken.returncode == 0 and "mine" in env.teams_with(NAME), taken)
    env.run("--team", "mine", "send", NAME, instruction("You lead on.", say("Yes.")), environ=env.lead_environ)
    report.check("the teammate's model receives a message", env.receives("codex", NAME, "You lead on.", 60))
    down = env.run("down", "mine", "--now", environ=env.lead_environ)
    report.check("the team ends", down.returncode == 0 and not env.runners(NAME), down)


def stays(env, report, how, lead, before, session):
    """Checks an end of the conversation after which the lead's process still runs."""
    time.sleep(3)
    report.check(f"{how}: the lead's process still runs", lead.is_alive(), env.screen())
    if how == "interrupt":
        # Claude Code has closed the panes and removed its teammates, but its model does not know.
        ended = eventually(lambda: not env.runners(NAME), 15)
        report.check("the teammate has ended", ended and not env.teams_with(NAME), env.runners(NAME))
        return
    report.check("the teammate stays on the team", pids(env) == before and env.teams_with(NAME) == [env.team])
    now = env.session().get("sessionId")
    if how == "compact":
        report.check("the session has the same id", now == session, now)
    else:
        report.check("the session has another id", now and now != session, now)
    shown = env.run("status", environ=env.environ | {"CLAUDE_CODE_SESSION_ID": now or ""}).stdout
    report.check("the team of the session is found by the new id", env.team in shown, shown)


if __name__ == "__main__":
    run_scenario(scenario, EndsEnv)
