"""Sessions: the one pipeline, what is known from one request to the next, and the facade over both."""

from __future__ import annotations

from recap.session.facade import Session
from recap.session.once import compact
from recap.session.pipeline import compact_transcript
from recap.session.report import Compaction, Report

__all__ = ["Compaction", "Report", "Session", "compact", "compact_transcript"]
