"""Whatever a file holds, its reader reads it or refuses it in a line, fast, and invents no word.

CI reads a few hundred inputs for each format; ``pytest tests/fuzz --fuzz 100000`` reads many more.
"""

from __future__ import annotations

import re
import time
from functools import cache
from typing import TYPE_CHECKING

import pytest

import recap
from recap.blocks.segment import segment
from recap.config import Settings
from recap.errors import InputError
from recap.session import compact_transcript
from recap.transcript.formats import READ, read_bytes
from tests.conftest import corpus_path
from tests.fuzz.mutate import mutant
from tests.fuzz.seeds import SEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recap.transcript.model import Transcript

COMPACTED_EVERY, GUESSED_EVERY, REAL_EVERY = 20, 4, 8
MAX_SECONDS = 1.0
MAX_REAL_BYTES = 70_000

SETTINGS = Settings(retention="0.3")


@cache
def real_seeds() -> Mapping[str, Sequence[bytes]]:
    """Return the small files of the corpus by format; none where there is no corpus."""
    folders = sorted((corpus_path() / "sessions").glob("*"))
    small = {
        folder.name: [
            path.read_bytes()
            for path in sorted(folder.iterdir())
            if path.stat().st_size <= MAX_REAL_BYTES
        ]
        for folder in folders
    }
    return {name: files for name, files in small.items() if files}


def made(format: str, number: int) -> bytes:
    """Return an input: of a seed by hand, or now and then of a real session."""
    is_real = number % REAL_EVERY == 0 and format in real_seeds()
    return mutant(format, number, real_seeds() if is_real else SEEDS)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("format", READ)
def test_any_bytes_are_read_or_refused(format: str, pytestconfig: pytest.Config) -> None:
    for number in range(pytestconfig.getoption("--fuzz")):
        data = made(format, number)
        try:
            read_or_refused(data, format, number)
        except Exception as err:
            err.add_note(f"made({format!r}, {number})")
            raise


def read_or_refused(data: bytes, format: str, number: int) -> None:
    asked = None if number % GUESSED_EVERY == 0 else format
    start = time.process_time()
    transcript, refusal = read(data, asked)
    if transcript:
        segment(transcript.messages)
    assert time.process_time() - start <= MAX_SECONDS
    if transcript is None:
        assert re.fullmatch("log: [^\n]*", refusal)
        return
    assert list(invented(transcript, data)) == []
    if number % COMPACTED_EVERY == 1:
        done = compact_transcript(transcript, settings=SETTINGS)
        found = recap.check(done.messages, transcript.dialect)
        errors = {finding.code for finding in found if finding.severity == "error"}
        assert errors <= {"no-messages", *done.report.over_limit}


def read(data: bytes, format: str | None) -> tuple[Transcript | None, str]:
    """Return the session, or why it is refused."""
    try:
        return read_bytes(data, format=format, name="log"), ""
    except InputError as err:
        return None, str(err)


_RUN = re.compile(r"\w{12,}")
_NUMBER = re.compile(r"\d+e?\d*")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def invented(transcript: Transcript, data: bytes) -> Iterator[str]:
    """Yield the long words of the parts that the input does not hold.

    It holds what stands in its bytes, or in what they are once their JSON is decoded, as often as it
    is nested; a part may show JSON with escapes of its own. Numbers may be written in another way,
    and NUL bytes may go.
    """
    forms = [data.decode("utf-8", "replace").lower()]
    for message in transcript.messages:
        for part in message.parts:
            text = part.text()
            missing = _missing(text, forms)
            if missing and _missing(_decoded(text), forms):
                yield from missing


def _missing(text: str, forms: list[str]) -> list[str]:
    """Return the words that are in none of the forms of the input; further ones are made on need."""
    words = {word for word in _RUN.findall(text.lower()) if not _NUMBER.fullmatch(word)}
    missing = [word for word in words if word not in forms[0]]
    if missing and len(forms) == 1:
        forms.append(forms[0].replace("\0", ""))
        for _ in range(3):
            forms.append(_decoded(forms[-1]).lower())  # an escape may stand for a capital letter
    return [word for word in missing if not any(word in form for form in forms)]


def _decoded(text: str) -> str:
    """Return the text with its JSON escapes decoded."""
    joined = _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2]),
        text,
    )
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
