"""The prompt of a chat request exactly as the server renders it, and which block its tokens are of.

The server's own call is noted while it converts a request, so that template, tools and every other
argument are the ones it used. What was computed is then compared with the ids that are served.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from recap.capture.spans import Segments, message_spans
from recap.sglang.tokens import GrowingPrompt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from recap.blocks.segment import Segmentation
    from recap.transcript.model import Message

Items: TypeAlias = "list[dict[str, Any]]"
IntArray: TypeAlias = "npt.NDArray[np.int64]"

NO_BLOCK = -1


class NotAttributable(Exception):  # noqa: N818 - no fault, a reason
    """The tokens of a request cannot be said to be its blocks'. Its text is the reason, one word."""


@dataclass(frozen=True, slots=True, eq=False)
class Rendered:
    """One call of the server's renderer; a ``capture.spans.ChatTemplate``."""

    tokenizer: Any
    messages: Sequence[Mapping[str, Any]]
    tools: Any
    template_kwargs: Mapping[str, Any]
    encode_kwargs: Mapping[str, Any]
    add_generation_prompt: bool

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        """Return the prompt of messages, rendered as the noted ones were."""
        text: str = self.tokenizer.apply_chat_template(
            list(messages),
            tokenize=False,
            add_generation_prompt=self.add_generation_prompt,
            tools=self.tools,
            return_dict=False,
            **self.template_kwargs,
        )
        return text

    def encode(self, text: str) -> tuple[IntArray, IntArray]:
        """Return the ids of a text and the characters of each token."""
        return self.encoded(text, self.encode_kwargs)

    def encoded(self, text: str, options: Mapping[str, Any]) -> tuple[IntArray, IntArray]:
        """Return the same with other arguments of the tokenizer; offsets are int64 ``[n, 2]``."""
        done = self.tokenizer(text, return_offsets_mapping=True, **options)
        pairs = np.asarray(done["offset_mapping"], np.int64).reshape(-1, 2)
        return np.asarray(done["input_ids"], np.int64), pairs


_noting: ContextVar[list[Rendered] | None] = ContextVar("_noting", default=None)


@contextmanager
def noted() -> Iterator[list[Rendered]]:
    """Note the calls of the renderer in this thread."""
    calls: list[Rendered] = []
    token = _noting.set(calls)
    try:
        yield calls
    finally:
        _noting.reset(token)


def render_prompt(
    original: Callable[..., Any], serving: Any, messages: Any, *args: Any, **kwargs: Any
) -> Any:
    """Note what the server renders. A call that fails is tried again by the server with other tools."""
    done = original(serving, messages, *args, **kwargs)
    calls = _noting.get()
    if calls is not None:
        calls.append(
            Rendered(
                serving.tokenizer_manager.tokenizer,
                messages,
                kwargs.get("tools"),
                kwargs.get("template_kwargs") or {},
                kwargs.get("encode_kwargs") or {},
                bool(kwargs.get("add_generation_prompt", True)),
            )
        )
    return done


def owners(messages: Sequence[Message], whole: Segmentation, items: int) -> list[int]:
    """Return the block of each element of a message list, -1 for one that is of several or none.

    Args:
        messages: Canonical messages of the list, and inactive ones that it does not hold any more.
        whole: Their blocks.
        items: Elements of the list.
    """
    found: dict[int, set[int]] = {}
    parts = [(ref, index) for index, block in enumerate(whole.blocks) for ref in block.refs]
    for ref, index in (*parts, *((ref, NO_BLOCK) for ref in whole.fixed)):
        message = messages[ref.message]
        if message.is_active:
            found.setdefault(message.line - 1, set()).add(index)
    named = [found.get(item, {NO_BLOCK}) for item in range(items)]
    return [next(iter(blocks)) if len(blocks) == 1 else NO_BLOCK for blocks in named]


@dataclass(frozen=True, slots=True, eq=False)
class Attributed:
    """Whose the tokens of a prompt are.

    Attributes:
        segments: Tokens cut where their block changes.
        start: First token of the current turn.
    """

    segments: Segments
    start: int


def attributed(
    calls: Sequence[Rendered],
    adapted: Any,
    items: Sequence[Mapping[str, Any]],
    ids: Sequence[str],
    owner: Sequence[int],
    turn_item: int,
    known: GrowingPrompt | None = None,
) -> Attributed:
    """Return whose the served tokens of a request are.

    Args:
        calls: What the server rendered for it.
        adapted: The server's internal request.
        items: Its messages.
        ids: Blocks of the session, chronological.
        owner: Block of each message, an index into ``ids`` or -1.
        turn_item: Message that begins the current turn.
        known: The session's prompts so far: what they begin with is not tokenized again.

    Raises:
        NotAttributable: They are not those of the messages, one by one.
        SpanError: Nothing proves where a message's words stand.
    """
    if any(getattr(adapted, f"{kind}_data", None) for kind in ("image", "video", "audio")):
        raise NotAttributable("media")
    served = adapted.input_ids
    if not isinstance(served, list) or not served or not isinstance(served[0], int):
        raise NotAttributable("no-ids")
    if not calls:
        raise NotAttributable("other-renderer")
    rendered = calls[-1]
    if [_name(message) for message in rendered.messages] != [_name(item) for item in items]:
        raise NotAttributable("reordered")
    template = (known or GrowingPrompt()).template(rendered, served)
    spans = message_spans(rendered.messages, template, served_ids=served)
    try:
        segments = Segments.of(ids, owner, spans)
    except ValueError as err:
        raise NotAttributable("interleaved") from err
    return Attributed(segments, int(spans.start[turn_item]))


def _name(message: Mapping[str, Any]) -> tuple[object, object]:
    return message.get("role"), message.get("tool_call_id")
