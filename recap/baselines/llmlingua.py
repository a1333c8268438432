"""LLMLingua's two descendants, through the ``llmlingua`` package in an environment of its own.

The package needs a release of transformers that Recap does not run with, so a child process runs it
with an interpreter that the user names (``llmlingua_child``). LongLLMLingua (arXiv 2310.06839) takes
the embedded model with all its layers; LLMLingua-2 (arXiv 2403.12968) a token classifier, which none
ships. Both drop tokens inside the texts beside P: what they leave is no verbatim history.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recap.baselines.child import Child, has_package
from recap.baselines.method import Context, Piece, of_blocks, option, verbatim
from recap.capture.models import fault_of, installed, models_folder
from recap.errors import MethodError, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from recap.baselines.method import Task

PYTHON = "RECAP_LLMLINGUA_PYTHON"
PINS = "llmlingua==0.2.2 transformers==4.46.3 torch accelerate"
INSTALL = f"pip install {PINS} into an environment of its own and set {PYTHON} to its python"

PASSAGE_CHARS = 4000
"""LongLLMLingua ranks passages whole, each with the question, in a window of 8,192 tokens (ours)."""

QUESTION_CHARS = 2000
"""Of a longer request the beginning and the end are the question (ours)."""


@dataclass(frozen=True, slots=True)
class Lingua:
    """What the methods of the package have in common: a child process with a model."""

    python: str = option("", f"interpreter with llmlingua; {PYTHON} if absent")
    model: str = option("", "folder of a causal model; the embedded one if absent")
    threads: int = option(1, "threads of the child process")


@dataclass(frozen=True, slots=True)
class LongLLMLingua(Lingua):
    """Ranks passages by how likely they make the request, then drops tokens the model expects."""

    name: str = "longllmlingua"
    help: str = "LongLLMLingua (arXiv 2310.06839): tokens by perplexity given the request"

    def missing(self) -> str:
        """Return what is missing, "" where interpreter, package and model are there."""
        folder = self._folder()
        if folder is None:
            return "install the embedded model with all its layers: recap proxy install --full"
        return _missing(folder, self.python)

    def shorten(self, task: Task) -> Context:
        """Return one text of what is left of the rest, then P.

        Raises:
            MethodError: Interpreter, package or model are missing, or the package fails.
        """
        folder = self._folder()
        if folder is None or _missing(folder, self.python):
            raise MethodError(self.missing())
        rest = _rest(task)
        if _is_enough(task, rest):
            return _nothing_to_do(task, rest)
        asked = {
            "documents": list(_passages(rest)),
            "target_chars": task.free_chars,
            "question": _clipped(task.request.strip()),
        }
        answer = _child("longllmlingua", self.python, folder, self.threads).ask(asked)
        (text,) = answer["texts"]
        return _context(task, {-1: [Piece("user", text)]}, answer)

    def _folder(self) -> Path | None:
        if self.model:
            return Path(self.model).expanduser()
        model = installed(models_folder(os.environ))
        return None if model is None else model.folder


@dataclass(frozen=True, slots=True)
class LLMLingua2(Lingua):
    """Drops the words that a token classifier does not keep."""

    model: str = option("", "folder of a token classifier, BERT or XLM-RoBERTa")
    name: str = "llmlingua2"
    help: str = "LLMLingua-2 (arXiv 2403.12968): words that a token classifier keeps"

    def missing(self) -> str:
        """Return what is missing, "" where interpreter, package and classifier are there."""
        if not self.model:
            return (
                "no model at hand: name the folder of a token classifier by option model, such as "
                "a copy of microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank"
            )
        return _missing(Path(self.model).expanduser(), self.python)

    def shorten(self, task: Task) -> Context:
        """Return the texts of the rest with the words that are left, P beside them.

        Raises:
            MethodError: Interpreter, package or classifier are missing, or the package fails.
        """
        if missing := self.missing():
            raise MethodError(missing)
        rest = _rest(task)
        if _is_enough(task, rest):
            return _nothing_to_do(task, rest)
        asked = {
            "documents": [_clean(piece.text) for piece in rest],
            "target_chars": task.free_chars,
        }
        folder = Path(self.model).expanduser()
        answer = _child("llmlingua2", self.python, folder, self.threads).ask(asked)
        left: dict[int, list[Piece]] = defaultdict(list)
        for piece, text in zip(rest, answer["texts"], strict=True):
            left[piece.block].append(Piece(piece.role, text, piece.block))
        return _context(task, left, answer)


def _rest(task: Task) -> list[Piece]:
    """Return the texts beside P, blank ones aside."""
    pieces = verbatim(task, np.flatnonzero(~task.is_protected).tolist())
    return [piece for piece in pieces if piece.text.strip()]


def _is_enough(task: Task, rest: Sequence[Piece]) -> bool:
    """Return True when the rest fits, or none of it can."""
    return not rest or not task.free_chars or _cost(task) <= task.budget_chars


def _nothing_to_do(task: Task, rest: Sequence[Piece]) -> Context:
    fits = not rest or _cost(task) <= task.budget_chars
    kept = range(len(task.table)) if fits else np.flatnonzero(task.is_protected).tolist()
    return of_blocks(task, kept)


def _cost(task: Task) -> int:
    return int(task.table.cost_chars.sum())


def _context(task: Task, left: Mapping[int, Sequence[Piece]], answer: Mapping[str, Any]) -> Context:
    """Return what is left of each block (-1: of all together) and P, chronological."""
    pieces = [piece for piece in left.get(-1, ()) if piece.text]
    for block in range(len(task.table)):
        if task.is_protected[block]:
            pieces += verbatim(task, [block])
        else:
            pieces += [piece for piece in left.get(block, ()) if piece.text]
    return Context(
        pieces=tuple(pieces),
        kept=frozenset(np.flatnonzero(task.is_protected).tolist()),
        cost_chars=task.protected_chars
        + sum(len(piece.text) for piece in pieces if not piece.is_verbatim),
        model_calls=answer["calls"],
        input_tokens=answer["tokens"],
        other_seconds=answer["seconds"],
    )


def _passages(rest: Sequence[Piece]) -> Iterator[str]:
    """Yield the blocks as texts of at most PASSAGE_CHARS characters, cut at lines where they can."""
    by_block: dict[int, list[str]] = defaultdict(list)
    for piece in rest:
        by_block[piece.block].append(_clean(piece.text))
    for texts in by_block.values():
        text = "\n".join(texts)
        while len(text) > PASSAGE_CHARS:
            cut = text.rfind("\n", 0, PASSAGE_CHARS) + 1 or PASSAGE_CHARS
            if text[:cut].strip():
                yield text[:cut]
            text = text[cut:]
        if text.strip():
            yield text


def _clipped(question: str) -> str:
    clean = _clean(question)
    if len(clean) <= QUESTION_CHARS:
        return clean
    head = QUESTION_CHARS * 7 // 10
    return f"{clean[:head]}\n{clean[head - QUESTION_CHARS :]}"


def _clean(text: str) -> str:
    """Return the text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _python(python: str) -> str:
    return python or os.environ.get(PYTHON, "") or sys.executable


def _missing(folder: Path, python: str) -> str:
    if trouble := fault_of(folder):
        return f"model {shown_path(folder)}: {trouble}"
    return "" if has_package(_python(python), "llmlingua") else INSTALL


_CHILDREN: dict[tuple[object, ...], Child] = {}
"""Processes that this one started, by what they run: a model is loaded once."""


def _child(kind: str, python: str, folder: Path, threads: int) -> Child:
    key = (os.getpid(), kind, _python(python), folder, threads)
    if key not in _CHILDREN or not _CHILDREN[key].is_running:
        config = {"kind": kind, "model": str(folder), "threads": threads}
        script = Path(__file__).with_name("llmlingua_child.py")
        _CHILDREN[key] = Child(_python(python), script, config)
    return _CHILDREN[key]
