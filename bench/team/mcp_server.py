"""One `brigade mcp` process of a member, and calls of its tools."""

import json
import subprocess

from team import BRIGADE

CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class McpServer:
    def __init__(self, team, member):
        identity = {"BRIGADE_TEAM": "cost", "BRIGADE_AS": member, "BRIGADE_DELIVERED": "1"}
        self.child = subprocess.Popen([BRIGADE, "mcp"], env=team.environ | identity, cwd=team.home, text=True, bufsize=1,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._number = 0
        try:
            self._call("initialize", CLIENT)
            self._write({"method": "notifications/initialized"})
        except OSError:
            self.close()
            raise

    def tool(self, name, arguments):
        """Calls a tool. Returns its result, which may be an error of the tool. Raises OSError if the process has ended."""
        return self._call("tools/call", {"name": name, "arguments": arguments})["result"]

    def _write(self, message):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self.child.stdin.flush()

    def _call(self, method, params):
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        while (line := self.child.stdout.readline()).endswith("\n"):
            reply = json.loads(line)
            if reply.get("id") == self._number:
                return reply
        raise OSError("the MCP server has ended")

    def close(self):
        self.child.kill()
        self.child.wait()
        self.child.stdout.close()
        try:
            self.child.stdin.close()
        except OSError:
            # The pipe still contains a request that the process did not read.
            pass
