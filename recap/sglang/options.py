"""The configuration of a server: from ``--recap-config`` in the launcher to every child process.

The launcher reads files, settings and environment once. Children get the result in one variable of
the environment, which is the only thing that SGLang hands on to them.
"""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recap.config import Settings, find_toml, load_settings
from recap.errors import InputError, SettingsError, shown, shown_path
from recap.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ENABLE = "RECAP_ENABLE"
TRANSPORT = "RECAP_SGLANG"
MOST_ROWS = 512
_ON = ("1", "true", "yes", "on")


def is_enabled(environ: Mapping[str, str]) -> bool:
    """Return whether the environment switches Recap on."""
    return environ.get(ENABLE, "").strip().lower() in _ON


@dataclass(frozen=True, slots=True)
class Options:
    """What a server runs with; ``of`` checks.

    Attributes:
        settings: Coefficients, ``mode`` included: ``observe`` unless the configuration says more.
        tap_mib: Memory for sampled query rows, MiB of each worker's device. A request that finds
            none free is not measured, and counted.
        error_limit: Failed measurements in a row after which a worker stops measuring.
        most_segments: Segments of one prompt; a longer list is not measured.
        sessions: Sessions in memory; the least recently used goes first.
        session_mib: Memory they may take together, MiB, about.
        session_idle: Seconds without a request after which a session leaves memory.
        tenant_header: Header by which a gateway in front tells tenants apart; "" trusts none.
        store: Folder in which graphs and selections outlive the server; "" keeps them in memory.
    """

    settings: Settings = field(default_factory=lambda: Settings(mode="observe"))
    tap_mib: int = 256
    error_limit: int = 8
    most_segments: int = 2048
    sessions: int = 1000
    session_mib: int = 1024
    session_idle: int = 21600
    tenant_header: str = ""
    store: str = ""

    @classmethod
    def of(cls, config: Mapping[str, object], environ: Mapping[str, str]) -> Options:
        """Return the options; settings not named come from the environment and ``recap.toml``.

        Args:
            config: Names of settings and of the attributes above.
            environ: Environment.

        Raises:
            SettingsError: An unknown name, or a value out of its bounds.
        """
        own = {name: value for name, value in config.items() if name in _OWN}
        named = {"mode": "observe"} | {n: v for n, v in config.items() if n not in _OWN}
        settings, _ = load_settings(named, find_toml(environ, Path()), environ)
        if settings.rows > MOST_ROWS:
            raise SettingsError(
                f"rows must be at most {MOST_ROWS} in a server; got {settings.rows}"
            )
        return cls(settings, **{name: _OWN[name](name, value) for name, value in own.items()})

    @classmethod
    def read(cls, text: str, environ: Mapping[str, str]) -> Options:
        """Return the options of ``--recap-config``: JSON, or ``@`` and the path of a JSON file.

        Raises:
            SettingsError: As ``of``, or the text or file is no JSON object.
        """
        source = "--recap-config"
        try:
            if text.startswith("@"):
                source = shown_path(text[1:])
                text = read_file(Path(text[1:])).decode()
            config = json.loads(text or "{}")
        except InputError as err:
            raise SettingsError(f"cannot read {err}") from err
        except (ValueError, RecursionError) as err:
            raise SettingsError(f"{source} is no JSON: {type(err).__name__}") from err
        if not isinstance(config, dict):
            raise SettingsError(f"{source} must be a JSON object")
        return cls.of(config, environ)

    def environment(self) -> dict[str, str]:
        """Return the variables that hand these options to child processes."""
        values = dataclasses.asdict(self.settings) | {name: getattr(self, name) for name in _OWN}
        return {ENABLE: "1", TRANSPORT: json.dumps(values)}

    @classmethod
    def inherited(cls, environ: Mapping[str, str]) -> Options:
        """Return the options a child was handed; without any, those of the environment alone."""
        handed: dict[str, Any] = json.loads(environ.get(TRANSPORT, "") or "{}")
        return cls.of(handed, environ)


_BOUNDS = {
    "tap_mib": (1, 2**20),
    "error_limit": (1, 10**6),
    "most_segments": (1, 2**16),
    "sessions": (1, 10**6),
    "session_mib": (1, 2**20),
    "session_idle": (1, 10**9),
}


def _whole(name: str, value: object) -> int:
    low, high = _BOUNDS[name]
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SettingsError(
            f"{name} must be a whole number from {low} to {high}; got {shown(value)}"
        )
    return value


def _header(name: str, value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9-]{0,64}", value):
        raise SettingsError(f"{name} must be the name of a header; got {shown(value)}")
    return value


def _folder(name: str, value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise SettingsError(f"{name} must be the path of a folder; got {shown(value)}")
    return value


_OWN: Mapping[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(_BOUNDS, _whole), "tenant_header": _header, "store": _folder,
}  # fmt: skip
"""Names that are no settings, and what judges their values."""
