"""Everything Recap knows about SGLang: what is hooked, which names and fields are relied on.

Read in the wheels of 0.5.20 and 0.5.23. SGLang is imported inside functions only. A later version is
tried; a name it lacks ends the server with the list of what is missing (``missing``).
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from importlib import metadata
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from torch import Tensor, nn

OLDEST = "0.5.20"
SRT = "sglang.srt"
CHAT = f"{SRT}.entrypoints.openai.serving_chat.OpenAIServingChat"

Role = Literal["arguments", "main", "scheduler"]
"""Who is hooked: the command line; the process of HTTP server and chat templates; a worker."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A function of SGLang that is wrapped, and ours, called with it and its arguments.

    Ours names what it reads as SGLang does, since a caller may pass any of it by name.
    """

    target: str
    handler: str


HOOKS: Mapping[Role, tuple[Hook, ...]] = MappingProxyType(
    {
        "arguments": (
            Hook(f"{SRT}.server_args.ServerArgs.add_cli_args", "recap.sglang.launcher:add_flags"),
            Hook(f"{SRT}.server_args.ServerArgs.from_cli_args", "recap.sglang.launcher:read_flags"),
        ),
        "main": (
            Hook(f"{CHAT}._convert_to_internal_request", "recap.sglang.chat:convert"),
            Hook(
                f"{CHAT}._render_and_encode_chat_template",
                "recap.sglang.rendering:render_prompt",
            ),
            Hook(
                f"{SRT}.managers.tokenizer_manager.TokenizerManager.update_request_meta_info",
                "recap.sglang.chat:take_results",
            ),
            Hook(
                f"{SRT}.entrypoints.http_server._setup_and_run_http_server",
                "recap.sglang.chat:serve",
            ),
        ),
        "scheduler": (
            Hook(
                f"{SRT}.model_executor.model_runner_components.attention_backend_setup"
                "._build_full_attention_backend_from_str",
                "recap.sglang.worker:build_backend",
            ),
            Hook(
                f"{SRT}.model_executor.forward_batch_info.ForwardBatch.init_new",
                "recap.sglang.worker:start_step",
            ),
            Hook(f"{SRT}.mem_cache.common.release_kv_cache", "recap.sglang.worker:end_request"),
            Hook(
                f"{SRT}.managers.scheduler.Scheduler.get_output_streamer_class",
                "recap.sglang.worker:output_streamer",
            ),
        ),
    }
)

SYMBOLS: Mapping[Role, tuple[str, ...]] = MappingProxyType(
    {
        "arguments": (
            f"{SRT}.arg_groups.choices.ATTENTION_BACKEND_CHOICES",
            f"{SRT}.plugins.hook_registry.HookRegistry.apply_hooks",
        ),
        "main": (f"{SRT}.entrypoints.http_server.app",),
        "scheduler": (
            f"{SRT}.layers.attention.base_attn_backend.AttentionBackend",
            f"{SRT}.layers.radix_attention.RadixAttention",
            f"{SRT}.layers.radix_attention.AttentionType",
            f"{SRT}.managers.schedule_batch.FINISH_ABORT",
            f"{SRT}.managers.scheduler_components.output_streamer.SchedulerOutputStreamer"
            ".build_additional_customized_info",
            f"{SRT}.managers.scheduler_components.output_streamer.SchedulerOutputStreamer"
            ".should_build_additional_customized_info",
            f"{SRT}.runtime_context.get_parallel",
        ),
    }
)

FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        CHAT: ("_convert_to_internal_request", "_render_and_encode_chat_template"),
        f"{SRT}.entrypoints.openai.protocol.ChatCompletionRequest": (
            "messages", "tools", "n", "input_ids", "session_id", "custom_params", "return_meta_info",
        ),
        f"{SRT}.managers.io_struct.GenerateReqInput": (
            "input_ids", "image_data", "video_data", "audio_data", "sampling_params",
        ),
        f"{SRT}.managers.tokenizer_manager.TokenizerManager": (
            "server_args", "model_path", "update_request_meta_info",
        ),
        f"{SRT}.managers.tokenizer_manager.ReqState": ("obj",),
        f"{SRT}.managers.schedule_batch.Req": (
            "rid", "sampling_params", "origin_input_ids", "output_ids", "finished_len",
            "finished_reason", "finished", "kv", "multimodal_inputs", "beam_group",
        ),
        f"{SRT}.managers.schedule_batch.ReqKvInfo": ("req_pool_idx", "kv_committed_len"),
        f"{SRT}.model_executor.forward_batch_info.ForwardBatch": (
            "forward_mode", "req_pool_indices", "seq_lens_cpu", "extend_seq_lens_cpu",
            "extend_prefix_lens_cpu",
        ),
        f"{SRT}.sampling.sampling_params.SamplingParams": ("custom_params",),
        f"{SRT}.layers.radix_attention.RadixAttention": (
            "layer_id", "tp_q_head_num", "qk_head_dim", "scaling", "logit_cap",
            "sliding_window_size", "is_cross_attention", "attn_type", "use_irope",
            "xai_temperature_len",
        ),
        f"{SRT}.mem_cache.memory_pool.MHATokenToKVPool": ("get_key_buffer",),
        f"{SRT}.mem_cache.memory_pool.ReqToTokenPool": ("req_to_token",),
        f"{SRT}.model_executor.model_runner.ModelRunner": (
            "is_draft_worker", "use_mla_backend", "kv_index_translator", "token_to_kv_pool",
            "req_to_token_pool", "dtype", "kv_cache_dtype", "model", "server_args", "device",
        ),
    }
)  # fmt: skip
"""Classes, and the names that their bodies have to assign or declare."""

_LOADERS: Mapping[str, Role | None] = MappingProxyType(
    {
        "run_scheduler_process": "scheduler",
        "run_detokenizer_process": None,
        "run_data_parallel_controller_process": None,
    }
)


def version() -> str:
    """Return the version of the installed SGLang, "none" without one."""
    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:
        return "none"


def loading_role(frame: FrameType | None) -> Role | None:
    """Return which process is loading its plugins; None for one that is not hooked.

    Args:
        frame: Innermost frame: worker processes load them from a function known by name.
    """
    while frame is not None:
        if frame.f_code.co_name in _LOADERS:
            return _LOADERS[frame.f_code.co_name]
        frame = frame.f_back
    return "main"


def missing(role: Role) -> list[str]:
    """Return the dotted names this role needs that SGLang lacks here; imports their modules."""
    names = [hook.target for hook in HOOKS[role]] + list(SYMBOLS[role])
    return [name for name in names if not _resolves(name)]


def _resolves(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def install(role: Role) -> None:
    """Register the hooks of a role; SGLang applies them when all plugins are loaded."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for hook in HOOKS[role]:
        module, _, name = hook.handler.partition(":")
        handler = getattr(importlib.import_module(module), name)
        HookRegistry.register(hook.target, handler, HookType.AROUND)


def apply() -> None:
    """Apply the hooks registered since the plugins were loaded."""
    from sglang.srt.plugins.hook_registry import HookRegistry

    HookRegistry.apply_hooks()


def not_applied(role: Role) -> list[str]:
    """Return the targets of a role that SGLang has not wrapped, whatever it logged about them."""
    from sglang.srt.plugins.hook_registry import HookRegistry

    return [hook.target for hook in HOOKS[role] if hook.target not in HookRegistry._patched]


def backend_choices() -> list[str]:
    """Return SGLang's own list of attention backends: all its options share it."""
    from sglang.srt.arg_groups.choices import ATTENTION_BACKEND_CHOICES

    choices: list[str] = ATTENTION_BACKEND_CHOICES
    return choices


def radix_layers(model: nn.Module) -> Iterator[Any]:
    """Yield the attention layers of a model, those of this rank and stage."""
    from sglang.srt.layers.radix_attention import RadixAttention

    return (module for module in model.modules() if isinstance(module, RadixAttention))


def sees_all(layer: Any) -> bool:
    """Return whether an attention layer of a model attends to the whole history, causally."""
    from sglang.srt.layers.radix_attention import AttentionType

    return (
        layer.sliding_window_size in (-1, 0, None)
        and layer.attn_type == AttentionType.DECODER
        and not layer.is_cross_attention
        and not layer.use_irope
        and layer.xai_temperature_len <= 0
    )


def http_app() -> Any:
    """Return the application of the server, a FastAPI."""
    from sglang.srt.entrypoints.http_server import app

    return app


def has_key(manager: Any) -> bool:
    """Return whether the server checks a key of its clients."""
    return bool(manager.server_args.api_key)


def served_model(manager: Any) -> str:
    """Return where the served weights come from; it changes when they are replaced."""
    return str(manager.model_path)


def prefill_spans(batch: Any) -> tuple[tuple[int, int], ...]:
    """Return the positions ``[first, end)`` that a prefill step computes of each request."""
    if batch.extend_prefix_lens_cpu is None or batch.extend_seq_lens_cpu is None:
        return ()
    lengths = zip(batch.extend_prefix_lens_cpu, batch.extend_seq_lens_cpu, strict=True)
    return tuple((first, first + count) for first, count in lengths)


def is_hnd(runner: Any) -> bool:
    """Return whether cached keys lie head by head instead of token by token."""
    return bool(getattr(runner.token_to_kv_pool, "use_hnd", False))


def translates_slots(runner: Any) -> bool:
    """Return whether the numbers in the request table are not those of the key buffer."""
    return bool(getattr(runner.kv_index_translator, "needs_read_translate", False))


def captures_full_prefill(server_args: Any) -> bool:
    """Return whether prefill runs as one CUDA graph, without our Python in it."""
    prefill = getattr(getattr(server_args, "cuda_graph_config", None), "prefill", None)
    return bool(getattr(prefill, "backend", None) == "full")


def request_rows(runner: Any) -> int:
    """Return the rows of the table of requests, the padding row 0 included."""
    return int(runner.req_to_token_pool.req_to_token.shape[0])


def keys(runner: Any, layer: int) -> Tensor:
    """Return ``[slots, Hkv, D]``: cached keys of a layer, after RoPE."""
    buffer: Tensor = runner.token_to_kv_pool.get_key_buffer(layer)
    return buffer


def slots(runner: Any, req: Any, end: int) -> Tensor:
    """Return int ``[end]``: where the keys of a request's first ``end`` tokens lie."""
    row: Tensor = runner.req_to_token_pool.req_to_token[req.kv.req_pool_idx, :end]
    return row


def request_row(req: Any) -> int:
    """Return the request's row in the table of requests."""
    return int(req.kv.req_pool_idx)


def committed_tokens(req: Any) -> int:
    """Return how many tokens of a finished request are its own and have a key.

    The last token of an answer was never an input; one that ran ahead of the end is not its own.
    """
    answer = len(req.output_ids) if req.finished_len is None else req.finished_len
    own = len(req.origin_input_ids) + max(0, answer - 1)
    return min(own, int(req.kv.kv_committed_len))


def is_aborted(req: Any) -> bool:
    """Return whether a finished request was aborted."""
    from sglang.srt.managers.schedule_batch import FINISH_ABORT

    return isinstance(req.finished_reason, FINISH_ABORT)


def is_unattributable(req: Any) -> bool:
    """Return whether tokens of a request do not stand where its prompt says: images, beams."""
    return req.multimodal_inputs is not None or req.beam_group is not None


def custom_params(req: Any) -> Mapping[str, object]:
    """Return what the client or our chat layer attached to a request."""
    params = req.sampling_params.custom_params
    return params if isinstance(params, dict) else {}


def tensor_parallel_group() -> Any:
    """Return the group of ranks that share a request's heads, None where there is one rank."""
    from sglang.srt.runtime_context import get_parallel

    parallel = get_parallel()
    return parallel.attn_tp_group if parallel.attn_tp_size > 1 else None
