"""Real sessions: nothing that was said is lost, changed or invented."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from recap.cmv.options import TrimOptions
from recap.transcript.check import check_log
from tests.cmv.logs import trimmed
from tests.cmv.raw_session import dangling, requests, texts
from tests.cmv.test_trim_property import essence
from tests.conftest import corpus_path

SESSIONS = sorted(corpus_path().glob("sessions/claude-code/*.jsonl"))
ABSENT = pytest.param(Path(), marks=pytest.mark.skip(reason="no corpus (set RECAP_CORPUS)"))
PLANS = {
    "defaults": TrimOptions(yes=True),
    "all": TrimOptions(keep_last=0, yes=True),
    "active": TrimOptions(keep_last=0, drop_inactive=True, yes=True),
}


@pytest.mark.corpus
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("path", SESSIONS or [ABSENT], ids=lambda path: path.stem)
def test_a_real_session_keeps_every_word(path: Path, plan: str):
    data = path.read_bytes()
    out, report = trimmed(data, PLANS[plan])
    for role in ("user", "assistant"):
        assert texts(out, role) == texts(data, role)
    assert requests(out) == requests(data)
    assert essence(out) == essence(data)
    assert dangling(out) <= dangling(data)
    assert report.bytes_out < report.bytes_in
    errors = [
        Counter(each.code for each in check_log(log) if each.severity == "error")
        for log in (data, out)
    ]
    assert not errors[1] - errors[0]
    assert trimmed(out, PLANS[plan])[0] == out
