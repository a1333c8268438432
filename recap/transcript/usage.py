"""Token usage and times that a log reports: a second, cheap pass beside the reader of its format.

Information only: sizes are always recomputed from content. One entry for each response of the model,
in file order. Responses of sub-agents that stand in the same log are left out, as by its reader, and
so are totals that a client adds up. Formats that are not in the table report none.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import msgspec

from recap.economics.usage import Fields, Usage, count, split_prompt, usage_of
from recap.transcript.formats import Input
from recap.transcript.lines import Report, elements, members, parse, read_records
from recap.transcript.model import Json  # noqa: TC001 - msgspec resolves it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from recap.transcript.sources import Sized

T = TypeVar("T")

NOTHING = Usage()
MILLISECONDS = 1e11
"""Numbers above this are no seconds since 1970."""

_ANY = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Reported:
    """Usage of one response as a log reports it.

    Attributes:
        line: 1-based line of its first record, or 1-based index in a document's list.
        usage: Its tokens.
        time: When its last record was written, seconds since 1970; None where the log does not say.
        model: Model that answered, "" where the log does not say.
    """

    line: int
    usage: Usage
    time: float | None = None
    model: str = ""


def reported_usage(source: Sized, format: str) -> tuple[Reported, ...]:
    """Return what a log reports of its responses; () for formats that report nothing.

    Total: what is no usage is left out, and so is a response all counts of which are 0.

    Args:
        source: The log, as from ``sources.open_source``.
        format: Name of its format, as in ``Transcript.format``.

    Raises:
        InputError: The file lost bytes while it was read.
    """
    read = _FORMATS.get(format)
    return tuple(each for each in (read(source) if read else ()) if each.usage != NOTHING)


class _Line(msgspec.Struct, gc=False):
    """A line of a log; what it says stands in ``message`` or ``payload``, undecoded."""

    type: Json = None
    timestamp: Json = None
    isSidechain: Json = None  # noqa: N815 - as in the log
    message: msgspec.Raw = msgspec.Raw(b"null")
    payload: msgspec.Raw = msgspec.Raw(b"null")


class _Said(msgspec.Struct, gc=False):
    """The fields of a message or payload that report something."""

    type: Json = None
    id: Json = None
    model: Json = None
    usage: Json = None
    info: Json = None
    timestamp: Json = None


_LINES = msgspec.json.Decoder(_Line)
_SAID = msgspec.json.Decoder(_Said)


def _said(data: msgspec.Raw) -> _Said:
    return _decoded(bytes(data), _SAID) or _Said()


def _decoded(data: bytes, decoder: msgspec.json.Decoder[T]) -> T | None:
    try:
        return parse(data, decoder).value
    except ValueError:
        return None


def _claude_code(source: Sized) -> Iterable[Reported]:
    lines = ((r.line, r.value) for r in read_records(source, _LINES, Report()) if r.value)
    return _of_claude(lines)


def _claude_web(source: Sized) -> Iterable[Reported]:
    given = Input(source).value
    lines = members(given[0]).get("loglines") if given else None
    handles = enumerate(elements(lines) if lines else (), 1)
    return _of_claude((n, line) for n, raw in handles if (line := _decoded(raw.dump(), _LINES)))


def _of_claude(lines: Iterable[tuple[int, _Line]]) -> Iterable[Reported]:
    """Return the responses; a log that is a side chain throughout is a session of its own.

    A response stands on several lines with equal input counts; its output grows, the last one counts.
    """
    found: dict[bool, dict[object, Reported]] = {False: {}, True: {}}
    for number, line in lines:
        if line.type != "assistant":
            continue
        said = _said(line.message)
        usage = usage_of(said.usage)
        if usage is None:
            continue
        responses = found[line.isSidechain is True]
        key = said.id if isinstance(said.id, str) else number
        first = responses[key].line if key in responses else number
        responses[key] = Reported(first, usage, _time(line.timestamp), _text(said.model))
    return (found[False] or found[True]).values()


def _codex(source: Sized) -> Iterator[Reported]:
    """Yield the responses; an event whose totals have not grown repeats the one before."""
    model, totals = "", None
    for record in read_records(source, _LINES, Report()):
        line = record.value
        if line is None or line.type not in ("turn_context", "event_msg"):
            continue
        said = _said(line.payload)
        if line.type == "turn_context":
            model = _text(said.model) or model
            continue
        if said.type != "token_count" or not isinstance(said.info, dict):
            continue
        total = said.info.get("total_token_usage")
        if total is not None and total == totals:
            continue
        totals = total
        if isinstance(last := said.info.get("last_token_usage"), dict):
            yield Reported(record.line, _of_codex(last), _time(line.timestamp), model)


def _of_codex(fields: Fields) -> Usage:
    return split_prompt(
        count(fields, "input_tokens"),
        count(fields, "cached_input_tokens"),
        0,
        count(fields, "output_tokens"),
    )


def _pi(source: Sized) -> Iterator[Reported]:
    for record in read_records(source, _LINES, Report()):
        line = record.value
        if line is None or line.type != "message":
            continue
        said = _said(line.message)
        if isinstance(said.usage, dict):
            usage = _beside(said.usage, read="cacheRead", written="cacheWrite")
            time = _time(said.timestamp) or _time(line.timestamp)
            yield Reported(record.line, usage, time, _text(said.model))


def _gemini_cli(source: Sized) -> Iterable[Reported]:
    """Return the responses; a message is written anew whenever it changes, the last one counts."""
    found: dict[object, Reported] = {}
    for number, record in _objects(source, "messages"):
        tokens = record.get("tokens")
        if record.get("type") != "gemini" or not isinstance(tokens, dict):
            continue
        key = record["id"] if isinstance(record.get("id"), str) else number
        first = found[key].line if key in found else number
        time, model = _time(record.get("timestamp")), _text(record.get("model"))
        found[key] = Reported(first, _of_gemini_cli(tokens), time, model)
    return found.values()


def _of_gemini_cli(fields: Fields) -> Usage:
    prompt = count(fields, "input") + count(fields, "tool")
    return split_prompt(
        prompt, count(fields, "cached"), 0, count(fields, "output") + count(fields, "thoughts")
    )


def _opencode(source: Sized) -> Iterator[Reported]:
    for number, record in _objects(source, "messages"):
        info = record.get("info")
        tokens = info.get("tokens") if isinstance(info, dict) else None
        if not isinstance(info, dict) or not isinstance(tokens, dict):
            continue
        times = info.get("time")
        times = times if isinstance(times, dict) else {}
        time = _time(times.get("completed")) or _time(times.get("created"))
        cache = tokens.get("cache")
        cached = cache if isinstance(cache, dict) else {}
        usage = _beside({**tokens, **cached}, read="read", written="write")
        yield Reported(number, usage, time, _text(info.get("modelID")))


def _openhands(source: Sized) -> Iterable[Reported]:
    """Return the responses; actions of one response and what they led to repeat it."""
    found: dict[object, Reported] = {}
    for number, record in _objects(source, "history"):
        history = record.get("history")
        for event in history if isinstance(history, list) else [record]:
            call = event.get("tool_call_metadata") if isinstance(event, dict) else None
            answer = call.get("model_response") if isinstance(call, dict) else None
            if not isinstance(answer, dict) or not isinstance(answer.get("id"), str):
                continue
            if usage := usage_of(answer.get("usage")):
                time, model = _time(answer.get("created")), _text(answer.get("model"))
                found.setdefault(answer["id"], Reported(number, usage, time, model))
    return found.values()


def _beside(fields: Fields, *, read: str, written: str) -> Usage:
    """Return the usage of a client that counts the cache beside the input."""
    return Usage(
        count(fields, "input"), count(fields, read), count(fields, written), 0,
        count(fields, "output"),
    )  # fmt: skip


def _objects(source: Sized, key: str) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """Yield the objects of the list that a document is or holds under ``key``, else of the lines."""
    given = Input(source).value
    records: Iterable[tuple[int, Json]]
    if given is None:
        records = ((r.line, r.value) for r in read_records(source, _ANY, Report()))
    else:
        document = given[1]
        held = document.get(key) if isinstance(document, dict) else document
        records = enumerate(held if isinstance(held, list) else [document], 1)
    return ((number, value) for number, value in records if isinstance(value, dict))


def _time(value: Json) -> float | None:
    """Return seconds since 1970 of an ISO text, of seconds or of milliseconds; UTC without zone."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15:
        return value / 1000 if value > MILLISECONDS else float(value)
    return None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


_FORMATS: Mapping[str, Callable[[Sized], Iterable[Reported]]] = {
    "claude-code": _claude_code,
    "claude-web": _claude_web,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "opencode": _opencode,
    "openhands": _openhands,
    "pi": _pi,
}
