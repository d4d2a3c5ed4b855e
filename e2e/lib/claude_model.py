"""The scripted model: a Messages API on loopback that a real Claude Code takes for its own.

Each request an agent makes is held open until the script answers it, so the script can have the
real program run its real tools (`lead.call("TaskCreate", {...})`) and read what they returned.
An agent is known by the mark `[agent:NAME]` in the first prompt it was given.
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
PATIENCE = 60


class Outcome(NamedTuple):
    """What the real program handed its model as the result of one tool call."""

    text: str
    failed: bool

    def says_success(self):
        """Whether a tool that answers in JSON claims to have done its work."""
        return not self.failed and '"success":true' in self.text.replace(" ", "")


def words(content):
    """The text in a message's content, tool results included."""
    if isinstance(content, str):
        return content
    parts = []
    for block in content or []:
        if block.get("type") == "text":
            parts.append(block["text"])
        elif block.get("type") == "tool_result":
            parts.append(words(block.get("content")))
    return "\n".join(parts)


def user_messages(body):
    return [message["content"] for message in body["messages"] if message["role"] == "user"]


class Turn:
    """One request an agent has made, open until it is answered."""

    def __init__(self, body):
        self.body = body
        self.reply = None
        self.answered = threading.Event()

    def answer(self, blocks, stop):
        self.reply = (blocks, stop)
        self.answered.set()

    def outcome(self, use):
        for content in user_messages(self.body):
            for block in content if isinstance(content, list) else []:
                if block.get("type") == "tool_result" and block["tool_use_id"] == use:
                    return Outcome(words(block.get("content")), bool(block.get("is_error")))
        raise LookupError(f"no result for tool call {use}")


class Agent:
    """The script's hold on one agent: its open turn, and all it was ever told."""

    def __init__(self, name):
        self.name = name
        self._turns = queue.Queue()
        self._turn = None
        self._heard = ""
        self._news = threading.Condition()
        self._obliging = False

    def take(self, turn):
        """Called by the server for every request of this agent."""
        with self._news:
            # A request carries the whole conversation, so the latest one is all there was to hear,
            # and a request that the program repeats is not counted twice.
            self._heard = "\n".join(words(content) for content in user_messages(turn.body))
            self._news.notify_all()
            if self._obliging:
                turn.answer([{"type": "text", "text": "Fine."}], "end_turn")
            else:
                self._turns.put(turn)

    def open_turn(self, patience=PATIENCE):
        """Waits until the agent wants something of its model."""
        if self._turn is None:
            try:
                self._turn = self._turns.get(timeout=patience)
            except queue.Empty:
                raise TimeoutError(f"{self.name} made no request for {patience} s") from None
        return self._turn

    def calls(self, *uses):
        """Has the agent make these tool calls, all in one reply; gives one Outcome for each."""
        turn = self.open_turn()
        ids = [f"toolu_{uuid.uuid4().hex[:24]}" for _ in uses]
        self._turn = None
        turn.answer(
            [
                {"type": "tool_use", "id": use, "name": tool, "input": arguments}
                for use, (tool, arguments) in zip(ids, uses)
            ],
            "tool_use",
        )
        after = self.open_turn()
        return [after.outcome(use) for use in ids]

    def call(self, tool, arguments):
        return self.calls((tool, arguments))[0]

    def end_turn(self):
        """Ends the open turn; the next one is open to the script again."""
        turn = self.open_turn()
        self._turn = None
        turn.answer([{"type": "text", "text": "Done."}], "end_turn")

    def rest(self):
        """Ends the open turn and every later one at once: from here on the agent only listens."""
        turn = self.open_turn()
        with self._news:
            self._obliging = True
            self._turn = None
            turn.answer([{"type": "text", "text": "Done."}], "end_turn")

    def begin(self, tool, arguments):
        """Has the agent make a tool call after which it may be gone."""
        turn = self.open_turn()
        self._turn = None
        use = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": tool, "input": arguments}
        turn.answer([use], "tool_use")

    def oblige(self):
        """Ends every turn at once, those that are open as well."""
        with self._news:
            self._obliging = True
            self._answer_all("Fine.")

    def attend(self):
        """The next turn is open to the script again."""
        with self._news:
            self._obliging = False

    def lose(self):
        """The agent was killed: nobody waits for an answer to what it asked."""
        with self._news:
            self._answer_all("To nobody.")

    def _answer_all(self, text):
        turns = [self._turn] if self._turn else []
        self._turn = None
        while not self._turns.empty():
            turns.append(self._turns.get())
        for turn in turns:
            turn.answer([{"type": "text", "text": text}], "end_turn")

    def heard(self):
        """Everything that was put to the model in the user's place, as one text."""
        with self._news:
            return self._heard

    def hears(self, sought, patience=10):
        """Whether the model is told a text that holds `sought` within so many seconds."""
        with self._news:
            return self._news.wait_for(lambda: sought in self._heard, patience)


class Model:
    """The server, and the agents that have spoken to it."""

    def __init__(self):
        self._agents = {}
        self._guard = threading.Lock()
        model = self

        class Requests(_Requests):
            def agent_of(self, body):
                return model.agent_of(body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def agent(self, name):
        with self._guard:
            return self._agents.setdefault(name, Agent(name))

    def agent_of(self, body):
        """The agent behind a request; None for the program's own small questions (titles and such)."""
        told = [words(content) for content in user_messages(body)]
        if len(body.get("tools") or []) < 3 or "[SUGGESTION MODE" in told[-1]:
            return None
        mark = next(filter(None, map(MARK.search, told)), None)
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
            pass  # a program that was killed says no goodbye

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
                pass  # the program went away, as it does at the end of every scenario

    def _answer(self, body):
        turn = Turn(body)
        agent = self.agent_of(body)
        streaming = body.get("stream")
        if streaming:
            self._open_stream()
        if agent is None:
            turn.answer([{"type": "text", "text": '{"title": "proof"}'}], "end_turn")
        else:
            agent.take(turn)
        # The pings keep the program from giving up on a turn that the script holds open.
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
