"""What the text of the Triton kernels may not contain."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

KERNELS = sorted((Path(__file__).parents[2] / "recap_kernels" / "triton").glob("*.py"))


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernels_name_nothing_that_is_banned(path: Path) -> None:
    """Atomics depend on the order of programs; ``item`` and ``synchronize`` break a CUDA graph."""
    names = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
    }
    banned = {"make_block_ptr", "advance", "item", "tolist", "synchronize"}
    assert not banned & names
    assert not [name for name in names if name.startswith("atomic")]


def test_products_are_taken_in_one_place_that_widens_bfloat16() -> None:
    """The interpreter multiplies the bits of a bfloat16: only ``common.dots`` may see one."""
    with_dot = [path.stem for path in KERNELS if "tl.dot(" in path.read_text()]
    assert with_dot == ["common"]
    source = next(path for path in KERNELS if path.stem == "common").read_text()
    assert source.count("tl.dot(") == 1
    loaded = [path.stem for path in KERNELS if "= load_keys(" in path.read_text()]
    assert loaded == ["colstats", "lse"]


@pytest.mark.parametrize("stem", ["colstats", "lse"])
def test_loaded_keys_and_queries_are_only_multiplied_by_dots(stem: str) -> None:
    """Every use of ``keys`` and ``queries`` is an argument of a call or their own assignment."""
    tree = ast.parse(next(path for path in KERNELS if path.stem == stem).read_text())
    arithmetic = (ast.BinOp, ast.Compare, ast.UnaryOp, ast.Attribute)
    used = [
        child.id
        for node in ast.walk(tree)
        if isinstance(node, arithmetic)
        for child in ast.iter_child_nodes(node)
        if isinstance(child, ast.Name)
    ]
    assert not {"keys", "queries"} & set(used)
