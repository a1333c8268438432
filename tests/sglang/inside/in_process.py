"""SGLang's model runner in this process, driven step by step: no scheduler, no server."""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING, Any

from recap.sglang import compat, plugin, worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import torch

    from recap.sglang.recorder import Recorder


class InProcess:
    """A runner whose hooks are applied as in a worker."""

    def __init__(
        self, model: Path, *, context: int = 1024, config: str = '{"rows": 16, "edge_threshold": 0}'
    ) -> None:
        from sglang.benchmark import one_batch
        from sglang.srt.plugins.hook_registry import HookRegistry
        from sglang.srt.server_args import PortArgs, prepare_server_args

        plugin.register()
        HookRegistry.apply_hooks()
        arguments = prepare_server_args(
            [
                *("--model-path", str(model), "--device", "cpu", "--dtype", "float32"),
                *("--attention-backend", "recap:torch_native", "--max-total-tokens", "4096"),
                *("--context-length", str(context), "--max-running-requests", "4"),
                *("--recap-config", config),
            ]
        )
        plugin.start("scheduler")
        compat.apply()
        arguments.resolve_once()
        one_batch._set_envs_and_config(arguments)
        self.environment = {n: os.environ[n] for n in ("RECAP_ENABLE", "RECAP_SGLANG")}
        ranks = one_batch.SpawnRanks(world_rank=0, gpu_id=0)
        one_batch.publish(arguments, role="scheduler", ranks=ranks)
        one_batch._init_process_global_configs()
        bench, _ = one_batch.load_model(arguments, PortArgs.init_new(arguments), 0, 0)
        self._one_batch = one_batch
        self._bench = bench
        self.runner = bench.torch_runner

    @property
    def recorder(self) -> Recorder:
        recorder = worker.recorder()
        assert recorder is not None
        return recorder

    @property
    def backend(self) -> Any:
        return self.runner.attn_backend

    def request(self, rid: str, ids: Sequence[int], params: Mapping[str, object]) -> Any:
        """Return a request as the scheduler makes it."""
        from sglang.srt.managers.schedule_batch import Req
        from sglang.srt.sampling.sampling_params import SamplingParams

        req = Req(
            rid=rid,
            origin_input_text="",
            origin_input_ids=array("q", ids),
            sampling_params=SamplingParams(
                temperature=0, max_new_tokens=64, custom_params=dict(params)
            ),
        )
        req.full_untruncated_fill_ids = req.origin_input_ids
        req.logprob_start_len = -1
        req.extend_end = len(req.origin_input_ids)
        return req

    def run(self, requests: list[Any], steps: int) -> list[torch.Tensor]:
        """Prefill and decode; return the logits of each step. Outputs are appended to the requests."""
        tokens, logits, batch = self._one_batch.extend(requests, self.runner)
        every = [logits]
        for _ in range(steps):
            self._append(requests, tokens)
            tokens, logits = self._one_batch.decode(tokens, batch, self.runner)
            every.append(logits)
        self._append(requests, tokens)
        return every

    def clear(self) -> None:
        """Forget all cached keys."""
        self._bench.clear()

    @staticmethod
    def _append(requests: list[Any], tokens: torch.Tensor) -> None:
        for request, token in zip(requests, tokens.tolist(), strict=True):
            request.output_ids.append(token)


def finish(request: Any, aborted: bool = False) -> None:
    """Mark a request as the scheduler does when it ends."""
    from sglang.srt.managers.schedule_batch import FINISH_ABORT, FINISH_LENGTH

    request.finished_reason = FINISH_ABORT() if aborted else FINISH_LENGTH(64)
