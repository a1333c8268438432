from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.table import build_table
from recap.capture.places import MOST_RENDERS, STRANGE_LETTERS, SpanReason
from recap.capture.replay import fitting
from recap.capture.spans import (
    MessageSpans,
    Segments,
    SpanError,
    message_spans,
)
from recap.transcript.formats import open_log
from tests.capture.chat_templates import FAMILIES, Messages, Piece, hulls_of, jinja, text_of
from tests.capture.tiny_tokenizers import KINDS, SPECIAL, tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from recap.capture.replay import Replay


class Template:
    """A render function with a tiny tokenizer."""

    def __init__(
        self, render: Callable[[Messages], str], kind: str = "byte_level", *, adds_bos: bool = False
    ) -> None:
        self.renders = 0
        self._render = render
        self.tokenizer = tokenizer(kind, adds_bos=adds_bos)

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        self.renders += 1
        return self._render(messages)

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self.tokenizer.encode(text)
        return encoding.ids, encoding.offsets

    def chars(self, replay: Replay) -> int:
        return len(self.render(replay.messages))


def of(twin: Callable[[Messages], list[Piece]], **choices: Any) -> Template:
    return Template(lambda messages: text_of(twin(messages)), **choices)


def chat(*contents: str, roles: Sequence[str] = ("user", "assistant")) -> list[dict[str, Any]]:
    return [
        {"role": roles[at % len(roles)], "content": content} for at, content in enumerate(contents)
    ]


def owned(offsets: Sequence[tuple[int, int]], hull: tuple[int, int] | None) -> list[int]:
    """Return the tokens wholly inside, one by one: the oracle."""
    if hull is None:
        return []
    return [at for at, (a, b) in enumerate(offsets) if a < b and hull[0] <= a and b <= hull[1]]


def wrong(
    spans: MessageSpans, template: Template, pieces: list[Piece], messages: Messages
) -> list[int]:
    """Return the messages whose tokens are not those of their words in the pieces."""
    _, offsets = template.encode(text_of(pieces))
    hulls = hulls_of(pieces, len(messages))
    return [
        at
        for at, (start, end) in enumerate(zip(spans.start, spans.end, strict=True))
        if [token for token in range(start, end) if offsets[token][0] < offsets[token][1]]
        != owned(offsets, hulls[at])
    ]


def reason_of(messages: Messages, template: Any, **choices: Any) -> SpanReason:
    with pytest.raises(SpanError) as caught:
        message_spans(messages, template, **choices)
    return caught.value.reason


def words_of(template: Template, messages: Messages, at: int) -> str:
    spans = message_spans(messages, template)
    _, offsets = template.encode(template.render(messages))
    start, end = int(spans.start[at]), int(spans.end[at])
    return template.render(messages)[offsets[start][0] : offsets[end - 1][1]] if end > start else ""


pieces_of_content = st.sampled_from(
    (
        *SPECIAL, "user", "assistant", "the code", "file", "a", " ", "\n", "  \n", "</think>",
        "<think>", "<tool_response>", "é", "e\u0301", "\u1112\u1161\u11ab", "👍🏽", "👨‍👩‍👧", "漢字", "\ufeff", "\x00",
        "\u0250", "\u02511\u0251", "\u200b", "\u3000", '{"a": "b"}', "[CODE]", "0", "\\n", "ß",
    )
)  # fmt: skip
contents = st.lists(pieces_of_content, max_size=6).map("".join)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages = []
    if draw(st.booleans()):
        messages.append({"role": "system", "content": draw(contents)})
    roles = draw(st.sampled_from((("user", "assistant"), ("user", "assistant", "tool", "tool"))))
    for at in range(draw(st.integers(1, 6))):
        repeat = messages and draw(st.integers(0, 4)) == 0
        content = draw(st.sampled_from(messages))["content"] if repeat else draw(contents)
        messages.append({"role": roles[at % len(roles)], "content": content})
    return messages


@pytest.mark.parametrize("family", FAMILIES)
@given(messages=conversations(), kind=st.sampled_from(KINDS), adds_bos=st.booleans())
def test_no_family_of_templates_and_tokenizers_ever_gives_a_wrong_span(
    family: str, messages: list[dict[str, Any]], kind: str, adds_bos: bool
) -> None:
    source, twin = FAMILIES[family]
    try:
        pieces = twin(messages)
    except ValueError:
        return
    render = jinja(source) if source else lambda given: text_of(twin(given))
    template = Template(render, kind, adds_bos=adds_bos)
    assert template.render(messages) == text_of(pieces)
    try:
        spans = message_spans(messages, template)
    except SpanError as err:
        assert err.reason in ("unproved", "bad-offsets")  # noqa: PT017 - refusing is right as well
        return
    assert wrong(spans, template, pieces, messages) == []
    assert spans.ids.tolist() == template.encode(text_of(pieces))[0]
    bounds = np.stack((spans.start, spans.end), axis=1).ravel()
    assert (np.diff(bounds) >= 0).all()
    assert not len(bounds) or 0 <= bounds[0] <= bounds[-1] <= len(spans.ids)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_family_is_proved_for_plain_words(family: str, kind: str) -> None:
    _, twin = FAMILIES[family]
    messages = chat("fix the code", "read the file", "user", "the code is in the file 漢字 👍🏽")
    template = of(twin, kind=kind)
    spans = message_spans(messages, template)
    assert wrong(spans, template, twin(messages), messages) == []
    assert (spans.end > spans.start).all()


@pytest.mark.parametrize("by", [-1, 1])
def test_a_span_shifted_by_one_token_is_found_wrong(by: int) -> None:
    messages = chat("fix the code", "read the file", "now the folder")
    template = of(FAMILIES["chatml"].twin)
    spans = message_spans(messages, template)
    for at in range(3):
        shift = np.eye(3, dtype=np.int64)[at] * by
        shifted = replace(spans, start=spans.start + shift, end=spans.end + shift)
        assert wrong(shifted, template, FAMILIES["chatml"].twin(messages), messages) == [at]
        longer = replace(spans, end=spans.end + shift)
        assert wrong(longer, template, FAMILIES["chatml"].twin(messages), messages) == [at]


def test_two_renders_prove_a_list_of_any_length() -> None:
    template = of(FAMILIES["chatml"].twin)
    message_spans(chat(*["fix the code"] * 300), template)
    assert template.renders == 2


def test_a_template_that_trims_its_end_begins_alike_and_is_proved_all_the_same() -> None:
    twin = FAMILIES["trimmed_at_the_end"].twin
    messages = chat("zip the code  ", "zip the file  ")
    assert text_of(twin(messages)).startswith(text_of(twin(messages[:1])))
    template = of(twin)
    assert words_of(template, messages, 0) == "zip the code"
    assert words_of(template, messages, 1) == "zip the file"


def test_the_thinking_that_an_old_turn_loses_is_nobodys() -> None:
    template = Template(jinja(FAMILIES["qwen"].source or ""))
    messages = chat("fix it", "<think>\nhm\n</think>\n\nread the file", "and now?", "the code")
    assert words_of(template, messages, 1) == "read the file"
    assert words_of(template, messages, 3) == "the code"
    assert template.renders > 4  # marks do not survive there: words are tried one by one


def test_white_space_that_the_template_leaves_before_old_words_is_nobodys() -> None:
    template = Template(jinja(FAMILIES["qwen"].source or ""))
    messages = chat("fix it", "<think>hm</think>\n  \n(zip", "and now?")
    assert words_of(template, messages, 1) == "(zip"


def test_reasoning_beside_thinking_in_the_words_is_left_out_as_well() -> None:
    template = Template(jinja(FAMILIES["qwen"].source or ""))
    messages = chat("fix it", "<think>hm</think>read the file", "and now?")
    messages[1]["reasoning_content"] = "hm"
    assert words_of(template, messages, 1) == "read the file"


def test_results_merged_into_one_user_turn_stay_apart() -> None:
    template = Template(jinja(FAMILIES["qwen"].source or ""))
    messages = chat("go", "calls", "one", "two", roles=("user", "assistant", "tool", "tool"))
    assert [words_of(template, messages, at) for at in range(4)] == ["go", "calls", "one", "two"]


def test_a_system_text_merged_into_the_first_user_turn_stays_apart() -> None:
    template = Template(jinja(FAMILIES["gemma"].source or ""))
    messages = [{"role": "system", "content": "be short"}, *chat("fix the code", "read")]
    spoken = [words_of(template, messages, at) for at in range(3)]
    assert spoken == ["be short", "fix the code", "read"]


def test_calls_reach_from_the_name_to_the_last_argument() -> None:
    template = Template(jinja(FAMILIES["llama"].source or ""))
    arguments = {"path": "the file", "lines": [1, {"of": 'a "b"'}]}
    call = {"type": "function", "function": {"name": "read", "arguments": arguments}}
    messages = [*chat("go"), {"role": "assistant", "content": None, "tool_calls": [call]}]
    said = words_of(template, messages, 1)
    assert said.startswith('read", "parameters": {"path": "the file", "lines": [1, {"of": "a ')
    assert said.endswith('b\\"')
    assert words_of(template, [*messages, *chat("done")], 2) == "done"


def test_arguments_nested_without_end_are_looked_through_so_far() -> None:
    deep: Any = "the file"
    for _ in range(3000):
        deep = [deep]
    call = {"function": {"name": "read", "arguments": deep}}
    messages = [*chat("go"), {"role": "assistant", "content": "", "tool_calls": [call]}]
    template = of(FAMILIES["chatml"].twin)
    spans = message_spans(messages, template)
    assert spans.start[1] == spans.end[1]


def test_texts_of_content_parts_are_a_messages_words_and_other_parts_are_not() -> None:
    def render(messages: Messages) -> str:
        return "".join(
            f"<bos>{part['type']}:{part.get('text', '')}\n"
            for message in messages
            for part in message["content"]
        )

    parts = [{"type": "text", "text": "the code"}, {"type": "image"}, {"type": "text", "text": "a"}]
    messages = [{"role": "user", "content": parts}, {"role": "user", "content": parts[:1]}]
    template = Template(render)
    assert words_of(template, messages, 0) == "the code\n<bos>image:\n<bos>text:a"
    assert words_of(template, messages, 1) == "the code"


def test_words_shown_in_another_order_reach_from_the_first_to_the_last() -> None:
    def render(messages: Messages) -> str:
        return "".join(
            "<bos>" + "+".join(part["text"] for part in reversed(message["content"]))
            for message in messages
        )

    parts = [{"text": "one"}, {"text": "two"}, {"text": "zip"}]
    assert words_of(Template(render), [{"content": parts}], 0) == "zip+two+one"


def test_reasoning_that_the_template_leaves_out_has_no_tokens() -> None:
    messages = chat("fix the code", "read")
    messages[1]["reasoning_content"] = "hm, the file"
    assert words_of(of(FAMILIES["chatml"].twin), messages, 1) == "read"


def test_blank_messages_have_no_tokens() -> None:
    template = of(FAMILIES["chatml"].twin)
    spans = message_spans(chat("fix", "", " \n", "read"), template)
    assert (spans.end - spans.start > 0).tolist() == [True, False, False, True]
    assert (np.diff(np.stack((spans.start, spans.end), axis=1).ravel()) >= 0).all()


def test_an_empty_list_has_no_spans() -> None:
    spans = message_spans([], Template(lambda _: ""))
    assert len(spans.ids) == len(spans.start) == len(spans.end) == 0


def test_the_marks_of_an_earlier_letter_in_the_text_mislead_nobody() -> None:
    first, second = (chr(code) for code in STRANGE_LETTERS[:2])
    template = of(FAMILIES["bare"].twin)
    messages = chat(f"{first}0{first} a", f"{second}1{second}", "the code")
    assert [words_of(template, messages, at) for at in range(3)] == [
        message["content"] for message in messages
    ]


def test_words_that_only_marks_bring_to_light_mislead_nobody() -> None:
    def render(messages: Messages) -> str:
        shown = (
            m["content"] + m["reasoning_content"] * (len(m["reasoning_content"]) > 8)
            for m in messages
        )
        return "".join(f"<bos>{each}" for each in shown)

    forged = f"{chr(STRANGE_LETTERS[0])}7{chr(STRANGE_LETTERS[0])}" * 2
    messages = [{"role": "user", "content": "the code", "reasoning_content": forged}]
    assert words_of(Template(render), messages, 0) == "the code"


def test_a_text_of_all_strange_letters_is_refused() -> None:
    messages = chat("".join(map(chr, STRANGE_LETTERS)))
    assert reason_of(messages, of(FAMILIES["chatml"].twin)) == "unproved"


def echo(messages: Messages) -> str:
    return "".join(f"{m['content']}\nYou said: {m['content']}\n" for m in messages)


def upper(messages: Messages) -> str:
    return "".join(f"<|user|>{m['content'].upper()}<|end|>" for m in messages)


def newest_first(messages: Messages) -> str:
    return "".join(f"<bos>{m['content']}\n" for m in reversed(messages))


def cut_short(messages: Messages) -> str:
    shown = (m["content"][:6] + "…" * (len(m["content"]) > 6) for m in messages)
    return "".join(f"<bos>{each}\n" for each in shown)


def headed_by_kind(messages: Messages) -> str:
    shown = (m["content"][:4] for m in messages)
    return "".join(f"{'<bos>' * (1 if each in 'user file' else 2)}{each}" for each in shown)


def counting(messages: Messages) -> str:
    return f"{sum(len(m['content']) for m in messages)} characters\n{newest_first(messages[:1])}"


def only_known(messages: Messages) -> str:
    if any(m["content"] != "user code" for m in messages):
        raise ValueError("unknown words")
    return newest_first(messages[:1])


@pytest.mark.parametrize("render", [echo, upper, newest_first, cut_short, headed_by_kind, counting])
def test_what_cannot_be_proved_is_refused(render: Callable[[Messages], str]) -> None:
    assert reason_of(chat("user code", "file"), Template(render)) == "unproved"


def test_words_that_the_template_always_cuts_are_proved_one_by_one() -> None:
    template = Template(lambda messages: "".join(f"<bos>{m['content'][:6]}…" for m in messages))
    assert words_of(template, chat("user code", "file"), 0) == "user c"


def test_a_template_that_refuses_all_other_words_is_not_observed() -> None:
    assert reason_of(chat("user code"), Template(only_known)) == "refused"


def test_a_template_that_refuses_the_list_is_not_observed() -> None:
    source = FAMILIES["gemma"].source or ""
    assert reason_of(chat("a", "b", roles=("user",)), Template(jinja(source))) == "refused"


def test_words_are_tried_one_by_one_up_to_a_limit() -> None:
    template = Template(upper)
    assert reason_of(chat(*"a" * (MOST_RENDERS + 1)), template) == "unproved"
    assert template.renders == 2


def test_served_ids_have_to_be_those_of_the_messages() -> None:
    template = of(FAMILIES["chatml"].twin)
    messages = chat("fix the code", "read")
    spans = message_spans(messages, template)
    again = message_spans(messages, template, served_ids=spans.ids.tolist())
    assert again.start.tolist() == spans.start.tolist()
    for other in (spans.ids[:-1], [*spans.ids[:-1], 0], [*spans.ids, 0]):
        assert reason_of(messages, template, served_ids=other) == "ids-differ"


class Encoder:
    """A template of plain lines whose tokenizer answers what it is told."""

    def __init__(self, offsets: Any) -> None:
        self.offsets = offsets

    def render(self, messages: Messages) -> str:
        return "".join(f"{m['content']}\n" for m in messages)

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        if isinstance(self.offsets, Exception):
            raise self.offsets
        return [7, 8, 9], self.offsets


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ([], "no-offsets"),
        (NotImplementedError("slow tokenizer"), "no-offsets"),
        (TypeError("lone surrogate"), "refused"),
        ([(0, 2), (2, 4), (4, 6)], "bad-offsets"),  # beyond the text
        ([(2, 4), (0, 2), (4, 5)], "bad-offsets"),
        ([(0, 3), (2, 1), (3, 5)], "bad-offsets"),
        ([(-1, 1), (0, 4), (4, 5)], "bad-offsets"),
        ([(0, 4), (1, 3), (4, 5)], "bad-offsets"),
        ([(1, 2), (0, 4), (4, 5)], "bad-offsets"),
        ([(0, 2), (2, 3), (4, 5)], "bad-offsets"),  # leaves a letter out
        ([(1, 2), (2, 4), (4, 5)], "bad-offsets"),
        ([(0, 0), (0, 0), (0, 0)], "bad-offsets"),
    ],
)
def test_a_tokenizer_that_does_not_tell_characters_is_refused(offsets: Any, reason: str) -> None:
    assert reason_of(chat("code"), Encoder(offsets)) == reason


def test_tokens_without_characters_count_only_between_others() -> None:
    spans = message_spans(chat("code"), Encoder([(0, 0), (0, 4), (4, 5)]))
    assert (spans.start.tolist(), spans.end.tolist()) == ([1], [2])
    spans = message_spans(chat("code"), Encoder([(0, 2), (0, 0), (2, 4)]))
    assert (spans.start.tolist(), spans.end.tolist()) == ([0], [3])


def test_a_token_across_the_end_of_the_words_is_nobodys() -> None:
    spans = message_spans(chat("code"), Encoder([(0, 2), (2, 5), (5, 5)]))
    assert (spans.start.tolist(), spans.end.tolist()) == ([0], [1])


def test_a_composed_mark_belongs_to_its_letter_but_not_across_messages() -> None:
    template = of(FAMILIES["bare"].twin, kind="composed")
    assert words_of(template, chat("cafe\u0301 x", "b"), 0) == "cafe\u0301 x"
    assert reason_of(chat("cafe", "\u0301 x"), template) == "bad-offsets"


@pytest.mark.corpus
@pytest.mark.parametrize("family", ["chatml", "llama", "gemma", "qwen"])
def test_replays_of_real_sessions_are_proved_for_every_template(family: str, corpus: Path) -> None:
    source, twin = FAMILIES[family]
    for path in sorted((corpus / "sessions").glob("*/*"))[4::11]:
        table = build_table(open_log(path).messages)
        for kind, turn in zip(KINDS, range(table.turn[-1] + 1), strict=False):
            template = Template(jinja(source or ""), kind)
            replay = fitting(table, turn, 8000, template.chars)
            spans = message_spans(replay.messages, template)
            assert wrong(spans, template, twin(replay.messages), replay.messages) == []
            segments = Segments.of(replay.ids, replay.owner, spans)
            assert segments.ids == replay.ids


def test_the_error_names_no_word_of_the_conversation() -> None:
    with pytest.raises(SpanError) as caught:
        message_spans(chat("hunter2", "hunter2"), Template(echo))
    assert "hunter2" not in str(caught.value)


def spans_of(length: int, *pairs: tuple[int, int]) -> MessageSpans:
    bounds = np.asarray(pairs, np.int64).reshape(-1, 2)
    return MessageSpans(np.arange(length), bounds[:, 0], bounds[:, 1])


def test_segments_cover_all_tokens_and_join_neighbours_of_one_owner() -> None:
    spans = spans_of(12, (1, 3), (3, 5), (6, 8), (8, 9), (9, 11))
    segments = Segments.of(("a", "b"), (0, 0, 0, 1, 0), spans)
    assert segments.ids == ("a", "b")
    assert segments.offsets.tolist() == [0, 1, 5, 6, 8, 9, 11, 12]
    assert segments.owner.tolist() == [-1, 0, -1, 0, 1, 0, -1]
    assert (segments.offsets.dtype, segments.owner.dtype) == (np.int64, np.int32)


def test_a_block_without_a_token_is_not_observed() -> None:
    segments = Segments.of(("a", "b", "c", "d"), (0, 1, -1, 3), spans_of(6, (0, 2), (2, 2), (2, 3), (3, 6)))  # fmt: skip
    assert segments.ids == ("a", "d")
    assert segments.owner.tolist() == [0, -1, 1]
    assert segments.offsets.tolist() == [0, 2, 3, 6]


def test_no_tokens_give_no_segments() -> None:
    segments = Segments.of((), (), spans_of(0))
    assert (segments.ids, segments.offsets.tolist(), segments.owner.tolist()) == ((), [0], [])


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-1, 4)), max_size=12),
    st.integers(0, 3),
)
def test_each_token_has_the_owner_of_its_message(
    pieces: list[tuple[int, int, int]], rest: int
) -> None:
    owners, pairs, expected = [], [], []
    seen: list[int] = []
    for gap, length, owner in pieces:
        known = owner if owner < 0 or owner in seen else len(seen)
        if known >= 0 and known not in seen:
            seen.append(known)
        expected += [None] * gap
        pairs.append((len(expected), len(expected) + length))
        expected += [None if known < 0 else f"b{known}"] * length
        owners.append(known)
    expected += [None] * rest
    segments = Segments.of([f"b{at}" for at in range(len(seen))], owners, spans_of(len(expected), *pairs))  # fmt: skip
    lengths = np.diff(segments.offsets)
    owner_of_token = [
        None if owner < 0 else segments.ids[owner]
        for owner in np.repeat(segments.owner, lengths).tolist()
    ]
    assert owner_of_token == expected
    assert (lengths > 0).all()
    assert (np.diff(segments.owner) != 0).all()
    assert set(segments.ids) == {each for each in expected if each}


@pytest.mark.parametrize(
    ("ids", "owners", "said"),
    [
        (("a", "a"), (0, 1), "stands twice"),
        (("a",), (0,), "1 owners for 2 messages"),
        (("a",), (0, 1), "index the 1 blocks"),
        (("a",), (0, -2), "index the 1 blocks"),
        (("a", "b"), (1, 0), "in their order"),
    ],
)
def test_owners_that_fit_no_list_of_blocks_are_refused(
    ids: tuple[str, ...], owners: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Segments.of(ids, owners, spans_of(4, (0, 1), (2, 3)))
