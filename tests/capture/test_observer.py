"""Turns observed one after the other with a proxy model."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
pytest.importorskip("transformers", reason="transformers is not installed (extra proxy)")

from recap.blocks.table import BlockTable, build_table
from recap.capture.observer import Observed, observe_turns
from recap.capture.proxy import ProxyModel
from recap.capture.replay import fitting
from recap.capture.spans import SpanReason
from recap.config import Settings
from tests.capture.tiny_models import make_model
from tests.testing import reply, step, user

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

TURNS = 5
SETTINGS = Settings(rows=16, replay_tokens=1200)
SEEDS = range(100, 100 + TURNS)


def session(output_chars: int = 300) -> BlockTable:
    messages = []
    for turn in range(TURNS):
        output = f"line of turn {turn} " * (output_chars // 15)
        messages += [user(f"do step {turn} of the task"), reply(f"I read the file of step {turn}")]
        messages += [*step(str(turn), output, path=f"src/part{turn}.py"), reply(f"done {turn}")]
    return build_table(messages)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model"), "llama")


@pytest.fixture
def model(folder: Path) -> ProxyModel:
    return ProxyModel.load(folder, layers=2)


@pytest.fixture
def ran(model: ProxyModel) -> Iterator[list[int]]:
    """Numbers of tokens that the model's passes ran over."""
    passes: list[int] = []
    embedding = model._model.get_input_embeddings()
    hook = embedding.register_forward_pre_hook(lambda _, ids: passes.append(ids[0].shape[1]))
    yield passes
    hook.remove()


def observed(
    model: ProxyModel,
    table: BlockTable,
    served: Sequence[Collection[str] | None] | None = None,
    turns: range = range(TURNS),
    settings: Settings = SETTINGS,
) -> list[Observed]:
    seeds = [SEEDS[turn] for turn in turns]
    return list(observe_turns(table, turns, model, settings, seeds, served))


def lengths(model: ProxyModel, table: BlockTable, settings: Settings = SETTINGS) -> list[int]:
    """Return the tokens of each turn's replay."""
    limit = settings.replay_tokens
    return [model.count(fitting(table, turn, limit, model.count)) for turn in range(TURNS)]


def test_each_turn_is_measured_up_to_its_end(model: ProxyModel) -> None:
    table = session()
    for turn, seen in enumerate(observed(model, table)):
        assert (seen.turn, seen.reason) == (turn, "")
        assert seen.observation is not None
        assert seen.observation.turn == turn
        up_to = table.ids[: int((table.turn <= turn).sum())]
        assert set(seen.observation.ids) <= set(up_to)
        assert set(seen.observation.ids) > set(up_to[: 4 * turn])


def test_a_turn_is_measured_when_it_is_asked_for(model: ProxyModel, ran: list[int]) -> None:
    turns = observe_turns(session(), range(TURNS), model, SETTINGS, SEEDS)
    assert ran == []
    assert next(turns).turn == 0
    assert len(ran) == 1


def test_in_a_warm_stretch_no_token_is_run_twice(model: ProxyModel, ran: list[int]) -> None:
    table = session(60)  # fits at the largest clip
    observed(model, table)
    assert sum(ran) == lengths(model, table)[-1]


def test_a_run_that_is_resumed_says_the_same(model: ProxyModel, folder: Path) -> None:
    table = session(900)
    through = observed(model, table)
    for turn, seen in enumerate(through):
        fresh = ProxyModel.load(folder, layers=2)
        alone = observed(fresh, table, turns=range(turn, turn + 1))[0]
        assert seen.observation is not None
        assert alone.observation is not None
        assert seen.observation.ids == alone.observation.ids
        assert seen.observation.use == pytest.approx(alone.observation.use, rel=1e-5)
        assert seen.observation.mass == pytest.approx(alone.observation.mass, rel=1e-5)


def test_a_clip_that_no_longer_fits_is_followed_by_a_smaller_one(
    model: ProxyModel, ran: list[int]
) -> None:
    table = session(900)
    clips = [fitting(table, t, SETTINGS.replay_tokens, model.count).clip for t in range(TURNS)]
    assert len(set(clips)) > 1
    long = lengths(model, table)
    before = 0
    for turn, seen in enumerate(observe_turns(table, range(TURNS), model, SETTINGS, SEEDS)):
        assert seen.observation is not None
        is_warm = turn and clips[turn] == clips[turn - 1]
        assert sum(ran) - before == long[turn] - (long[turn - 1] if is_warm else 0)
        before = sum(ran)


def test_only_served_blocks_and_those_of_the_turn_are_measured(model: ProxyModel) -> None:
    table = session()
    served = [set(table.ids[:2])] * TURNS
    seen = observed(model, table, served)[3]
    own = [id for id, turn in zip(table.ids, table.turn, strict=True) if turn == 3]
    assert seen.observation is not None
    assert set(table.ids[:2]) < set(seen.observation.ids) <= {*table.ids[:2], *own}


@pytest.mark.parametrize("grows", [True, False])
def test_what_the_model_holds_is_dropped_when_the_selection_changes(
    grows: bool, model: ProxyModel, ran: list[int]
) -> None:
    table = session(60)
    kept = [set(table.ids[: 4 * turn]) for turn in range(TURNS)]
    if not grows:
        kept[3] = set(table.ids[4:12])
    before = 0
    for at, seen in enumerate(observe_turns(table, range(TURNS), model, SETTINGS, SEEDS, kept)):
        assert seen.observation is not None
        if at == 3:
            replay = fitting(table, 3, SETTINGS.replay_tokens, model.count, served=kept[3])
            assert (sum(ran) - before == model.count(replay)) is not grows
        before = sum(ran)


def test_a_turn_whose_spans_are_not_proved_has_a_reason_and_no_observation(tmp_path: Path) -> None:
    loud = "{% for m in messages %}{{ m.content|upper }}\n{% endfor %}"
    model = ProxyModel.load(make_model(tmp_path, "llama", template=loud), layers=2)
    for seen in observed(model, session()):
        assert seen.observation is None
        assert seen.reason in get_args(SpanReason)


def test_a_turn_that_does_not_fit_has_a_reason_and_the_next_ones_go_on(tmp_path: Path) -> None:
    path = make_model(tmp_path, "llama", max_position_embeddings=40)
    table = build_table([user("word " * 40), reply("ok"), user("go"), reply("yes")])
    model = ProxyModel.load(path, layers=2)
    first, second = observe_turns(table, range(2), model, SETTINGS, SEEDS[:2])
    assert (first.observation, first.reason) == (None, "too-long")
    assert second.observation is not None
