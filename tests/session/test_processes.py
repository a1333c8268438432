"""Eight processes work on one session at once, and nothing any of them kept is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from recap.config import Settings
from recap.graph.codec import decode
from recap.session import Session
from tests.testing import conversation

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES = 8
TURNS = 8

VISIT = """
import json, sys
from pathlib import Path
import recap
folder, number = sys.argv[1], int(sys.argv[2])
messages = json.loads(Path(folder, "messages.json").read_text())
starts = [at + 1 for at, m in enumerate(messages) if m["role"] == "user" and type(m["content"]) is str]
for turn, end in enumerate(starts):
    with recap.Session("s", store=Path(folder, "store"), settings=recap.Settings(retention="0.3")) as s:
        done = s.compact(messages[:end], f"request {number} of turn {turn}")
        assert s.failure is None, s.failure
print("done")
"""


def test_eight_processes_lose_no_update(tmp_path: Path) -> None:
    messages = conversation(TURNS)
    (tmp_path / "messages.json").write_text(json.dumps(messages), encoding="utf-8")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", VISIT, str(tmp_path), str(number)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    assert [process.communicate()[0] for process in running] == ["done\n"] * PROCESSES
    settings = Settings(retention="0.3")
    with Session("s", store=tmp_path / "store", settings=settings) as session:
        kept = session.selections(messages)
        assert session.row is not None
        graph = decode(session.row.graph)
        assert len(kept) == min(64, PROCESSES * TURNS)
        assert session.compact(messages, "next").report.action == "select"
    with Session("s", settings=settings) as alone:
        whole = alone.compact(messages, "next").known
    assert graph == whole.settled
