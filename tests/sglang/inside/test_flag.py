"""What the flag changes in a server: results and nothing else, and nothing that stays."""

from __future__ import annotations

import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.sglang.inside.test_server import generate, payload, prompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sglang.inside.client import Client
    from tests.sglang.inside.server import Server

pytestmark = pytest.mark.slow
WARM, REQUESTS, FULL_REQUESTS = 60, 200, 1000
TIMES = re.compile("id$|latency|time|_ts$|throughput")
"""Names of metadata that differ from one request to the next."""


def deterministic(answer: Any) -> dict[str, Any]:
    return {name: value for name, value in answer["meta_info"].items() if not TIMES.search(name)}


def test_64_greedy_tokens_and_their_metadata_are_the_same_with_and_without_the_flag(
    flagged: Client, plain: Client
) -> None:
    assert "recap is on" in flagged.server.log.read_text()
    assert "recap is on" not in plain.server.log.read_text()
    answers = {}
    for client, asked in ((plain, None), (flagged, None), (flagged, payload("same"))):
        assert (
            client.send("/flush_cache", {})[0] == 200
        )  # a cached prefix is computed in other shapes
        answers[client, asked is None] = generate(
            client.server, prompt(70), asked, 64, return_logprob=True
        )
    without, unasked = answers[plain, True], answers[flagged, True]
    measured = answers[flagged, False]
    assert len(without["output_ids"]) == 64
    assert without["output_ids"] == unasked["output_ids"] == measured["output_ids"]
    assert set(without["meta_info"]) == set(unasked["meta_info"])
    assert deterministic(without) == deterministic(unasked)
    (result,) = measured["meta_info"].pop("recap")
    assert result["dropped"] == ""
    assert deterministic(measured) == deterministic(without)


def short(server: Server, number: int) -> str:
    """Send a request; every tenth is aborted. Return what became of it."""
    name = f"short-{number}"
    if number % 10:
        answer = generate(server, prompt(1000 + number, 120), small(name), 2)
        return str(answer["meta_info"]["recap"][0]["dropped"])
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(
            generate, server, prompt(1000 + number, 120), small(name), 3000, rid=name
        )
        time.sleep(0.1)
        while not asked.done():  # it may not have reached the worker yet
            server.post("/abort_request", {"rid": name})
            time.sleep(0.2)
    return str(asked.result()["meta_info"]["finish_reason"]["type"])


def small(session: str) -> Any:
    return payload(session, tokens=120, turn_start=40)


@pytest.mark.timeout(2400)
def test_many_requests_leave_nothing_behind(
    flagged: Client, pytestconfig: pytest.Config, record_property: Callable[[str, object], None]
) -> None:
    server = flagged.server
    requests = FULL_REQUESTS if pytestconfig.getoption("--full-sglang") else REQUESTS
    found = re.search(r"rows of each of (\d+) requests at a time", server.log.read_text())
    assert found is not None
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: short(server, n), range(WARM)))
        before = server.resident()
        ends = list(pool.map(lambda n: short(server, n), range(WARM, WARM + requests)))
    grown = server.resident() - before
    record_property("bytes before, grown", (before, grown))  # read with --junit-xml
    assert grown < 16 * 2**20
    assert {end: ends.count(end) for end in ends} == {"": 0.9 * requests, "abort": 0.1 * requests}
    assert server.held() == {"requests": 0, "free": int(found[1])}
