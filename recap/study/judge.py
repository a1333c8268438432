"""An independent judge: how well a local model foresees what the agent wrote next, given a context.

No selector is tuned on it. The score is the mean negative log-likelihood per token, in nats, of what
the agent really wrote in the next turn, with the context and the request before it: less is better. It
says what a context is worth to a small model, in the order of its tokens, not what the agent's own
model would have made of it.

One rule for all methods: pieces as ``role: text`` in their order, the request, then the agent's texts
and calls of the turn, 600 characters of each and 2,500 in all. Where that exceeds the window, the
oldest tokens of the context go, never the request. Judged are transitions whose budget leaves room
beside the protected blocks, and is small enough that the window holds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from recap.errors import CaptureError
from recap.transcript.model import digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recap.baselines.method import Context, Task
    from recap.transcript.model import Part

PIECE_CHARS = 600
TARGET_CHARS = 2_500
REQUEST_CHARS = 4_000
"""Of a longer request the last characters count, for all methods alike."""

MOST_BUDGET_CHARS = 16_000
"""Budgets above it are not judged: the window of the embedded model, 8,192 tokens, would not hold
them with certainty, and its time grows with the square of the length."""


class Prompt(NamedTuple):
    """What is put before the judge.

    Attributes:
        context: The shortened history.
        request: The arriving request.
        target: What the agent wrote next.
    """

    context: str
    request: str
    target: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the judge says of one context.

    Attributes:
        nll: Mean negative log-likelihood of a token of the target, nats, >= 0.
        tokens: Tokens of the target.
        context_tokens: Tokens of the context that were read.
        clipped_tokens: Tokens of the context that the window did not hold.
    """

    nll: float
    tokens: int
    context_tokens: int
    clipped_tokens: int


def is_judged(task: Task) -> bool:
    """Return True where the budget leaves a choice and the window holds it."""
    return task.free_chars > 0 and task.budget_chars <= MOST_BUDGET_CHARS


def target_of(acts: Sequence[Part]) -> str:
    """Return what is scored of a turn: the agent's texts and calls from its beginning."""
    pieces: list[str] = []
    left = TARGET_CHARS
    for part in acts:
        text = part.text()[: min(PIECE_CHARS, left)]
        if text.strip():
            pieces.append(text)
            left -= len(text)
        if left <= 0:
            break
    return "\n".join(pieces)


def prompt_of(context: Context, task: Task, acts: Sequence[Part]) -> Prompt:
    """Return what is put before the judge for a context."""
    shown = "".join(f"{piece.role}: {piece.text}\n\n" for piece in context.pieces)
    return Prompt(shown, f"user: {task.request[-REQUEST_CHARS:]}\n\nassistant: ", target_of(acts))


class Judge:
    """A causal language model in a folder, read by transformers; nothing is fetched.

    Attributes:
        name: Name of the folder.
        window: Tokens it reads at once.
    """

    def __init__(self, folder: Path, cache: Path | None = None) -> None:
        """Load the model.

        Args:
            folder: Model with its tokenizer.
            cache: Folder of verdicts given before, so that a run can be gone on with.

        Raises:
            CaptureError: transformers cannot read the folder.
        """
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        loader: Any = AutoModelForCausalLM
        try:
            self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self._model: Any = loader.from_pretrained(
                folder, local_files_only=True, dtype=torch.bfloat16
            ).eval()
        except (OSError, ValueError, RuntimeError) as err:
            raise CaptureError(
                "no-model", f"{folder} holds no causal model for transformers: {err}"[:300]
            ) from err
        self.name = folder.name
        self.window = int(getattr(self._model.config, "max_position_embeddings", 4096))
        self._cache = cache

    def verdict(self, prompt: Prompt) -> Verdict:
        """Return what the model says; the same for the same texts."""
        stored = None if self._cache is None else self._cache / digest(self.name, *prompt).hex()
        if stored is not None and stored.exists():
            nll, *counts = stored.read_text(encoding="ascii").split()
            return Verdict(float(nll), *map(int, counts))
        verdict = self._verdict(prompt)
        if stored is not None:
            stored.parent.mkdir(parents=True, exist_ok=True)
            partly = stored.with_suffix(".part")
            numbers = (verdict.tokens, verdict.context_tokens, verdict.clipped_tokens)
            partly.write_text(" ".join(map(str, (repr(verdict.nll), *numbers))), encoding="ascii")
            partly.replace(stored)
        return verdict

    def fits(self, prompt: Prompt) -> bool:
        """Return True when the window holds all of it."""
        return sum(len(self._ids(text)) for text in prompt) <= self.window

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _verdict(self, prompt: Prompt) -> Verdict:
        import torch

        context, request, target = map(self._ids, prompt)
        room = max(self.window - len(request) - len(target), 0)
        clipped = max(len(context) - room, 0)
        ids = torch.tensor([[*context[clipped:], *request, *target]])
        count = len(target)
        with torch.inference_mode():
            # The logits before a token foresee it.
            logits = self._model(ids, use_cache=False, logits_to_keep=count + 1).logits[0, :-1]
            losses = torch.nn.functional.cross_entropy(
                logits.float(), ids[0, -count:], reduction="mean"
            )
        return Verdict(float(losses), count, len(context) - clipped, clipped)
