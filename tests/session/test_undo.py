"""Any of the last selections can be shown and rendered again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from recap.config import Settings
from recap.errors import UsageError
from recap.session import Session
from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = Settings(retention="0.3")


def ends(messages: list[dict[str, Any]]) -> list[int]:
    return [
        at + 1
        for at, m in enumerate(messages)
        if isinstance(m["content"], str) and m["role"] == "user"
    ]


def test_each_turn_is_rendered_again_from_the_grown_session(tmp_path: Path) -> None:
    messages = conversation(8)
    served = []
    for end in ends(messages)[2:]:
        with Session("s", store=tmp_path, settings=SETTINGS) as session:
            served.append(session.compact(messages[:end]).to_json())
    with Session("s", store=tmp_path, settings=Settings()) as session:
        found = session.selections(messages)
        assert len(found) == len(served)
        starts = ends(messages)[2:]
        for number, (end, data) in enumerate(zip(starts, served, strict=True)):
            ref = f"-{len(served) - number}"
            again = session.compact_as(ref, messages[:end])
            assert again.to_json() == data
            assert session.compact_as(found[-1 - number].ref[:12], messages[:end]).to_json() == data
            whole_turn = session.compact_as(ref, messages)
            assert whole_turn.messages[: len(again.messages)] == again.messages


def test_a_request_given_apart_is_given_again(tmp_path: Path) -> None:
    messages = conversation(6)
    with Session("s", store=tmp_path, settings=SETTINGS) as session:
        done = session.compact(messages, "now the docs")
        grown = [*messages, {"role": "user", "content": "something else"}]
        assert session.compact_as("-1", grown, "now the docs").to_json() == done.to_json()
        with pytest.raises(UsageError, match="--request"):
            session.compact_as("-1", grown)


@pytest.mark.parametrize("ref", ["", "-0", "-9", "zz", "-" + "9" * 5000, "--1"])
def test_a_name_of_no_selection_is_refused_in_a_line(ref: str, tmp_path: Path) -> None:
    messages = conversation(4)
    with Session("s", store=tmp_path, settings=SETTINGS) as session:
        session.compact(messages)
        with pytest.raises(UsageError, match=r"^[^\n]{,200}$"):
            session.compact_as(ref, messages)


def test_a_turn_that_was_taken_back_is_no_turn_of_the_session(tmp_path: Path) -> None:
    messages = conversation(6)
    other = [*messages[:8], *conversation(9)[-7:]]
    with Session("s", store=tmp_path, settings=SETTINGS) as session:
        session.compact(messages)
        (served,) = session.selections(other)
        assert served.message is None
        with pytest.raises(UsageError):
            session.compact_as(served.ref, other)
