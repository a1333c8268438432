#!/usr/bin/env bash
# Makes a virtual environment in which the real SGLang serves on a CPU, for tests/sglang/inside.
#   .ci/install_sglang_cpu.sh VENV
# About 2 GB, of which most is torch and triton. `pip check` complains about what SGLang would need on
# a GPU; tests/sglang/shim stands in for two packages of those. Bytecode is left to the first import: to
# compile all of it takes longer than the rest.
set -euo pipefail
venv=${1:?usage: .ci/install_sglang_cpu.sh VENV}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

python3 -m venv "$venv"
install() { "$venv/bin/pip" --disable-pip-version-check install --quiet --no-compile "$@"; }
install torch==2.13.0 numpy==2.4.6
install --no-deps -r "$here/sglang_cpu.txt"
RECAP_KERNELS_CUDA=0 install --no-deps --no-build-isolation -e "$here/.."
