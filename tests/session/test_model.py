"""The observer that settings name: known by the files of its model, loaded when a turn is measured."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recap.config import Settings
from recap.errors import NotInstalledError, UsageError
from recap.session import Session
from recap.session.model import ProxyObserver, fingerprint_of
from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path


def folder_of(path: Path) -> Path:
    path.mkdir()
    (path / "config.json").write_text('{"num_hidden_layers": 8}')
    (path / "model.safetensors").write_bytes(bytes(20_000))
    return path


def test_a_copied_model_is_the_same_and_another_is_not(tmp_path: Path) -> None:
    one = fingerprint_of(str(folder_of(tmp_path / "one")), {})
    assert fingerprint_of(str(folder_of(tmp_path / "two")), {}) == one
    for name in ("config.json", "model.safetensors", "chat_template.jinja"):
        other = folder_of(tmp_path / f"without {name}")
        (other / name).write_bytes(b"other")
        assert fingerprint_of(str(other), {}) != one


def test_weights_of_the_same_size_are_told_apart(tmp_path: Path) -> None:
    one, two = folder_of(tmp_path / "one"), folder_of(tmp_path / "two")
    (two / "model.safetensors").write_bytes(b"\1" * 20_000)
    assert fingerprint_of(str(one), {}) != fingerprint_of(str(two), {})


@pytest.mark.parametrize("setting", ["", "absent", "~nobody9/x", "\ud800"])
def test_no_model_has_no_fingerprint(tmp_path: Path, setting: str) -> None:
    assert fingerprint_of(setting, {"RECAP_HOME": str(tmp_path)}) == ""


def test_a_model_that_is_installed_meanwhile_is_found(tmp_path: Path) -> None:
    observer = ProxyObserver(Settings(observer="proxy", proxy_model=str(tmp_path / "m")))
    assert observer.fingerprint == ""
    folder_of(tmp_path / "m")
    assert observer.fingerprint


def test_a_folder_without_a_model_is_refused_with_what_to_do(tmp_path: Path) -> None:
    settings = Settings(observer="proxy", proxy_model=str(tmp_path))
    with pytest.raises((UsageError, NotInstalledError), match=r"recap proxy install|pip install"):
        Session(settings=settings).observe(conversation(2))


@pytest.mark.slow
def test_a_real_model_measures_the_same_whatever_the_split(tmp_path: Path) -> None:
    from tests.capture.tiny_models import make_model

    folder = make_model(tmp_path / "model", "llama")
    settings = Settings(observer="proxy", proxy_model=str(folder))
    messages = conversation(5)
    whole = Session("s", settings=settings).observe(messages)
    for end in (9, 20, len(messages)):
        with Session("s", store=tmp_path / "store", settings=settings) as session:
            known = session.observe(messages[:end], open_turn=False)
    one, other = whole.settled, known.settled
    assert (one.turns, one.ids) == (other.turns, other.ids) == (4, known.table.ids[: len(one.ids)])
    np.testing.assert_allclose(one.importance, other.importance, atol=1e-4)
    assert set(zip(one.source, one.target, strict=True)) == set(
        zip(other.source, other.target, strict=True)
    )
    assert "torch" in sys.modules
