"""A tiny Llama with random weights, and what Hugging Face's own attention says about a request."""

from __future__ import annotations

import math
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recap.capture.sampling import edge_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.config import Settings
    from recap.sglang.payload import Payload

CONFIG = Path(__file__).parents[1] / "tiny_llama" / "config.json"
WORDS = 256
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def make_model(folder: Path) -> Path:
    """Write config, weights and a byte-level tokenizer; return the folder."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    shutil.copy(CONFIG, folder)
    torch.manual_seed(5)
    config = AutoConfig.from_pretrained(folder)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                weight.normal_(0, 0.25)  # logits of several units
            elif "norm" not in name:
                weight.normal_(0, 0.08)
    model.save_pretrained(folder)
    _save_tokenizer(folder)
    return folder


def _save_tokenizer(folder: Path) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<unk>", "<|im_start|>", "<|im_end|>"]
    words = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {word: number for number, word in enumerate(words)}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token=special[0]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(special)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token=special[0], bos_token=special[1],
        eos_token=special[2], pad_token=special[2],
    )  # fmt: skip
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)


@cache
def _eager(folder: Path) -> object:
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )


def attentions(folder: Path, ids: Sequence[int]) -> list[np.ndarray]:
    """Return float64 ``[heads, n, n]`` of each layer, as Hugging Face computes them."""
    import torch

    with torch.no_grad():
        out = _eager(folder)(torch.tensor([list(ids)]), output_attentions=True)  # type: ignore[operator]
    return [layer[0].double().numpy() for layer in out.attentions]


@dataclass(frozen=True)
class Expected:
    """Use of blocks, and mass of pairs of blocks (later, earlier)."""

    use: dict[str, float]
    mass: dict[tuple[str, str], float]


def expected(
    layers: list[np.ndarray],
    payload: Payload,
    positions: np.ndarray,
    end: int,
    settings: Settings,
    edge_layer: int,
) -> Expected:
    """Return what a turn used, from whole attention matrices and the formulas as they are written.

    Args:
        layers: ``attentions`` of the measured layers.
        payload: Blocks of the prompt.
        positions: Sampled rows, ascending.
        end: Tokens with a key.
        settings: Coefficients.
        edge_layer: Index into ``layers``.
    """
    segments = payload.segments_to(end)
    block = np.full(end, -1)
    for start, stop, owner in zip(
        segments.offsets[:-1], segments.offsets[1:], segments.owner, strict=True
    ):
        block[start:stop] = owner
    rows = [layer[:, positions, :end] for layer in layers]
    seen = (positions[:, None] >= np.arange(end)).sum(0)
    rho = np.mean([layer.sum(axis=(0, 1)) / layer.shape[0] for layer in rows], axis=0)
    rho /= np.maximum(seen, 1)
    counts = (seen > 0) & (np.arange(end) >= settings.drop_first) & (block >= 0)
    ranked = np.sort(rho[counts])
    clip = ranked[max(1, math.ceil(settings.clip_quantile * len(ranked))) - 1]
    use = {
        name: float(np.minimum(rho, clip)[counts & (block == i)].mean())
        for i, name in enumerate(segments.ids)
        if (counts & (block == i)).any()
    }
    is_edge = edge_rows(payload.seed, positions, segments.offsets, settings.rows_per_block)
    mass = {}
    for later, name in enumerate(segments.ids):
        chosen = is_edge & (block[positions] == later)
        for earlier in range(later):
            given = rows[edge_layer][:, chosen][:, :, block == earlier]
            if chosen.any():
                mass[name, segments.ids[earlier]] = float(given.sum(axis=2).mean())
    return Expected(use, mass)
