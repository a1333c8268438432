from __future__ import annotations

import pytest

from recap.blocks.tools import edited_paths
from tests.testing import call, result


@pytest.mark.parametrize(
    ("name", "arguments", "paths"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"}, ("a.py",)),
        ("write", {"filePath": "/w/b.ts", "content": ""}, ("/w/b.ts",)),
        ("NotebookEdit", {"notebook_path": "n.ipynb"}, ("n.ipynb",)),
        ("mcp__fs__write_file", {"path": "c.txt"}, ("c.txt",)),
        ("str_replace_editor", {"command": "str_replace", "path": "d.py"}, ("d.py",)),
        ("str_replace_editor", {"command": "view", "path": "d.py"}, ()),
        ("Read", {"file_path": "a.py"}, ()),
        ("Edit", {"file_path": 7}, ()),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: x/y.go\n@@\n"}, ("x/y.go",)),
    ],
)
def test_edited_paths_follow_the_table(name: str, arguments: dict, paths: tuple[str, ...]):
    assert edited_paths([call("t", name, **arguments)]) == paths


def test_a_failed_edit_changed_nothing():
    parts = [call("t", "Edit", file_path="a.py"), result("t", "no match", is_error=True)]
    assert edited_paths(parts) == ()
