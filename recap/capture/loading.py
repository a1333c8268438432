"""Reads a model from a local folder: nothing is downloaded, no code of the folder is run.

Pickled weights are refused, missing ones are never made up, and only the layers up to the last
measured one are loaded.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import nn

from recap.capture.layers import first_full
from recap.capture.models import PACKAGES_COMMAND
from recap.errors import NotInstalledError, UsageError, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from recap.capture.spans import ChatTemplate

Dtype = Literal["float32", "bfloat16"]

PLAIN_TEMPLATE = "{% for m in messages %}{{ m.role }}:\n{{ m.content }}\n\n{% endfor %}"
"""For a model without a chat template."""


class Loaded(NamedTuple):
    """What a folder holds.

    Attributes:
        template: Chat template and tokenizer.
        decoder: The transformers model without its head, up to the last layer measured.
        layers: Layers to measure, one or more.
    """

    template: ChatTemplate
    decoder: Any
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Template:
    """A tokenizer of transformers as ``ChatTemplate``."""

    tokenizer: Any

    def render(self, messages: Sequence[Mapping[str, Any]]) -> str:
        template = None if self.tokenizer.chat_template else PLAIN_TEMPLATE
        text: str = self.tokenizer.apply_chat_template(
            list(messages), chat_template=template, tokenize=False
        )
        return text

    def encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoded = self.tokenizer(
            text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        return encoded["input_ids"], encoded["offset_mapping"]


def read(folder: Path, layers: int, dtype: Dtype) -> Loaded:
    """Return the model of a folder; raises whatever transformers does, so call it in ``reading``.

    Args:
        folder: Configuration, tokenizer and safetensors weights.
        layers: How many of the layers that attend to the whole history are to be measured.
        dtype: Of the weights in memory. Computation is in float32 either way.
    """
    import transformers

    auto: Any = transformers  # its annotations do not know of the report
    offline = {"local_files_only": True, "trust_remote_code": False}
    config = auto.AutoConfig.from_pretrained(folder, **offline)
    chosen = _cut(config.get_text_config(decoder=True), layers)
    tokenizer = auto.AutoTokenizer.from_pretrained(folder, **offline)
    model, report = auto.AutoModelForCausalLM.from_pretrained(
        folder,
        config=config,
        dtype=getattr(torch, dtype),
        use_safetensors=True,
        output_loading_info=True,
        **offline,
    )
    if report["missing_keys"]:
        raise ValueError(f"{len(report['missing_keys'])} weights are missing")
    decoder = model.get_decoder().eval()
    if decoder.dtype != torch.float32:
        _widen(decoder)
    has_window = {
        module.layer_idx
        for module in decoder.modules()
        if hasattr(module, "layer_idx")
        and getattr(module, "is_sliding", getattr(module, "sliding_window", None))
    }
    seen = tuple(layer for layer in chosen if layer not in has_window)
    if not seen:
        raise ValueError("no layer attends to the whole history")
    return Loaded(_Template(tokenizer), decoder, seen)


def _widen(decoder: nn.Module) -> None:
    """Let a model compute in float32, with one module's weights at a time in float32.

    Casting costs about a hundredth of the products. On a processor without bfloat16 instructions
    products of bfloat16 are several times slower.
    """
    for module in decoder.modules():
        if isinstance(module, nn.Embedding):  # reads a few rows: only these are cast
            module.register_forward_hook(lambda _, __, rows: rows.float())
        else:
            _widen_module(module, dict(module.named_parameters(recurse=False)))


def _widen_module(module: nn.Module, narrow: dict[str, nn.Parameter]) -> None:
    own: dict[str, Any] = module._parameters

    def widen(*_: object) -> None:
        own.update({name: weight.float() for name, weight in narrow.items()})

    if narrow:
        module.register_forward_pre_hook(widen)
        module.register_forward_hook(lambda *_: own.update(narrow), always_call=True)


def _cut(config: Any, count: int) -> tuple[int, ...]:
    """Return the layers to measure, and leave those behind them out of the configuration."""
    total = config.num_hidden_layers
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        has_window = getattr(config, "use_sliding_window", True)
        has_window = has_window and getattr(config, "sliding_window", None)
        kinds = ["sliding_attention" if has_window else "full_attention"] * total
    chosen = first_full([kind == "full_attention" for kind in kinds], count)
    if not chosen:
        raise ValueError("no layer attends to the whole history")
    needed = chosen[-1] + 1
    for name, value in list(vars(config).items()):
        if isinstance(value, list) and len(value) == total:  # one entry a layer
            setattr(config, name, value[:needed])
    config.num_hidden_layers = needed
    return chosen


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turn what transformers says of a folder into one line, and keep it from talking meanwhile."""
    try:
        from transformers.utils import logging as of_transformers
    except ImportError as err:
        raise NotInstalledError(f"a proxy model needs {err.name}: {PACKAGES_COMMAND}") from None
    logging: Any = of_transformers
    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        if not folder.is_dir():
            raise FileNotFoundError("there is no such folder")
        yield
    except Exception as err:  # a model is its vendor's program: anything may come out of it
        first = str(err).strip().partition("\n")[0] or type(err).__name__
        raise UsageError(
            f"{shown_path(folder)} is no proxy model that can be used: {first[:200]}; "
            "`recap proxy install` gets one"
        ) from err
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()
