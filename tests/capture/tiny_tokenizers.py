"""Small tokenizers of the families that real models use, made on the spot."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed (extra proxy)")

SPECIAL = ("<|im_start|>", "<|im_end|>", "<bos>", "<start_of_turn>", "<end_of_turn>", "<|eot|>")
SAMPLE = (
    "the code is in the file and the file is in the folder",
    "user assistant system tool model name content value path error",
    "def read(self, path): return self.files[path] or None",
    "<|im_start|>user\nfix the code<|im_end|>\n",
)
KINDS = ("byte_level", "byte_level_trimmed", "metaspace", "composed")


@cache
def tokenizer(kind: str, *, adds_bos: bool = False) -> Any:
    """Return a tokenizer of one of ``KINDS``."""
    made = _metaspace() if kind == "metaspace" else _byte_level(kind)
    made.add_special_tokens([tokenizers.AddedToken(word, special=True) for word in SPECIAL])
    if adds_bos:
        bos = ("<bos>", made.token_to_id("<bos>"))
        made.post_processor = tokenizers.processors.Sequence(
            [
                tokenizers.processors.ByteLevel(trim_offsets=False),
                tokenizers.processors.TemplateProcessing(single="<bos> $A", special_tokens=[bos]),
            ]
        )
    return made


def _byte_level(kind: str) -> Any:
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    if kind == "composed":
        made.normalizer = tokenizers.normalizers.NFC()
    made.post_processor = tokenizers.processors.ByteLevel(trim_offsets=kind == "byte_level_trimmed")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, show_progress=False, special_tokens=[]
    )
    made.train_from_iterator(SAMPLE * 3, trainer)
    return made


def _metaspace() -> Any:
    """A byte-fallback BPE as of SentencePiece: what it does not know becomes bytes."""
    letters = sorted(set("".join(SAMPLE)) - {" "} | {"▁"})
    vocabulary = {"<unk>": 0} | {f"<0x{byte:02X}>": byte + 1 for byte in range(256)}
    for letter in letters:
        vocabulary.setdefault(letter, len(vocabulary))
    merges = [("t", "h"), ("th", "e"), ("▁", "the"), ("i", "n"), ("▁", "in")]
    for left, right in merges:
        vocabulary.setdefault(left + right, len(vocabulary))
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocabulary, merges, byte_fallback=True, unk_token="<unk>")
    )
    made.normalizer = tokenizers.normalizers.Replace(" ", "▁")
    made.decoder = tokenizers.decoders.Sequence(
        [
            tokenizers.decoders.Replace("▁", " "),
            tokenizers.decoders.ByteFallback(),
            tokenizers.decoders.Fuse(),
        ]
    )
    return made
