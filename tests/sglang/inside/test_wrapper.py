"""The wrapped backend: the inner one's in everything, with the same output, and what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from recap.capture.sampling import sample_rows
from recap.capture.spans import Segments
from recap.sglang.payload import Payload
from tests.sglang.inside.in_process import InProcess, finish
from tests.sglang.inside.tiny import attentions, expected

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


PROMPT = [3 + 7 * i % 250 for i in range(90)]
SEGMENTS = Segments(
    ("a", "b", "c"), np.array([0, 25, 40, 60, 90]), np.array([0, 1, -1, 2], np.int32)
)
PAYLOAD = Payload("session", 11, 0, 30, SEGMENTS, tail="answer")


@pytest.fixture
def sglang(in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[InProcess]:
    for name, value in in_process.environment.items():
        monkeypatch.setenv(name, value)
    yield in_process
    in_process.clear()


def generate(sglang: InProcess, prompts: Sequence[Sequence[int]], steps: int = 8) -> Any:
    requests = [
        sglang.request(f"r{i}", prompt, PAYLOAD.params()) for i, prompt in enumerate(prompts)
    ]
    return requests, sglang.run(requests, steps)


def public_names() -> list[str]:
    """Return what the base class declares."""
    from sglang.srt.layers.attention.base_attn_backend import AttentionBackend

    forward = {"forward", "forward_extend", "forward_decode"}
    names = {name for name in dir(AttentionBackend) if not name.startswith("__")} - forward
    assert len(names) > 20
    return sorted(names)


def test_every_public_name_of_the_base_class_reads_the_inner_backend(sglang: InProcess) -> None:
    wrapper = sglang.backend
    for name in public_names():
        assert getattr(wrapper, name) == getattr(wrapper.inner, name), name


def test_every_attribute_of_the_base_class_writes_the_inner_backend() -> None:
    from sglang.srt.layers.attention.base_attn_backend import AttentionBackend

    from recap.sglang.backend import RecapBackend

    inner = AttentionBackend()
    wrapper = RecapBackend(inner, lambda *_: None)
    for name in public_names():
        if isinstance(getattr(AttentionBackend, name), property):
            continue
        mark = object()
        setattr(wrapper, name, mark)
        assert inner.__dict__[name] is mark
        assert getattr(wrapper, name) is mark
        delattr(wrapper, name)
        assert name not in inner.__dict__


def test_the_wrapper_passes_for_the_inner_class(sglang: InProcess) -> None:
    from sglang.srt.layers.attention.base_attn_backend import AttentionBackend

    assert isinstance(sglang.backend, AttentionBackend)
    assert isinstance(sglang.backend, type(sglang.backend.inner))


def test_each_child_of_a_hybrid_backend_is_wrapped_and_the_hybrid_is_not(
    sglang: InProcess,
) -> None:
    from sglang.srt.layers.attention.hybrid_attn_backend import HybridAttnBackend
    from sglang.srt.model_executor.model_runner_components import attention_backend_setup as setup

    from recap.sglang.backend import RecapBackend

    resolved = setup.ResolvedAttentionBackendStr(prefill="torch_native", decode="flex_attention")
    built = setup._build_resolved_backend(
        model_runner=sglang.runner, resolved=resolved, init_new_workspace=False
    )
    assert type(built) is HybridAttnBackend
    assert type(built.prefill_backend) is type(built.decode_backend) is RecapBackend


def test_a_draft_models_backend_is_not_wrapped(
    sglang: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sglang.srt.model_executor.model_runner_components import attention_backend_setup as setup

    from recap.sglang.backend import RecapBackend

    monkeypatch.setattr(sglang.runner, "is_draft_worker", True)
    built = setup._build_full_attention_backend_from_str(
        model_runner=sglang.runner, backend_str="torch_native", init_new_workspace=False
    )
    assert type(built) is not RecapBackend


def test_outputs_are_the_same_bits_with_and_without_the_tap(
    sglang: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    prompts = [PROMPT, PROMPT[:50] + PROMPT[:45]]
    requests, tapped = generate(sglang, prompts)
    answers = [list(request.output_ids) for request in requests]
    sglang.clear()
    monkeypatch.setattr(sglang.runner, "attn_backend", sglang.backend.inner)
    requests, plain = generate(sglang, prompts)
    assert all(torch.equal(a, b) for a, b in zip(tapped, plain, strict=True))
    assert answers == [list(request.output_ids) for request in requests]


def measured(sglang: InProcess, request: Any) -> Any:
    finish(request)
    sglang.recorder.end_request(request)
    return sglang.recorder.results([request])[0][0]


def test_a_turn_is_measured_as_whole_attention_matrices_say(sglang: InProcess, model: Path) -> None:
    requests, _ = generate(sglang, [PROMPT, PROMPT[::-1]], steps=20)
    for request in requests:
        result = measured(sglang, request)
        ids = [*request.origin_input_ids, *request.output_ids]
        assert result["end"] == len(ids) - 1  # the last token was never an input
        settings = sglang.recorder._options.settings
        rows = sample_rows(PAYLOAD.seed, PAYLOAD.start, result["end"], settings.rows)
        layers = attentions(model, ids[: result["end"]])
        want = expected(layers, PAYLOAD, rows, result["end"], settings, edge_layer=3)
        assert result["layers"] == [0, 1, 2, 3]
        assert result["rows"] == len(rows) == 16
        assert dict(zip(result["ids"], result["use"], strict=True)) == pytest.approx(
            want.use, abs=1e-5
        )
        assert masses(result) == pytest.approx(want.mass, abs=1e-5)


def masses(result: Any) -> dict[tuple[str, str], float]:
    ids = result["ids"]
    return {
        (ids[later], ids[earlier]): mass
        for later, earlier, mass in zip(
            result["later"], result["earlier"], result["mass"], strict=True
        )
    }


def test_attention_of_the_tiny_model_is_not_flat(model: Path) -> None:
    last = attentions(model, PROMPT)[2][:, -1]
    assert last.max() > 5 / len(PROMPT)


def test_the_key_of_the_newest_token_is_measured(sglang: InProcess, model: Path) -> None:
    payload = Payload("", 1, 0, len(PROMPT) - 4, SEGMENTS, tail="answer")
    request = sglang.request("newest", PROMPT, payload.params())
    sglang.run([request], 6)
    result = measured(sglang, request)
    end = len(PROMPT) + 6
    rows = np.arange(payload.start, end)  # all of them, the last token's own too
    layers = attentions(model, [*PROMPT, *request.output_ids][:end])
    want = expected(layers, payload, rows, end, sglang.recorder._options.settings, 3)
    assert result["use"] == pytest.approx([want.use[i] for i in result["ids"]], abs=1e-5)


def test_a_span_shifted_by_one_token_says_something_else(sglang: InProcess, model: Path) -> None:
    layers = attentions(model, PROMPT)
    settings, rows = sglang.recorder._options.settings, np.arange(60, 90, 2)
    shifted = Segments(SEGMENTS.ids, np.array([0, 26, 41, 61, 90]), SEGMENTS.owner)
    one, other = (
        expected(layers, Payload("", 1, 0, 60, of), rows, 90, settings, 3)
        for of in (SEGMENTS, shifted)
    )
    assert max(abs(one.use[name] - other.use[name]) for name in one.use) > 1e-4
    assert max(abs(one.mass[pair] - other.mass[pair]) for pair in one.mass) > 1e-3


def test_a_request_without_a_payload_leaves_no_trace(sglang: InProcess) -> None:
    before = len(sglang.recorder)
    request = sglang.request("plain", PROMPT, {})
    sglang.run([request], 3)
    finish(request)
    sglang.recorder.end_request(request)
    assert sglang.recorder.results([request]) == [[]]
    assert len(sglang.recorder) == before
