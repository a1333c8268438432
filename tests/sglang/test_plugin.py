"""What is imported when, and what a switched-off plugin costs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numpy", "torch", "sglang", "recap.capture", "recap_kernels")


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_entry_point_loads_the_standard_library_only() -> None:
    loaded = loaded_after("import recap.sglang.plugin")
    assert not loaded.intersection(HEAVY)


def test_import_recap_loads_nothing_of_it() -> None:
    assert "recap.sglang" not in loaded_after("import recap")


def test_enable_loads_neither_torch_nor_sglang() -> None:
    loaded = loaded_after("import recap; recap.enable")
    assert not loaded.intersection(HEAVY)
