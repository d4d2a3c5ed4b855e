"""The processes that are killed while they work: the supervisor, and the process that runs a member."""

import fcntl
import json
import subprocess
import sys
import time
from pathlib import Path

from cases import TEAM_FILE, Case, crashed, resumed, team_file, wait_until_idle
from kill_env import TEAM
from kill_points import strace

from lib.processes import all_processes, in_home, kill_home, members_in_home
from lib.util import eventually

# An agent whose session shows which prompts it has received.
SESSION_AGENT = f"acp:{sys.executable} {Path(__file__).parents[1] / 'soak/acp_agent.py'}"
# How long a process may take to do its work.
TIMEOUT = 10


def trace(env, argv, options, drive):
    """Starts a program under strace, and drives it until it has done its work or was killed; returns whether strace
    killed it. Otherwise kills it at the end."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    tracer = subprocess.Popen([*strace(env.log, *options), *argv], env=env.environ, cwd="/", **streams)
    drive(env, lambda: tracer.poll() is not None)
    killed = tracer.poll() is not None
    for process in all_processes():
        if process.parent == tracer.pid:
            process.kill()
    tracer.wait()
    return killed


def attach(env, process, options, drive):
    """Like `trace`, for a process that runs already."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    quiet = [option for option in strace(env.log, *options, "-p", str(process.pid)) if option != "-qq"]
    tracer = subprocess.Popen(quiet, env={"PATH": env.environ["PATH"]}, **streams)
    tracer.stderr.readline()  # strace is attached
    drive(env, lambda: not process.is_alive())
    # Without a kill, the process has ended by itself or still runs.
    killed = tracer.poll() is not None and "SIGKILL" in env.log.read_text(errors="replace")
    process.kill()
    tracer.wait()
    tracer.stderr.close()
    return killed


def wait_for(env, is_over, condition, timeout=TIMEOUT):
    """Waits until a condition is true or the traced process has ended; returns whether the condition is true."""
    return eventually(lambda: is_over() or condition(), timeout) and not is_over()


def heard(env, text, folder="a"):
    path = env.project / folder / "heard"
    return path.exists() and text in path.read_text()


# The supervisor.


def unstarted(env):
    """A team was brought up while no supervisor could start, so that the next supervisor starts its members."""
    team_file(env)
    env.run_ok("up")
    save_argv(env)
    team_file(env)
    folder = Path(env.supervisor_lock).parent
    folder.mkdir(parents=True)
    with open(env.supervisor_lock, "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        up = subprocess.Popen([env.program, "up"], env=env.environ, cwd=env.project, stderr=subprocess.DEVNULL)
        if not eventually(lambda: len(list(folder.glob(f"{TEAM}/*/spec.json"))) == 2, TIMEOUT):
            raise RuntimeError("`brigade up` has added no members")
        time.sleep(0.3)
        up.kill()
        up.wait()


def save_argv(env):
    """Remembers the command lines of the supervisor and of alice's process."""
    [supervisor] = [process for process in in_home(env.home) if "supervise" in process.argv]
    env.supervisor_argv = supervisor.argv
    env.member_argv = members_in_home(env.home)["alice"].argv
    env.supervisor_lock = str(next(env.state.glob("host/*/supervisor")))


def crashed_running(env):
    """Like `crashed`, with the command lines of the processes."""
    team_file(env)
    env.run_ok("up")
    wait_until_idle(env)
    save_argv(env)


def run_supervisor(env, case, options):
    def drive(env, is_over):
        registry = Path(env.supervisor_lock).parent / TEAM
        both = ("alice", "bob")
        wait_for(env, is_over, lambda: all((registry / name / "joined").exists() for name in both))
        wait_for(env, is_over, lambda: set(members_in_home(env.home)) == set(both))
        wait_for(env, is_over, lambda: heard(env, "assigns you task 1"))
        time.sleep(0.5)

    return trace(env, env.supervisor_argv, options, drive)


def end_supervisor(env, case, options):
    """Takes the team down while the supervisor is traced."""
    [supervisor] = [process for process in in_home(env.home) if "supervise" in process.argv]

    def drive(env, is_over):
        env.run("down", "--now")
        wait_for(env, is_over, lambda: False, 6)

    return attach(env, supervisor, options, drive)


# A member.


def member_with_mail(env):
    """Alice has an unread message, and her agent can say what her session contains."""
    team_file(env)
    file = TEAM_FILE.replace('dir = "a"', f'dir = "a"\nagent = {json.dumps(SESSION_AGENT)}')
    (env.project / "brigade.toml").write_text(file)
    env.run_ok("up")
    wait_until_idle(env)
    save_argv(env)
    kill_home(env.home)
    env.run_ok("send", "alice", "message one")


def run_member(env, case, options):
    sent = []

    def drive(env, is_over):
        if wait_for(env, is_over, lambda: heard(env, "message one")):
            sent.append(env.run_ok("send", "alice", "message two"))
            wait_for(env, is_over, lambda: heard(env, "message two"))
            time.sleep(0.3)

    killed = trace(env, env.member_argv, options, drive)
    if not sent:
        env.run_ok("send", "alice", "message two")
    return killed


def stop_member(env, case, options):
    """Stops alice while her process is traced."""

    def drive(env, is_over):
        env.run("stop", "alice", "--now")
        wait_for(env, is_over, lambda: False, 1)

    return attach(env, members_in_home(env.home)["alice"], options, drive)


STOP = ("stop", "alice", "--now")
CASES = (
    Case("supervisor-starts", (), unstarted, (), has_processes=True, attempt=run_supervisor, next_command=("up",)),
    Case("supervisor-restarts", (), crashed_running, (), has_processes=True, attempt=run_supervisor, next_command=("resume",), sample=2),
    Case("supervisor-ends", (), crashed_running, (), resumed, True, end_supervisor, ("up",), sample=1),
    Case("member-works", (), member_with_mail, (), has_processes=True, attempt=run_member, next_command=("resume",)),
    Case("member-stops", (), crashed, ("was stopped",), resumed, True, stop_member, STOP, sample=2),
)
