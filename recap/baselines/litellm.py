"""``litellm.compress``: BM25 of each message against the request; losers become stubs or go.

What it is, as of 1.110: system messages, the last user message and the last assistant message stay;
the others are visited by BM25 and kept while a target of tokens lasts; a message too long for what is
left is cut in the middle. Of the two forms of messages it takes,

- chat completions (``form=openai``): each message competes alone. One that loses keeps its calls, and
  its content becomes a stub with a key;
- Anthropic's (``form=anthropic``): calls and their results are kept or go together; of the others the
  losers become stubs.

The keys stand in a tool ``litellm_content_retrieve`` that is added to the request. Neither stubs,
calls nor that tool count in its target, so they are taken off before (ours); where they exceed the
budget by themselves it cannot be met.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from recap.baselines.chat import edited, rest_of
from recap.baselines.method import Piece, of_blocks, option
from recap.capture.models import missing_packages
from recap.errors import MethodError, UsageError, shown
from recap.transcript.convert import arguments_object, arguments_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.baselines.chat import ChatMessage
    from recap.baselines.method import Context, Task

FORMS = {"openai": "completion", "anthropic": "anthropic_messages"}
"""Form of the messages -> what LiteLLM calls it."""

STUB_CHARS = 170
"""Characters of a stub and of its key in the tool, which names it twice; about."""


class Given(NamedTuple):
    """One message as it is given to LiteLLM, and the messages of the rest that it holds."""

    message: dict[str, Any]
    of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LitellmCompress:
    """LiteLLM's compression of messages, BM25 alone: its embeddings need an endpoint."""

    form: str = option("openai", "form of the messages it is given: openai or anthropic")
    model: str = option("gpt-4o", "model whose tokens its target counts")
    name: str = "litellm-compress"
    help: str = "litellm.compress: BM25 of messages against the request, losers become stubs"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise UsageError(f"form must be one of {', '.join(FORMS)}; got {shown(self.form)}")

    def missing(self) -> str:
        """Return what to install, "" where LiteLLM is there."""
        return "install LiteLLM: pip install litellm" if missing_packages(("litellm",)) else ""

    def shorten(self, task: Task) -> Context:
        """Return what ``litellm.compress`` leaves of the rest, P beside it.

        Raises:
            MethodError: LiteLLM is not installed.
        """
        if missing := self.missing():
            raise MethodError(missing)
        messages = rest_of(task)
        if sum(message.cost_chars for message in messages) <= task.free_chars:
            return of_blocks(task, range(len(task.table)))
        given = list(_openai(messages) if self.form == "openai" else _anthropic(messages))
        compress, count = _litellm()
        words = "\n".join(message.content for message in messages)
        per_char = count(model=self.model, text=words) / max(len(words), 1)
        target = _target_chars(messages, task.free_chars, self.form) * per_char
        result = compress(
            messages=[*(each.message for each in given), {"role": "user", "content": task.request}],
            model=self.model,
            call_type=FORMS[self.form],
            compression_trigger=0,
            # the request is no part of the history, but of what the target counts
            compression_target=int(target) + count(model=self.model, text=task.request),
        )
        tools = [Piece("system", json.dumps(result["tools"]))] if result["tools"] else []
        contents = _contents(messages, given, result["messages"])
        memory = sum(len(text.encode("utf-8", "replace")) for text in result["cache"].values())
        return replace(edited(task, messages, contents, before=tools), memory_bytes=memory)


def _target_chars(messages: Sequence[ChatMessage], free_chars: int, form: str) -> float:
    """Return the characters of content that fit the budget beside stubs and calls."""
    calls = sum(message.calls_chars for message in messages)
    if form == "openai":
        return max(free_chars - calls - STUB_CHARS * len(messages), 0)
    contents = sum(len(message.content) for message in messages)
    plain = sum(not message.calls and message.role != "tool" for message in messages)
    return max(free_chars - STUB_CHARS * plain, 0) * contents / max(contents + calls, 1)


def _contents(
    messages: Sequence[ChatMessage], given: Sequence[Given], returned: Sequence[dict[str, Any]]
) -> list[str | None]:
    """Return the content left of each message. What was returned is in order; some are gone."""
    contents: list[str | None] = [None] * len(messages)
    left = list(returned)
    for each in given:
        if left[0]["content"] is each.message["content"]:
            left.pop(0)
            for at in each.of:
                contents[at] = messages[at].content
        elif isinstance(each.message["content"], str):
            contents[each.of[0]] = str(left.pop(0)["content"])
    return contents


def _openai(messages: Sequence[ChatMessage]) -> Iterator[Given]:
    """Yield the messages in the form of OpenAI's chat completions."""
    for at, message in enumerate(messages):
        given: dict[str, Any] = {"role": message.role, "content": message.content}
        if message.role == "tool":
            given["tool_call_id"] = message.call_ids[0]
        elif calls := message.calls:
            given["tool_calls"] = [
                {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": arguments_text(call.payload())},
                }
                for call, call_id in zip(calls, message.call_ids, strict=True)
            ]
        yield Given(given, (at,))


def _anthropic(messages: Sequence[ChatMessage]) -> Iterator[Given]:
    """Yield the messages in the form of Anthropic's; results of a block stand in one message."""
    for _, group in groupby(enumerate(messages), lambda pair: (pair[1].block, pair[1].role)):
        pairs = list(group)
        blocks: list[dict[str, Any]] = []
        for _, message in pairs:
            if message.role == "tool":
                answered, content = message.call_ids[0], message.content
                block = {"type": "tool_result", "tool_use_id": answered, "content": content}
                blocks.append(block)
            elif message.calls:
                blocks += [{"type": "text", "text": message.content}] if message.content else []
                for call, call_id in zip(message.calls, message.call_ids, strict=True):
                    arguments = arguments_object(call.payload())
                    use = {"type": "tool_use", "id": call_id, "name": call.name}
                    blocks.append(use | {"input": arguments})
        role = "assistant" if pairs[0][1].role == "assistant" else "user"
        given = {"role": role, "content": blocks or pairs[0][1].content}
        yield Given(given, tuple(at for at, _ in pairs))


def _litellm() -> tuple[Any, Any]:
    """Return ``compress`` and ``token_counter``; LiteLLM asks the network for nothing."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm
        from litellm.compression import compress
    litellm.telemetry = False
    return compress, litellm.token_counter
