"""The CUDA sources run on a CPU, thread for thread: their logic is tested where no GPU is.

Only ``kernel<<<...>>>(...)`` is rewritten; ``cuda_on_cpu/cuda_runtime.h`` stands in for CUDA.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra kernels)")

from recap_kernels import Clip, Quantile, TimesMedian, finalize, plan  # noqa: E402

if TYPE_CHECKING:
    from recap_kernels import BlockStats, StatsPlan

HERE = Path(__file__).parent / "cuda_on_cpu"
CSRC = Path(__file__).parents[2] / "csrc"
LAUNCH = re.compile(r"(\w+(?:<\w+>)?)<<<([^>]*?), (\w+), 0, on>>>\((.*?)\);", re.DOTALL)


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The CUDA sources as a library for this computer."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    folder = tmp_path_factory.mktemp("cuda")
    shutil.copytree(CSRC, folder, dirs_exist_ok=True)
    sources = sorted((folder / "cuda").glob("*.cu"))
    for source in sources:
        text = LAUNCH.sub(r"launch(\2, \3, [&] { \1(\4); });", source.read_text())
        assert "<<<" not in text
        source.with_suffix(".cpp").write_text(text)
    library = folder / "cuda.so"
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", "-fvisibility=default"]
    includes = [f"-I{HERE}", f"-I{folder}"]
    made = [str(source.with_suffix(".cpp")) for source in sources]
    command = [compiler, *flags, *includes, *made, str(HERE / "entry.cpp"), "-o", str(library)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def pointers(*tensors: torch.Tensor | None) -> Any:
    return (ctypes.c_void_p * len(tensors))(
        *(t.data_ptr() if t is not None else 0 for t in tensors)
    )


def numbers(kind: Any, *values: int) -> Any:
    return (kind * len(values))(*values)


def run_finalize(
    cuda: ctypes.CDLL,
    rho: torch.Tensor,
    turn: StatsPlan,
    clip: Clip,
    mass: torch.Tensor | None,
    exclude: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return block means, mean mass, clip value and row counts of 3 layers of 7 heads."""
    parts = -(-turn.kv_len // cuda.part_tokens())
    means, clip_value = torch.empty(turn.blocks), torch.empty(1)
    mean_mass = torch.empty(turn.blocks, turn.blocks)
    row_count, keys = torch.empty(2, turn.kv_len, dtype=torch.int32)
    histograms = torch.empty(4, parts, 256, dtype=torch.int32)
    states = torch.empty(4, 3, dtype=torch.int32)
    rows = (turn.q_pos, turn.order, turn.row_range, turn.block_offsets, exclude)
    results = (means, mean_mass, clip_value, row_count, keys, histograms, states)
    sizes = (turn.rows, turn.kv_len, turn.blocks, turn.window, 3, 7, 4)
    cuda.finalize(
        pointers(rho, mass, *rows, *results),
        numbers(ctypes.c_int, *sizes),
        ctypes.c_double(clip.q if isinstance(clip, Quantile) else 0.0),
        ctypes.c_double(clip.factor if isinstance(clip, TimesMedian) else 0.0),
    )
    return means, mean_mass, clip_value, row_count


def by_reference(rho: torch.Tensor, turn: StatsPlan, clip: Clip, **options: Any) -> BlockStats:
    return finalize(rho, turn, layers=3, heads=7, clip=clip, backend="reference", **options)


@pytest.mark.parametrize("window", [0, 40])
@pytest.mark.parametrize("tokens", [5, 300, 4500])
def test_finalize_gives_the_bits_of_the_reference(
    cuda: ctypes.CDLL, tokens: int, window: int
) -> None:
    source = torch.Generator().manual_seed(tokens)
    rho = torch.randn(tokens, generator=source).abs() ** 6
    exclude = torch.rand(tokens, generator=source) < 0.2
    offsets = torch.tensor([0, tokens // 4, tokens // 4, tokens // 2, tokens])
    positions = torch.tensor([tokens - 1, tokens // 2, tokens // 3, tokens // 2, -1])
    turn = plan(positions, tokens, offsets, window=window)
    mass = torch.rand(4, 4, generator=source)
    for clip in (Quantile(0.95), TimesMedian(3.0), None):
        means, mean_mass, clip_value, row_count = run_finalize(cuda, rho, turn, clip, mass, exclude)
        wanted = by_reference(rho, turn, clip, mass=mass, exclude=exclude)
        assert torch.equal(clip_value, wanted.clip_value)
        assert torch.equal(row_count, wanted.row_count)
        torch.testing.assert_close(means, wanted.block_mean, rtol=1e-6, atol=0)
        torch.testing.assert_close(mean_mass, wanted.mass, rtol=1e-6, atol=0)


def test_nothing_counted_gives_zeros_and_no_clip(cuda: ctypes.CDLL) -> None:
    turn = plan(torch.tensor([-1]), 6, torch.tensor([0, 3, 6]))
    means, _, clip_value, _ = run_finalize(cuda, torch.ones(6), turn, Quantile(0.95), None, None)
    assert means.tolist() == [0.0, 0.0]
    assert clip_value.tolist() == [float("inf")]


@pytest.mark.parametrize("width", [64, 7])
def test_rows_go_to_their_slots_and_the_rest_stays(cuda: ctypes.CDLL, width: int) -> None:
    """A width of 7 two-byte numbers takes the path of unaligned rows."""
    q, lse = torch.randn(4, 6, width).bfloat16(), torch.randn(4, 6)
    ring, kept = q.new_full((5, 6, width), 9.0), lse.new_full((5, 6), 9.0)
    slot = torch.tensor([3, -1, 0, 4], dtype=torch.int32)
    row = 6 * width * 2
    sizes = numbers(ctypes.c_int64, row, 24, row, row, 24, 24)
    cuda.capture_rows(pointers(q, ring, lse, kept, slot), 4, sizes)
    assert torch.equal(ring[[3, 0, 4]], q[[0, 2, 3]])
    assert torch.equal(kept[[3, 0, 4]], lse[[0, 2, 3]])
    assert (ring[[1, 2]] == 9).all()
    cuda.capture_rows(pointers(q, ring, None, None, slot), 4, sizes)
    assert torch.equal(ring[[3, 0, 4]], q[[0, 2, 3]])
