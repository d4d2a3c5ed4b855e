"""Records the transcript of one agent. Sets up /home/dev with a project, a team and the vendor's settings, starts the
scripted model, and then runs the driver tests in recording mode."""

import http.server
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

from lib import vendors

WHAT, PROGRAM, BRIGADE, MODEL, TESTS, CRATE = sys.argv[1:]
AGENT = WHAT.split("/")[0]
HOME = Path("/home/dev")
PROJECT = HOME / "project"
PATH = f"{HOME}/bin:{os.path.dirname(subprocess.check_output(['which', 'node'], text=True).strip())}:/usr/bin:/bin"
ENV = {"HOME": str(HOME), "PATH": PATH, "LANG": "C.UTF-8"}
FOLDERS = SimpleNamespace(home=HOME, project=PROJECT)


LIMITS = {
    "codex": {"error": {"message": "Rate limit reached. Please try again in 20s.", "type": "requests", "code": "rate_limit_exceeded"}},
    "claude": {"type": "error", "error": {"type": "rate_limit_error", "message": "This request would exceed your rate limit."}},
    "gemini": vendors.DAILY_QUOTA,
}


class RecordingProxy(http.server.BaseHTTPRequestHandler):
    """A proxy in front of the scripted model. Returns status 500 for a prompt that contains [fail]. After a prompt
    that contains [limit], returns the vendor's rate limit error until a prompt contains [enough]."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if b"[fail]" in body:
            return self.answer(500, "application/json", b'{"error":{"message":"the model is out of order"}}')
        if body.rfind(b"[limit]") > body.rfind(b"[enough]"):
            return self.answer(429, "application/json", json.dumps(LIMITS[AGENT]).encode())
        request = urllib.request.Request(MODEL_URL + self.path, body, {"content-type": "application/json"})
        self.ask(request)

    def do_GET(self):
        self.ask(urllib.request.Request(MODEL_URL + self.path))

    def ask(self, request):
        try:
            with urllib.request.urlopen(request) as answer:
                self.answer(answer.status, answer.headers["content-type"], answer.read())
        except urllib.error.HTTPError as error:
            self.answer(error.code, "application/json", error.read())

    def answer(self, status, kind, body):
        try:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # The agent closed the connection.

    def log_message(self, *_):
        pass


def codex(url):
    more = ["request_max_retries = 1", "stream_max_retries = 1"]
    # An MCP server that the user configured. Its tools need permission.
    more += ["[mcp_servers.other]", f'command = "{HOME}/bin/brigade"', 'args = ["mcp", "--team", "demo", "--as", "bob"]']
    more += ['default_tools_approval_mode = "prompt"']
    return vendors.codex(FOLDERS, url, *more, first=['model = "scripted"'])


def gemini(url):
    (HOME / ".gemini").mkdir()
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"retryFetchErrors": False, "maxAttempts": 1}}
    (HOME / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url}


def opencode(url):
    model = {"limit": {"context": 100000, "output": 10000}, "cost": {"input": 1, "output": 2}}
    permission = {"bash": "ask", "edit": "ask", "team_*": "ask"}
    return vendors.opencode(FOLDERS, url, models={"scripted": model, "too": model}, permission=permission)


def claude(url):
    # Turn off tool search, because the scripted model cannot search for tools.
    return vendors.claude(FOLDERS, url) | {"CLAUDE_CODE_MAX_RETRIES": "1", "ENABLE_TOOL_SEARCH": "false"}


def copilot(url):
    return vendors.copilot(FOLDERS, url)


def qwen(url):
    (HOME / ".qwen").mkdir()
    settings = {"model": {"generationConfig": {"maxRetries": 0}}}
    (HOME / ".qwen" / "settings.json").write_text(json.dumps(settings))
    return {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted"}


VENDORS = {"codex": codex, "gemini": gemini, "opencode": opencode, "claude": claude, "copilot": copilot, "qwen": qwen}

PROJECT.mkdir(parents=True)
(HOME / "other").mkdir()
(HOME / "bin").mkdir()
(HOME / "bin" / "brigade").symlink_to(BRIGADE)
# Agents report their install path, so install each one at the same path for every recording.
installed, enter, rest = PROGRAM.partition("/node_modules/")
if enter:
    (HOME / "agent").mkdir()
    subprocess.run(["mount", "--bind", installed, HOME / "agent"], check=True)
    PROGRAM = f"{HOME}/agent{enter}{rest}"
subprocess.run(["git", "init", "--quiet", PROJECT], env=ENV, check=True)
for arguments in (["team", "create", "demo"], ["team", "join", "bob"]):
    subprocess.run([BRIGADE, *arguments], env=ENV, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)

address = HOME / "model"
subprocess.Popen([MODEL, "--address", address], env=ENV)
while not address.exists():
    time.sleep(0.01)
MODEL_URL = address.read_text().strip()
proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 8080), RecordingProxy)
threading.Thread(target=proxy.serve_forever, daemon=True).start()

variables = ENV | VENDORS[AGENT]("http://127.0.0.1:8080")
recording = {
    "BRIGADE_RECORD": WHAT,
    "BRIGADE_RECORD_PROGRAM": PROGRAM,
    "BRIGADE_RECORD_ENV": "\n".join(f"{name}={value}" for name, value in variables.items()),
    "INSTA_UPDATE": "always",
    "INSTA_WORKSPACE_ROOT": str(Path(CRATE).parents[1]),
    "PATH": PATH,
}
ran = subprocess.run([TESTS, "--exact", f"drivers::{AGENT}::{AGENT}", "--nocapture"], env=recording, cwd=CRATE)
sys.exit(ran.returncode)
