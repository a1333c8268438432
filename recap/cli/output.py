"""What the command line prints: numbers, tables and messages. The only place that formats.

Plain text of fixed width when piped, rich on a terminal. Text that comes from a session is made
harmless before it is shown: a log may hold escape sequences that a terminal would obey.
"""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
import threading
import unicodedata
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import click

from recap.errors import counted as counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

    from recap.transcript.model import Json

PIPED_WIDTH = 120
"""Columns of plain output where COLUMNS does not say otherwise."""

LEAST_WIDTH = 20
MIN_FLEXIBLE_WIDTH = 12
GOOD_FLEXIBLE_WIDTH = 20
"""Columns below which the flexible one takes the room of optional ones."""

_LABEL = re.compile(r"\s*(?:\S+(?: \S+)*?\s{2,})?")
GAP = "  "
PROGRESS_AFTER_S = 1.0

Tone = Literal["", "good", "faint", "bad", "strong"]
STYLES: Mapping[Tone, str] = {
    "": "",
    "good": "green",
    "faint": "dim",
    "bad": "red",
    "strong": "bold",
}


class Line(NamedTuple):
    """A line of text; its tone is shown on a terminal only."""

    text: str
    tone: Tone = ""


class Row(NamedTuple):
    """A row of a table; its tone is shown on a terminal only."""

    cells: tuple[str, ...]
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    At most one is flexible: it gets the width the others leave. Where that is little the optional
    ones go, those on the right first. A clipped cell of paths keeps its end.
    """

    header: str
    align: Literal["left", "right"] = "left"
    is_flexible: bool = False
    is_optional: bool = False
    is_path: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headers."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


Element: TypeAlias = str | Line | Table


def safe(text: str) -> str:
    """Return the text with everything replaced that a terminal could obey or hide.

    Control characters (escape sequences, carriage returns), format characters (direction
    overrides, zero-width ones) and lone surrogates become U+FFFD; line breaks and tabs a space.
    """
    if text.isprintable():
        return text
    return "".join(_harmless(character) for character in text)


def _harmless(character: str) -> str:
    if character.isprintable():
        return character
    if character in "\n\t" or unicodedata.category(character) in ("Zs", "Zl", "Zp"):
        return " "
    return "\N{REPLACEMENT CHARACTER}"


def preview(text: str, length: int = 200) -> str:
    """Return the beginning of a text as one harmless line."""
    return " ".join(safe(text[: 4 * length]).split())[:length]


def turn_name(turn: int) -> str:
    """Return the number of a 0-based turn as people count: from 1, like omission markers."""
    return str(turn + 1)


def number(value: int) -> str:
    """Return 12345 as "12,345"."""
    return f"{value:,}"


def percent(share: float) -> str:
    """Return a share as whole percent; as tenths below one percent."""
    value = 100 * share
    return f"{value:.1f} %" if 0 < value < 1 else f"{value:.0f} %"


def milliseconds(seconds: float) -> str:
    """Return a duration in ms, with a decimal below 10 ms."""
    value = 1000 * seconds
    return f"{value:.1f} ms" if value < 10 else f"{value:,.0f} ms"


def byte_size(value: int) -> str:
    """Return a size with its unit: "812 B", "12.3 KB", "3.7 MB"."""
    if value < 1000:
        return f"{value} B"
    for unit in ("KB", "MB"):
        scaled = value / (1000 if unit == "KB" else 1_000_000)
        if scaled < 1000:
            return f"{scaled:.1f} {unit}"
    return f"{value / 1e9:.1f} GB"


def score(value: float) -> str:
    """Return a score part with two decimals, without them from 100 on; nothing for zero."""
    if not value:
        return ""
    return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def say(*elements: Element) -> None:
    """Print lines and tables to standard output.

    On a terminal, and where COLUMNS says how wide it is, no line is wider. A table without rows is
    left out, and so is the blank line before it.
    """
    elements = tuple(_shown(elements))
    if not is_terminal():
        width = _plain_width()
        for element in elements:
            lines = fitted(element, width) if width else laid_out(element, PIPED_WIDTH)
            for line in lines:
                click.echo(line.text)
        return
    from rich.text import Text

    console = _console(stderr=False)
    for element in elements:
        for line in fitted(element, max(console.width, LEAST_WIDTH)):
            console.print(Text(line.text, style=STYLES[line.tone]), soft_wrap=True)


def _shown(elements: Sequence[Element]) -> Iterator[Element]:
    for at, element in enumerate(elements):
        following = elements[at + 1] if element == "" and at + 1 < len(elements) else element
        if not (isinstance(following, Table) and not following.rows):
            yield element


def say_source(text: str) -> None:
    """Print text that another program reads: no line of it is folded."""
    for line in laid_out(text, PIPED_WIDTH):
        click.echo(line.text)


def say_json(schema: str, content: Mapping[str, Json]) -> None:
    """Print an object with its schema name; ASCII only, so that no terminal obeys it."""
    click.echo(json.dumps({"schema": schema, **content}, indent=2, allow_nan=False))


def say_bytes(data: bytes) -> None:
    """Write bytes to standard output as they are."""
    sys.stdout.flush()
    rest = memoryview(data)
    while rest:  # an unbuffered stream (python -u) may take a part only
        rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.buffer.flush()


def complain(message: str) -> None:
    """Print a one-line error to standard error."""
    remark(message)


def remark(message: str) -> None:
    """Print a remark to standard error that belongs to the outcome, in one line."""
    click.echo(f"recap: {' '.join(safe(message).split())}", err=True)


def note(message: str) -> None:
    """Print a remark to standard error, when a person is there to read it."""
    if sys.stderr.isatty():
        click.echo(safe(message), err=True)


def laid_out(element: Element, width: int) -> list[Line]:
    """Return an element as harmless lines; a table's flexible column shrinks to the width."""
    if isinstance(element, str):
        element = Line(element)
    if isinstance(element, Line):
        return [Line(safe(text).rstrip(), element.tone) for text in element.text.split("\n")]
    if not element.rows:
        return []
    element = _narrowed(element, width)
    header = Row(tuple(column.header for column in element.columns), "strong")
    rows = [
        Row(tuple(safe(cell) for cell in row.cells), row.tone) for row in (header, *element.rows)
    ]
    widths = _column_widths(element.columns, rows, width)
    return [Line(_row_text(element.columns, row, widths), row.tone) for row in rows]


def fitted(element: Element, width: int) -> list[Line]:
    """Return an element as harmless lines of at most ``width`` columns.

    Lines go on below where their value begins, rows of a table are clipped.
    """
    lines = laid_out(element, width)
    if isinstance(element, Table):
        return [Line(_clipped(line.text, width), line.tone) for line in lines]
    return [Line(text, line.tone) for line in lines for text in _folded(line.text, width)]


def _folded(text: str, width: int) -> list[str]:
    if cell_width(text) <= width:
        return [text]
    columns = width if cell_width(text) == len(text) else width // 2
    label = _LABEL.match(text)
    at = label.end() if label else 0
    if not 0 < 3 * at <= 2 * columns:
        margin = "  " if at else ""
        return textwrap.wrap(
            text, columns, subsequent_indent=margin, break_on_hyphens=False
        ) or [""]  # fmt: skip
    value = textwrap.wrap(text[at:], columns - at, break_on_hyphens=False)  # a long path is cut
    return (
        [text[:at] + value[0], *(" " * at + line for line in value[1:])] if value else [text[:at]]
    )


def cell_width(text: str) -> int:
    """Return the terminal columns a harmless text takes."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show what takes so long, on standard error, once it took a second on a terminal.

    Yields a function that changes what is shown.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    status = _console(stderr=True).status(safe(what))
    timer = threading.Timer(PROGRESS_AFTER_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda text: status.update(safe(text))
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def is_terminal() -> bool:
    """Return True when standard output is a terminal."""
    return sys.stdout.isatty()


def _plain_width() -> int:
    """Return the width that COLUMNS states, 0 where it states none."""
    columns = os.environ.get("COLUMNS", "")
    is_width = columns.isascii() and columns.isdecimal() and 0 < len(columns.lstrip("0")) < 6
    return max(int(columns), LEAST_WIDTH) if is_width else 0


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _narrowed(table: Table, width: int) -> Table:
    """Return the table without the optional columns that leave the flexible one no room."""
    columns = list(table.columns)
    room = width - sum(
        GOOD_FLEXIBLE_WIDTH if column.is_flexible else _natural_width(table, at)
        for at, column in enumerate(columns)
    ) - len(GAP) * (len(columns) - 1)  # fmt: skip
    kept = set(range(len(columns)))
    if any(column.is_flexible for column in columns):
        for at in reversed(range(len(columns))):
            if room < 0 and columns[at].is_optional:
                room += _natural_width(table, at) + len(GAP)
                kept.discard(at)
    if len(kept) == len(columns):
        return table
    rows = (Row(tuple(row.cells[at] for at in sorted(kept)), row.tone) for row in table.rows)
    return Table(tuple(columns[at] for at in sorted(kept)), tuple(rows))


def _natural_width(table: Table, at: int) -> int:
    cells = (row.cells[at] for row in table.rows)
    return max(cell_width(safe(cell)) for cell in (table.columns[at].header, *cells))


def _column_widths(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[int]:
    widths = [max(cell_width(row.cells[at]) for row in rows) for at in range(len(columns))]
    surplus = sum(widths) + len(GAP) * (len(columns) - 1) - width
    for at, column in enumerate(columns):
        if column.is_flexible and surplus > 0:
            widths[at] = max(min(widths[at], MIN_FLEXIBLE_WIDTH), widths[at] - surplus)
    return widths


def _row_text(columns: Sequence[Column], row: Row, widths: Sequence[int]) -> str:
    shown = []
    for column, cell, width in zip(columns, row.cells, widths, strict=True):
        text = _clipped(cell[::-1], width)[::-1] if column.is_path else _clipped(cell, width)
        padding = " " * (width - cell_width(text))
        shown.append(padding + text if column.align == "right" else text + padding)
    return GAP.join(shown).rstrip()


def _clipped(text: str, width: int) -> str:
    if cell_width(text) <= width:
        return text
    kept, used = [], 3
    for character in text:
        used += _character_width(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept) + "..."


def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, emoji=False, markup=False)
