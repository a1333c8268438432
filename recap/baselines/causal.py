"""A causal language model of a local folder, for methods and judges that run one whole."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from recap.errors import MethodError, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import torch


def causal_model(folder: Path, dtype: torch.dtype, **options: object) -> Any:
    """Return the model of transformers in a folder, in evaluation mode.

    Nothing is fetched, pickled weights are refused, and missing ones are never made up.

    Args:
        folder: Configuration and safetensors weights.
        dtype: Of weights and computation.
        options: Further arguments of ``from_pretrained``.

    Raises:
        MethodError: It cannot be read.
    """
    from transformers import AutoModelForCausalLM

    loader: Any = AutoModelForCausalLM
    with _reading(folder):
        model, report = loader.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            dtype=dtype,
            **options,
        )
    if report["missing_keys"]:
        raise MethodError(
            f"{shown_path(folder)}: {len(report['missing_keys'])} weights are missing"
        )
    return model.eval()


def causal_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of transformers in a folder; raises MethodError as ``causal_model``."""
    from transformers import AutoTokenizer

    with _reading(folder):
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turn what transformers says of a folder into one line; its bars are not for our users."""
    from transformers.utils import logging as of_transformers

    logging: Any = of_transformers
    has_bars = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    except (OSError, ValueError, RuntimeError) as err:
        said = f"{shown_path(folder)} holds no causal model for transformers: {err}"
        raise MethodError(said[:300]) from err
    finally:
        if has_bars:
            logging.enable_progress_bar()
