"""A home folder with sessions of agents, and a store, for tests of versions."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recap.cmv.branch import Wish, branch
from recap.cmv.facts import slug
from recap.cmv.homes import Homes
from recap.cmv.snapshot import Labels, look, take
from recap.transcript.sources import ByteSource

if TYPE_CHECKING:
    from recap.cmv.branch import Branch
    from recap.store import SnapshotRow, Store

PROJECT = "/srv/demo/app"
NOW = 1_800_000_000.0
CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "cmv"


def line(kind: str, number: int, content: Any, **changes: Any) -> dict[str, Any]:
    """Return a line of a Claude Code log that follows the one before it."""
    message: dict[str, Any] = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"model": "claude-opus-4-8", "id": f"msg_{number}", "type": "message"}
    return {
        "parentUuid": f"u{number - 1}" if number else None,
        "isSidechain": False,
        "userType": "external",
        "cwd": PROJECT,
        "sessionId": "of-the-lines",
        "version": "2.1.197",
        "type": kind,
        "uuid": f"u{number}",
        "timestamp": f"2026-01-02T10:00:{number % 60:02d}.000Z",
        "message": message,
    } | changes


def tool_steps(outputs: list[str]) -> list[dict[str, Any]]:
    """Return a session with a request and one call for each output."""
    lines = [line("user", 0, "please look")]
    for at, output in enumerate(outputs):
        call = {
            "type": "tool_use", "id": f"t{at}", "name": "Read", "input": {"file_path": f"/f{at}"}
        }  # fmt: skip
        result = {"type": "tool_result", "tool_use_id": f"t{at}", "content": output}
        lines.append(line("assistant", len(lines), [{"type": "text", "text": f"a{at}"}, call]))
        lines.append(line("user", len(lines), [result]))
    lines.append(line("assistant", len(lines), [{"type": "text", "text": "done"}]))
    return lines


def dumped(lines: list[dict[str, Any]]) -> bytes:
    """Return lines as the client writes them."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


@dataclass(frozen=True)
class World:
    """A person's computer.

    Attributes:
        home: Home folder.
        store: The store.
    """

    home: Path
    store: Store

    @property
    def homes(self) -> Homes:
        return Homes(self.home, {})

    @property
    def projects(self) -> Path:
        return self.home / ".claude" / "projects"

    def session(self, data: bytes, *, project: str = PROJECT, id: str = "") -> Path:
        """Write a session of Claude Code where its client would."""
        path = self.projects / slug(project) / f"{id or uuid.uuid4()}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def snap(self, path: Path, name: str, **labels: Any) -> SnapshotRow:
        """Take a snapshot."""
        return take(self.store, look(path), Labels(name=name, **labels))

    def branch(self, row: SnapshotRow, dry_run: bool = False, **wish: Any) -> Branch:
        """Make a branch."""
        return branch(self.store, row, Wish(**wish), self.homes, now=NOW, dry_run=dry_run)

    def bytes_of(self, row: SnapshotRow) -> bytes:
        """Return the bytes of a snapshot."""
        return b"".join(self.store.history.read(row))


def source(data: bytes) -> ByteSource:
    """Return bytes as a source."""
    return ByteSource(data)
