"""A proxy between an agent and the scripted model. In each request, it appends a script to texts that come from a page of
the documentation, so that the page itself needs no scripts."""

import http.client
import json
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from lib.scripted_model import script

FORWARDED_HEADERS = ("content-type", "authorization", "x-api-key", "anthropic-version", "anthropic-beta", "accept")


class ScriptProxy:
    """A context manager that runs the proxy. `scripts` maps a text to the steps that the model takes after that text, or
    to a function that returns these steps for a request."""

    def __init__(self, model, scripts):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), ProxyHandler)
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


class ProxyHandler(BaseHTTPRequestHandler):
    def do_POST(self):
        self._forward(self.rfile.read(int(self.headers.get("content-length", 0))))

    def do_GET(self):
        self._forward(None)

    def _forward(self, body):
        for text, steps in self.server.scripts.items():
            if body:
                steps = steps(body) if callable(steps) else steps
                # Escape the script, because it is inserted into a JSON string.
                escaped = json.dumps(script(*steps))[1:-1]
                body = body.replace(text.encode(), f"{text} {escaped}".encode())
        headers = {name: value for name, value in self.headers.items() if name.lower() in FORWARDED_HEADERS}
        # The connection of an agent that was interrupted is closed, and at the end of a test that of the model.
        with suppress(ConnectionError, http.client.HTTPException):
            model = http.client.HTTPConnection(self.server.model, timeout=120)
            model.request(self.command, self.path, body, headers)
            answer = model.getresponse()
            content = answer.read()
            model.close()
            self.send_response(answer.status)
            self.send_header("content-type", answer.getheader("content-type", "application/json"))
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_):
        """Prints nothing."""
