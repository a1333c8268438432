"""One real server with the flag: what a request's tokens attended to, whatever happens around it."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recap.capture.layers import edge_of
from recap.capture.sampling import sample_rows
from recap.capture.spans import Segments
from recap.config import Settings
from recap.sglang.payload import Payload, Result
from tests.sglang.inside.server import EVERY_PAIR, SECONDS, Server, free_port, start, stop
from tests.sglang.inside.tiny import Expected, attentions, expected

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow
SETTINGS = Settings()
LAYERS = (0, 1, 2, 3)


def prompt(seed: int, tokens: int = 150) -> list[int]:
    return np.random.default_rng(seed).integers(3, 259, tokens).tolist()


def payload(session: str, tokens: int = 150, turn_start: int = 100) -> Payload:
    offsets = np.array([0, 40, 60, 100, tokens])
    segments = Segments(("a", "b", "c"), offsets, np.array([0, -1, 1, 2], np.int32))
    return Payload(session, len(session) + turn_start, 4, turn_start, segments, tail="answer")


def generate(
    server: Server,
    ids: Sequence[int],
    asked: Payload | None,
    tokens: int = 24,
    **more: Any,
) -> Any:
    sampling = {
        "temperature": 0,
        "max_new_tokens": tokens,
        "ignore_eos": True,
        "custom_params": None if asked is None else asked.params(),
    }
    return server.post("/generate", {"input_ids": list(ids), "sampling_params": sampling, **more})


def result(answer: Any) -> Result:
    (wire,) = answer["meta_info"]["recap"]
    return Result.parse(wire)


def assert_measured(
    model: Path,
    ids: Sequence[int],
    answer: Any,
    asked: Payload,
    first_row: int,
    layers: tuple[int, ...] = LAYERS,
) -> None:
    """Compare a result with whole attention matrices of the same tokens."""
    got, whole = result(answer), [*ids, *answer["output_ids"]]
    end = len(whole) - 1
    assert (got.dropped, got.end, got.layers) == ("", end, layers)
    rows = sample_rows(asked.seed, first_row, end, SETTINGS.rows)
    assert got.rows == len(rows)
    every = attentions(model, whole[:end])
    edge_layer = layers.index(edge_of(layers, SETTINGS.edge_layer))

    def wanted(payload: Payload) -> Expected:
        return expected([every[at] for at in layers], payload, rows, end, SETTINGS, edge_layer)

    want = wanted(asked)
    seen = got.observation
    assert seen is not None
    use = dict(zip(seen.ids, seen.use.tolist(), strict=True))
    assert use == pytest.approx(want.use, abs=1e-4)
    masses = {
        (seen.ids[b], seen.ids[a]): m
        for b, a, m in zip(seen.later, seen.earlier, seen.mass, strict=True)
    }
    assert masses == pytest.approx(want.mass, abs=1e-4)
    shifted = wanted(replace(asked, segments=shifted_by_one(asked.segments)))
    assert masses != pytest.approx(shifted.mass, abs=1e-4)


def shifted_by_one(segments: Segments) -> Segments:
    offsets = segments.offsets.copy()
    offsets[1:-1] += 1
    return replace(segments, offsets=offsets)


def test_a_chunked_prompt_and_its_answer_are_measured_as_whole_matrices_say(
    server: Server, model: Path
) -> None:
    ids, asked = prompt(1), payload("chunked")
    answer = generate(server, ids, asked)
    assert answer["meta_info"]["cached_tokens"] < 64  # a first token, if another test began with it
    assert_measured(model, ids, answer, asked, first_row=100)
    assert result(answer).session == "chunked"
    assert result(answer).inner == "torch_native"


def test_a_cached_prefix_is_seen_by_the_rows_that_were_computed(
    server: Server, model: Path
) -> None:
    ids, asked = prompt(2), payload("prefix", turn_start=20)
    generate(server, ids[:90], None, tokens=1)
    answer = generate(server, ids, asked)
    cached = answer["meta_info"]["cached_tokens"]
    assert cached >= 80
    assert_measured(model, ids, answer, asked, first_row=cached)


def test_eight_sessions_at_a_time_do_not_mix(server: Server, model: Path) -> None:
    prompts = {f"session-{i}": prompt(10 + i) for i in range(8)}

    def ask(session: str) -> Any:
        return generate(server, prompts[session], payload(session))

    with ThreadPoolExecutor(8) as pool:
        answers = dict(zip(prompts, pool.map(ask, prompts), strict=True))
    for session, answer in answers.items():
        assert result(answer).session == session
        assert_measured(model, prompts[session], answer, payload(session), first_row=100)


@pytest.mark.usefixtures("another_server")
def test_a_retracted_request_is_measured_like_any_other(model: Path, tmp_path: Path) -> None:
    """The server is told to take a request's keys away every so many steps."""
    environ = {"SGLANG_TEST_RETRACT": "1", "SGLANG_TEST_RETRACT_INTERVAL": "60"}
    options = ("--enable-recap", "--recap-config", json.dumps(EVERY_PAIR))
    with Server(model, tmp_path, *options, **environ) as server:
        retracted(server, model)


def retracted(server: Server, model: Path) -> None:
    prompts = {f"long-{i}": prompt(30 + i) for i in range(4)}

    def ask(session: str) -> Any:
        return generate(server, prompts[session], payload(session), tokens=100)

    with ThreadPoolExecutor(4) as pool:
        answers = dict(zip(prompts, pool.map(ask, prompts), strict=True))
    assert any(answer["meta_info"]["num_retractions"] for answer in answers.values())
    for session, answer in answers.items():
        assert_measured(model, prompts[session], answer, payload(session), first_row=100)


def test_a_request_without_a_payload_gets_the_answer_it_always_got(server: Server) -> None:
    plain = generate(server, prompt(1), None)
    assert "recap" not in plain["meta_info"]
    measured = generate(server, prompt(1), payload("again"))
    assert plain["output_ids"] == measured["output_ids"]


def test_a_malformed_payload_is_dropped_and_answered(server: Server) -> None:
    asked = payload("malformed")
    wrong = replace(
        asked, segments=replace(asked.segments, offsets=np.array([0, 40, 60, 100, 999]))
    )
    answer = generate(server, prompt(3), wrong, tokens=2)
    assert result(answer).dropped == "bad-payload"
    assert len(answer["output_ids"]) == 2


def test_an_aborted_request_leaves_room_for_the_next(server: Server, model: Path) -> None:
    with ThreadPoolExecutor(3) as pool:
        asked = [
            pool.submit(
                generate, server, prompt(50 + i), payload(f"gone-{i}"), 2000, rid=f"gone-{i}"
            )
            for i in range(3)
        ]
        while server.held()["requests"] < 3:
            assert not any(one.done() for one in asked)
        server.post("/abort_request", {"abort_all": True})
        reasons = [one.result()["meta_info"]["finish_reason"]["type"] for one in asked]
    assert reasons == ["abort"] * 3
    ids = prompt(60)
    answer = generate(server, ids, payload("next"))
    assert_measured(model, ids, answer, payload("next"), first_row=100)


def test_the_log_says_that_it_is_on_and_nothing_went_wrong(server: Server) -> None:
    log = server.log.read_text()
    assert "recap is on: backend torch_native, layers [0, 1, 2, 3]" in log
    assert "was not measured" not in log
    assert "was not sampled" not in log


def ended(model: Path, folder: Path, *options: str, **environ: str) -> tuple[int, str]:
    """Return exit status and log of a server that ends by itself."""
    process = start(model, folder, free_port(), *options, environ=environ)
    try:
        return process.wait(SECONDS), (folder / "log").read_text()
    finally:
        stop(process)


@pytest.mark.usefixtures("another_server")
def test_what_cannot_be_combined_ends_the_server_before_a_model_is_loaded(
    model: Path, tmp_path: Path
) -> None:
    status, log = ended(model, tmp_path, "--attention-backend", "recap", "--pp-size", "2")
    assert status == 1
    assert "recap: --pipeline-parallel-size above 1 cannot be combined" in log
    assert "Load weight" not in log


MISSING = """
import sys
if "spawn_main" in " ".join(sys.orig_argv):  # a worker; its launcher found everything
    from recap.sglang import compat
    found = compat.missing
    compat.missing = lambda role: [*found(role), "sglang.srt.gone"]
"""


@pytest.mark.usefixtures("another_server")
def test_a_worker_that_lacks_a_name_ends_itself_and_its_launcher(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(MISSING)
    path = os.pathsep.join((str(tmp_path), os.environ["PYTHONPATH"]))
    status, log = ended(
        model, tmp_path, "--attention-backend", "recap:torch_native", PYTHONPATH=path
    )
    assert status != 0
    assert "lacks sglang.srt.gone" in log
