"""A registry of npm packages on loopback, with the packages of one folder: what npm asks, and no more."""

import base64
import hashlib
import json
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


class Registry:
    def __init__(self, folder):
        self.files = {path.name: path.read_bytes() for path in folder.glob("*.tgz")}
        self.asked = []
        registry = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                name = unquote(self.path.lstrip("/"))
                registry.asked.append(name)
                body = registry.files.get(name) or registry.described.get(name)
                self.send_response(200 if body else 404)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.described = dict(self._describe(path) for path in folder.glob("*.tgz"))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _describe(self, path):
        """What a registry tells of a package: its own description, and where it is."""
        with tarfile.open(path) as packed:
            package = json.load(packed.extractfile("package/package.json"))
        digest = base64.b64encode(hashlib.sha512(self.files[path.name]).digest()).decode()
        package["dist"] = {"tarball": self.url + path.name, "integrity": f"sha512-{digest}"}
        name, version = package["name"], package["version"]
        told = {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}
        return name, json.dumps(told).encode()
