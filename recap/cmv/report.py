"""What a trim did, in numbers: no content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CHARS_PER_TOKEN = 4
FLOOR = 0.95
"""Share of the active characters above which a trim has to be confirmed."""

COUNTS = (
    "results_stubbed", "errors_kept", "images_stubbed", "thinking_removed", "inputs_stubbed",
    "local_outputs_stubbed", "file_history_removed", "queue_operations_removed",
    "progress_removed", "tool_use_results_removed", "attachments_stubbed", "usage_removed",
    "pre_boundary_lines", "inactive_lines", "preserved_messages", "boundaries_found",
    "orphans_dropped", "open_calls", "odd_lines_dropped", "odd_blocks_dropped",
    "empty_lines_removed", "reparented", "unreadable_lines", "user_texts", "assistant_texts",
    "tool_requests",
)  # fmt: skip
"""Names of the counts, all of which every report has. ``user_texts``, ``assistant_texts`` and
``tool_requests`` are those of the live context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimReport:
    """What a trim did.

    Attributes:
        bytes_in: Size of the session's file.
        bytes_out: Size of the trimmed one.
        lines_in: Its lines.
        lines_out: Those of the trimmed one.
        active_chars_before: Characters that a client would send: texts, thinking, requests, results;
            an image counts as four times its estimated tokens.
        active_chars_after: The same of the trimmed session.
        sha256: Proof of the trimmed file.
        versions: Client versions that wrote the session, in order of first appearance.
        agents: Ids of sub-agents that copies of results name.
        counts: Numbers by name, see ``COUNTS``.
    """

    bytes_in: int
    bytes_out: int
    lines_in: int
    lines_out: int
    active_chars_before: int
    active_chars_after: int
    sha256: bytes
    versions: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def reduction(self) -> float:
        """Share of the active characters that went."""
        return _share(self.active_chars_before, self.active_chars_after)

    @property
    def file_reduction(self) -> float:
        """Share of the bytes that went."""
        return _share(self.bytes_in, self.bytes_out)

    @property
    def is_drastic(self) -> bool:
        """More than 95 % of the active characters went: somebody has to confirm it."""
        return self.reduction > FLOOR

    def to_json(self) -> dict[str, object]:
        """Return the report as ``--json`` prints it; its keys are stable."""
        before, after = self.active_chars_before, self.active_chars_after
        return {
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            "lines_in": self.lines_in,
            "lines_out": self.lines_out,
            "active_chars_before": before,
            "active_chars_after": after,
            "tokens_before": -(-before // CHARS_PER_TOKEN),
            "tokens_after": -(-after // CHARS_PER_TOKEN),
            "method": "chars4",
            "sha256": self.sha256.hex(),
            "client_versions": list(self.versions),
            "agents": list(self.agents),
            **{name: self.counts.get(name, 0) for name in COUNTS},
        }


def _share(before: int, after: int) -> float:
    return 1 - after / before if before else 0.0
