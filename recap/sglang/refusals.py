"""What cannot be measured, and how to go on: refused before a model is loaded where arguments show it.

Wrong statistics are worse than none, so a feature that was never tested with the tap is refused too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recap.sglang import compat
from recap.sglang.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLAIN_KEYS = ("auto", "float32", "float16", "half", "bfloat16", "bf16")
"""Values of ``--kv-cache-dtype`` under which cached keys are what the model computed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An argument that cannot be combined with Recap.

    Attributes:
        name: Field of SGLang's arguments.
        is_refused: Whether a value of it is.
        option: What the user gave.
        reason: Why, and the way out.
    """

    name: str
    is_refused: Callable[[Any], bool]
    option: str
    reason: str


def _above_one(value: int) -> bool:
    return value > 1


REFUSALS = (
    Refusal(
        "pp_size", _above_one, "--pipeline-parallel-size above 1",
        "measured layers would lie in several processes; use tensor or data parallelism",
    ),
    Refusal(
        "tokenizer_worker_num", _above_one, "--tokenizer-worker-num above 1",
        "its processes load no plugins; use one tokenizer worker",
    ),
    Refusal(
        "enable_two_batch_overlap", bool, "--enable-two-batch-overlap",
        "rows of a split batch are not attributed yet; leave it out",
    ),
    Refusal(
        "dllm_algorithm", bool, "--dllm-algorithm",
        "a diffusion model's tokens are no causal rows; serve it without Recap",
    ),
    Refusal(
        "disaggregation_mode", lambda mode: mode != "null", "--disaggregation-mode",
        "queries and keys would lie on two servers; use one server for both phases",
    ),
    Refusal(
        "enable_pdmux", bool, "--enable-pdmux",
        "it runs both phases at once, which is not tested; leave it out",
    ),
    Refusal(
        "enable_hisparse", bool, "--enable-hisparse",
        "attention that leaves keys out is not what is measured; leave it out",
    ),
    Refusal(
        "enable_unified_memory", bool, "--enable-unified-memory",
        "its table of slots is a virtual one, which is not tested; leave it out",
    ),
    Refusal(
        "kv_cache_dtype", lambda dtype: dtype not in PLAIN_KEYS, "a quantised --kv-cache-dtype",
        "quantised keys are not tested; use --kv-cache-dtype auto",
    ),
    Refusal(
        "cuda_graph_backend_prefill", lambda backend: backend == "full",
        "--cuda-graph-backend-prefill full",
        "prompt rows are gathered outside the graph; use breakable",
    ),
    Refusal(
        "is_embedding", bool, "--is-embedding",
        "an embedding model serves no turns; serve it without Recap",
    ),
    Refusal(
        "dcp_size", _above_one, "decode context parallelism",
        "a rank would hold a part of the keys; use tensor or data parallelism",
    ),
    Refusal(
        "attn_cp_size", _above_one, "--attention-context-parallel-size above 1",
        "a rank would hold a part of the rows; use tensor or data parallelism",
    ),
    Refusal(
        "enable_prefill_cp", bool, "--enable-prefill-cp",
        "a rank would hold a part of the rows; leave it out",
    ),
)  # fmt: skip


def refuse_arguments(arguments: object, environ: Mapping[str, str]) -> None:
    """Raise RefusedError for a combination that cannot be measured.

    Args:
        arguments: What the command line gave, or SGLang's resolved arguments.
        environ: Environment.
    """
    for refusal in REFUSALS:
        value = getattr(arguments, refusal.name, None)
        if value is not None and refusal.is_refused(value):
            raise RefusedError(f"{refusal.option} cannot be combined: {refusal.reason}")
    if environ.get("SGLANG_RUST_SERVER", "0").strip().lower() in ("1", "true", "yes"):
        raise RefusedError(
            "SGLANG_RUST_SERVER cannot be combined: it passes by the Python that hands results on; "
            "unset it"
        )


def refuse_runner(runner: Any) -> None:
    """Raise RefusedError for a model or memory layout that cannot be measured."""
    if runner.use_mla_backend:
        raise RefusedError(
            "multi-head latent attention (DeepSeek, Kimi) is not measured: its cache holds no keys; "
            "leave out --enable-recap and use the proxy observer (recap proxy install)"
        )
    if compat.translates_slots(runner):
        raise RefusedError("virtual cache slots are not tested; leave out --enable-unified-memory")
    if runner.kv_cache_dtype != runner.dtype:
        raise RefusedError(
            f"keys are cached as {runner.kv_cache_dtype}, the model computes {runner.dtype}; "
            "use --kv-cache-dtype auto"
        )
    if compat.is_hnd(runner):
        raise RefusedError("keys cached head by head are not tested; unset SGLANG_USE_HND_KVCACHE")
    if compat.captures_full_prefill(runner.server_args):
        raise RefusedError("prefill in one CUDA graph gathers no rows; use the breakable one")
