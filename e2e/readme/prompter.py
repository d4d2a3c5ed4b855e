"""What stands between an agent and the scripted model: behind the words of the page it puts the script that a
model would make up by itself. So the page has no scripts in it, and what is typed is the page's."""

import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PASSED_ON = ("content-type", "authorization", "x-api-key", "anthropic-version", "anthropic-beta", "accept")


class Prompter:
    """Runs while it is entered. `scripts` are steps by the words they follow, or what makes them of a request."""

    def __init__(self, model, scripts):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
        self._server.daemon_threads = True
        self._server.model = urlsplit(model).netloc
        self._server.scripts = scripts
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Asked(BaseHTTPRequestHandler):
    def do_POST(self):
        self._pass_on(self.rfile.read(int(self.headers.get("content-length", 0))))

    def do_GET(self):
        self._pass_on(None)

    def _pass_on(self, body):
        for words, steps in self.server.scripts.items():
            if body:
                steps = steps(body) if callable(steps) else steps
                # As it stands within a string of JSON.
                script = json.dumps(f"[script]{json.dumps(steps)}[/script]")[1:-1]
                body = body.replace(words.encode(), f"{words} {script}".encode())
        headers = {name: its for name, its in self.headers.items() if name.lower() in PASSED_ON}
        model = http.client.HTTPConnection(self.server.model, timeout=120)
        model.request(self.command, self.path, body, headers)
        answer = model.getresponse()
        said = answer.read()
        model.close()
        self.send_response(answer.status)
        self.send_header("content-type", answer.getheader("content-type", "application/json"))
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_):
        """It says nothing."""
