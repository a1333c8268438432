"""The public surface: complete, sorted, lazy, and the same for people and type checkers."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import recap
from recap import errors

SOURCE = ast.parse(Path(recap.__file__).read_text(encoding="utf-8"))


def typed_names() -> set[str]:
    """Return the names that a type checker sees imported."""
    guarded = next(
        node for node in SOURCE.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)
    )
    imports = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    return {alias.name for node in imports for alias in node.names}


def test_public_names_are_sorted_and_unique() -> None:
    assert recap.__all__ == sorted(set(recap.__all__))


def test_public_names_are_those_a_type_checker_sees() -> None:
    assert set(recap.__all__) == typed_names()


@pytest.mark.parametrize("name", recap.__all__)
def test_every_public_name_exists_where_its_type_does(name: str) -> None:
    value = getattr(recap, name)
    assert value.__doc__
    assert value.__name__ == name


def test_every_public_name_is_listed_by_dir() -> None:
    assert set(recap.__all__) <= set(dir(recap))


def test_every_public_error_is_exported() -> None:
    names = {e.__name__ for e in vars(errors).values() if isinstance(e, type)}
    assert names <= set(recap.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'recap' has no attribute 'compress'"):
        _ = recap.compress  # type: ignore[attr-defined]


def test_every_error_comes_back_from_another_process() -> None:
    """A worker's error is pickled; one that cannot be would look like a process that died."""

    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, Exception)]
    assert errors.CaptureError in kinds
    for kind in kinds:
        made = kind("why", "a text") if kind is errors.CaptureError else kind("a text")
        again = pickle.loads(pickle.dumps(made))
        assert (type(again), str(again)) == (kind, "a text")
        assert vars(again) == vars(made)
