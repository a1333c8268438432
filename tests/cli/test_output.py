"""Numbers, tables and texts as they are shown; what a session says never commands a terminal."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pytest asks for the type

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.cli import COMMANDS
from recap.cli.output import (
    Column,
    Line,
    Row,
    Table,
    byte_size,
    cell_width,
    counted,
    fitted,
    laid_out,
    milliseconds,
    number,
    percent,
    preview,
    safe,
    score,
)
from tests.cli.conftest import Cli  # noqa: TC001 - pytest asks for the type


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("\x1b[2J\x1b]0;title\x07", "\ufffd[2J\ufffd]0;title\ufffd"),
        ("\x9b31m", "\ufffd31m"),
        ("one\rtwo", "one\ufffdtwo"),
        ("line\nline\ttab", "line line tab"),
        ("\u202eevil\u2066", "\ufffdevil\ufffd"),
        ("zero\u200bwidth", "zero\ufffdwidth"),
        ("lone \ud800 half", "lone \ufffd half"),
        ("a\u2028b\xa0c", "a b c"),
        ("Grüße 注文 🚚", "Grüße 注文 🚚"),
    ],
)
def test_what_a_terminal_could_obey_is_replaced(hostile: str, harmless: str) -> None:
    assert safe(hostile) == harmless


@given(st.text())
def test_a_safe_text_is_printable_and_as_long(text: str) -> None:
    assert safe(text).isprintable()
    assert len(safe(text)) == len(text)
    assert safe(safe(text)) == safe(text)


@given(st.text(), st.integers(1, 50))
def test_a_preview_is_one_short_line(text: str, length: int) -> None:
    shown = preview(text, length)
    assert len(shown) <= length
    assert shown == shown.strip() or len(shown) == length
    assert shown.isprintable()


def test_a_preview_of_a_huge_text_looks_at_its_beginning_only() -> None:
    assert preview("word " * 10_000_000, 9) == "word word"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (number(1234567), "1,234,567"),
        (counted(1, "block"), "1 block"),
        (counted(0, "block"), "0 blocks"),
        (counted(1200, "reply", "replies"), "1,200 replies"),
        (percent(0.61), "61 %"),
        (percent(0.004), "0.4 %"),
        (percent(0.0), "0 %"),
        (percent(1.3), "130 %"),
        (milliseconds(0.0042), "4.2 ms"),
        (milliseconds(1.5), "1,500 ms"),
        (byte_size(999), "999 B"),
        (byte_size(1000), "1.0 KB"),
        (byte_size(246_756), "246.8 KB"),
        (byte_size(3_851_779), "3.9 MB"),
        (byte_size(2_000_000_000), "2.0 GB"),
        (score(0.0), ""),
        (score(0.123), "0.12"),
        (score(-1.5), "-1.50"),
        (score(60223.08), "60,223"),
    ],
)
def test_numbers_are_shown_one_way(shown: str, expected: str) -> None:
    assert shown == expected


TABLE = Table(
    (Column("#", "right"), Column("kind"), Column("begins with", is_flexible=True)),
    (
        Row(("1", "you", "a long line that cannot fit in here")),
        Row(("10", "tools", "short"), "faint"),
        Row(("100", "reply", "注文を取り込む注文を取り込む注文を取り込む")),
    ),
)


def texts(table: Table, width: int) -> list[str]:
    return [line.text for line in laid_out(table, width)]


def test_a_table_is_aligned_and_cut_to_the_width() -> None:
    assert texts(TABLE, 32) == [
        "  #  kind   begins with",
        "  1  you    a long line that ...",
        " 10  tools  short",
        "100  reply  注文を取り込む注...",
    ]


def test_a_wide_table_is_not_stretched() -> None:
    assert texts(TABLE, 200)[1] == "  1  you    a long line that cannot fit in here"


def test_rows_keep_their_tone_and_the_header_is_strong() -> None:
    assert [line.tone for line in laid_out(TABLE, 40)] == ["strong", "", "faint", ""]


def test_a_table_without_rows_is_nothing() -> None:
    assert texts(Table(TABLE.columns, ()), 40) == []


def test_a_line_of_several_lines_becomes_several() -> None:
    assert laid_out(Line("a\nb ", "bad"), 10) == [Line("a", "bad"), Line("b", "bad")]


@given(
    st.lists(st.tuples(st.text(max_size=5), st.text(max_size=80)), min_size=1), st.integers(30, 90)
)
def test_no_line_of_a_table_is_wider_than_asked(rows: list[tuple[str, str]], width: int) -> None:
    table = Table(
        (Column("id"), Column("text", is_flexible=True)), tuple(Row(cells) for cells in rows)
    )
    assert all(cell_width(line) <= width for line in texts(table, width))
    assert all(line.isprintable() for line in texts(table, width))


@given(st.text(), st.integers(20, 100))
def test_no_fitted_line_is_wider_than_the_width(text: str, width: int) -> None:
    for element in (
        text,
        Table((Column("a"), Column("b", is_flexible=True)), (Row((text, text)),)),
    ):
        assert all(cell_width(line.text) <= width for line in fitted(element, width))


def test_a_line_goes_on_below_its_value() -> None:
    lines = [line.text for line in fitted("  left out    one two three four five", 24)]
    assert lines == ["  left out    one two", " " * 14 + "three four", " " * 14 + "five"]


def test_a_path_without_spaces_is_folded_and_nothing_of_it_is_lost() -> None:
    path = "/home/" + "x" * 200 + "/session.jsonl"
    lines = [line.text for line in fitted(path, 40)]
    assert "".join(line.strip() for line in lines) == path


WIDE = [
    ("config",), ("doctor",), ("demo",), ("inspect", "S"), ("check", "S"), ("graph", "S"),
    ("explain", "S", "--request", "go on"), ("compact", "S", "--request", "go on", "--dry-run"),
    ("check", "S", "--repair", "out", "--dry-run"), *((name, "--help") for name in COMMANDS),
]  # fmt: skip


@pytest.mark.parametrize("columns", [20, 80])
@pytest.mark.parametrize("arguments", WIDE, ids=" ".join)
def test_every_report_keeps_to_the_terminal(
    cli: Cli, demo: Path, tmp_path: Path, arguments: tuple[str, ...], columns: int
) -> None:
    folder = tmp_path / ("long-" * 20) / ("name-" * 20)
    folder.mkdir(parents=True)
    session = folder / "session.jsonl"
    session.write_bytes(demo.read_bytes())
    result = cli(
        *(str(session) if each == "S" else each for each in arguments), COLUMNS=str(columns)
    )
    assert result.status in (0, 1)
    assert result.out
    if columns == 80 or "--help" not in arguments:
        assert max(cell_width(line) for line in result.out.splitlines()) <= columns


@pytest.mark.parametrize("arguments", [("config", "--toml"), ("graph", "S", "--dot")])
def test_what_a_program_reads_is_not_folded(
    cli: Cli, demo: Path, arguments: tuple[str, ...]
) -> None:
    given = [str(demo) if each == "S" else each for each in arguments]
    assert cli(*given, COLUMNS="20").out == cli(*given).out


def test_a_narrow_table_gives_up_optional_columns_and_keeps_the_ends_of_paths() -> None:
    table = Table(
        (
            Column("id"),
            Column("u", is_optional=True),
            Column("session", is_flexible=True, is_path=True),
        ),
        (Row(("b1", "0.25", "/home/mira/projects/import/one.jsonl")),),
    )
    wide, narrow = (laid_out(table, width)[1].text for width in (80, 24))
    assert wide == "b1  0.25  /home/mira/projects/import/one.jsonl"
    assert narrow == "b1  .../import/one.jsonl"


def test_a_long_path_begins_beside_its_label() -> None:
    first, second = (line.text for line in fitted(f"  session     /{'x' * 40}", 40))
    assert first == f"  session     /{'x' * 25}"
    assert second == " " * 14 + "x" * 15
