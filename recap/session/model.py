"""The observer that replays turns with a small local model, as settings name it.

Nothing of it is imported or loaded before a turn is measured; its fingerprint is read from the
files of its folder alone.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from recap.capture.models import installed, models_folder, resolve
from recap.transcript.model import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from recap.blocks.table import BlockTable
    from recap.capture.proxy import ProxyModel
    from recap.config import Settings
    from recap.session.observing import Measured

PATTERNS = ("*.json", "*.jinja", "*.safetensors")
"""Files that make a model what it is."""

SAMPLE_BYTES = 1 << 12


class ProxyObserver:
    """Measures turns with the proxy model of the settings; it is loaded with the first turn."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._fingerprint = ""

    @property
    def fingerprint(self) -> str:
        """What tells the model from others; "" while there is none."""
        if not self._fingerprint:  # it may be installed meanwhile
            self._fingerprint = fingerprint_of(self._settings.proxy_model, os.environ)
        return self._fingerprint

    def observe(
        self,
        table: BlockTable,
        turns: range,
        seeds: Sequence[int],
        served: Sequence[Collection[str] | None],
    ) -> Iterator[Measured]:
        """Yield what became of each turn; arguments as for ``observing.Observer``.

        Raises:
            NotInstalledError: The model, or a package it needs, is missing.
        """
        folder = resolve(self._settings.proxy_model, os.environ)
        from recap.capture.observer import observe_turns

        model = _loaded(folder, self._settings.layers)
        return observe_turns(table, turns, model, self._settings, seeds, served)


def fingerprint_of(setting: str, environ: Mapping[str, str]) -> str:
    """Return 32 hex digits for the model that ``proxy_model`` means; "" where there is none.

    Its small files count by name, size and a few of their bytes, as its weights do: to read these
    in full would take seconds.
    """
    folder = _folder(setting, environ)
    if folder is None:
        return ""
    pieces: list[bytes | str] = []
    try:
        for path in sorted(path for pattern in PATTERNS for path in folder.glob(pattern)):
            size = path.stat().st_size
            with path.open("rb") as stream:
                stream.seek(max(0, (size - SAMPLE_BYTES) // 2))
                pieces += (path.name, str(size), stream.read(SAMPLE_BYTES))
    except OSError:
        return ""
    return digest(*pieces).hex() if pieces else ""


def _folder(setting: str, environ: Mapping[str, str]) -> Path | None:
    if setting:
        return Path(os.path.expanduser(setting))  # noqa: PTH111 - Path.expanduser raises
    model = installed(models_folder(environ))
    return None if model is None else model.folder


@lru_cache(maxsize=1)
def _loaded(folder: Path, layers: int) -> ProxyModel:
    from recap.capture.proxy import ProxyModel

    return ProxyModel.load(folder, layers=layers)
