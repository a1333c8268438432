#!/usr/bin/env bash
# Tests, sanitizer and benchmarks on a machine with a GPU, in one call under ten minutes.
#
#   bench/kernels/gpu.sh [FOLDER]      results go to FOLDER, default bench/results
#   DRY_RUN=1 bench/kernels/gpu.sh     without a GPU: interpreted and tiny, no sanitizer, nothing written
#
# Needs python3 with torch, triton, pybind11, setuptools, pytest, pytest-timeout, pytest-xdist and
# hypothesis, and nvcc; compute-sanitizer is used where it is. Installs nothing.
# Written for python 3.12, torch 2.11+cu130, triton 3.6.0, nvcc 13.0.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
results=$(realpath -m "${1:-bench/results}")
python=${PYTHON:-python3}
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
export PYTHONUNBUFFERED=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
export CUBLAS_WORKSPACE_CONFIG=:4096:8  # deterministic mode of the tests
export RECAP_KERNELS_CUDA=1 RECAP_CUDA_ARCHS=${RECAP_CUDA_ARCHS:-90a}
steps=()
failed=0

# step NAME SECONDS COMMAND...: runs it, keeps its end and its status
step() {
  local name=$1 limit=$2 began=$SECONDS status
  shift 2
  echo "== $name"
  timeout "$limit" "$@" >"$log/$name" 2>&1
  status=$?
  tail -n 45 "$log/$name"
  [ "$status" = 0 ] || failed=1
  steps+=("{\"step\": \"$name\", \"status\": $status, \"seconds\": $((SECONDS - began))}")
}

sanitize() { # sanitize TOOL TESTS...: a few cases, with every allocation of its own
  local tool=$1
  shift
  step "$tool" 80 env PYTORCH_NO_CUDA_MEMORY_CACHING=1 compute-sanitizer --tool "$tool" \
    --target-processes all --error-exitcode 9 "$python" -m pytest -q -x -p no:cacheprovider \
    --timeout 75 -m "not slow" "$@"
}

if [ -n "${DRY_RUN:-}" ]; then
  export TRITON_INTERPRET=1
  step tests 600 "$python" -m pytest -q -x -p no:cacheprovider tests/kernels/test_cuda.py
  step benchmark 600 "$python" -W ignore -m bench.kernels.bench_gpu
else
  step build 60 "$python" setup.py -q build_ext --inplace
  step tests 190 "$python" -m pytest -q -n 8 --timeout 170 -p no:cacheprovider -m "not slow" tests/kernels
  if command -v compute-sanitizer >/dev/null; then
    cases=(tests/kernels/test_triton_stats.py tests/kernels/test_triton_finalize.py tests/kernels/test_cuda.py)
    few="plain or window or several_programs or same_bits or captures_what"
    sanitize memcheck "${cases[@]}" -k "$few"
    sanitize racecheck "${cases[@]}" -k "$few"
  fi
  step benchmark 160 "$python" -m bench.kernels.bench_gpu --out "$results/gpu.json"
  # Its processor may have bfloat16 products, which decide about a CPU kernel with dot instructions.
  step processor 30 "$python" -m bench.kernels.bench_attn_stats --runs 2 --out "$results/gpu_machine_cpu.json"
  mkdir -p "$results"
  printf '{"steps": [%s]}\n' "$(IFS=,; echo "${steps[*]}")" >"$results/gpu_steps.json"
fi
printf '%s\n' "${steps[@]}"
exit "$failed"
