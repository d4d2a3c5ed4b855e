"""A minimal npm registry on the loopback interface, which serves the packages in one folder."""

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
        self.requested = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                name = unquote(self.path.lstrip("/"))
                registry.requested.append(name)
                body = registry.files.get(name) or registry.metadata.get(name)
                self.send_response(200 if body else 404)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.metadata = dict(self._describe(path) for path in folder.glob("*.tgz"))
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def _describe(self, path):
        """Returns the metadata of a package: its package.json, and the URL to download it from."""
        with tarfile.open(path) as packed:
            package = json.load(packed.extractfile("package/package.json"))
        digest = base64.b64encode(hashlib.sha512(self.files[path.name]).digest()).decode()
        package["dist"] = {"tarball": self.url + path.name, "integrity": f"sha512-{digest}"}
        name, version = package["name"], package["version"]
        document = {"name": name, "dist-tags": {"latest": version}, "versions": {version: package}}
        return name, json.dumps(document).encode()
