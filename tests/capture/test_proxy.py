"""A proxy model against the attention that transformers itself reports, and what it refuses."""

from __future__ import annotations

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
transformers = pytest.importorskip("transformers", reason="not installed (extra proxy)")

from recap.capture.layers import edge_of  # noqa: E402
from recap.capture.proxy import ProxyModel  # noqa: E402
from recap.capture.replay import Replay  # noqa: E402
from recap.capture.sampling import sample_rows  # noqa: E402
from recap.capture.spans import Segments, message_spans  # noqa: E402
from recap.config import Settings  # noqa: E402
from recap.errors import CaptureError, UsageError  # noqa: E402
from tests.capture.tiny_models import FAMILIES, FULL, make_model  # noqa: E402
from tests.capture.whole_matrix import Expected, expected  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from recap.graph.observation import TurnObservation

    Folder = Callable[..., Path]

SETTINGS = Settings(rows=24, rows_per_block=3)
SEED = 11
WORDS = ("read", "the", "file", "path", "in", "a", "folder", "return", "content", "model", "None")
LINEAR = "linear_attention"
HYBRID: dict[str, Any] = {
    "layer_types": [LINEAR, FULL, LINEAR, FULL, FULL],
    "num_experts": 0,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """Return the folder of a tiny model of a family, made once."""
    made: dict[str, Path] = {}

    def of(family: str = "llama", **changes: Any) -> Path:
        name = family + json.dumps(changes, sort_keys=True)
        if name not in made:
            made[name] = make_model(tmp_path_factory.mktemp(family), family, **changes)
        return made[name]

    return of


def replay_of(messages: int, first_new: int, *, words: int = 14, seed: int = 0) -> Replay:
    """Return a replay of blocks of two messages each, longer than any window of the tiny models."""
    random = np.random.default_rng(seed)
    said = [
        {"role": ("user", "assistant")[at % 2], "content": " ".join(random.choice(WORDS, words))}
        for at in range(messages)
    ]
    owner = tuple(at // 2 for at in range(messages))
    return Replay(tuple(said), owner, tuple(f"b{i}" for i in range(owner[-1] + 1)), first_new, 600)


def whole(folder: Path, proxy: ProxyModel, replay: Replay, shift: int = 0) -> Expected:
    """Return what eager attention of the whole model says, all layers and weights in float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", local_files_only=True
    )
    spans = message_spans(replay.messages, proxy.template)
    segments = Segments.of(replay.ids, replay.owner, spans)
    inner = segments.offsets.copy()
    inner[1:-1] += shift
    segments = Segments(segments.ids, inner, segments.owner)
    positions = sample_rows(SEED, int(spans.start[replay.first_new]), len(spans.ids), SETTINGS.rows)
    with torch.inference_mode():
        told = model(torch.from_numpy(spans.ids)[None], output_attentions=True).attentions
    weights = {
        layer: told[layer][0][:, positions].transpose(0, 1).double().numpy()
        for layer in proxy.layers
    }
    edge_layer = edge_of(proxy.layers, SETTINGS.edge_layer)
    return expected(weights, segments, positions, SETTINGS, SEED, edge_layer)


def error(seen: TurnObservation, wanted: Expected) -> float:
    """Return the largest difference: of use in units of its maximum, of mass as it is."""
    assert list(wanted.use) == list(seen.ids)
    use = np.array(list(wanted.use.values()))
    pairs = [(seen.ids[b], seen.ids[a]) for b, a in zip(seen.later, seen.earlier, strict=True)]
    mass = dict(zip(pairs, seen.mass.tolist(), strict=True))
    assert mass.keys() == wanted.mass.keys()
    apart = [abs(mass[pair] - wanted.mass[pair]) for pair in mass]
    return max(float(np.abs(seen.use - use).max() / use.max()), *apart)


def same(one: TurnObservation, two: TurnObservation) -> float:
    """Return the same difference between two observations."""
    pairs = zip(two.later.tolist(), two.earlier.tolist(), strict=True)
    mass = {(two.ids[b], two.ids[a]): m for (b, a), m in zip(pairs, two.mass, strict=True)}
    return error(one, Expected(dict(zip(two.ids, two.use, strict=True)), mass))


@pytest.mark.parametrize("family", FAMILIES)
def test_an_observation_is_what_eager_attention_of_the_whole_model_says(
    family: str, folder: Folder
) -> None:
    proxy = ProxyModel.load(folder(family), layers=3, dtype="float32")
    replay = replay_of(12, 8)
    assert (
        error(proxy.observe(replay, 2, SEED, SETTINGS), whole(folder(family), proxy, replay)) < 1e-5
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_spans_shifted_by_one_token_are_told_apart(family: str, folder: Folder) -> None:
    proxy = ProxyModel.load(folder(family), layers=3, dtype="float32")
    replay = replay_of(12, 8)
    seen = proxy.observe(replay, 2, SEED, SETTINGS)
    assert error(seen, whole(folder(family), proxy, replay, shift=1)) > 1e-3


@pytest.mark.slow
def test_the_default_model_measures_what_its_eager_attention_says(smollm2: Path) -> None:
    proxy = ProxyModel.load(smollm2, layers=8)
    replay = replay_of(12, 8, words=40)
    seen = proxy.observe(replay, 2, SEED, SETTINGS)
    assert error(seen, whole(smollm2, proxy, replay)) < 1e-5
    assert error(seen, whole(smollm2, proxy, replay, shift=1)) > 1e-3
    proxy.observe(replay_of(8, 6, words=40), 1, SEED, SETTINGS)
    assert same(proxy.observe(replay, 2, SEED, SETTINGS), seen) < 1e-5


@pytest.mark.parametrize(("family", "layers"), [("llama", (0, 1, 2)), ("gemma3_text", (1, 3, 4))])
def test_layers_with_a_window_are_left_out(
    family: str, layers: tuple[int, ...], folder: Folder
) -> None:
    assert ProxyModel.load(folder(family), layers=3).layers == layers


def test_layers_behind_the_last_measured_one_are_not_loaded(folder: Folder) -> None:
    proxy = ProxyModel.load(folder("gemma3_text"), layers=1)
    assert proxy.layers == (1,)
    assert len(proxy._model.layers) == 2


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chunk", [7, 64])
def test_chunks_change_nothing(
    family: str, chunk: int, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = replay_of(12, 8)
    one = ProxyModel.load(folder(family), layers=3).observe(replay, 2, SEED, SETTINGS)
    monkeypatch.setattr("recap.capture.proxy.CHUNK", chunk)
    two = ProxyModel.load(folder(family), layers=3).observe(replay, 2, SEED, SETTINGS)
    assert same(one, two) < 1e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_a_turn_after_another_is_measured_as_if_it_came_alone(family: str, folder: Folder) -> None:
    warm = ProxyModel.load(folder(family), layers=3)
    for turn, (messages, first_new) in enumerate([(4, 0), (8, 4), (12, 8)]):
        replay = replay_of(12, first_new)
        cut = Replay(
            replay.messages[:messages],
            replay.owner[:messages],
            replay.ids[: messages // 2],
            first_new,
            600,
        )
        seen = warm.observe(cut, turn, SEED, SETTINGS)
        alone = ProxyModel.load(folder(family), layers=3).observe(cut, turn, SEED, SETTINGS)
        assert same(seen, alone) < 1e-5


@pytest.fixture
def run_tokens(folder: Folder) -> Iterator[tuple[ProxyModel, list[int]]]:
    """A model, and the numbers of tokens that each of its passes ran over."""
    proxy = ProxyModel.load(folder(), layers=2)
    ran: list[int] = []
    embedding = proxy._model.get_input_embeddings()
    hook = embedding.register_forward_pre_hook(lambda _, ids: ran.append(ids[0].shape[1]))
    yield proxy, ran
    hook.remove()


def test_tokens_that_the_last_replay_began_with_are_not_run_again(
    run_tokens: tuple[ProxyModel, list[int]],
) -> None:
    proxy, ran = run_tokens
    long, short = replay_of(12, 8), replay_of(8, 4)
    proxy.observe(short, 0, SEED, SETTINGS)
    proxy.observe(long, 1, SEED, SETTINGS)
    assert sum(ran) == proxy.count(long)
    proxy.observe(replay_of(8, 4, seed=1), 2, SEED, SETTINGS)
    assert ran[-1] > proxy.count(short) - 20  # little more than the first role is alike


def test_forgetting_runs_everything_again(run_tokens: tuple[ProxyModel, list[int]]) -> None:
    proxy, ran = run_tokens
    one = proxy.observe(replay_of(8, 4), 0, SEED, SETTINGS)
    proxy.forget()
    assert same(proxy.observe(replay_of(8, 4), 0, SEED, SETTINGS), one) == 0
    assert ran[0] == ran[1] == proxy.count(replay_of(8, 4))


def test_the_same_turn_again_runs_from_its_first_sampled_row(
    run_tokens: tuple[ProxyModel, list[int]],
) -> None:
    proxy, ran = run_tokens
    one = proxy.observe(replay_of(8, 4), 0, SEED, SETTINGS)
    assert same(proxy.observe(replay_of(8, 4), 0, SEED, SETTINGS), one) < 1e-5
    assert 0 < ran[1] < ran[0]


def test_a_replay_that_fails_leaves_nothing_to_go_on_from(
    run_tokens: tuple[ProxyModel, list[int]],
) -> None:
    proxy, ran = run_tokens
    proxy.observe(replay_of(8, 4), 0, SEED, SETTINGS)

    def fail(*_: object) -> None:
        raise MemoryError

    hook = proxy._model.layers[1].register_forward_pre_hook(fail)
    with pytest.raises(MemoryError):
        proxy.observe(replay_of(12, 8), 1, SEED, SETTINGS)
    hook.remove()
    proxy.observe(replay_of(12, 8), 1, SEED, SETTINGS)
    assert ran[-1] == proxy.count(replay_of(12, 8))


def test_a_state_that_cannot_be_cut_back_is_made_anew(folder: Folder) -> None:
    path = folder("qwen3_next", **HYBRID)
    proxy = ProxyModel.load(path, layers=2, dtype="float32")
    replay = replay_of(12, 8)
    proxy.observe(replay_of(8, 4), 1, SEED, SETTINGS)
    seen = proxy.observe(replay, 2, SEED, SETTINGS)
    fresh = ProxyModel.load(path, layers=2, dtype="float32")
    assert proxy.layers == (1, 3)
    assert same(seen, fresh.observe(replay, 2, SEED, SETTINGS)) == 0


def test_narrow_weights_give_what_the_same_weights_give_when_wide(tmp_path: Path) -> None:
    path = make_model(tmp_path, "qwen3")
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.bfloat16)
    model.save_pretrained(path)
    narrow, wide = (ProxyModel.load(path, layers=3, dtype=d) for d in ("bfloat16", "float32"))
    replay = replay_of(12, 8)
    assert same(*(p.observe(replay, 0, SEED, SETTINGS) for p in (narrow, wide))) == 0
    weights = {weight.dtype for weight in narrow._model.parameters()}
    assert weights == {torch.bfloat16}


def test_models_in_two_threads_do_not_disturb_each_other(folder: Folder) -> None:
    models = [ProxyModel.load(folder(family), layers=3) for family in ("llama", "gpt_oss")]
    replay = replay_of(12, 8)
    alone = [model.observe(replay, 0, SEED, SETTINGS) for model in models]
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            (at, pool.submit(models[at].observe, replay, 0, SEED + seed, SETTINGS))
            for seed in (1, 0)
            for at in (0, 1)
            for _ in range(3)
        ]
    for at, job in jobs[6:]:
        assert same(job.result(), alone[at]) < 1e-5


def test_a_model_leaves_the_process_as_it_was(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    path = folder()
    monkeypatch.setattr(socket.socket, "connect", refuse)
    threads, environment = torch.get_num_threads(), dict(os.environ)
    verbosity = transformers.utils.logging.get_verbosity()
    proxy = ProxyModel.load(path, layers=2, threads=threads + 1)
    proxy.observe(replay_of(8, 4), 0, SEED, SETTINGS)
    assert torch.get_num_threads() == threads
    assert dict(os.environ) == environment
    assert transformers.utils.logging.get_verbosity() == verbosity


def test_a_model_without_a_chat_template_gets_a_plain_one(tmp_path: Path) -> None:
    proxy = ProxyModel.load(make_model(tmp_path, "llama", template=None), layers=2)
    replay = replay_of(4, 2)
    assert (
        proxy.template.render(replay.messages[:1]) == f"user:\n{replay.messages[0]['content']}\n\n"
    )
    assert proxy.observe(replay, 0, SEED, SETTINGS).ids == ("b0", "b1")


def test_a_replay_longer_than_the_model_takes_is_not_run(folder: Folder) -> None:
    proxy = ProxyModel.load(folder("llama", max_position_embeddings=64), layers=2)
    with pytest.raises(CaptureError) as caught:
        proxy.observe(replay_of(8, 4), 0, SEED, SETTINGS)
    assert caught.value.reason == "too-long"


def test_a_turn_without_words_has_no_rows(folder: Folder) -> None:
    with pytest.raises(CaptureError) as caught:
        ProxyModel.load(folder(), layers=2).observe(replay_of(8, 8), 0, SEED, SETTINGS)
    assert caught.value.reason == "no-rows"


@pytest.mark.parametrize(
    ("family", "changes", "why"),
    [
        ("bloom", {}, "did not hand in the keys"),
        ("mistral", {"sliding_window": 16}, "whole history"),
        ("diffllama", {}, "rows"),
    ],
)
def test_attention_that_cannot_be_measured_is_refused(
    family: str, changes: dict[str, Any], why: str, folder: Folder
) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        ProxyModel.load(folder(family, **changes), layers=2)
    assert "recap proxy install" in str(caught.value)


def test_attention_that_differs_from_what_the_model_reports_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.models.llama import modeling_llama

    plain = modeling_llama.eager_attention_forward

    def biased(module: Any, query: Any, *rest: Any, **kwargs: Any) -> Any:
        return plain(module, query * 1.01, *rest, **kwargs)

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", biased)
    with pytest.raises(UsageError, match="not what the model reports"):
        ProxyModel.load(folder(), layers=2)


def test_a_folder_that_is_no_model_is_refused_in_one_line(tmp_path: Path, folder: Folder) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (tmp_path / "absent", empty):
        with pytest.raises(UsageError, match="recap proxy install") as caught:
            ProxyModel.load(path, layers=2)
        assert "\n" not in str(caught.value)


def changed(path: Path, target: Path, **changes: Any) -> Path:
    """Copy a model's folder with other values in its configuration."""
    target.mkdir()
    for file in path.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    config = json.loads((path / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | changes))
    return target


def test_missing_weights_are_never_made_up(tmp_path: Path, folder: Folder) -> None:
    path = changed(folder(), tmp_path / "m", num_hidden_layers=7, layer_types=None)
    assert ProxyModel.load(path, layers=5).layers == (0, 1, 2, 3, 4)
    with pytest.raises(UsageError, match="weights are missing"):
        ProxyModel.load(path, layers=6)


def test_code_that_comes_with_a_model_is_not_run(tmp_path: Path, folder: Folder) -> None:
    mine = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    path = changed(folder(), tmp_path / "m", model_type="own", auto_map=mine)
    (path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(UsageError):
        ProxyModel.load(path, layers=2)
    assert not (tmp_path / "ran").exists()


def test_pickled_weights_are_refused(tmp_path: Path, folder: Folder) -> None:
    path = changed(folder(), tmp_path / "m")
    (path / "model.safetensors").unlink()
    torch.save({"anything": torch.zeros(1)}, path / "pytorch_model.bin")
    with pytest.raises(UsageError, match="safetensors"):
        ProxyModel.load(path, layers=2)
