"""Handles on JSON, and random message lists, for the tests of readers and writers."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from recap.transcript.lines import is_strict
from recap.transcript.model import Dialect, Held, Message, Slice, is_clean
from recap.transcript.sources import ByteSource

if TYPE_CHECKING:
    from recap.transcript.tree import Tree

PNG = "iVBORw0KGgoAAAANSUhEUgAAABgAAAASCAYAAABB7B6e"


def held(value: Any) -> Held:
    """Return a handle on a Python caller's value."""
    return Held(value, is_clean(value))


def file(value: Any, *, indent: int | None = None) -> Slice:
    """Return a handle on the value in a file, written by the standard library."""
    return in_file(json.dumps(value, indent=indent).encode())


def in_file(data: bytes) -> Slice:
    """Return a handle on the bytes of a file."""
    return Slice(ByteSource(data), 0, len(data), is_strict(data))


def kept(messages: tuple[Message, ...], dialect: Dialect, writer: Any) -> list[Tree]:
    """Return the list with everything kept: whole messages where their envelopes can go out."""
    trees: list[Tree] = []
    for _, run in groupby(messages, lambda message: id(message.envelope)):
        group = list(run)
        envelope = group[0].envelope
        size = sum(len(message.parts) for message in group)
        if envelope.raw is not None and envelope.dialect == dialect and envelope.size == size:
            trees.append(envelope.raw)
        else:
            trees.extend(t for m in group for t in writer.write_message(m.role, m.parts))
    return trees


CHARACTERS = 'ab0 <>[]{}"\\\n\t\u2028é会😀'
WORDS = st.text(CHARACTERS, min_size=1, max_size=8).filter(str.strip)
DIRTY = st.text(CHARACTERS + "\x00\ud83d\ude00", max_size=6)
IDS = st.text("abc_1", min_size=1, max_size=4)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | WORDS
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(WORDS, SCALARS, max_size=2)
OBJECTS = st.dictionaries(WORDS, VALUES, max_size=2)
FLOATS = st.sampled_from([0.5, float("nan"), float("inf"), -float("inf")])
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**70) | FLOATS | DIRTY,
    lambda v: (
        st.lists(v, max_size=2)
        | st.dictionaries(st.sampled_from(["role", "content", "type", "text", "x"]), v, max_size=2)
    ),
    max_leaves=3,
)


def _texts(words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"type": st.just("text"), "text": words}, optional={"x": SCALARS})


def _block(kind: str, **fields: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"type": st.just(kind), **fields})


ANTHROPIC_IMAGE = _block(
    "image",
    source=st.sampled_from(
        [
            {"type": "base64", "media_type": "image/png", "data": PNG},
            {"type": "url", "url": "https://x/a.png"},
        ]
    ),
)
OPENAI_IMAGE = _block(
    "image_url",
    image_url=st.fixed_dictionaries(
        {"url": st.sampled_from([f"data:image/png;base64,{PNG}", "https://x/a.png"])}
    ),
)
CALLS = _block("tool_use", id=IDS, name=IDS, input=OBJECTS)
THINKING = _block("thinking", thinking=WORDS, signature=WORDS)
RESULTS = _block(
    "tool_result",
    tool_use_id=IDS,
    content=WORDS | st.lists(_texts(WORDS) | ANTHROPIC_IMAGE, min_size=1, max_size=3),
)


def _message(role: str, content: st.SearchStrategy[Any], **more: Any) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"role": st.just(role), "content": content, **more})


def _lists(blocks: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(blocks, min_size=1, max_size=3)


ANTHROPIC = st.lists(
    _message("user", WORDS | _lists(_texts(WORDS) | ANTHROPIC_IMAGE | RESULTS))
    | _message("assistant", WORDS | _lists(_texts(WORDS) | CALLS | THINKING))
    | _message("system", WORDS),
    min_size=1,
    max_size=4,
)
"""Valid messages of Anthropic, in any order."""

OPENAI = st.lists(
    _message("user", WORDS | _lists(_texts(WORDS) | OPENAI_IMAGE))
    | _message("assistant", WORDS | _lists(_texts(WORDS)))
    | _message(
        "assistant",
        st.none() | WORDS,
        tool_calls=_lists(
            st.fixed_dictionaries(
                {
                    "id": IDS,
                    "type": st.just("function"),
                    "function": st.fixed_dictionaries(
                        {"name": IDS, "arguments": OBJECTS.map(json.dumps) | WORDS}
                    ),
                }
            )
        ),
    )
    | _message("tool", WORDS | _lists(_texts(WORDS)), tool_call_id=IDS)
    | _message("system", WORDS)
    | _message("developer", WORDS),
    min_size=1,
    max_size=4,
)
"""Valid messages of OpenAI, in any order."""

KINDS = ("text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "image_url")
UNUSUAL_KINDS = ("server_tool_use", "x_tool_result", "refusal", "input_image", "x")
FIELDS = ("text", "input", "content", "source", "image_url", "data", "id", "name", "tool_use_id")
UNUSUAL_FIELDS = ("is_error", "thinking", "signature", "refusal")
BROKEN_BLOCKS = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS + UNUSUAL_KINDS)},
    optional=dict.fromkeys(FIELDS + UNUSUAL_FIELDS, JUNK | WORDS),
)
BLOCKS = JUNK | BROKEN_BLOCKS | CALLS | RESULTS | THINKING | ANTHROPIC_IMAGE | OPENAI_IMAGE
BROKEN_CALLS = st.fixed_dictionaries({"function": JUNK}, optional={"id": JUNK, "type": JUNK})
MESSAGE_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "content": JUNK | WORDS | st.lists(BLOCKS, max_size=3),
    "tool_calls": JUNK | st.lists(JUNK | BROKEN_CALLS, max_size=2),
    "function_call": JUNK | st.fixed_dictionaries({"name": WORDS, "arguments": JUNK}),
    "tool_call_id": JUNK | IDS,
    "reasoning_content": JUNK | WORDS,
    "refusal": JUNK | WORDS,
    "tool_uses": JUNK
    | st.lists(st.fixed_dictionaries({"tool": WORDS, "output": JUNK}), max_size=2),
    "thinking": JUNK | WORDS,
}
ROLES = st.sampled_from(["user", "assistant", "system", "tool", "function", "x"])
MANGLED = st.lists(
    JUNK | st.fixed_dictionaries({"role": ROLES}, optional=MESSAGE_FIELDS), min_size=1, max_size=3
)
"""Messages with all kinds of faults."""
