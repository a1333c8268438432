"""The hooks of a scheduler process. Each gets SGLang's function first and calls it.

``release_kv_cache`` takes other arguments in 0.5.20 than in 0.5.23, so what a hook does not need is
handed through as it came.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from recap.capture.layers import spaced_full
from recap.errors import SettingsError
from recap.sglang import compat
from recap.sglang.options import Options
from recap.sglang.plugin import demand_applied
from recap.sglang.recorder import Recorder
from recap.sglang.refusals import refuse_arguments, refuse_runner
from recap.sglang.refused import RefusedError
from recap.sglang.streamer import with_results
from recap.sglang.tap import Tap, TappedLayer, parts_for

if TYPE_CHECKING:
    from collections.abc import Callable

LOG = logging.getLogger(__name__)

_recorder: Recorder | None = None


def recorder() -> Recorder | None:
    """Return what this worker records with, None before its attention backend was built."""
    return _recorder


def build_backend(
    original: Callable[..., Any], *, model_runner: Any, backend_str: str, **kwargs: Any
) -> Any:
    """Wrap the attention backend of the served model; a draft model's stays as it is.

    Raises:
        RefusedError: A hook is not applied, or the model cannot be measured.
    """
    global _recorder
    if backend_str.partition(":")[0] == "recap":
        raise RefusedError(
            "sglang.Engine knows no attention backend 'recap': call recap.enable() before it, or set "
            "RECAP_ENABLE=1, and leave attention_backend to the inner one"
        )
    backend = original(model_runner=model_runner, backend_str=backend_str, **kwargs)
    if model_runner.is_draft_worker:
        return backend
    if _recorder is None or _recorder.runner is not model_runner:
        demand_applied("scheduler")
        _recorder = start_recording(model_runner, _options(), backend_str)
    from recap.sglang.backend import RecapBackend

    return RecapBackend(backend, _recorder.keep)


def _options() -> Options:
    try:
        return Options.inherited(os.environ)
    except SettingsError as err:  # of an Engine, whose environment nobody checked before
        raise RefusedError(str(err)) from err


def start_recording(runner: Any, options: Options, inner: str) -> Recorder:
    """Return the recorder of a model runner, its store allocated. Raises RefusedError."""
    refuse_arguments(runner.server_args, os.environ)
    refuse_runner(runner)
    layers = _tapped(runner, options)
    rows = options.settings.rows
    parts = parts_for(layers, rows, runner.dtype, options.tap_mib)
    if not parts:
        raise RefusedError(
            f"{options.tap_mib} MiB hold the rows of no request: raise tap_mib in --recap-config, or "
            "lower rows or layers"
        )
    pool_rows = compat.request_rows(runner)
    parts = min(parts, pool_rows)
    tap = Tap(layers, rows, parts, pool_rows=pool_rows, dtype=runner.dtype, device=runner.device)
    LOG.info(
        "recap is on: backend %s, layers %s, %d rows of each of %d requests at a time",
        inner,
        [layer.layer for layer in layers],
        rows,
        parts,
    )
    return Recorder(runner, tap, options, inner)


def _tapped(runner: Any, options: Options) -> list[TappedLayer]:
    """Return the layers that are measured, evenly spaced among those that see all of the history."""
    by_index = {layer.layer_id: layer for layer in compat.radix_layers(runner.model)}
    sees_all = [
        index in by_index and compat.sees_all(by_index[index])
        for index in range(max(by_index, default=-1) + 1)
    ]
    chosen = spaced_full(sees_all, options.settings.layers)
    if not chosen:
        raise RefusedError("the model has no layer that attends to the whole history")
    return [
        TappedLayer(
            layer=index,
            heads=by_index[index].tp_q_head_num,
            width=by_index[index].qk_head_dim,
            scale=float(by_index[index].scaling),
            softcap=float(by_index[index].logit_cap or 0.0),
        )
        for index in chosen
    ]


def start_step(
    original: Callable[..., Any],
    cls: type,
    batch: Any,
    model_runner: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Stage the rows of a step when its ForwardBatch is made."""
    forward_batch = original(cls, batch, model_runner, *args, **kwargs)
    if _recorder is not None and _recorder.runner is model_runner:
        _recorder.start_step(forward_batch, batch.reqs)
    return forward_batch


def end_request(
    original: Callable[..., Any], req: Any, tree_cache: Any, *args: Any, **kwargs: Any
) -> Any:
    """Measure a finished request before its keys are given back."""
    if _recorder is not None:
        _recorder.end_request(req)
    return original(req, tree_cache, *args, **kwargs)


def output_streamer(original: Callable[..., type], scheduler: Any) -> type:
    """Return SGLang's class of output streamers with results added."""
    base = original(scheduler)
    return base if _recorder is None else with_results(base, _recorder)
