"""Every name Recap hooks or reads exists in the oldest and in the newest SGLang, read as text.

The wheels are fetched with pip and never imported: their dependencies need a GPU.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from recap.sglang.compat import FIELDS, HOOKS, OLDEST
from recap.sglang.source import Source, fields

if TYPE_CHECKING:
    from recap.sglang.compat import Role


@pytest.fixture(scope="module", params=[f"sglang=={OLDEST}", "sglang"], ids=["oldest", "newest"])
def wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder))
    command = [sys.executable, "-m", "pip", "download", *options, request.param]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob("*.whl"))
    if done.returncode or not found:
        pytest.skip(f"no wheel of {request.param} within reach")
    return ZipFile(found[0])


@pytest.fixture(scope="module")
def source(wheel: ZipFile) -> Source:
    files = set(wheel.namelist())
    return Source(lambda path: wheel.read(path) if path in files else None)


@pytest.mark.parametrize("role", HOOKS)
def test_what_is_hooked_or_imported_exists(source: Source, role: Role) -> None:
    assert source.missing(role) == []


def test_what_is_read_of_its_objects_exists(source: Source) -> None:
    absent = []
    for name, needed in FIELDS.items():
        known = fields(source.find(name))
        absent += [f"{name}.{field}" for field in needed if field not in known]
    assert absent == []


def test_a_name_that_does_not_exist_is_noticed(source: Source) -> None:
    assert source.find("sglang.srt.server_args.ServerArgs.no_such_thing") is None
    assert source.find("sglang.srt.no_such_module.thing") is None
