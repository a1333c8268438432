"""KV eviction against attention with masks, in float64 on a tiny model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
transformers = pytest.importorskip("transformers", reason="not installed (extra proxy)")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from recap.baselines.kv_eviction import SINKS, KvEviction, best, head_use  # noqa: E402
from recap.errors import MethodError  # noqa: E402
from tests.capture.tiny_models import make_model  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

HISTORY, REQUEST, TARGET = 37, 6, 9
GROUP = 2  # query heads for each head of keys in the tiny models


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models"), "llama")


@pytest.fixture(scope="module")
def evictor(folder: Path) -> KvEviction:
    return KvEviction(folder, torch.float64)


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager"
    ).eval()


@pytest.fixture(scope="module")
def ids() -> Any:
    generator = torch.Generator().manual_seed(7)
    return torch.randint(3, 400, (HISTORY + REQUEST + TARGET,), generator=generator)


def parts(ids: Any) -> tuple[Any, Any, Any]:
    return ids[:HISTORY], ids[HISTORY : HISTORY + REQUEST], ids[HISTORY + REQUEST :]


def losses_of(logits: Any, ids: Any) -> Any:
    foreseen = logits[0, HISTORY + REQUEST - 1 : -1]
    return torch.nn.functional.cross_entropy(foreseen, ids[HISTORY + REQUEST :], reduction="none")


def test_all_kept_is_the_plain_model(evictor: KvEviction, model: Any, ids: Any) -> None:
    history, request, target = parts(ids)
    evicted = evictor.read(history, request, HISTORY)
    plain = losses_of(model(ids[None]).logits, ids).detach()
    assert torch.allclose(evictor.losses(evicted, target), plain, atol=1e-10)


@pytest.mark.parametrize("keep", [SINKS, 9, 20])
def test_pruned_is_masked(evictor: KvEviction, model: Any, ids: Any, keep: int) -> None:
    history, request, target = parts(ids)
    evicted = evictor.read(history, request, keep)
    assert all(kept.shape == (2, keep) for kept in evicted.kept)
    losses = evictor.losses(evicted, target)
    told = losses_of(masked_logits(model, ids, evicted.kept), ids)
    assert torch.allclose(losses, told, atol=1e-10)
    plain = losses_of(model(ids[None]).logits, ids).detach()
    assert not torch.allclose(losses, plain, atol=1e-4)  # or nothing was tested


def masked_logits(model: Any, ids: Any, kept: Any) -> Any:
    """Run all tokens at once; rows behind the request do not see what their head forgot."""
    behind = HISTORY + REQUEST
    masks = []
    for chosen in kept:
        seen = torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
        of_head = seen.repeat(2 * GROUP, 1, 1)
        for head in range(2 * GROUP):
            forgotten = torch.ones(HISTORY, dtype=torch.bool)
            forgotten[chosen[head // GROUP]] = False
            of_head[head, behind:, :HISTORY] &= ~forgotten
        masks.append(torch.where(of_head, 0.0, -torch.inf).to(torch.float64))
    hooks = [
        layer.self_attn.register_forward_pre_hook(
            lambda _, args, kwargs, mask=mask: (args, kwargs | {"attention_mask": mask[None]}),
            with_kwargs=True,
        )
        for layer, mask in zip(model.model.layers, masks, strict=True)
    ]
    try:
        with torch.no_grad():
            return model(ids[None], use_cache=False).logits
    finally:
        for hook in hooks:
            hook.remove()


def test_heads_keep_what_the_request_attends_to(evictor: KvEviction, model: Any, ids: Any) -> None:
    history, request, _ = parts(ids)
    keep = 11
    evicted = evictor.read(history, request, keep)
    with torch.no_grad():
        told = model(ids[None, : HISTORY + REQUEST], output_attentions=True).attentions
    sets = set()
    for kept, attention in zip(evicted.kept, told, strict=True):
        use = attention[0, :, HISTORY:, :HISTORY].sum(1)  # [Hq, history]
        for head, chosen in enumerate(kept):
            own = use[GROUP * head : GROUP * (head + 1)].sum(0)
            own[:SINKS] = torch.inf
            assert set(chosen.tolist()) == set(own.topk(keep).indices.tolist())
            sets.add(tuple(chosen.tolist()))
    assert len(sets) > 1  # heads differ


def test_pinned_tokens_stay_and_count(evictor: KvEviction, ids: Any) -> None:
    history, request, _ = parts(ids)
    pinned = torch.zeros(HISTORY, dtype=torch.bool)
    pinned[20:28] = True
    for keep, count in ((15, 15), (3, SINKS + 8)):
        for kept in evictor.read(history, request, keep, pinned).kept:
            assert kept.shape[1] == count
            for head in kept:
                assert {0, 1, 2, 3, *range(20, 28)} <= set(head.tolist())


def test_memory_is_what_the_cache_holds_of_the_history(evictor: KvEviction, ids: Any) -> None:
    history, request, _ = parts(ids)
    evicted = evictor.read(history, request, 10)
    held = sum(
        states[:, :, :-REQUEST].numel() * states.element_size()
        for layer in evicted.cache.layers
        for states in (layer.keys, layer.values)
    )
    assert evicted.memory_bytes == held


def test_many_rows_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(4, 11, 8, generator=generator)
    key = torch.randn(2, 30, 8, generator=generator)
    whole = head_use(query, key, 19, 0.3)
    monkeypatch.setattr("recap.baselines.kv_eviction.ROWS", 3)
    assert torch.allclose(head_use(query, key, 19, 0.3), whole, atol=1e-5)
    assert whole.sum() < 4 * 11  # rows attend to each other, too


@given(st.data())
def test_best_is_a_sorted_choice(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 12))
    row = st.lists(st.integers(0, 3), min_size=length, max_size=length)
    use = torch.tensor([data.draw(row), data.draw(row)], dtype=torch.float32)
    flags = st.lists(st.booleans(), min_size=length, max_size=length)
    pinned = torch.tensor(data.draw(flags))
    keep = data.draw(st.integers(0, length + 2))
    chosen = best(use, keep, pinned)
    assert chosen.shape == (2, min(max(keep, int(pinned.sum())), length))
    for head, kept in zip(use.tolist(), chosen.tolist(), strict=True):
        assert kept == sorted(set(kept))
        free = [at for at in kept if not pinned[at]]
        left = [at for at in range(length) if at not in kept]
        assert not any(pinned[at] for at in left)
        assert all((head[a], -a) > (head[b], -b) for a in free for b in left)


def test_missing_weights_are_not_made_up(folder: Path, tmp_path: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 6}))
    (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    with pytest.raises(MethodError, match="weights are missing"):
        KvEviction(tmp_path)


def test_other_attention_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MethodError, match="whole history"):
        KvEviction(make_model(tmp_path, "gemma3_text"))
    with pytest.raises(MethodError, match="whole history"):
        KvEviction(make_model(tmp_path / "mistral", "mistral", sliding_window=16))
    with pytest.raises(MethodError, match="no causal model"):
        KvEviction(tmp_path / "none")
