"""Every name Recap hooks or reads exists in the oldest and in the newest SGLang, read as text.

The wheels are fetched with pip and never imported: their dependencies need a GPU.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from zipfile import ZipFile

import pytest

from recap.sglang.compat import FIELDS, HOOKS, OLDEST, SYMBOLS

NAMES = sorted(
    {hook.target for hooks in HOOKS.values() for hook in hooks}
    | {name for names in SYMBOLS.values() for name in names}
)


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


@cache
def tree(wheel: ZipFile, module: str) -> ast.Module | None:
    path = module.replace(".", "/")
    for name in (f"{path}.py", f"{path}/__init__.py"):
        if name in wheel.namelist():
            return ast.parse(wheel.read(name))
    return None


def members(body: list[ast.stmt]) -> dict[str, ast.AST]:
    """Return the names that a module or class body defines."""
    found: dict[str, ast.AST] = {}
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found[node.name] = node
            case ast.Assign():
                for name in (t.id for t in node.targets if isinstance(t, ast.Name)):
                    found.setdefault(name, node)  # a class made over keeps its methods
            case ast.AnnAssign(target=ast.Name() as target):
                found[target.id] = node
            case _:
                pass
    return found


def resolved(wheel: ZipFile, name: str) -> ast.AST | None:
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = tree(wheel, ".".join(parts[:cut]))
        if module is None:
            continue
        node: ast.AST | None = module
        for part in parts[cut:]:
            node = members(getattr(node, "body", [])).get(part)
        return node
    return None


def assigned(node: ast.AST) -> set[str]:
    """Return the fields of a class: declared in its body, or assigned to ``self`` in a method."""
    names = set(members(getattr(node, "body", [])))
    for inner in ast.walk(node):
        for target in targets(inner):
            match target:
                case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                    names.add(attr)
                case _:
                    pass
    return names


def targets(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Assign):
        return [inner for target in node.targets for inner in ast.walk(target)]
    return [node.target] if isinstance(node, ast.AnnAssign) else []


def test_what_is_hooked_or_imported_exists(wheel: ZipFile) -> None:
    assert [name for name in NAMES if resolved(wheel, name) is None] == []


def test_what_is_read_of_its_objects_exists(wheel: ZipFile) -> None:
    absent = []
    for name, fields in FIELDS.items():
        node = resolved(wheel, name)
        known = assigned(node) if node is not None else set()
        absent += [f"{name}.{field}" for field in fields if field not in known]
    assert absent == []


def test_a_name_that_does_not_exist_is_noticed(wheel: ZipFile) -> None:
    assert resolved(wheel, "sglang.srt.server_args.ServerArgs.no_such_thing") is None
    assert resolved(wheel, "sglang.srt.no_such_module.thing") is None
