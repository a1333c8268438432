"""The judge: what it reads, what it leaves out, and that it says the same again."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
transformers = pytest.importorskip("transformers", reason="not installed (extra proxy)")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from recap.capture.models import installed, models_folder  # noqa: E402
from recap.config import Settings  # noqa: E402
from recap.errors import MethodError, UsageError  # noqa: E402
from recap.study.evaluate import task_of  # noqa: E402
from recap.study.judge import (  # noqa: E402
    MOST_BUDGET_CHARS,
    PIECE_CHARS,
    TARGET_CHARS,
    Judge,
    Prompt,
    is_judged,
    target_of,
)
from recap.study.transitions import transitions  # noqa: E402
from tests.capture.tiny_models import make_model  # noqa: E402
from tests.study.conftest import write_session  # noqa: E402
from tests.testing import text  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("one_thread")

WINDOW = 192
WORDS = "the code is in the file and the error in the folder is a path to the model "
PROMPT = Prompt(f"tool: {WORDS * 3}\n\n", "user: fix the code\n\nassistant: ", "the file is read")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models") / "tiny"
    return make_model(made, "llama", max_position_embeddings=WINDOW)


@pytest.fixture(scope="module")
def judge(folder: Path) -> Judge:
    return Judge(folder)


@pytest.fixture(scope="module")
def words(folder: Path) -> Any:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]


def test_oldest_tokens_of_the_context_are_clipped_and_nothing_else(
    judge: Judge, words: Any
) -> None:
    long = PROMPT._replace(context="tool: " + WORDS * 30)
    ids = words(long.context)
    verdict = judge.verdict(long)
    room = WINDOW - len(words(long.request)) - len(words(long.target))
    assert (verdict.context_tokens, verdict.clipped_tokens) == (room, len(ids) - room)
    assert not judge.fits(long)
    assert judge.fits(PROMPT)
    assert judge.verdict(long._replace(context="old words " + long.context)).nll == verdict.nll
    for changed in (
        long._replace(request="user: read the path\n\nassistant: "),
        long._replace(context=long.context + "a new error "),
    ):
        assert judge.verdict(changed).nll != verdict.nll


def test_a_model_is_loaded_without_a_word(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Judge(folder)
    assert capfd.readouterr() == ("", "")
    assert transformers.utils.logging.is_progress_bar_enabled()


def test_no_context_clips_nothing(judge: Judge) -> None:
    verdict = judge.verdict(PROMPT._replace(context=""))
    assert (verdict.context_tokens, verdict.clipped_tokens) == (0, 0)


def test_verdicts_are_the_same_again_and_from_disk(
    judge: Judge, folder: Path, tmp_path: Path
) -> None:
    fresh = Judge(folder, tmp_path).verdict(PROMPT)
    assert fresh == judge.verdict(PROMPT)
    (stored,) = (path for path in tmp_path.iterdir() if path.name != "model")
    assert not any(word in stored.read_text() for word in WORDS.split())
    again = Judge(folder, tmp_path)
    assert again.verdict(PROMPT) == fresh
    stored.write_text(f"9.5 {fresh.tokens} 1 0")
    assert again.verdict(PROMPT).nll == 9.5  # it was read, not made again
    for damaged in ("", "9.5 3", "a b c d", "nan 1 1 1", "\xff"):
        stored.write_bytes(damaged.encode("latin-1"))
        assert again.verdict(PROMPT) == fresh
        assert Judge(folder, tmp_path).verdict(PROMPT) == fresh
    stored.write_text(f"9.5 {fresh.tokens} 1 0")
    assert again.verdict(PROMPT._replace(context="")).nll != 9.5


def test_verdicts_of_another_model_are_not_taken(folder: Path, tmp_path: Path) -> None:
    Judge(folder, tmp_path / "cache").verdict(PROMPT)
    other = make_model(
        tmp_path / folder.name, "llama", max_position_embeddings=WINDOW, hidden_size=16
    )
    with pytest.raises(UsageError, match="another model"):
        Judge(other, tmp_path / "cache")


def test_what_is_no_utf8_is_read(judge: Judge) -> None:
    assert judge.verdict(PROMPT._replace(context="tool: \ud800\n\n")).nll > 0


def test_a_folder_without_a_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(MethodError, match="no causal model"):
        Judge(tmp_path)
    shutil.copytree(folder, tmp_path / "made", ignore=shutil.ignore_patterns("token*"))
    with pytest.raises(MethodError, match="no causal model"):
        Judge(tmp_path / "made")


@given(st.lists(st.text(max_size=900) | st.sampled_from(("", " \n", "x" * 2000)), max_size=12))
def test_target_is_the_beginning_of_what_the_agent_wrote(texts: list[str]) -> None:
    target = target_of([text(each, "agent") for each in texts])
    said = [each[:PIECE_CHARS] for each in texts if each[:PIECE_CHARS].strip()]
    assert "\n".join(said).startswith(target)
    assert len(target) <= TARGET_CHARS + len(texts)
    if sum(map(len, said)) <= TARGET_CHARS:
        assert target == "\n".join(said)


def test_no_choice_and_no_room_are_not_judged(tmp_path: Path) -> None:
    path = write_session(tmp_path / "alpha.json")
    task = task_of(next(transitions(path, Settings())), Settings())
    assert is_judged(replace(task, budget_chars=task.protected_chars + 1))
    assert not is_judged(replace(task, budget_chars=task.protected_chars))
    assert not is_judged(replace(task, budget_chars=MOST_BUDGET_CHARS + 1))


@pytest.mark.slow
def test_a_real_model_foresees_what_it_was_shown() -> None:
    model = installed(models_folder(os.environ))
    if model is None or model.layers < 30:
        pytest.skip("SmolLM2 is not installed with all its layers: recap proxy install --full")
    judge = Judge(model.folder)
    target = "def load_rows(path, limit=41):\n    return parse_table(path, skip=7)[:limit]"
    request = "user: Write load_rows again.\n\nassistant: "
    nll = {
        name: judge.verdict(Prompt(context, request, target)).nll
        for name, context in {
            "none": "",
            "other": "tool: The weather in the hills is cold, and rain comes at noon.\n\n",
            "names": "tool: load_rows calls parse_table with path, skip and limit\n\n",
            "verbatim": f"tool: {target}\n\n",
        }.items()
    }
    assert nll["verbatim"] < 0.5 * nll["names"]
    assert nll["names"] < min(nll["other"], nll["none"])
