"""A GGUF file becomes a folder that transformers loads with the same weights and tokens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.capture.convert import bfloat16_bits, convert
from recap.capture.models import CONFIG, FILES, ModelError
from tests.capture.tiny_gguf import KEPT, LAYERS, TEMPLATE, vocabulary, write_gguf

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("gguf", reason="the extra proxy is not installed")
transformers = pytest.importorskip("transformers", reason="the extra proxy is not installed")
torch = pytest.importorskip("torch", reason="the extra proxy is not installed")


def converted(folder: Path, layers: int | None = KEPT, **kind: object) -> Path:
    write_gguf(folder / "tiny.gguf", **kind)  # type: ignore[arg-type]
    out = folder / "model"
    out.mkdir()
    convert(folder / "tiny.gguf", out, layers, lambda _: None)
    return out


def model_of(folder: Path) -> object:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)


def tokenizer_of(folder: Path) -> object:
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def test_weights_are_those_transformers_reads_from_the_file(tmp_path: Path) -> None:
    """The halves of query and key heads are put back in order, embeddings stay tied."""
    pytest.importorskip("accelerate", reason="transformers reads GGUF with accelerate")
    ours = model_of(converted(tmp_path, None)).state_dict()  # type: ignore[attr-defined]
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file="tiny.gguf", local_files_only=True, dtype=torch.float32
    ).state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name].bfloat16()) for name in ours)


def test_the_first_layers_are_kept(tmp_path: Path) -> None:
    model = model_of(converted(tmp_path))
    assert model.config.num_hidden_layers == KEPT < LAYERS  # type: ignore[attr-defined]
    names = {name for name, _ in model.named_parameters()}  # type: ignore[attr-defined]
    assert f"model.layers.{KEPT - 1}.mlp.up_proj.weight" in names
    assert not any(name.startswith(f"model.layers.{KEPT}.") for name in names)


def test_quantised_weights_are_those_the_file_stands_for(tmp_path: Path) -> None:
    import gguf

    model = model_of(converted(tmp_path, is_quantized=True))
    reader = gguf.GGUFReader(tmp_path / "tiny.gguf")
    tensor = next(t for t in reader.tensors if t.name == "token_embd.weight")
    wanted = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type).copy()).bfloat16()
    assert torch.equal(model.get_input_embeddings().weight, wanted)  # type: ignore[attr-defined]


def test_the_files_are_the_ones_remove_knows(tmp_path: Path) -> None:
    assert {path.name for path in converted(tmp_path).iterdir()} == set(FILES)


def test_digits_stand_alone_before_words_are_cut(tmp_path: Path) -> None:
    """Kind ``smollm``: both spaces before a digit are one token, as nothing else claims them."""
    tokens = tokenizer_of(converted(tmp_path)).tokenize("he  12<|im_end|>")  # type: ignore[attr-defined]
    assert tokens == ["he", "ĠĠ", "1", "2", "<|im_end|>"]


@pytest.mark.parametrize(
    "text", ["", "he\n\n said: 12,5 % <|im_start|>x", "né 日本 \N{OGHAM SPACE MARK}🙂"]
)
def test_tokens_give_the_text_back(tmp_path: Path, text: str) -> None:
    tokenizer = tokenizer_of(converted(tmp_path))
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text  # type: ignore[operator, attr-defined]


def test_the_chat_template_is_the_files(tmp_path: Path) -> None:
    tokenizer = tokenizer_of(converted(tmp_path))
    assert tokenizer.chat_template == TEMPLATE  # type: ignore[attr-defined]
    shown = tokenizer.apply_chat_template([{"role": "user", "content": "he"}], tokenize=False)  # type: ignore[attr-defined]
    assert shown == "<|im_start|>user\nhe<|im_end|>\n"


def test_the_vocabulary_is_the_files(tmp_path: Path) -> None:
    folder = converted(tmp_path)
    tokens, _ = vocabulary()
    assert tokenizer_of(folder).convert_ids_to_tokens(list(range(len(tokens)))) == tokens  # type: ignore[attr-defined]
    assert json.loads((folder / CONFIG).read_text())["vocab_size"] == len(tokens)


@pytest.mark.parametrize("kind", [{"architecture": "qwen2"}, {"kind": "llama-bpe"}])
def test_another_kind_of_model_is_refused(tmp_path: Path, kind: dict[str, str]) -> None:
    with pytest.raises(ModelError, match="wanted"):
        converted(tmp_path, **kind)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_rounding_to_bfloat16_is_that_of_torch(values: list[float]) -> None:
    array = np.array(values, dtype=np.float32)
    wanted = torch.from_numpy(array).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    assert np.array_equal(bfloat16_bits(array), wanted)
