"""The native module that reads and writes runs of common lines, where it was built.

A line that it does not take it leaves to Python, which takes any line, and all of them where there is
no such module. It takes lines in strict JSON whose known fields have the types that clients give them.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

lines: Any = None
"""``recap.cmv._lines``; None where it was not built."""

with suppress(ImportError):
    lines = importlib.import_module("recap.cmv._lines")
