"""Random sessions: what holds for every trim of every one of them."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from recap.cmv.options import TrimOptions
from recap.errors import InputError, InvalidContextError
from recap.transcript.check import check_log
from recap.transcript.claude_code import read
from recap.transcript.sources import ByteSource
from tests.cmv.logs import agent, log, node, result, said, thought, trimmed, use, user
from tests.cmv.raw_session import dangling, lines_of, requests, texts

Line = dict[str, Any]


class Session:
    """A valid session in the making: every result has its call, every parent is there."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[Line] = []
        self.leaf: str | None = None
        self.spoken: list[str] = []
        self.n = 0

    def lines_of_turns(self, turns: int) -> list[Line]:
        for _ in range(turns):
            self._turn()
        return self.lines

    def _name(self, letter: str) -> str:
        self.n += 1
        return f"{letter}{self.n}"

    def _add(self, line: Line) -> str:
        self.lines.append(line)
        return line["uuid"]

    def _link(self) -> None:
        """Perhaps put a line between that only links."""
        if self.random.random() < 0.3:
            kind = self.random.choice(["progress", "system", "attachment"])
            fields = {"attachment": {"type": "file", "content": "f" * self._size()}}
            self.leaf = self._add(node(kind, self._name("l"), self.leaf, **fields))

    def _turn(self) -> None:
        chance = self.random.random
        if self.spoken and chance() < 0.2:  # the person goes back to an earlier reply
            self.leaf = self.random.choice(self.spoken)
        if self.spoken and chance() < 0.15:
            self._compact()
        self._link()
        self.leaf = self._add(user(self._name("u"), self.leaf, f"asked {self.n}"))
        for _ in range(self.random.randint(0, 3)):
            self._loop()
        if chance() < 0.9:
            self._link()
            self.leaf = self._add(agent(self._name("a"), self.leaf, said(f"said {self.n}")))
            self.spoken.append(self.leaf)
        if chance() < 0.2:
            side = user(self._name("s"), None, f"side {self.n}") | {"isSidechain": True}
            self._add(side)
        if chance() < 0.3:
            self.lines.append({"type": "file-history-snapshot", "snapshot": {"n": self.n}})

    def _loop(self) -> None:
        message = self._name("m")
        if self.random.random() < 0.5:
            self.leaf = self._add(agent(self._name("t"), self.leaf, thought(), id=message))
        calls = []
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):  # parallel calls hang on one another
            call = self._name("c")
            self.leaf = self._add(
                agent(self._name("a"), self.leaf, use(call, path=f"p{call}"), id=message)
            )
            calls.append((call, self.leaf))
        last = self.leaf
        for call, above in calls:
            content = self.random.choice(["x", [said("x")]])
            held = "r" * self._size()
            content = held if content == "x" else [said(held)]
            block = [result(call, content, is_error=self.random.random() < 0.1)]
            if self.random.random() < 0.2:
                block.append(said(f"steered {call}"))
            line = user(self._name("r"), above, block, sourceToolAssistantUUID=above)
            line["toolUseResult"] = {"stdout": held}
            added = self._add(line)
            if above == last:
                self.leaf = added

    def _compact(self) -> None:
        old = self.leaf
        preserved = self._preserved(old)
        boundary, anchor = self._name("b"), self._name("s")
        meta: dict[str, Any] = {"trigger": "auto"}
        if preserved:
            meta["preservedSegment"] = {
                "headUuid": preserved[0], "anchorUuid": anchor, "tailUuid": preserved[-1],
            }  # fmt: skip
            meta["preservedMessages"] = {"anchorUuid": anchor, "uuids": preserved}
        fields = {"subtype": "compact_boundary", "logicalParentUuid": old, "compactMetadata": meta}
        self._add(node("system", boundary, None, **fields))
        text = f"summary {self.n}"
        self.leaf = self._add(user(anchor, boundary, text, isCompactSummary=True))
        self.spoken = [self.leaf]

    def _preserved(self, leaf: str | None) -> list[str]:
        by_id = {line["uuid"]: line for line in self.lines if "uuid" in line}
        line = by_id.get(leaf or "")
        texts_only = line is not None and line["type"] == "assistant" and leaf in self.spoken
        return [leaf] if texts_only and leaf and self.random.random() < 0.5 else []

    def _size(self) -> int:
        return self.random.choice([1, 40, 600, 3000])


seeds = st.integers(0, 10**9)
options = st.builds(
    TrimOptions,
    keep_last=st.sampled_from([0, 1, 3, 20]),
    keep_thinking=st.booleans(),
    drop_inactive=st.booleans(),
    stub_errors=st.booleans(),
    yes=st.just(True),
)


def essence(data: bytes) -> list[tuple[str, str, bytes]]:
    """Return texts and calls of the live context as the reader sees them."""
    messages = read(ByteSource(data)).messages
    return [
        (message.role, part.kind, part.digest) for message in messages if message.is_active
        for part in message.parts if part.kind in ("text", "call")
    ]  # fmt: skip


@given(seeds, st.integers(1, 12), options)
@settings(max_examples=150)
def test_every_trim_keeps_the_conversation(seed: int, turns: int, wanted: TrimOptions):
    data = log(*Session(seed).lines_of_turns(turns))
    out, report = trimmed(data, wanted)
    for role in ("user", "assistant"):
        assert texts(out, role) == texts(data, role)
    assert requests(out) == requests(data)
    assert essence(out) == essence(data)
    assert dangling(out) <= dangling(data)
    assert not [each for each in check_log(out) if each.severity == "error"]
    assert report.active_chars_after <= report.active_chars_before


@given(seeds, st.integers(1, 12), options)
@settings(max_examples=100)
def test_trimming_twice_is_trimming_once(seed: int, turns: int, wanted: TrimOptions):
    data = log(*Session(seed).lines_of_turns(turns))
    once, _ = trimmed(data, wanted)
    assert trimmed(once, wanted)[0] == once


@given(seeds, st.integers(1, 8), options)
@settings(max_examples=60)
def test_a_line_in_which_nothing_changes_keeps_its_bytes(
    seed: int, turns: int, wanted: TrimOptions
):
    lines = Session(seed).lines_of_turns(turns)
    spelled = [
        json.dumps(line, separators=random.Random(seed + at).choice([(",", ":"), (" , ", " :  ")]))
        for at, line in enumerate(lines)
    ]
    out, _ = trimmed(log(*(text.encode() for text in spelled)), wanted)
    by_id = {line["uuid"]: line for line in lines_of(out) if "uuid" in line}
    kept = out.decode().split("\n")
    for line, text in zip(lines, spelled, strict=True):
        if by_id.get(line.get("uuid", "")) == line:
            assert text in kept


@given(seeds, st.integers(1, 6), options, st.integers(0, 2**32), st.integers(1, 4))
@example(862807815, 6, TrimOptions(keep_last=5, drop_inactive=True, yes=True), 3902768159, 1)
@example(3277895418, 1, TrimOptions(keep_last=5, yes=True), 3355405148, 1)
@settings(max_examples=150)
def test_a_damaged_session_keeps_its_words_or_is_refused(
    seed: int, turns: int, wanted: TrimOptions, damage: int, times: int
):
    data = bytearray(log(*Session(seed).lines_of_turns(turns)))
    choice = random.Random(damage)
    for _ in range(times):
        at = choice.randrange(len(data))
        data[at : at + choice.choice([0, 1, 40])] = choice.choice(
            [
                b"",
                b"null",
                b'"',
                b"\\",
                b"\xff",
                b"{",
                b"}",
                b"\n",
                b",",
                b'"uuid":"u1"',
                b"\\ud83d",
            ]
        )
    try:
        out, _ = trimmed(bytes(data), wanted)
    except (InputError, InvalidContextError):
        return
    assert essence(out) == essence(bytes(data))


def wild(seed: int) -> list[Line]:
    """Return lines that no client wrote: parents, results and boundaries at random."""
    choice = random.Random(seed)
    lines: list[Line] = []
    ids: list[str] = []
    for n in range(choice.randint(1, 25)):
        above = choice.choice([ids[-1]] * 6 + [choice.choice(ids), "gone", None]) if ids else None
        uuid = choice.choice([f"n{n}"] * 30 + ids[:1])
        call = f"c{choice.randint(0, 6)}"
        kind = choice.choice("uuaaaccrrspqb")
        if kind == "u":
            line = user(uuid, above, f"asked {n}")
        elif kind in "ac":
            block = said(f"said {n}") if kind == "a" else use(call)
            line = agent(uuid, above, block, id=f"m{choice.randint(0, 5)}")
        elif kind == "r":
            line = user(uuid, above, [result(call, "ok")])
        elif kind == "q":
            line = node(
                "attachment", uuid, above, attachment={"type": "queued_command", "prompt": "q"}
            )
        elif kind == "b":
            some = choice.sample(ids, min(len(ids), 2))
            meta = {"preservedMessages": {"anchorUuid": f"n{n + 1}", "uuids": some}} if some else {}
            fields = {"logicalParentUuid": above, "compactMetadata": meta}
            line = node("system", uuid, None, subtype="compact_boundary", **fields)
        else:
            line = node("progress" if kind == "p" else "system", uuid, above)
        lines.append(line | {"isSidechain": choice.random() < 0.08})
        ids.append(uuid)
    return lines


@given(seeds, options)
@settings(max_examples=300)
def test_lines_no_client_wrote_keep_their_words_or_are_refused(seed: int, wanted: TrimOptions):
    data = log(*wild(seed))
    try:
        out, _ = trimmed(data, wanted)
    except (InputError, InvalidContextError):
        return
    assert essence(out) == essence(data)
    assert dangling(out) <= dangling(data)
