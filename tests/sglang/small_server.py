"""SGLang's chat layer and one worker in small, with a real tokenizer and template.

Its objects have the fields that ``recap.sglang.compat`` names; it renders and encodes as the real
one does. The worker answers a payload with what a plain rule says, so that a test can foresee it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from recap.graph.observation import TurnObservation
from recap.sglang import chat
from recap.sglang.frontend import Frontend
from recap.sglang.options import Options
from recap.sglang.payload import KEY, Payload, Result
from recap.sglang.rendering import render_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

TEMPLATE = (
    "{% if tools %}{{ '<|im_start|>system\nTools: ' + tools | tojson + '<|im_end|>\n' }}{% endif %}"
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' }}"
    "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for p in m['content'] %}{{ p['text'] }}{% endfor %}{% endif %}"
    "{% for c in m['tool_calls'] or [] %}{{ '\n' + c['function']['name'] + ' '"
    " + c['function']['arguments'] }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


@cache
def tokenizer(template: str = TEMPLATE) -> Any:
    from tests.capture.tiny_tokenizers import tokenizer as tiny

    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tiny("byte_level"), eos_token="<|im_end|>"
    )
    made.chat_template = template
    return made


class Message(dict[str, Any]):
    """A message as SGLang's models hold it: every field, None where the client sent none."""

    FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name")

    def __init__(self, item: Mapping[str, Any]) -> None:
        if "role" not in item:
            raise ValueError("a message has a role")
        super().__init__({name: item.get(name) for name in self.FIELDS})

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        return {n: v for n, v in self.items() if v is not None or not exclude_none}


@dataclass
class ChatRequest:
    messages: list[Any]
    model: str = "small"
    tools: list[dict[str, Any]] | None = None
    n: int = 1
    input_ids: list[int] | None = None
    session_id: str | None = None
    custom_params: dict[str, Any] | None = None
    return_meta_info: bool = False

    @classmethod
    def model_validate(cls, fields: Mapping[str, Any]) -> ChatRequest:
        return cls([Message(item) for item in fields["messages"]], fields["model"])


@dataclass(eq=False)
class Adapted:
    """The internal request."""

    input_ids: list[int] | None
    sampling_params: dict[str, Any]
    image_data: list[str] | None = None
    video_data: list[str] | None = None
    audio_data: list[str] | None = None


@dataclass
class Response:
    """What a client gets, and what a test wants to know of its way."""

    adapted: Adapted
    request: ChatRequest
    payload: Payload | None
    meta_info: dict[str, Any] = field(default_factory=dict)

    @property
    def prompt(self) -> str:
        text: str = tokenizer().decode(self.adapted.input_ids)
        return text

    def words(self, id: str) -> str:
        """Return the text that the payload says is a block's."""
        assert self.payload is not None
        segments, ids = self.payload.segments, self.adapted.input_ids
        assert ids is not None
        at = segments.ids.index(id)
        pieces = zip(segments.offsets[:-1], segments.offsets[1:], segments.owner, strict=True)
        return "".join(tokenizer().decode(ids[a:b]) for a, b, who in pieces if who == at)


class SmallServer:
    """Serves chat requests through the hooks; use as a fixture, one after the other."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, config: Mapping[str, object], api_key: str = ""
    ) -> None:
        self.front = Frontend(Options.of(config, {}), has_keys=bool(api_key), now=self._now)
        monkeypatch.setattr(chat, "_frontend", self.front)
        self.manager = SimpleNamespace(
            tokenizer=tokenizer(),
            model_path="small",
            server_args=SimpleNamespace(api_key=api_key),
        )
        self.tokenizer_manager = self.manager
        self.cached = 0
        self.is_silent = False
        self.dropped = ""
        self.clock = 1000.0
        self._rows = itertools.count(10)

    def _now(self) -> float:
        return self.clock

    def _render_and_encode_chat_template(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Any,
        template_kwargs: Mapping[str, Any],
        encode_kwargs: Mapping[str, Any],
        use_cache: bool,
    ) -> list[int]:
        assert not use_cache
        text = self.manager.tokenizer.apply_chat_template(
            messages,
            tokenize=False,
            add_generation_prompt=True,
            tools=tools,
            **template_kwargs,
        )
        ids: list[int] = self.manager.tokenizer.encode(text, **encode_kwargs)
        return ids

    def _convert(self, request: ChatRequest, _: Any = None) -> tuple[Adapted, ChatRequest]:
        rendered = []
        for message in request.messages:
            item = {n: v for n, v in message.model_dump().items() if v is not None}
            rendered.append({"content": "", **item})
        ids = render_prompt(
            SmallServer._render_and_encode_chat_template,
            self,
            rendered,
            tools=request.tools,
            template_kwargs={},
            encode_kwargs={"add_special_tokens": False},
            use_cache=False,
        )
        sampling = {"temperature": 0, "custom_params": request.custom_params}
        return Adapted(ids, sampling), request

    def convert(self, request: ChatRequest, headers: Mapping[str, str]) -> Response:
        """Convert a request as SGLang does, through the hook."""
        raw = SimpleNamespace(headers=dict(headers))
        adapted, request = chat.convert(SmallServer._convert, self, request, raw)
        assert adapted.input_ids is not None
        params = adapted.sampling_params.get("custom_params") or {}
        payload = Payload.parse(params, len(adapted.input_ids), 4096)
        return Response(adapted, request, payload)

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Response:
        """Serve a chat request to its end."""
        given = {"session_id": "s"} | fields
        request = ChatRequest([Message(item) for item in messages], **given)
        response = self.convert(request, headers or {})
        self.finish(response)
        return response

    def finish(self, response: Response) -> None:
        """Have the worker answer."""
        if self.is_silent:
            return
        values = [] if response.payload is None else [self.result(response.payload).wire()]
        tokens = len(response.adapted.input_ids or ())
        response.meta_info |= {"prompt_tokens": tokens, "completion_tokens": 3}
        response.meta_info["cached_tokens"] = self.cached
        chat.take_results(
            lambda *_: None,
            self.manager,
            response.meta_info,
            SimpleNamespace(obj=response.adapted),
            {KEY: [values]},
            0,
            {"type": "stop"},
        )

    def result(self, payload: Payload) -> Result:
        """Return what the worker measured: block i of n was used i + 1, the last saw the first."""
        ids = (*payload.segments.ids, payload.tail)
        seen = None
        if not self.dropped:
            use = [i + 1.0 for i in range(len(ids))]
            seen = TurnObservation.of(payload.turn, ids, use, [len(ids) - 1], [0], [0.5])
        end = int(payload.segments.offsets[-1]) + 3
        return Result(
            "rid", payload.session, seen, self.dropped, 8, (0,), payload.start, end, "small"
        )


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(id: str, arguments: str) -> dict[str, Any]:
    function = {"name": "read", "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": id, "type": "function", "function": function}],
    }


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


TOOLS = [
    {
        "type": "function",
        "function": {"name": "read", "parameters": {"type": "object", "properties": {}}},
    }
]
