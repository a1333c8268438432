"""How often each kind of change for a provider was needed."""

from __future__ import annotations

from collections import Counter

Notes = Counter[str]
