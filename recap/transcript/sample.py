"""What formats are recognised by: each detector looks at a sample of the input."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from recap.transcript.model import Json


class Sample(NamedTuple):
    """What formats are recognised by.

    Attributes:
        head: The first characters of the file.
        document: The whole file where it is one JSON value; None otherwise.
        records: The first records of a file with one JSON object a line (or one alone), with
            their 1-based lines.
    """

    head: str
    document: Json = None
    records: tuple[tuple[int, Json], ...] = ()


Detector: TypeAlias = Callable[[Sample], str | None]
