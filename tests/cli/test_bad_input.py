"""Damaged sessions: a clear result or a clear error from every reader, never a traceback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Cli

LINE = 30


def replaced(line: bytes) -> Callable[[bytes], bytes]:
    """Return damage that puts ``line`` in the place of line 31."""

    def damage(data: bytes) -> bytes:
        lines = data.split(b"\n")
        return b"\n".join([*lines[:LINE], line, *lines[LINE + 1 :]])

    return damage


def glued(data: bytes) -> bytes:
    lines = data.split(b"\n")
    return b"\n".join([*lines[:LINE], lines[LINE] + lines[LINE + 1], *lines[LINE + 2 :]])


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda data: data[: len(data) // 2],
    "glued": glued,
    "nul-filled": replaced(b"\0" * 5000),
    "not-utf8": lambda data: data.replace(b"Northwind", b"North\xff\xfewind"),
    "lone-surrogate": lambda data: data.replace(b"Northwind", b"North\\ud800wind"),
    "u2028": lambda data: data.replace(b"Northwind", "North\u2028wind".encode()),
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "deep": replaced(b'{"type":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "no-last-newline": lambda data: data.rstrip(b"\n"),
    "growing": lambda data: data + b'{"type":"user","mess',
    "repeated": lambda data: data + data,
    "scalars": replaced(b"17"),
    "no-object": replaced(b'["type"]'),
    "nan": replaced(b'{"type": "user", "uuid": NaN}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_log_gives_a_clear_result(
    cli: Cli, demo: Path, tmp_path: Path, damage: str
) -> None:
    (tmp_path / "bad.jsonl").write_bytes(DAMAGES[damage](demo.read_bytes()))
    for arguments in (("inspect",), ("explain", "--request", "go on"), ("check",)):
        result = cli(arguments[0], "bad.jsonl", *arguments[1:])
        assert result.status == 0 or arguments == ("check",)
        assert result.err == ""
    messages = cli("compact", "bad.jsonl", "--request", "go on").json()
    assert messages[-1]["content"] == "go on"
    assert cli("check", "-", stdin=json.dumps(messages).encode()).status == 0


def test_a_document_nested_without_end_is_one_clear_line(cli: Cli) -> None:
    for name in ("inspect", "check", "compact"):
        result = cli(name, "-", stdin=b"[" * 1_000_000)
        assert result.status == 1
        assert "Traceback" not in result.err + result.out
        assert (result.err + result.out).count("\n") <= 3


@pytest.mark.parametrize("data", [b"[]", b"{}", b'{"messages": []}', b"null", b'"text"', b"[1, 2]"])
def test_json_that_holds_no_messages_is_no_crash(cli: Cli, data: bytes) -> None:
    for arguments in (("inspect",), ("compact", "--request", "go on"), ("check",), ("graph",)):
        result = cli(arguments[0], "-", *arguments[1:], stdin=data)
        assert result.status in (0, 1)
        assert "internal error" not in result.err
        assert "bug of Recap" not in result.err
