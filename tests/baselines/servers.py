"""A real HTTP server with OpenAI's chat completions, whose answers the test decides."""

from __future__ import annotations

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Answer = tuple[int, dict[str, str], bytes]


class Endpoint(ThreadingHTTPServer):
    """Remembers what it was asked."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(body)
        self.server.paths.append(self.path)
        self.server.keys.append(self.headers["Authorization"])
        status, headers, data = self.server.answer(body)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def completion(body: dict[str, Any], words: str = "what was done, in short") -> Answer:
    """Return an answer with the usage of a model that has a token for each four characters."""
    read = sum(len(message["content"]) for message in body["messages"]) // 4
    usage = {"prompt_tokens": read, "completion_tokens": len(words) // 4}
    choice = {"index": 0, "message": {"role": "assistant", "content": words}}
    return 200, {}, json.dumps({"choices": [choice], "usage": usage}).encode()


@contextmanager
def serving(answer: Callable[[dict[str, Any]], Answer] = completion) -> Iterator[Endpoint]:
    """Yield a running endpoint."""
    endpoint = Endpoint(answer)
    thread = Thread(target=endpoint.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.shutdown()
        thread.join()
        endpoint.server_close()
