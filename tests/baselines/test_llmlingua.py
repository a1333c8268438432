from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from recap.baselines.child import Child, has_package
from recap.baselines.llmlingua import PYTHON, LLMLingua2, LongLLMLingua
from recap.errors import MethodError
from tests.baselines.histories import demo_task, task_of
from tests.testing import step, user

if TYPE_CHECKING:
    from pathlib import Path

needs_package = pytest.mark.skipif(
    not has_package(os.environ.get(PYTHON) or sys.executable, "llmlingua"),
    reason=f"no interpreter with llmlingua (set {PYTHON})",
)


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    """A tiny random model whose tokenizer the package's transformers can read."""
    tiny = pytest.importorskip("tests.capture.tiny_models")
    folder: Path = tiny.make_model(tmp_path / "llama", "llama")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def script(folder: Path, *lines: str) -> Path:
    path = folder / "child.py"
    path.write_text("\n".join(("import json, sys", *lines)))
    return path


def test_a_child_answers_line_by_line(tmp_path: Path):
    echo = script(tmp_path, "for line in sys.stdin:", "    print(line.strip(), flush=True)")
    child = Child(sys.executable, echo, {"first": 1})
    assert child.ask({"text": "ä\ud800\n"}) == {"text": "ä\ud800\n"}
    assert child.is_running
    child.close()
    assert not child.is_running


def test_a_child_that_fails_or_ends_is_an_error(tmp_path: Path):
    fails = script(tmp_path, 'print(json.dumps({"error": "ImportError: no"}), flush=True)')
    with pytest.raises(MethodError, match="failed: ImportError: no"):
        Child(sys.executable, fails, {})
    ends = script(tmp_path, "sys.exit(3)")
    with pytest.raises(MethodError, match="ended with status 3"):
        Child(sys.executable, ends, {})
    with pytest.raises(MethodError, match="cannot start"):
        Child(str(tmp_path / "nothing"), ends, {})


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RECAP_HOME", str(tmp_path))
    assert "recap proxy install --full" in LongLLMLingua().missing()
    assert "there is no such folder" in LongLLMLingua(model=str(tmp_path / "none")).missing()
    assert "no model at hand" in LLMLingua2().missing()


def test_the_package_is_asked_for_in_its_own_environment(classifier: Path, tmp_path: Path):
    said = LLMLingua2(python=str(tmp_path / "python"), model=str(classifier)).missing()
    assert "llmlingua==0.2.2" in said
    assert PYTHON in said


@needs_package
@pytest.mark.slow
def test_a_classifier_keeps_words_of_the_rest_and_all_of_p(classifier: Path):
    task = demo_task("0.5")
    context = LLMLingua2(model=str(classifier)).shorten(task)
    assert context.model_calls > 0
    assert context.input_tokens > 1000
    assert context.other_seconds > 0
    cut = [piece for piece in context.pieces if not piece.is_verbatim]
    assert task.free_chars / 3 < sum(len(piece.text) for piece in cut) < 1.5 * task.free_chars


@needs_package
@pytest.mark.slow
def test_a_classifier_of_another_family_is_refused(llama: Path):
    with pytest.raises(MethodError, match="knows classifiers of bert"):
        LLMLingua2(model=str(llama)).shorten(demo_task("0.5"))


@needs_package
@pytest.mark.slow
def test_longllmlingua_keeps_about_what_the_budget_allows(llama: Path):
    lines = [f"value_{at} = read('file_{at}.py')  # step {at}" for at in range(60)]
    history = [user("go on"), *step("a", "\n".join(lines)), *step("b", "\n".join(lines[::-1]))]
    task = task_of(history, "0.4", "what is in file_7.py?")
    for request in ("what is in file_7.py?", ""):
        context = LongLLMLingua(model=str(llama)).shorten(replace(task, request=request))
        assert context.input_tokens > 0
        assert task.protected_chars < context.cost_chars < 1.6 * task.budget_chars
        assert context.pieces[0].block == -1
