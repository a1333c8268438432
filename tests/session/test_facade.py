"""What names a session and its store: anything a client sends works, anything else is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from recap.errors import UsageError
from recap.session import Session
from recap.store import Store
from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("a\0b", "\ud800x", "x" * 5000, "  ", "a\nb\x1b[31m", "\N{SNOWMAN}")


@pytest.mark.parametrize("field", ["id", "agent", "tenant", "label"])
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_text_names_a_session(tmp_path: Path, field: str, name: str) -> None:
    names: dict[str, Any] = {"id": "s", field: name}
    for turns in (2, 3):
        with Session(store=tmp_path, **names) as session:
            session.compact(conversation(turns))
            assert session.failure is None
            assert session.row is not None
    assert session.row.rev == 2


@pytest.mark.parametrize("store", [7, b"x", object(), "", " ", "a\0b", "/x/\ud800", "~nobody9/x"])
def test_what_is_no_store_is_refused(store: Any) -> None:
    with pytest.raises(UsageError, match="store"):
        Session("s", store=store)


def test_a_folder_of_the_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Session("s", store="~/recap").close()
    assert (tmp_path / "recap" / "recap.db").exists()


def test_a_sub_agent_continues_no_other_session(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        Session("s", store=store).compact(conversation(3))
        agent = Session("s", agent="explore", store=store)
        agent.compact(conversation(4)[8:])
        assert agent.row is not None
        assert agent.row.parent is None
        again = Session("s", agent="explore", store=store)
        again.compact(conversation(5)[16:])
        assert again.row is not None
        assert again.row.parent == agent.row.id
