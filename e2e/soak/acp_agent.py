"""An agent without a model that speaks just enough of the Agent Client Protocol, and that remembers: what it was
told stands in the file `heard` of its folder, a line of JSON each, and is played back when its session is loaded."""

import json
import os
import sys


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    sys.stdout.flush()


def update(kind, text):
    its = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    write({"method": "session/update", "params": {"sessionId": "s1", "update": its}})


def told(params):
    """What a prompt says. One write puts it down, so that a kill leaves all of it or nothing."""
    text = "\n".join(part.get("text", "") for part in params["prompt"])
    with open("heard", "ab", buffering=0) as heard:
        heard.write(json.dumps(text, ensure_ascii=False).encode() + b"\n")


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
    if method == "session/new":
        return {"sessionId": "s1"}
    if method == "session/load" and os.path.exists("heard"):
        with open("heard", encoding="utf-8") as heard:
            for line in heard:
                update("user_message_chunk", json.loads(line))
    if method == "session/prompt":
        told(params)
        update("agent_message_chunk", "Fine.")
        return {"stopReason": "end_turn"}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        write({"id": request["id"], "result": answer(request["method"], request.get("params", {}))})
