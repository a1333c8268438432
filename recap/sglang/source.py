"""What an SGLang defines, read as text: to import it takes seconds, and may need a GPU.

A name that a module imports or makes at run time is not seen; a server itself asks ``compat.missing``.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from recap.sglang.compat import HOOKS, SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from recap.sglang.compat import Role


class Source:
    """The files of one SGLang.

    Args:
        read: Text of the file of a path such as ``sglang/version.py``; None where there is none.
    """

    def __init__(self, read: Callable[[str], str | bytes | None]) -> None:
        self._read = read
        self._tree = cache(self._parsed)

    @classmethod
    def installed(cls) -> Source | None:
        """Return the one that Python would import, None without one."""
        spec = util.find_spec("sglang")  # of a package at the top: imports nothing
        folders = [
            Path(folder).parent for folder in (spec and spec.submodule_search_locations) or ()
        ]
        if not folders:
            return None

        def read(path: str) -> bytes | None:
            found = next((folder / path for folder in folders if (folder / path).is_file()), None)
            return None if found is None else found.read_bytes()

        return cls(read)

    def missing(self, role: Role) -> list[str]:
        """Return the dotted names this role needs that the files do not define."""
        names = [hook.target for hook in HOOKS[role]] + list(SYMBOLS[role])
        return [name for name in names if self.find(name) is None]

    def find(self, name: str) -> ast.AST | None:
        """Return where a dotted name is defined, None where it is not."""
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            node: ast.AST | None = self._tree("/".join(parts[:cut]))
            if node is None:
                continue
            for part in parts[cut:]:
                node = members(node).get(part)
            return node
        return None

    def _parsed(self, module: str) -> ast.Module | None:
        for path in (f"{module}.py", f"{module}/__init__.py"):
            text = self._read(path)
            if text is not None:
                try:
                    return ast.parse(text)
                except (SyntaxError, ValueError):  # written for a later Python, or damaged
                    return None
        return None


def members(node: ast.AST | None) -> dict[str, ast.AST]:
    """Return the names that the body of a module or class defines."""
    found: dict[str, ast.AST] = {}
    for inner in getattr(node, "body", ()):
        match inner:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found[inner.name] = inner
            case ast.Assign():
                for name in (t.id for t in inner.targets if isinstance(t, ast.Name)):
                    found.setdefault(name, inner)  # a class made over keeps its methods
            case ast.AnnAssign(target=ast.Name() as target):
                found[target.id] = inner
            case _:
                pass
    return found


def fields(node: ast.AST | None) -> set[str]:
    """Return the fields of a class: declared in its body, or assigned to ``self`` in a method."""
    names = set(members(node))
    for inner in ast.walk(node) if node is not None else ():
        for target in _targets(inner):
            match target:
                case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                    names.add(attr)
                case _:
                    pass
    return names


def _targets(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Assign):
        return [inner for target in node.targets for inner in ast.walk(target)]
    return [node.target] if isinstance(node, ast.AnnAssign) else []
