"""Anthropic's Messages API on loopback, which a real Claude Code uses as its model.

Every request stays open until the scenario answers it. So a scenario can make Claude Code run its own tools
(`lead.call("TaskCreate", {...})`) and read the results. The first prompt of each agent contains `[agent:NAME]`,
which identifies the agent that sent a request.
"""

import json
import queue
import re
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

MARK = re.compile(r"\[agent:([a-z0-9-]+)\]")
USAGE = {"input_tokens": 100, "output_tokens": 10}
TIMEOUT = 60


class ToolResult(NamedTuple):
    """The result of one tool call, as Claude Code reported it to its model."""

    text: str
    failed: bool

    def is_success(self):
        """Returns whether a tool that answers in JSON reports success."""
        return not self.failed and '"success":true' in self.text.replace(" ", "")


def text_of(content):
    """Returns the text of a message's content, including tool results."""
    if isinstance(content, str):
        return content
    parts = []
    for block in content or []:
        if block.get("type") == "text":
            parts.append(block["text"])
        elif block.get("type") == "tool_result":
            parts.append(text_of(block.get("content")))
    return "\n".join(parts)


def user_messages(body):
    return [message["content"] for message in body["messages"] if message["role"] == "user"]


class ModelRequest:
    """One request of an agent to its model, open until the scenario answers it."""

    def __init__(self, body):
        self.body = body
        self.reply = None
        self.answered = threading.Event()

    def answer(self, blocks, stop):
        self.reply = (blocks, stop)
        self.answered.set()

    def result(self, use):
        for content in user_messages(self.body):
            for block in content if isinstance(content, list) else []:
                if block.get("type") == "tool_result" and block["tool_use_id"] == use:
                    return ToolResult(text_of(block.get("content")), bool(block.get("is_error")))
        raise LookupError(f"no result for tool call {use}")


class AgentModel:
    """The model of one agent: its open request, and the conversation so far."""

    def __init__(self, name):
        self.name = name
        self._turns = queue.Queue()
        self._turn = None
        self._input = ""
        self._changed = threading.Condition()
        self._auto_reply = False

    def receive(self, turn):
        """Accepts a request of this agent. Called by the server."""
        with self._changed:
            # Every request contains the whole conversation. Keep only the latest request, so that the messages in a
            # repeated request do not count twice.
            self._input = "\n".join(text_of(content) for content in user_messages(turn.body))
            self._changed.notify_all()
            if self._auto_reply:
                turn.answer([{"type": "text", "text": "Fine."}], "end_turn")
            else:
                self._turns.put(turn)

    def open_turn(self, timeout=TIMEOUT):
        """Returns the agent's open request; waits for one if there is none."""
        if self._turn is None:
            try:
                self._turn = self._turns.get(timeout=timeout)
            except queue.Empty:
                raise TimeoutError(f"{self.name} made no request for {timeout} s") from None
        return self._turn

    def calls(self, *uses):
        """Makes the agent call these tools, all in one reply of the model; returns a ToolResult for each call."""
        ids = self._call_tools(uses)
        after = self.open_turn()
        return [after.result(use) for use in ids]

    def call(self, tool, arguments):
        return self.calls((tool, arguments))[0]

    def call_without_result(self, tool, arguments):
        """Makes the agent call a tool, without waiting for the result, because the call may end the agent."""
        self._call_tools([(tool, arguments)])

    def _call_tools(self, uses):
        blocks = [
            {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": tool, "input": arguments}
            for tool, arguments in uses
        ]
        self._answer(blocks, "tool_use")
        return [block["id"] for block in blocks]

    def _answer(self, blocks, stop):
        turn = self.open_turn()
        self._turn = None
        turn.answer(blocks, stop)

    def end_turn(self):
        """Ends the open turn. The next turn waits for the scenario again."""
        self._answer([{"type": "text", "text": "Done."}], "end_turn")

    def only_listen(self):
        """Ends the open turn. From now on, every new turn ends as soon as it starts."""
        self.open_turn()
        with self._changed:
            self._auto_reply = True
            self.end_turn()

    def reply_automatically(self):
        """Ends the open turns. From now on, every new turn ends as soon as it starts."""
        with self._changed:
            self._auto_reply = True
            self._answer_all("Fine.")

    def reply_by_script(self):
        """Makes the next turn wait for the scenario again."""
        with self._changed:
            self._auto_reply = False

    def abandon(self):
        """Closes the open requests of an agent that was killed."""
        with self._changed:
            self._answer_all("No one reads this.")

    def _answer_all(self, text):
        turns = [self._turn] if self._turn else []
        self._turn = None
        while not self._turns.empty():
            turns.append(self._turns.get())
        for turn in turns:
            turn.answer([{"type": "text", "text": text}], "end_turn")

    def input(self):
        """Returns everything that the model has received in user messages, as one text."""
        with self._changed:
            return self._input

    def message_with(self, text):
        """Returns the <teammate-message> that contains this text, without its tag name; empty if there is none."""
        return next((part for part in self.input().split("<teammate-message") if text in part), "")

    def task_line(self, task):
        """Makes the agent call TaskList; returns the task's line, or the whole list if there is no such line."""
        listed = self.call("TaskList", {}).text
        return next((line for line in listed.splitlines() if line.startswith(f"#{task} ")), listed)

    def receives(self, text, timeout=10):
        """Waits until the model has received this text; returns False at the timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: text in self._input, timeout)


class ClaudeModel:
    """The HTTP server, with one AgentModel for each agent."""

    def __init__(self):
        self._agents = {}
        self._lock = threading.Lock()
        model = self

        class Requests(_Requests):
            def agent_of(self, body):
                return model.agent_of(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def agent(self, name):
        with self._lock:
            return self._agents.setdefault(name, AgentModel(name))

    def agent_of(self, body):
        """Returns the model of the agent that sent a request; None if the request is not part of a turn."""
        texts = [text_of(content) for content in user_messages(body)]
        if len(body.get("tools") or []) < 3 or "[SUGGESTION MODE" in texts[-1]:
            return None
        mark = next(filter(None, map(MARK.search, texts)), None)
        return self.agent(mark.group(1)) if mark else None

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except ConnectionError:
            pass  # Claude Code was killed

    def do_HEAD(self):
        self._send_json({})

    def do_GET(self):
        self._send_json({"data": []})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if "count_tokens" in self.path:
            self._send_json({"input_tokens": 1000})
        elif "/v1/messages" not in self.path:
            self._send_json({})
        else:
            try:
                self._answer(body)
            except (BrokenPipeError, ConnectionResetError):
                pass  # Claude Code ended, as at the end of every scenario

    def _answer(self, body):
        turn = ModelRequest(body)
        agent = self.agent_of(body)
        streaming = body.get("stream")
        if streaming:
            self._open_stream()
        if agent is None:
            turn.answer([{"type": "text", "text": '{"title": "test"}'}], "end_turn")
        else:
            agent.receive(turn)
        # Send pings while the scenario holds the request open, so that Claude Code does not time out.
        while not turn.answered.wait(5):
            if streaming:
                self._event("ping", {})
        blocks, stop = turn.reply
        message = {
            "id": f"msg_{uuid.uuid4().hex[:20]}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "stop_sequence": None,
            "usage": USAGE,
        }
        if streaming:
            self._stream(message, blocks, stop)
        else:
            self._send_json(message | {"content": blocks, "stop_reason": stop})

    def _stream(self, message, blocks, stop):
        self._event("message_start", {"message": message | {"content": [], "stop_reason": None}})
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                empty, delta = {"text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                partial = json.dumps(block["input"], ensure_ascii=False)
                empty, delta = {"input": {}}, {"type": "input_json_delta", "partial_json": partial}
            self._event("content_block_start", {"index": index, "content_block": block | empty})
            self._event("content_block_delta", {"index": index, "delta": delta})
            self._event("content_block_stop", {"index": index})
        ending = {"stop_reason": stop, "stop_sequence": None}
        self._event("message_delta", {"delta": ending, "usage": {"output_tokens": 10}})
        self._event("message_stop", {})
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _open_stream(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _event(self, kind, data):
        text = f"event: {kind}\ndata: {json.dumps({'type': kind} | data)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()

    def _send_json(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
