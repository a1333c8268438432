"""What measuring a turn adds to serving it: ``python -m bench.sglang.bench_overhead MODEL [--pairs N]``.

In the environment of .ci/install_sglang_cpu.sh, on a model folder with safetensors. One process, pairs
of the same request with and without the tap in alternating order, processor time of a prompt of 1,024
tokens, 64 new ones and the statistics at the end; prints the mean of the paired differences and the
upper end of its 95 % interval, as shares of the time without.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

if TYPE_CHECKING:
    from tests.sglang.inside.in_process import InProcess

PROMPT, ANSWER, BLOCKS = 1024, 64, 32
SHIM = Path(__file__).parents[2] / "tests" / "sglang" / "shim"


def seconds(sglang: InProcess, is_tapped: bool) -> float:
    """Return processor seconds of one request from prefill to its statistics."""
    from recap.capture.spans import Segments
    from recap.sglang import worker
    from recap.sglang.payload import Payload
    from tests.sglang.inside.in_process import finish

    offsets = np.linspace(0, PROMPT, BLOCKS + 1).astype(np.int64)
    ids = tuple(f"block-{i}" for i in range(BLOCKS))
    segments = Segments(ids, offsets, np.arange(BLOCKS, dtype=np.int32))
    params = Payload("bench", 1, 0, PROMPT // 2, segments, tail="answer").params()
    wrapper, recorder = sglang.runner.attn_backend, worker.recorder()
    if not is_tapped:  # as without the flag
        sglang.runner.attn_backend, worker._recorder = wrapper.inner, None
    prompt = np.random.default_rng(1).integers(3, 250, PROMPT).tolist()
    request = sglang.request("bench", prompt, params if is_tapped else {})
    start = time.process_time()
    sglang.run([request], ANSWER)
    if is_tapped:
        finish(request)
        sglang.recorder.end_request(request)
    spent = time.process_time() - start
    sglang.runner.attn_backend, worker._recorder = wrapper, recorder
    if is_tapped:
        (result,) = sglang.recorder.results([request])[0]
        assert result["rows"] == 64, result["dropped"]
    sglang.clear()
    return spent


@click.command()
@click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--pairs", default=30, show_default=True)
def main(model: Path, pairs: int) -> None:
    """Measure and print."""
    environ = {"SGLANG_USE_CPU_ENGINE": "1", "SGLANG_CPU_OMP_THREADS_BIND": "1"}
    os.environ.update(environ | {"OMP_NUM_THREADS": "1", "RECAP_CONFIG": os.devnull})
    sys.path.insert(0, str(SHIM))
    from tests.sglang.inside.in_process import InProcess

    sglang = InProcess(model, context=2 * PROMPT, config="{}")
    for is_tapped in (False, True):
        seconds(sglang, is_tapped)  # first calls load and compile
    shares, plain = [], []
    for pair in range(pairs):
        order = (False, True) if pair % 2 else (True, False)
        spent = {is_tapped: seconds(sglang, is_tapped) for is_tapped in order}
        plain.append(spent[False])
        shares.append((spent[True] - spent[False]) / spent[False])
    mean, spread = statistics.mean(shares), statistics.stdev(shares) / len(shares) ** 0.5
    click.echo(
        f"{pairs} pairs, {statistics.median(plain):.2f} s without: added {mean:+.2%}, "
        f"upper 95 % bound {mean + 1.96 * spread:+.2%}"
    )


if __name__ == "__main__":
    main()
