"""An agent without a model that implements just enough of the Agent Client Protocol. It logs every prompt as a line of
JSON in the file `heard` in its folder, and replays the logged prompts when its session is loaded."""

import json
import os
import sys


def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
    sys.stdout.flush()


def send_update(kind, text):
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    write({"method": "session/update", "params": {"sessionId": "s1", "update": update}})


def log_prompt(params):
    """Logs the text of a prompt in one write, so that a killed agent has logged either the whole prompt or
    nothing."""
    text = "\n".join(part.get("text", "") for part in params["prompt"])
    with open("heard", "ab", buffering=0) as log:
        log.write(json.dumps(text, ensure_ascii=False).encode() + b"\n")


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
    if method == "session/new":
        return {"sessionId": "s1"}
    if method == "session/load" and os.path.exists("heard"):
        with open("heard", encoding="utf-8") as log:
            for line in log:
                send_update("user_message_chunk", json.loads(line))
    if method == "session/prompt":
        log_prompt(params)
        send_update("agent_message_chunk", "Fine.")
        return {"stopReason": "end_turn"}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        write({"id": request["id"], "result": answer(request["method"], request.get("params", {}))})
