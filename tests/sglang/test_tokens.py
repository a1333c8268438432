"""Tokens of a growing prompt are those of the whole prompt, whatever was known before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.sglang.rendering import Rendered
from recap.sglang.tokens import GrowingPrompt

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

from tests.capture.tiny_tokenizers import KINDS, SPECIAL, tokenizer  # noqa: E402

WORDS = st.sampled_from(
    [*SPECIAL, " ", "\n", "the", "code", "é", "e\u0301", "😀", "x", "<|im", "|>"]
)
TEXTS = st.lists(WORDS, max_size=12).map("".join)


def rendered(kind: str) -> Rendered:
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer(kind), additional_special_tokens=list(SPECIAL)
    )
    return Rendered(made, [], None, {}, {"add_special_tokens": False}, True)


RENDERED = {kind: rendered(kind) for kind in KINDS}


def encode(prompt: GrowingPrompt, call: Rendered, text: str) -> tuple[Any, Any]:
    served, _ = call.encode(text)
    return prompt.encode(call, served, text)


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(TEXTS, min_size=2, max_size=4), shared=TEXTS)
def test_what_is_not_tokenized_again_is_the_same(kind: str, texts: list[str], shared: str) -> None:
    prompt, call = GrowingPrompt(), RENDERED[kind]
    for text in texts:
        ids, offsets = encode(prompt, call, shared + text)
        whole, pairs = call.encode(shared + text)
        assert np.array_equal(ids, whole)
        assert np.array_equal(offsets, pairs)


def test_only_what_follows_the_last_common_mark_is_tokenized() -> None:
    prompt, call = GrowingPrompt(), RENDERED["byte_level"]
    first = "<|im_start|>user\nthe code<|im_end|>\n<|im_start|>assistant\n"
    encode(prompt, call, first + "yes")
    assert prompt.reused == 0
    encode(prompt, call, first + "yes<|im_end|>\n<|im_start|>user\nmore")
    assert prompt.reused == len(call.encode(first)[0]) - len(
        call.encode("<|im_start|>assistant\n")[0]
    )


def test_a_mark_cut_short_is_no_mark() -> None:
    prompt, call = GrowingPrompt(), RENDERED["byte_level"]
    encode(prompt, call, "<bos>the code<|im_end|>")
    encode(prompt, call, "<bos>the code<|im_end")
    assert prompt.reused == 0


def test_ids_that_the_server_does_not_run_are_not_gone_on_from() -> None:
    prompt, call = GrowingPrompt(), RENDERED["byte_level"]
    text = "<|im_start|>the code<|im_end|>" * 3
    served, _ = call.encode(text)
    prompt.encode(call, served[:-1], text)
    encode(prompt, call, text)
    assert prompt.reused == 0
    encode(prompt, call, text + "x")
    assert prompt.reused > 0
