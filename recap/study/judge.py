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

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recap.baselines.causal import causal_model, causal_tokenizer
from recap.errors import MethodError
from recap.study.verdicts import Verdict, Verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recap.baselines.method import Context, Piece, Task
    from recap.transcript.model import Part

PIECE_CHARS = 600
TARGET_CHARS = 2_500
REQUEST_CHARS = 4_000
"""Of a longer request the last characters count, for all methods alike."""

MOST_BUDGET_CHARS = 16_000
"""Budgets above it are not judged: the window of the embedded model, 8,192 tokens, would not hold
them with certainty, and its time grows with the square of the length."""


@lru_cache(maxsize=1)
def judge_of(folder: str, cache: str) -> Judge:
    """Return the judge of a folder, loaded once a process, on one thread."""
    import torch

    torch.set_num_threads(1)
    return Judge(Path(folder), Path(cache) if cache else None)


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


def shown(piece: Piece) -> str:
    """Return a piece of a context as the judge reads it."""
    return f"{piece.role}: {piece.text}\n\n"


def strict(text: str) -> str:
    """Return a text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def prompt_of(context: Context, task: Task, acts: Sequence[Part]) -> Prompt:
    """Return what is put before the judge for a context."""
    history = "".join(map(shown, context.pieces))
    return Prompt(history, f"user: {task.request[-REQUEST_CHARS:]}\n\nassistant: ", target_of(acts))


class Judge:
    """A causal language model in a folder, read by transformers; nothing is fetched.

    Attributes:
        folder: Where it lies.
        name: Name of the folder.
        window: Tokens it reads at once.
    """

    def __init__(self, folder: Path, cache: Path | None = None) -> None:
        """Load the model.

        Args:
            folder: Model with its tokenizer.
            cache: Folder of verdicts given before, so that a run can be gone on with; of one model.

        Raises:
            MethodError: transformers cannot read the folder.
            UsageError: The verdicts are another model's.
        """
        import torch

        self._model = causal_model(folder, torch.bfloat16)
        self._tokenizer = causal_tokenizer(folder)
        self.folder = folder
        self.name = folder.name
        self.window = int(getattr(self._model.config, "max_position_embeddings", 4096))
        self._verdicts = None if cache is None else Verdicts(cache, folder)

    def verdict(self, prompt: Prompt) -> Verdict:
        """Return what the model says; the same for the same texts.

        Raises:
            MethodError: Not even request and target fit the window.
        """
        return self.remembered((self.name, *prompt), lambda: self._verdict(prompt))

    def says(
        self, context: Context, task: Task, acts: Sequence[Part], *, is_whole: bool = False
    ) -> Verdict | None:
        """Return the verdict on a context, None where nothing is to foresee, or no room is for it.

        Args:
            context: The shortened history.
            task: What it was made for.
            acts: What the agent wrote next.
            is_whole: It is the whole history, judged only where the window holds all of it.
        """
        prompt = prompt_of(context, task, acts)
        least = prompt if is_whole else prompt._replace(context="")
        return self.verdict(prompt) if prompt.target and self.fits(least) else None

    def remembered(self, key: tuple[str, ...], ask: Callable[[], Verdict]) -> Verdict:
        """Return what is stored under a key, else what is asked for and then stored."""
        if self._verdicts is None:
            return ask()
        verdict = self._verdicts.get(*key)
        if verdict is None:
            verdict = ask()
            self._verdicts.put(verdict, *key)
        return verdict

    def fits(self, prompt: Prompt) -> bool:
        """Return True when the window holds all of it."""
        return sum(len(self._ids(text)) for text in prompt) <= self.window

    def tokens(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return a text's tokens, and from where to where in ``strict(text)`` each reaches."""
        told = self._tokenizer(
            strict(text), add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return told["input_ids"], told["offset_mapping"]

    def _ids(self, text: str) -> list[int]:
        return list(
            self._tokenizer(strict(text), add_special_tokens=False, verbose=False)["input_ids"]
        )

    def _verdict(self, prompt: Prompt) -> Verdict:
        import torch

        context, request, target = map(self._ids, prompt)
        room = self.window - len(request) - len(target)
        if room < 0:
            raise MethodError(
                f"request and turn are {self.window - room} tokens; {self.name} reads {self.window}"
            )
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
