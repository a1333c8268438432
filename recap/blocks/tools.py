"""Which tools change files, as data: tool name -> arguments that name the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recap.transcript.parts import parsed_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recap.transcript.model import Json, Part

PATH_KEYS = ("file_path", "filePath", "notebook_path", "path", "filename", "target_file", "file")

EDIT_TOOLS: Mapping[str, tuple[str, ...]] = dict.fromkeys(("edit", "multiedit", "write", "notebookedit", "replace", "write_file", "str_replace_editor", "str_replace_based_edit_tool", "file_editor", "edit_file", "create_file", "search_replace", "update_file", "create"), PATH_KEYS)  # fmt: skip
"""Names in lower case: vendors differ only in case."""

READ_ONLY_COMMANDS = frozenset(("view", "undo_edit"))
"""Values of ``command`` by which the Anthropic editor tool changes nothing worth protecting."""

PATCH_TOOLS = frozenset(("apply_patch",))
PATCH_FILE = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)


def edited_paths(parts: Sequence[Part]) -> tuple[str, ...]:
    """Return the files that the calls among ``parts`` changed, in order, without repeats.

    A call whose result among ``parts`` reports an error changed nothing.
    """
    failed = {part.call_id for part in parts if part.kind == "result" and part.is_error}
    paths: dict[str, None] = {}
    for part in parts:
        if part.kind == "call" and part.call_id not in failed:
            paths.update(dict.fromkeys(_paths_of(part)))
    return tuple(paths)


def _paths_of(call: Part) -> list[str]:
    name = call.name.lower().rpartition("__")[2]
    if name in PATCH_TOOLS:
        return PATCH_FILE.findall(call.text())
    keys = EDIT_TOOLS.get(name)
    if keys is None:
        return []
    arguments: Json = parsed_arguments(call.payload())
    if not isinstance(arguments, dict) or arguments.get("command") in READ_ONLY_COMMANDS:
        return []
    return [value for key in keys if isinstance(value := arguments.get(key), str) and value][:1]
