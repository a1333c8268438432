"""Folders of tiny random models of the families that differ in attention, made on the spot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("torch", reason="torch is not installed (extra kernels)")
transformers = pytest.importorskip("transformers", reason="not installed (extra proxy)")

import torch  # noqa: E402

from tests.capture.tiny_tokenizers import tokenizer  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SIZES: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 4096,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
FULL, SLIDING = "full_attention", "sliding_attention"
MIXED = [SLIDING, FULL, SLIDING, FULL, FULL]
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen3": {},
    "gemma2": {"layer_types": MIXED, "sliding_window": 16, "attn_logit_softcapping": 2.0},
    "gemma3_text": {"layer_types": MIXED, "sliding_window": 16},
    "gpt_oss": {
        "layer_types": MIXED,
        "sliding_window": 16,
        "num_local_experts": 2,
        "num_experts_per_tok": 1,
    },
}
SHARPNESS = 12.0
"""Random weights attend to everything alike; larger queries do not."""


def make_model(folder: Path, family: str, *, template: str | None = CHAT, **changes: Any) -> Path:
    """Write a model of a family with its tokenizer, and return the folder."""
    config = transformers.AutoConfig.for_model(family, **SIZES | FAMILIES.get(family, {}) | changes)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for name, weight in model.named_parameters():
        if "q_proj.weight" in name or "q_norm.weight" in name:
            weight.data *= SHARPNESS
        if "sinks" in name:
            weight.data.normal_()
    model.save_pretrained(folder)
    words = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer("byte_level"), chat_template=template
    )
    words.save_pretrained(folder)
    return folder
