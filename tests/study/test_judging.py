"""Rows of a session before a judge: what each method puts before it, and where it is not asked."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
transformers = pytest.importorskip("transformers", reason="not installed (extra proxy)")

from recap.baselines.method import of_blocks, verbatim  # noqa: E402
from recap.config import Settings  # noqa: E402
from recap.errors import MethodError, UsageError  # noqa: E402
from recap.study.catalogue import methods_of  # noqa: E402
from recap.study.evaluate import evaluate, task_of  # noqa: E402
from recap.study.forgetting import forgotten, protected_spans  # noqa: E402
from recap.study.judge import Judge, Prompt, is_judged, prompt_of, shown, target_of  # noqa: E402
from recap.study.judging import judged  # noqa: E402
from recap.study.transitions import transitions  # noqa: E402
from tests.capture.tiny_models import make_model  # noqa: E402
from tests.study.conftest import read  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from recap.study.judging import Judged
    from recap.study.transitions import Transition
    from recap.study.verdicts import Verdict

pytestmark = pytest.mark.usefixtures("one_thread")

WINDOW = 9_000
SMALL: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
}
SETTINGS = Settings(retention="0.1")
SHARPNESS = 30.0
"""A random head foresees all tokens alike; a larger one does not."""

ROUNDING = 0.02
"""Nats that bfloat16 may cost where losses are about ten."""

METHODS = (
    "none", "random", "recency", "paper", "coverage", "coverage-lines",
    "oracle-id-exec", "oracle-line-act", "full-history", "kv-eviction",
)  # fmt: skip


class Listening(Judge):
    """A judge that notes what is put before it."""

    def __init__(self, folder: Path, cache: Path | None = None) -> None:
        super().__init__(folder, cache)
        self.heard: list[Prompt] = []

    def verdict(self, prompt: Prompt) -> Verdict:
        self.heard.append(prompt)
        return super().verdict(prompt)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models") / "tiny"
    make_model(made, "llama", max_position_embeddings=WINDOW, **SMALL)
    model = transformers.AutoModelForCausalLM.from_pretrained(made)
    model.lm_head.weight.data *= SHARPNESS
    model.save_pretrained(made)
    return made


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session whose history fits the window when its second request comes, not at its third."""
    rng = Random(3)
    words = ("the", "code", "is", "in", "the", "file", "and", "folder")
    messages: list[dict[str, Any]] = []
    for turn, steps in enumerate((22, 20, 2)):
        messages.append({"role": "user", "content": f"Read the files of part_{turn} again"})
        for at in range(steps):
            lines = [" ".join(rng.choices(words, k=12)) for _ in range(20)]
            messages += read(f"toolu_{turn}_{at}", f"src/{turn}_{at}.py", lines, lines[:1])
        messages.append({"role": "assistant", "content": f"part_{turn} is read"})
    made = tmp_path_factory.mktemp("sessions") / "made.json"
    made.write_text(json.dumps(messages), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def found(path: Path) -> list[Transition]:
    return [t for t in transitions(path, SETTINGS) if is_judged(task_of(t, SETTINGS))]


@pytest.fixture(scope="module")
def judge(folder: Path) -> Listening:
    return Listening(folder)


@pytest.fixture(scope="module")
def rows(path: Path, judge: Listening) -> list[tuple[Judged, Prompt | None]]:
    """Rows with the prompts they come from; kv-eviction has none."""
    judge.heard.clear()
    listed = list(judged(path, METHODS, SETTINGS, judge))
    heard = iter(judge.heard)
    return [(row, None if row.method == "kv-eviction" else next(heard)) for row in listed]


def test_every_method_but_none_holds_the_protected_blocks(
    rows: list[tuple[Judged, Prompt | None]], found: list[Transition]
) -> None:
    assert found
    for transition in found:
        task = task_of(transition, SETTINGS)
        own = of_blocks(task, task.is_protected.nonzero()[0].tolist()).pieces
        assert own
        for row, prompt in rows:
            if row.turn == transition.turn and prompt is not None:
                missing = [piece for piece in own if shown(piece) not in prompt.context]
                assert missing == (list(own) if row.method == "none" else [])


def test_request_and_target_are_the_same_for_all(
    rows: list[tuple[Judged, Prompt | None]], found: list[Transition]
) -> None:
    for transition in found:
        request = transition.known.moment.request_text
        texts = {p[1:] for row, p in rows if row.turn == transition.turn and p is not None}
        assert texts == {(f"user: {request}\n\nassistant: ", target_of(transition.acts))}
    by_method: dict[str, int] = {}
    for row, _ in rows:
        by_method[row.method] = by_method.get(row.method, 0) + 1
    budgeted = {name: count for name, count in by_method.items() if name in METHODS[:8]}
    assert budgeted == dict.fromkeys(METHODS[:8], len(found))


def test_contexts_keep_the_budget(rows: list[tuple[Judged, Prompt | None]]) -> None:
    for row, _ in rows:
        if row.method == "none":
            assert (row.cost_chars, row.context_tokens) == (0, 0)
        elif row.method not in ("full-history", "kv-eviction"):
            grown = 1.2 if row.method in ("coverage", "paper") else 1  # by support edges
            assert 0 < row.cost_chars <= grown * row.budget_chars


def test_the_whole_history_is_judged_where_it_fits_and_nowhere_else(
    rows: list[tuple[Judged, Prompt | None]], found: list[Transition], judge: Listening
) -> None:
    fits = {}
    for transition in found:
        task = task_of(transition, SETTINGS)
        whole = prompt_of(of_blocks(task, range(len(task.table))), task, transition.acts)
        fits[transition.turn] = judge.fits(whole)
    assert set(fits.values()) == {True, False}
    for name in ("full-history", "kv-eviction"):
        assert {row.turn for row, _ in rows if row.method == name} == {t for t in fits if fits[t]}
    for row, prompt in rows:
        if row.method == "full-history" and prompt is not None:
            assert row.clipped_tokens == 0
            assert row.cost_chars > row.budget_chars


def test_a_study_says_of_its_methods_what_the_judge_says_of_each(
    path: Path, judge: Listening, rows: list[tuple[Judged, Prompt | None]]
) -> None:
    names = ("none", "recency", "coverage", "full-history")
    found = list(evaluate(path, methods_of(names), ["0.1", "0.000001"], SETTINGS, judge))
    said = {(r.turn, r.method): r.judge for r in found if r.judge is not None}
    told = {(row.turn, row.method): row.nll for row, _ in rows}
    assert said == {key: told[key] for key in told if key[1] in (*names, "oracle-id-exec")}
    assert {row.retention for row in found if row.judge is not None} == {
        "0.1"
    }  # the other has no room


def test_an_unknown_method_is_a_mistake_of_the_user(path: Path, judge: Listening) -> None:
    with pytest.raises(UsageError, match="newest"):
        list(judged(path, ("newest",), SETTINGS, judge))


def test_where_the_request_leaves_no_room_nothing_is_judged(
    path: Path, found: list[Transition], tmp_path: Path
) -> None:
    narrow = Judge(make_model(tmp_path / "narrow", "llama", max_position_embeddings=64))
    assert list(judged(path, METHODS, SETTINGS, narrow)) == []
    task = task_of(found[0], SETTINGS)
    with pytest.raises(MethodError, match="reads 64"):
        narrow.verdict(prompt_of(of_blocks(task, ()), task, found[0].acts))


def test_the_loss_is_that_of_each_token_after_those_before_it(folder: Path, judge: Judge) -> None:
    """In float64, a pass for each token; rows that come too early or late are told apart."""
    prompt = Prompt("tool: the code\n\n", "user: go on\n\nassistant: ", "def read(self, path): 1/0")
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    model = model.double()
    context, request, target = (judge.tokens(text)[0] for text in prompt)
    ids = [*context, *request, *target]
    places = torch.arange(len(ids) - len(target), len(ids))
    with torch.no_grad():
        rows = [model(torch.tensor([ids[:at]])).logits[0, -1] for at in range(1, len(ids) + 1)]
    foreseen = torch.stack(rows).log_softmax(-1)  # row k is before token k + 1
    nll = {
        shift: -float(foreseen[places - 1 + shift, torch.tensor(target)].mean())
        for shift in (-1, 0, 1)
    }
    told = judge.verdict(prompt).nll
    assert told == pytest.approx(nll[0], abs=ROUNDING)
    assert min(abs(told - nll[-1]), abs(told - nll[1])) > 3 * ROUNDING, nll


def test_protected_spans_are_the_texts_of_p(found: list[Transition]) -> None:
    task = task_of(found[0], SETTINGS)
    whole = of_blocks(task, range(len(task.table)))
    text = prompt_of(whole, task, found[0].acts).context
    own = verbatim(task, task.is_protected.nonzero()[0].tolist())
    assert [text[a:b] for a, b in protected_spans(whole, task)] == [shown(piece) for piece in own]


def test_eviction_that_keeps_all_is_the_whole_history(
    judge: Listening, found: list[Transition]
) -> None:
    task = task_of(found[0], Settings(retention="1"))
    whole = prompt_of(of_blocks(task, range(len(task.table))), task, found[0].acts)
    told, plain = forgotten(judge, task, found[0].acts), judge.verdict(whole)
    assert told is not None
    assert told.context_tokens == plain.context_tokens
    assert told.nll == pytest.approx(plain.nll, abs=ROUNDING)


def test_eviction_keeps_the_share_of_tokens_and_p(
    folder: Path, tmp_path: Path, found: list[Transition]
) -> None:
    judge = Judge(folder, tmp_path)
    task = task_of(found[0], SETTINGS)
    whole = of_blocks(task, range(len(task.table)))
    history = len(judge.tokens(prompt_of(whole, task, found[0].acts).context)[0])
    own = sum(
        len(judge.tokens(shown(piece))[0])
        for piece in verbatim(task, task.is_protected.nonzero()[0])
    )
    told = forgotten(judge, task, found[0].acts)
    assert told is not None
    assert own < told.context_tokens == history // 10
    tight = replace(task, settings=Settings(retention="0.001"))
    least = forgotten(judge, tight, found[0].acts)
    assert least is not None
    assert (
        own <= least.context_tokens <= own + 4 + 2 * len(whole.pieces)
    )  # sinks, and ends that merge
    del judge._model  # whoever asks it fails
    assert forgotten(judge, task, found[0].acts) == told
    assert told != least
