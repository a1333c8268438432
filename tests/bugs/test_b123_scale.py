"""Reported bugs about size and secrecy of what is read and written."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.bugs.cases import ask, compacted, result, say, use
from tests.cli.conftest import Cli
from tests.transcript import logs

if TYPE_CHECKING:
    from pathlib import Path

MB = 1 << 20
PROGRAM = """
import sys
import recap
from pathlib import Path

def anonymous_kb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

recap.open_log
before = anonymous_kb()
transcript = recap.open_log(sys.argv[1])
print(anonymous_kb() - before, len(transcript.messages))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_b123_a_large_log_is_not_held_in_memory(tmp_path: Path) -> None:
    """Resuming a session of 37 GB took twice its size in memory."""
    path = tmp_path / "session.jsonl"
    parent = None
    with path.open("wb") as file:
        for number in range(200):
            line = logs.user(f"u{number}", parent, f"{number} " + "word " * (MB // 10))
            file.write(logs.log(line))
            parent = f"u{number}"
        file.write(logs.log(logs.user("large", parent, "x" * (50 * MB))))
    assert path.stat().st_size > 150 * MB
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    kilobytes, messages = map(int, done.stdout.split())
    assert messages == 201
    assert kilobytes < 80 * 1024


@pytest.mark.parametrize(
    "arguments",
    [
        ("compact", "list.json", "--request", "now", "-o", "out"),
        ("observe", "list.json", "-o", "out"),
        ("check", "list.json", "--repair", "out"),
    ],
)
def test_b127_what_is_written_is_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """Sessions hold live credentials as tool output, and every copy multiplied them."""
    monkeypatch.chdir(tmp_path)
    secret = "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI"
    messages = [
        ask("Show .env"), say(use("t1")), ask(result("t1", secret)), say("Here."),
        ask(result("t9", secret)), say("There."),
    ]  # fmt: skip
    (tmp_path / "list.json").write_text(json.dumps(messages))
    done = Cli(tmp_path)(*arguments)
    assert done.status == 0
    assert secret not in done.out + done.err
    written = [path for path in tmp_path.iterdir() if path.name.startswith("out")]
    assert written
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}


def test_b127_no_finding_and_no_decision_quotes_the_session() -> None:
    """What is said of a session may be logged; what is said in it must not be."""
    secret = "wJalrXUtnFEMI"
    messages = [ask("Show"), say(use(secret)), ask(result("x", secret)), say(secret)]
    done = compacted(messages, "now")
    assert secret not in repr(done.selection.decisions()) + repr(done.report)
