"""Requests that end in every way: one result each, nothing left behind, no error that escapes."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recap.capture.sampling import sample_rows
from recap.capture.spans import Segments
from recap.config import Settings
from recap.sglang.options import Options
from recap.sglang.payload import Payload
from recap.sglang.recorder import Recorder
from recap.sglang.tap import Tap, TappedLayer
from tests.sglang.inside.in_process import finish
from tests.sglang.test_turn_end import Ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

HEADS, WIDTH, TOKENS, PARTS = 2, 8, 40, 3
SEGMENTS = Segments(("a", "b"), np.array([0, 20, TOKENS]), np.array([0, 1], np.int32))
PAYLOAD = Payload("session", 5, 0, 10, SEGMENTS)
LAYER = SimpleNamespace(layer_id=0)


class Request:
    """What the recorder reads of SGLang's request; a class, so that it can be referred to weakly."""

    def __init__(self, rid: str, params: dict[str, object] | None = None, row: int = 1) -> None:
        self.rid = rid
        self.origin_input_ids = list(range(TOKENS))
        self.output_ids: list[int] = []
        self.finished_len = None
        self.finished_reason = None
        self.multimodal_inputs = None
        self.beam_group = None
        self.sampling_params = SimpleNamespace(
            custom_params=PAYLOAD.params() if params is None else params
        )
        self.kv = SimpleNamespace(req_pool_idx=row, kv_committed_len=TOKENS)

    def finished(self) -> bool:
        return self.finished_reason is not None


class Engine:
    """A recorder over keys of its own, and the steps that SGLang would run."""

    def __init__(self, error_limit: int = 3) -> None:
        import torch

        made = torch.Generator().manual_seed(1)
        self.keys = torch.randn(200, HEADS, WIDTH, generator=made)
        self.queries = torch.randn(200, HEADS * WIDTH, generator=made)
        self.pool = SimpleNamespace(get_key_buffer=lambda _: self.keys)
        table = torch.arange(8 * 200).reshape(8, 200) % 200
        runner = SimpleNamespace(
            token_to_kv_pool=self.pool, req_to_token_pool=SimpleNamespace(req_to_token=table)
        )
        self.tap = Tap(
            [TappedLayer(0, HEADS, WIDTH, 0.3, 0.0)],
            rows=6,
            requests=PARTS,
            pool_rows=8,
            dtype=torch.float32,
            device="cpu",
        )
        options = Options(Settings(rows=6, mode="observe"), error_limit=error_limit)
        self.recorder = Recorder(runner, self.tap, options, "inner")

    def prefill(self, requests: Sequence[Request], spans: Sequence[tuple[int, int]]) -> None:
        import torch
        from sglang.srt.model_executor.forward_batch_info import ForwardMode

        batch = SimpleNamespace(
            forward_mode=ForwardMode.EXTEND,
            rids=[request.rid for request in requests],
            extend_prefix_lens_cpu=[first for first, _ in spans],
            extend_seq_lens_cpu=[end - first for first, end in spans],
        )
        self.recorder.start_step(batch, requests)
        rows = torch.cat([self.queries[first:end] for first, end in spans])
        self.recorder.keep(LAYER, rows, batch, {})

    def decode(self, requests: Sequence[Request], lengths: Sequence[int]) -> None:
        import torch
        from sglang.srt.model_executor.forward_batch_info import ForwardMode

        batch = SimpleNamespace(
            forward_mode=ForwardMode.DECODE,
            rids=[request.rid for request in requests],
            seq_lens_cpu=torch.tensor(lengths),
            req_pool_indices=torch.tensor([request.kv.req_pool_idx for request in requests]),
        )
        self.recorder.start_step(batch, requests)
        self.recorder.keep(LAYER, self.queries[[n - 1 for n in lengths]], batch, {})

    def end(self, request: Request, aborted: bool = False) -> list[dict[str, Any]]:
        finish(request, aborted)
        self.recorder.end_request(request)
        return self.recorder.results([request])[0]


@pytest.fixture(autouse=True)
def one_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no group of ranks without a server."""
    monkeypatch.setattr("recap.sglang.compat.tensor_parallel_group", lambda: None)


@pytest.fixture
def engine() -> Engine:
    return Engine()


def test_a_finished_request_gives_one_result_and_leaves_nothing(engine: Engine) -> None:
    request = Request("r")
    engine.prefill([request], [(0, TOKENS)])
    (result,) = engine.end(request)
    assert (result["dropped"], result["rows"]) == ("", 6)
    assert engine.recorder.results([request]) == [[]]
    assert (len(engine.recorder), engine.tap.free) == (0, PARTS)
    assert not engine.recorder.has_results


def whole(engine: Engine) -> dict[str, Any]:
    request = Request("whole")
    engine.prefill([request], [(0, TOKENS)])
    return engine.end(request)[0]


@pytest.mark.parametrize("cuts", [(7, 19, 33), (39,), tuple(range(1, TOKENS))])
def test_rows_do_not_depend_on_chunks(engine: Engine, cuts: tuple[int, ...]) -> None:
    request, first = Request("whole"), 0
    for end in (*cuts, TOKENS):
        engine.prefill([request], [(first, end)])
        first = end
    assert engine.end(request)[0] == whole(engine)


def test_rows_do_not_depend_on_the_rest_of_the_batch(engine: Engine) -> None:
    request, other = Request("whole"), Request("other", row=2)
    engine.prefill([other, request], [(0, 13), (0, 25)])
    engine.prefill([request, other], [(25, TOKENS), (13, TOKENS)])
    assert engine.end(request)[0] == whole(engine)


def test_rows_survive_a_retraction(engine: Engine) -> None:
    request = Request("whole")
    engine.prefill([request], [(0, 30)])
    engine.recorder.end_request(request)  # its keys are given back, and it is not finished
    assert not engine.recorder.has_results
    request.kv.req_pool_idx = 3
    engine.prefill([request], [(0, TOKENS)])
    assert engine.end(request)[0] == whole(engine)


def test_decoded_rows_are_those_of_a_prefill(engine: Engine) -> None:
    request = Request("whole")
    engine.prefill([request], [(0, 20)])
    for length in range(21, TOKENS + 1):
        engine.decode([request], [length])
    assert engine.end(request)[0] == whole(engine)


def test_a_step_that_ran_ahead_of_the_end_changes_nothing(engine: Engine) -> None:
    request = Request("whole")
    engine.prefill([request], [(0, TOKENS)])
    engine.decode([request], [TOKENS + 1])
    assert engine.end(request)[0] == whole(engine)


def test_a_cached_prefix_has_columns_and_no_rows(engine: Engine) -> None:
    request = Request("r")
    engine.prefill([request], [(30, TOKENS)])
    (result,) = engine.end(request)
    assert result["rows"] == len(sample_rows(PAYLOAD.seed, 30, TOKENS, 6))
    assert result["ids"] == ["a", "b"]


def test_a_request_whose_prompt_is_all_cached_is_counted(engine: Engine) -> None:
    request = Request("r")
    engine.prefill([request], [(0, 5)])  # before the turn
    assert engine.end(request)[0]["dropped"] == "no-rows"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda r: setattr(r, "multimodal_inputs", object()), "unattributable"),
        (lambda r: setattr(r, "beam_group", object()), "unattributable"),
        (lambda r: r.sampling_params.custom_params.update({"recap.seed": -1}), "bad-payload"),
    ],
)
def test_a_request_that_cannot_be_attributed_is_dropped(
    engine: Engine, spoil: Any, reason: str
) -> None:
    request = Request("r")
    spoil(request)
    engine.prefill([request], [(0, TOKENS)])
    assert engine.end(request)[0]["dropped"] == reason
    assert engine.tap.free == PARTS


def test_an_aborted_request_is_dropped(engine: Engine) -> None:
    request = Request("r")
    engine.prefill([request], [(0, TOKENS)])
    assert engine.end(request, aborted=True)[0]["dropped"] == "aborted"


def test_requests_beyond_the_store_run_without_statistics(engine: Engine) -> None:
    requests = [Request(f"r{i}") for i in range(PARTS + 1)]
    engine.prefill(requests, [(0, TOKENS)] * len(requests))
    dropped = [engine.end(request)[0]["dropped"] for request in requests]
    assert sorted(dropped) == ["", "", "", "no-room"]


def test_ranks_of_which_one_has_no_room_end_the_request_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What an abandoned request held comes back when Python collects it: on each rank another time."""
    group = Ranks(2)
    monkeypatch.setattr("recap.sglang.compat.tensor_parallel_group", lambda: group)
    roomy, full = Engine(), Engine()
    held = [full.tap.take() for _ in range(PARTS)]

    def serve(engine: Engine) -> list[str]:
        request, dropped = Request("whole"), []
        engine.prefill([request], [(0, TOKENS)])
        dropped.append(engine.end(request)[0]["dropped"])
        for part in held if engine is full else ():
            assert part is not None
            engine.tap.give_back(part)
        group.barrier.wait()
        return [*dropped, whole(engine)["dropped"]]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(serve, (roomy, full))) == [["no-room", ""]] * 2
    assert roomy.recorder.counts == full.recorder.counts == {"no-room": 1, "recorded": 1}
    assert full.tap.free == PARTS


def test_a_thousand_requests_leave_no_growth_and_are_all_counted(engine: Engine) -> None:
    for number in range(1000):
        request = Request(f"r{number}")
        engine.prefill([request], [(0, TOKENS)])
        match number % 4:
            case 0:
                engine.end(request, aborted=True)
            case 1:
                engine.end(request)
            case 2:  # finished on a rank that answers nobody
                finish(request)
                engine.recorder.end_request(request)
            case _:  # gone without an end, as one aborted in the queue
                pass
        del request
    gc.collect()
    assert (len(engine.recorder), engine.tap.free) == (0, PARTS)
    assert sum(engine.recorder.counts.values()) == 1000
    assert engine.recorder.counts == {"aborted": 250, "recorded": 500, "abandoned": 250}


def test_a_second_request_of_the_same_id_is_another_one(engine: Engine) -> None:
    first = Request("r")
    engine.prefill([first], [(0, 20)])
    second = Request("r")
    engine.prefill([second], [(0, TOKENS)])
    assert engine.end(second)[0]["rows"] == 6
    assert engine.tap.free == PARTS


def test_two_requests_of_one_id_at_a_time_are_never_taken_for_each_other(engine: Engine) -> None:
    first, second = Request("r", row=1), Request("r", row=2)
    engine.prefill([first], [(0, TOKENS)])
    engine.prefill([second], [(0, 20)])
    assert engine.end(first) == []  # its track made room for the second one's
    engine.prefill([second], [(20, TOKENS)])
    assert engine.end(second) == [{**whole(engine), "rid": "r"}]
    assert engine.tap.free == PARTS


def fail(*_: object) -> None:
    raise RuntimeError("out of memory")


def test_errors_never_reach_serving_and_switch_measuring_off(engine: Engine) -> None:
    engine.pool.get_key_buffer = fail
    for number in range(5):
        request = Request(f"r{number}")
        engine.prefill([request], [(0, TOKENS)])
        assert engine.end(request)[0]["dropped"] == ("error" if number < 3 else "off")
    assert engine.recorder.is_off
    assert engine.recorder.counts == {"errors": 3, "error": 3, "off": 2}


def test_a_measured_request_between_two_errors_starts_the_count_again(engine: Engine) -> None:
    keys = engine.pool.get_key_buffer
    for number in range(9):
        engine.pool.get_key_buffer = fail if number % 3 else keys
        request = Request(f"r{number}")
        engine.prefill([request], [(0, TOKENS)])
        engine.end(request)
    assert not engine.recorder.is_off


def test_a_step_that_fails_spoils_its_requests_only(engine: Engine) -> None:
    good, bad = Request("good"), Request("bad")
    engine.prefill([good], [(0, TOKENS)])
    engine.recorder.keep(LAYER, None, None, {})  # type: ignore[arg-type]
    engine.prefill([bad], [(0, 20)])
    engine.recorder.keep(LAYER, None, None, {})  # type: ignore[arg-type]
    engine.prefill([bad], [(20, TOKENS)])
    after = Request("after")
    engine.prefill([after], [(0, TOKENS)])
    assert engine.end(bad)[0]["dropped"] == "refused"
    assert engine.end(after)[0]["dropped"] == ""


class Unreadable(Request):
    """A request of another version: what is read of it first is missing."""

    def __init__(self, rid: str) -> None:
        super().__init__(rid)
        del self.sampling_params


def test_a_request_that_cannot_be_read_costs_the_others_nothing(engine: Engine) -> None:
    request = Request("whole")
    engine.prefill([Unreadable("unreadable"), request], [(0, 7), (0, TOKENS)])
    assert engine.end(request)[0] == whole(engine)
    assert engine.recorder.counts["errors"] == 1


def unstaged(engine: Engine, requests: Sequence[Request], lengths: Sequence[int]) -> None:
    """A decode step whose batch says less than it should, until the layers are called."""
    import torch
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    batch = SimpleNamespace(
        forward_mode=ForwardMode.DECODE,
        seq_lens_cpu=torch.tensor([]),
        req_pool_indices=torch.tensor([request.kv.req_pool_idx for request in requests]),
    )
    engine.recorder.start_step(batch, requests)
    engine.recorder.keep(LAYER, engine.queries[[n - 1 for n in lengths]], batch, {})


def test_a_step_that_cannot_be_staged_spoils_its_own_requests(engine: Engine) -> None:
    request, other = Request("r"), Request("whole", row=2)
    engine.prefill([request, other], [(0, TOKENS - 1), (0, TOKENS)])
    unstaged(engine, [request], [TOKENS])
    assert engine.end(request)[0]["dropped"] == "refused"
    assert engine.end(other)[0] == whole(engine)


def test_what_an_earlier_step_staged_takes_no_row_of_one_that_cannot_be_staged(
    engine: Engine,
) -> None:
    retracted, other = Request("whole", row=1), Request("other", row=1)
    engine.prefill([retracted], [(0, TOKENS - 1)])
    engine.decode([retracted], [TOKENS])
    engine.recorder.end_request(retracted)  # another request gets its row of the table
    unstaged(engine, [other], [9])
    assert engine.end(retracted)[0] == whole(engine)


def test_queries_that_are_not_handed_over_whole_are_refused(engine: Engine) -> None:
    request = Request("r")
    engine.prefill([request], [(0, TOKENS)])
    engine.recorder.keep(LAYER, engine.queries, None, {"q_rope": engine.queries})
    assert engine.end(request)[0]["dropped"] == "refused"


def test_rows_that_were_never_written_are_never_measured(engine: Engine) -> None:
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    request = Request("r")
    batch = SimpleNamespace(
        forward_mode=ForwardMode.EXTEND,
        rids=["r"],
        extend_prefix_lens_cpu=[0],
        extend_seq_lens_cpu=[TOKENS],
    )
    engine.recorder.start_step(batch, [request])  # and no layer calls in
    assert engine.end(request)[0]["dropped"] == "not-finite"


def test_results_go_out_beside_requests_that_have_none(engine: Engine) -> None:
    from sglang.srt.managers.scheduler_components.output_streamer import SchedulerOutputStreamer

    from recap.sglang.streamer import with_results

    streamer_class = with_results(SchedulerOutputStreamer, engine.recorder)
    streamer = object.__new__(streamer_class)
    assert not hasattr(streamer, "__dict__")
    assert not streamer.should_build_additional_customized_info()
    request, other = Request("r"), Request("plain", params={})
    engine.prefill([request, other], [(0, TOKENS), (0, TOKENS)])
    finish(request)
    engine.recorder.end_request(request)
    assert streamer.should_build_additional_customized_info()
    built = streamer.build_additional_customized_info([other, request])
    assert built["recap"][0] == []
    assert built["recap"][1][0]["rid"] == "r"
    assert not streamer.should_build_additional_customized_info()
