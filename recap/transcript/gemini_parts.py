"""Records of Gemini CLI sessions to messages: the parts of the model's API, thoughts, and calls."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recap.transcript.authors import author_in, media_author
from recap.transcript.events import Body, message_of, string
from recap.transcript.images import image_address, image_of
from recap.transcript.lines import Report, elements, members
from recap.transcript.model import (
    HUMAN_AUTHORS,
    Author,
    Held,
    Json,
    Message,
    Part,
    Raw,
    Role,
    flat_text,
)
from recap.transcript.parts import (
    call_part,
    image_part,
    other_part,
    result_part,
    text_part,
    thinking_part,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recap.transcript.items import Fields

FAILED = ("error", "cancelled")
"""Values of a call's ``status`` that report an error."""

FILES, FILES_END = "--- Content from referenced files ---", "--- End of content ---"
"""Between these texts stand the files a request names."""


def user_messages(body: Body, line: int) -> list[Message]:
    """Return the results and the words of a user record; a record of results is no request."""
    parts = _with_typed(_content(body, "user"), body.fields.get("displayContent"))
    uid = body.fields.get("id")
    results = [part for part in parts if part.kind == "result"]
    words = [part for part in parts if part.kind != "result"]
    groups: tuple[tuple[Role, list[Part]], ...] = (("tool", results), ("user", words))
    return [message_of(role, group, line, uid=uid) for role, group in groups if group]


def answer_messages(body: Body, line: int, report: Report) -> list[Message]:
    """Return an answer, and the results of its calls."""
    raw, fields = body
    handles = members(raw)
    thoughts, calls, results = [], [], []
    for each in elements(handles["thoughts"]) if "thoughts" in handles else ():
        thought = each.load()
        words = string(thought, "description") if isinstance(thought, dict) else ""
        thoughts.append(thinking_part(each, words, path=("description",)))
    for each in elements(handles["toolCalls"]) if "toolCalls" in handles else ():
        record = each.load()
        name = string(record, "name") if isinstance(record, dict) else ""
        if not name:
            report.add("malformed-call", "a tool call lacks its tool; it is left out", line)
            continue
        call_id, arguments = string(record, "id"), record.get("args")
        sent = {"id": call_id, "name": name, "args": arguments}
        calls.append(call_part(each, name, call_id, arguments, path=("args",), sent=sent))
        if record.get("result") is not None:
            results.append(
                _result(members(each)["result"], call_id, string(record, "status") in FAILED)
            )
    content = [
        part
        for part in _content(body, "assistant")
        if not (part.kind == "call" and _is_among(part, calls))
    ]
    model, uid = string(fields, "model"), fields.get("id")
    answer = message_of("assistant", [*thoughts, *content, *calls], line, model=model, uid=uid)
    return [answer, message_of("tool", results, line, uid=uid)] if results else [answer]


def _is_among(call: Part, calls: Sequence[Part]) -> bool:
    """Return True for a call that the record also lists with its result."""
    return any(
        call.call_id == each.call_id if call.call_id else call.name == each.name for each in calls
    )


def _content(body: Body, role: Role) -> list[Part]:
    """Return the parts of a record's content, a string or a list."""
    content = body.fields.get("content")
    handle = members(body.raw).get("content")
    if handle is None or not content:
        return []
    if isinstance(content, str):
        return [text_part(handle, content, author_in(role, content))]
    if not isinstance(content, list):
        return [_part(handle, content, role, "human")]
    texts = [
        author_in(role, words)
        for part in content
        if isinstance(words := part.get("text") if isinstance(part, dict) else part, str)
    ]
    media = media_author(role, texts)
    parts = [
        _part(raw, part, role, media) for raw, part in zip(elements(handle), content, strict=True)
    ]
    return list(_without_files(parts)) if role == "user" else parts


def _part(raw: Raw, part: Json, role: Role, media: Author) -> Part:
    """Return a part of the model's API: text, image, call, result, or what is none of these."""
    if isinstance(part, str):
        return text_part(raw, part, author_in(role, part))
    fields = part if isinstance(part, dict) else {}
    words = fields.get("text")
    if isinstance(words, str):
        if fields.get("thought") is True:
            is_signed = bool(fields.get("thoughtSignature"))
            return thinking_part(raw, words, path=("text",), has_signature=is_signed)
        return text_part(raw, words, author_in(role, words), path=("text",))
    if _is_image(fields):
        return image_part(raw, media, image_of(fields))
    call, response = fields.get("functionCall"), fields.get("functionResponse")
    if isinstance(call, dict) and string(call, "name") and role == "assistant":
        uid, path = string(call, "id"), ("functionCall", "args")
        return call_part(raw, call["name"], uid, call.get("args"), path=path)
    if isinstance(response, dict) and role == "user":
        return _result(raw, string(response, "id"), is_failed=False)
    return other_part(raw, next(iter(fields), ""), media)


def _without_files(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield the parts, the files a request names marked as the client's."""
    is_file = False
    for part in parts:
        words = part.text().strip() if part.kind == "text" else ""
        is_file = is_file or words.startswith(FILES)
        yield replace(part, author="injected") if is_file and part.kind != "result" else part
        is_file = is_file and not words.startswith(FILES_END)


def _with_typed(parts: Sequence[Part], typed: Json) -> list[Part]:
    """Return the parts of a request, where the record says what was typed: only that a person's."""
    shown = flat_text(typed).strip() if typed else ""
    texts = [part.text().strip() if part.kind == "text" else "" for part in parts]
    if not any(text and (text in shown or shown in text) for text in texts if shown):
        return list(parts)
    return [
        replace(part, author="injected")
        if text and part.author in HUMAN_AUTHORS and not (text in shown or shown in text)
        else part
        for part, text in zip(parts, texts, strict=True)
    ]


def _is_image(part: Fields) -> bool:
    data = part.get("inlineData")
    media_type = string(data, "mimeType") if isinstance(data, dict) else ""
    return media_type.startswith("image/") and bool(image_address(part))


def _result(raw: Raw, call_id: str, is_failed: bool) -> Part:
    """Return the result that a part, or a list of parts, holds."""
    items = elements(raw) if isinstance(raw.load(), list) else [raw]
    if len(items) == 1 and (response := _response(items[0])):
        content = response.load()
        key = next((k for k in ("output", "error") if isinstance(content.get(k), str)), "")
        path, content = ((key,), content[key]) if key else ((), content)
        is_error = is_failed or key == "error"
        return result_part(response, call_id, content, path=path, is_error=is_error)
    blocks: list[Json] = []
    for item in items:
        value = item.load()
        blocks.extend(_blocks(value if isinstance(value, dict) else {"text": value}))
    held = Held(blocks, raw.is_clean)
    return result_part(held, call_id, blocks, path=(), is_error=is_failed)


def _response(raw: Raw) -> Raw | None:
    """Return the handle on what a tool answered, where the part holds nothing else."""
    outer = members(raw)
    inner = members(outer["functionResponse"]) if set(outer) == {"functionResponse"} else {}
    response = inner.get("response")
    if response is None or "parts" in inner or not isinstance(response.load(), dict):
        return None
    return response


def _blocks(part: Fields) -> Iterator[Json]:
    """Yield the text and image blocks of one part of a result."""
    response = part.get("functionResponse")
    if isinstance(response, dict):
        answer = response.get("response")
        fields = answer if isinstance(answer, dict) else {}
        content = fields.get("output", fields.get("error", answer))
        yield {"type": "text", "text": flat_text(content)}
        inner = response.get("parts")
        for each in inner if isinstance(inner, list) else ():
            yield from _blocks(each if isinstance(each, dict) else {"text": each})
    elif _is_image(part):
        yield {"type": "image", **part}
    else:
        words = part.get("text")
        yield {"type": "text", "text": words} if isinstance(words, str) else part
