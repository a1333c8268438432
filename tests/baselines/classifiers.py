"""A tiny random token classifier of the BERT family, made on the spot."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def make_classifier(folder: Path) -> Path:
    """Write a model that keeps words at random, always the same ones, and return the folder."""
    import tokenizers
    import torch
    import transformers

    letters = [chr(code) for code in range(33, 127)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*special, *letters, *(f"##{letter}" for letter in letters)]
    words = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(
            {word: at for at, word in enumerate(vocabulary)}, unk_token="[UNK]"
        )
    )
    words.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False)
    words.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    words.decoder = tokenizers.decoders.WordPiece()
    folder.mkdir()
    words.save(str(folder / "tokenizer.json"))
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    config = dict(zip(names, special, strict=True))
    config |= {"tokenizer_class": "BertTokenizerFast", "do_lower_case": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    torch.manual_seed(0)
    sizes = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=2,
    )
    transformers.BertForTokenClassification(sizes).save_pretrained(folder)
    return folder
