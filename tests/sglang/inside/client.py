"""What a client of one server does."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

from tests.sglang.inside.server import SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.sglang.inside.server import Server


class Client:
    """Asks with the key of the server, or with another."""

    def __init__(self, server: Server, key: str | None = None) -> None:
        self.server = server
        self.key = server.key if key is None else key

    def send(
        self, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] = {}
    ) -> tuple[int, str]:
        """Return status and text of the answer."""
        given = {"Content-Type": "application/json", **headers}
        if self.key:
            given["Authorization"] = f"Bearer {self.key}"
        url = f"http://127.0.0.1:{self.server.port}{path}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, data, given), timeout=SECONDS
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as err:
            return err.code, err.read().decode()

    def json(self, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> Any:
        status, text = self.send(path, body, headers)
        assert status == 200, text
        return json.loads(text)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        session: str | None,
        headers: Mapping[str, str] = {},
        **fields: Any,
    ) -> Any:
        """Return the choice of a chat completion."""
        body = {
            "model": "tiny",
            "messages": list(messages),
            "temperature": 0,
            "max_tokens": 8,
            "ignore_eos": True,
            "return_meta_info": True,
            **({} if session is None else {"session_id": session}),
            **fields,
        }
        return self.json("/v1/chat/completions", body, headers)["choices"][0]

    def session(self, label: str, headers: Mapping[str, str] = {}) -> Any:
        """Return a session with its graph."""
        rows = self.json("/recap/sessions", headers=headers)["sessions"]
        (row,) = [row for row in rows if row["label"] == label]
        return self.json(f"/recap/sessions/{row['id']}", headers=headers)

    def status(self) -> Any:
        return self.json("/recap/status")
