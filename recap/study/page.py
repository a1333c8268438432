"""The study as a page of its own: no network, no script library."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from recap.study.words import corpus_line

if TYPE_CHECKING:
    from recap.study.results import Results


def page(results: Results) -> str:
    """Return the page."""
    return f"<!doctype html>\n<title>Reuse study</title>\n<p>{escape(corpus_line(results))}</p>\n"
