"""Every name Recap hooks or reads exists in the oldest and in the newest SGLang, read as text.

The wheels are fetched with pip and never imported: their dependencies need a GPU.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from recap.sglang.compat import FIELDS, HOOKS, OLDEST, Hook
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


@pytest.mark.parametrize(
    "hook", [hook for hooks in HOOKS.values() for hook in hooks], ids=lambda hook: hook.handler
)
def test_a_handler_takes_what_its_target_is_called_with(source: Source, hook: Hook) -> None:
    target = source.find(hook.target)
    assert isinstance(target, ast.FunctionDef)
    handler = inspect.signature(pkgutil.resolve_name(hook.handler))
    assert not disagreement(target.args, [*handler.parameters.values()][1:])


def disagreement(target: ast.arguments, ours: list[inspect.Parameter]) -> str:
    """Return how a call of the target would fail with our function in its place, "" for none."""
    given = [arg.arg for arg in (*target.posonlyargs, *target.args)]
    positional = [one.name for one in ours if one.kind is one.POSITIONAL_OR_KEYWORD]
    if given[:1] == ["self"]:
        positional[0] = "self"  # nobody passes it by name
    keywords = {one.name for one in ours if one.kind is one.KEYWORD_ONLY}
    kinds = {one.kind for one in ours}
    if given[: len(positional)] != positional:
        return f"{positional} are not the first of {given}"
    if len(given) > len(positional) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        return f"nothing takes {given[len(positional) :]}"
    named = {arg.arg for arg in target.kwonlyargs}
    if not keywords <= named:
        return f"{keywords - named} are never passed"
    if (
        named - keywords or given[len(positional) :]
    ) and inspect.Parameter.VAR_KEYWORD not in kinds:
        return f"nothing takes {named - keywords} by name"
    return ""


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("self, a, b", ""),
        ("self, a, *, c", ""),
        ("self, z, b", "are not the first"),
        ("self", "are not the first"),
    ],
)
def test_a_target_that_is_called_otherwise_is_noticed(target: str, said: str) -> None:
    def handler(original: object, ours: object, a: object, *args: object, **kwargs: object) -> None:
        pass

    (made,) = ast.parse(f"def target({target}): pass").body
    assert isinstance(made, ast.FunctionDef)
    told = disagreement(made.args, [*inspect.signature(handler).parameters.values()][1:])
    assert said in told
    assert bool(said) == bool(told)


def test_a_name_that_does_not_exist_is_noticed(source: Source) -> None:
    assert source.find("sglang.srt.server_args.ServerArgs.no_such_thing") is None
    assert source.find("sglang.srt.no_such_module.thing") is None
