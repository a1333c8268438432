"""Compaction by summary, as Codex does it: user messages word for word, then one summary.

The model is any behind an OpenAI-compatible endpoint that the user names; without one nothing is
asked and nothing leaves the computer. Beside user messages the rest of P stays (latest edits), which
Codex does not keep. The wording of the request is ours.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np

from recap.baselines.chat import rest_of
from recap.baselines.method import Context, Piece, of_blocks, option, verbatim
from recap.errors import MethodError, shown

if TYPE_CHECKING:
    from recap.baselines.method import Task

URL, MODEL, KEY = "RECAP_SUMMARY_URL", "RECAP_SUMMARY_MODEL", "RECAP_SUMMARY_KEY"
"""Environment variables that name the endpoint where no argument does."""

TOKEN_CHARS = 4
"""Characters a token of the summary is taken for, to bound its length."""

PROMPT = """\
Write a handoff note for another agent that continues the work of the session above and sees nothing \
of it but this note and the words of the user. Say what was asked, what was done and decided, what is \
left to do next, and every fact it will need: file paths, names, commands, errors, values, exactly as \
they are written. Use at most {chars} characters."""

PREFIX = "Another agent worked on this before. Its summary of the work so far:\n"


class Answer(NamedTuple):
    """A model's answer with its usage."""

    text: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Keeps P and one summary of the rest, written by a model.

    Attributes:
        key: Key sent as bearer token; "" for RECAP_SUMMARY_KEY, which may be empty. It is no option:
            results repeat those.
    """

    url: str = option("", f"base URL, such as http://127.0.0.1:8000/v1; {URL} if absent")
    model: str = option("", f"name of the model there; {MODEL} if absent")
    key: str = ""
    input_chars: int = option(400_000, "characters of history it is given; the oldest go first")
    timeout: int = option(600, "seconds an answer may take")
    name: str = "summary"
    help: str = "user messages and a summary by a model, as Codex compacts"

    def __repr__(self) -> str:
        return f"Summary(url={self.url!r}, model={self.model!r})"  # the key is a secret

    def missing(self) -> str:
        """Return which endpoint or model has to be named, "" where both are."""
        if not self._url():
            return f"name an OpenAI-compatible endpoint: option url, or {URL}=http://HOST/v1"
        if urlsplit(self._url()).scheme not in ("http", "https"):
            return f"the endpoint must be an http or https URL; got {shown(self._url())}"
        if not self._model():
            return f"name the model that summarises: option model, or {MODEL}"
        return ""

    def shorten(self, task: Task) -> Context:
        """Return P, then the summary; without one where P leaves no budget or nothing beside it.

        Raises:
            MethodError: No endpoint is named, or it does not answer as it should.
        """
        if missing := self.missing():
            raise MethodError(missing)
        protected = np.flatnonzero(task.is_protected).tolist()
        room = task.free_chars - len(PREFIX)
        if room < TOKEN_CHARS or not rest_of(task):
            return of_blocks(task, protected)
        start = time.monotonic()
        answer = self._ask(_transcript(task, self.input_chars), room)
        summary = Piece("user", PREFIX + answer.text)
        return Context(
            pieces=(*verbatim(task, protected), summary),
            kept=frozenset(protected),
            cost_chars=task.protected_chars + len(summary.text),
            model_calls=1,
            input_tokens=answer.input_tokens,
            output_tokens=answer.output_tokens,
            memory_bytes=len(summary.text.encode("utf-8", "replace")),
            other_seconds=time.monotonic() - start,
        )

    def _url(self) -> str:
        return self.url or os.environ.get(URL, "")

    def _model(self) -> str:
        return self.model or os.environ.get(MODEL, "")

    def _ask(self, transcript: str, chars: int) -> Answer:
        prompt = PROMPT.format(chars=chars)
        body = {
            "model": self._model(),
            "messages": [{"role": "user", "content": f"{transcript}\n\n{prompt}"}],
            "max_tokens": chars // TOKEN_CHARS,
            "temperature": 0,
            "seed": 0,
        }
        headers = {"Content-Type": "application/json"}
        if key := self.key or os.environ.get(KEY, ""):
            headers["Authorization"] = f"Bearer {key}"
        url = self._url().rstrip("/") + "/chat/completions"
        request = Request(url, json.dumps(body).encode(), headers)
        try:
            with build_opener(_NoRedirect).open(request, timeout=self.timeout) as response:
                return _answer(json.loads(response.read()))
        except HTTPError as err:
            err.close()
            raise MethodError(f"the endpoint answered with status {err.code}") from err
        except (URLError, HTTPException, OSError) as err:
            raise MethodError(f"the endpoint does not answer: {type(err).__name__}") from err
        except (ValueError, LookupError, TypeError) as err:
            raise MethodError("the endpoint's answer holds no message, or no usage") from err


class _NoRedirect(HTTPRedirectHandler):
    """Follows nothing: history and key go to the named endpoint alone."""

    def redirect_request(self, *_: Any) -> None:
        """Return None: no further request."""
        return


def _answer(response: Any) -> Answer:
    text, usage = response["choices"][0]["message"]["content"], response["usage"]
    if not isinstance(text, str):
        raise TypeError
    return Answer(text.strip(), int(usage["prompt_tokens"]), int(usage["completion_tokens"]))


def _transcript(task: Task, most: int) -> str:
    """Return the history as text, its newest blocks as far as they fit."""
    texts: list[str] = []
    left = most
    for block in range(len(task.table) - 1, -1, -1):
        pieces = verbatim(task, [block])
        text = "\n\n".join(f"[{piece.role}]\n{piece.text}" for piece in pieces)
        left -= len(text)
        if left < 0:
            break
        texts.append(text)
    return "\n\n".join(reversed(texts))
