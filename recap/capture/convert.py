"""A Llama model in GGUF to a folder that transformers loads: bf16 safetensors, first layers only.

Works tensor by tensor, so that memory stays small, and needs neither torch nor transformers. The
latter's own reader keeps the weights packed, and leaves out that the tokenizer splits digits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recap.capture.models import CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gguf import GGUFReader, ReaderTensor
    from numpy.typing import NDArray

    from recap.capture.models import Report

TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
"""GGUF's names of tensors and those of ``LlamaForCausalLM``; all end in ``.weight``."""

CONTROL_TOKEN = 3
ROWS_AT_A_TIME = 4096


@dataclass(frozen=True, slots=True)
class Metadata:
    """The key-value fields of a GGUF file; those of the architecture without its name."""

    fields: dict[str, Any]

    @classmethod
    def of(cls, reader: GGUFReader) -> Metadata:
        """Read the fields of a Llama model; ModelError for another architecture."""
        fields = {name: field.contents() for name, field in reader.fields.items()}
        if (found := fields.get("general.architecture")) != "llama":
            raise ModelError(f"the GGUF file holds a model of kind {found!r}; wanted llama")
        return cls({name.removeprefix("llama."): value for name, value in fields.items()})

    def __getitem__(self, name: str) -> Any:
        if name not in self.fields:
            raise ModelError(f"the GGUF file has no field {name}; it cannot be converted")
        return self.fields[name]

    def token(self, kind: str) -> int:
        """Return the id of the beginning, end, unknown or padding token."""
        return int(self[f"tokenizer.ggml.{kind}_token_id"])


def convert(source: Path, folder: Path, layers: int | None, report: Report) -> int:
    """Write a model folder; return the layers it has.

    Args:
        source: GGUF file of a Llama model with a byte-level BPE tokenizer. Has to be trusted: its
            hash was checked.
        folder: Existing folder the files of ``models.FILES`` are written to.
        layers: Layers to keep, the first ones; None for all.
        report: Told what is being done.
    """
    from gguf import GGUFReader

    report("reading the model")
    reader = GGUFReader(source)
    metadata = Metadata.of(reader)
    kept = min(layers or metadata["block_count"], metadata["block_count"])
    names = {name: tensor for tensor in reader.tensors if (name := _name(tensor.name, kept))}
    config = _config(metadata, kept, is_tied="lm_head.weight" not in names)
    (folder / CONFIG).write_text(json.dumps(config, indent=2), encoding="utf-8")
    report("writing the tokenizer")
    _write_tokenizer(metadata, folder)
    _write_weights(names, metadata, folder / WEIGHTS, report)
    return int(kept)


def _name(gguf_name: str, layers: int) -> str:
    """Return the name of a tensor in the model folder, "" where it is left out."""
    match gguf_name.split("."):
        case ["blk", layer, kind, "weight"]:
            is_kept = int(layer) < layers
            return f"model.layers.{layer}.{LAYER_NAMES[kind]}.weight" if is_kept else ""
        case [kind, "weight"] if kind in TOP_NAMES:
            return f"{TOP_NAMES[kind]}.weight"
    return ""


def _config(metadata: Metadata, layers: int, *, is_tied: bool) -> dict[str, Any]:
    heads = metadata["attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "bfloat16",
        "num_hidden_layers": layers,
        "hidden_size": metadata["embedding_length"],
        "intermediate_size": metadata["feed_forward_length"],
        "num_attention_heads": heads,
        "num_key_value_heads": metadata["attention.head_count_kv"],
        "head_dim": metadata["embedding_length"] // heads,
        "hidden_act": "silu",
        "max_position_embeddings": metadata["context_length"],
        "rms_norm_eps": metadata["attention.layer_norm_rms_epsilon"],
        "rope_parameters": {"rope_type": "default", "rope_theta": metadata["rope.freq_base"]},
        "rope_theta": metadata["rope.freq_base"],
        "tie_word_embeddings": is_tied,
        "vocab_size": len(metadata["tokenizer.ggml.tokens"]),
        "bos_token_id": metadata.token("bos"),
        "eos_token_id": metadata.token("eos"),
        "pad_token_id": metadata.token("padding"),
    }


def _write_tokenizer(metadata: Metadata, folder: Path) -> None:
    """Write the byte-level BPE tokenizer; digits stand alone, as its kind ``smollm`` says."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    kind = (metadata["tokenizer.ggml.model"], metadata["tokenizer.ggml.pre"])
    if kind != ("gpt2", "smollm"):
        raise ModelError(f"the GGUF file has a tokenizer of kind {kind}; wanted gpt2, smollm")
    tokens = metadata["tokenizer.ggml.tokens"]
    pairs = [tuple(merge.split(" ")) for merge in metadata["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: at for at, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [
            AddedToken(token, special=True, normalized=False)
            for token, type_ in zip(tokens, metadata["tokenizer.ggml.token_type"], strict=True)
            if type_ == CONTROL_TOKEN
        ]
    )
    tokenizer.save(str(folder / TOKENIZER), pretty=False)
    names = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": metadata["context_length"],
        "clean_up_tokenization_spaces": False,
        **{f"{short}_token": tokens[metadata.token(name)] for short, name in names.items()},
        "chat_template": metadata["tokenizer.chat_template"],
    }
    (folder / TOKENIZER_CONFIG).write_text(json.dumps(config, indent=2), encoding="utf-8")


def _write_weights(
    tensors: dict[str, ReaderTensor], metadata: Metadata, path: Path, report: Report
) -> None:
    """Write a safetensors file: length of the header, header as JSON, tensors in its order."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + 2 * int(tensor.n_elements)
        shape = [int(size) for size in reversed(tensor.shape)]  # GGUF's fastest axis is first
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for done, (name, tensor) in enumerate(tensors.items()):
            report(f"converting the weights: {done} of {len(tensors)} tensors")
            for rows in _rows(name, tensor, metadata):
                stream.write(bfloat16_bits(rows).tobytes())


def _rows(name: str, tensor: ReaderTensor, metadata: Metadata) -> Iterator[NDArray[np.float32]]:
    """Yield the rows of a tensor, some at a time, in the order of ``LlamaForCausalLM``.

    GGUF interleaves the two halves of each query and key head that RoPE turns together.
    """
    from gguf import dequantize

    order = np.arange(len(tensor.data))
    if "q_proj" in name or "k_proj" in name:
        heads = metadata["attention.head_count" + ("_kv" if "k_proj" in name else "")]
        order = order.reshape(heads, -1, 2).swapaxes(1, 2).ravel()
    for at in range(0, len(order), ROWS_AT_A_TIME):
        yield dequantize(tensor.data[order[at : at + ROWS_AT_A_TIME]], tensor.tensor_type)


def bfloat16_bits(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return finite numbers as bits of bfloat16, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    rounded: NDArray[np.uint16] = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")
    return rounded
