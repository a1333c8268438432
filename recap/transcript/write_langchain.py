"""Writer of LangChain messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from recap.transcript.convert import (
    arguments_object,
    is_image,
    openai_image,
    other_as_text,
    text_block,
    text_leaf,
)
from recap.transcript.langchain import message_type
from recap.transcript.lines import members
from recap.transcript.model import (
    Held,
    Message,
    Part,
    Role,
    Slice,
    block_text,
    flat_text,
)
from recap.transcript.tree import Tree, to_object

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASSES = {
    "human": "HumanMessage",
    "ai": "AIMessage",
    "system": "SystemMessage",
    "tool": "ToolMessage",
}
NAMESPACE = ("langchain", "schema", "messages")

TYPES: Mapping[Role, str] = {"user": "human", "assistant": "ai", "system": "system"}


def write_message(role: Role, parts: Sequence[Part]) -> list[Tree]:
    """Return the messages that hold ``parts``, as ``messages_to_dict`` writes them.

    Thinking must be of this dialect: the caller drops any other.
    """
    if not parts:
        return []
    if role == "tool":
        return [_result_message(part) for part in parts]
    if role != "assistant":
        return [_message(TYPES[role], content=_written_content(parts))]
    calls = [part for part in parts if part.kind == "call"]
    thoughts = [part for part in parts if _is_beside(part)]
    content = [part for part in parts if part.kind != "call" and not _is_beside(part)]
    fields: dict[str, Tree] = {"content": _written_content(content) if content else ""}
    if thoughts:
        fields["additional_kwargs"] = {"reasoning_content": thoughts[0].raw}
    fields["tool_calls"] = [_written_call(call) for call in calls if not _is_invalid(call)]
    fields["invalid_tool_calls"] = [call.raw for call in calls if _is_invalid(call)]
    return [_message("ai", **fields)]


def _is_beside(part: Part) -> bool:
    """Return True for thinking that stands beside the content."""
    return part.kind == "thinking" and not part.path


def _message(kind: str, **fields: Tree) -> Tree:
    return {"type": kind, "data": {**fields, "type": kind}}


def _is_invalid(call: Part) -> bool:
    """Return True for a call of ours whose arguments were no JSON."""
    return _is_entry(call) and not isinstance(call.payload(), dict)


def _is_entry(call: Part) -> bool:
    """Return True for a call as LangChain lists it; blocks of the content are of another form."""
    return call.dialect == "langchain" and call.path == ("args",)


def _written_call(call: Part) -> Tree:
    if _is_entry(call):
        return call.raw
    arguments = arguments_object(call.payload())
    return {"name": call.name, "args": arguments, "id": call.call_id, "type": "tool_call"}


def _result_message(part: Part) -> Tree:
    if part.dialect == "langchain":
        return part.raw
    content = part.payload()
    written: Tree = flat_text(content)
    if isinstance(content, list) and any(map(is_image, content)):
        written = [
            openai_image(block) if is_image(block) else text_block(block_text(block))
            for block in content
        ]
    fields: dict[str, Tree] = {"content": written, "tool_call_id": part.call_id}
    return _message("tool", **fields, status="error" if part.is_error else "success")


def _written_content(parts: Sequence[Part]) -> Tree:
    """Return one text as a string, anything else as a list of blocks."""
    if len(parts) == 1 and parts[0].kind == "text" and _is_foreign(parts[0]):
        return text_leaf(parts[0])
    return [_block(part) for part in parts]


def _is_foreign(part: Part) -> bool:
    """Return True for what is no content block of ours: another dialect's, or a bare string."""
    return part.dialect != "langchain" or (part.kind == "text" and not part.path)


def _block(part: Part) -> Tree:
    if not _is_foreign(part):
        return part.raw
    assert part.kind != "thinking"
    if part.kind == "text":
        return text_block(text_leaf(part))
    return openai_image(part.payload()) if part.kind == "image" else other_as_text(part)


def in_one_form(trees: Sequence[Tree], given: Sequence[Message]) -> list[Tree]:
    """Return messages that are all in the form of the list they come from.

    Args:
        trees: Messages to write, whole ones as handles on the original.
        given: What was read; the first message of this dialect shows the form.
    """
    raws = (m.envelope.raw for m in given if m.envelope.dialect == "langchain")
    shown = next((members(raw) for raw in raws if raw is not None), {})
    key = "kwargs" if "kwargs" in shown else "data"
    return [_as(tree, key) for tree in trees]


def _as(tree: Tree, key: str) -> Tree:
    """Return a message in the form whose fields stand under ``key``; as it is when it has it."""
    fields = _fields(tree)
    if key in fields:
        return tree
    kind, _ = message_type(to_object(tree))
    data: dict[str, Tree] = {**_fields(fields["kwargs" if key == "data" else "data"]), "type": kind}
    if key == "data":
        return {"type": kind, "data": data}
    name = CLASSES.get(kind, f"{kind.capitalize()}Message")
    return {"lc": 1, "type": "constructor", "id": [*NAMESPACE, name], "kwargs": data}


def _fields(tree: Tree) -> Mapping[str, Tree]:
    if isinstance(tree, Slice | Held):
        return members(tree)
    return tree if isinstance(tree, Mapping) else {}
