"""What can be said of the SGLang of an environment without starting it; nothing of it is imported."""

from __future__ import annotations

from importlib import metadata, util
from typing import TYPE_CHECKING

from recap.errors import SettingsError
from recap.sglang import compat
from recap.sglang.options import ENABLE, Options, is_enabled
from recap.sglang.refusals import REFUSALS, refuse_arguments
from recap.sglang.refused import RefusedError
from recap.sglang.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GROUP = "sglang.srt.plugins"
CHOICE = "SGLANG_PLUGINS"
NAME = "recap"
ROLES: Mapping[compat.Role, str] = {
    "arguments": "command line",
    "main": "main process",
    "scheduler": "workers",
}
KERNELS = {"recap_kernels._cpu": "cpu", "recap_kernels._cuda": "cuda", "triton": "triton"}


def report(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Return what is there, by name, and what is wrong; one line each."""
    source = Source.installed()
    if source is None:
        wanted = f"{ENABLE} is set and SGLang is not installed" if is_enabled(environ) else ""
        return {"version": "not installed"}, [wanted] if wanted else []
    missing = {role: source.missing(role) for role in ROLES}
    found = {
        "version": compat.version(),
        "switched on": f"by {ENABLE}" if is_enabled(environ) else "by --enable-recap",
        **{ROLES[role]: _found(role, names) for role, names in missing.items()},
        "backend": "the one SGLang takes or --attention-backend names is wrapped",
        "refused with": ", ".join(refusal.option for refusal in REFUSALS),
        "kernels": ", ".join(n for module, n in KERNELS.items() if _is_there(module)) or "torch",
    }
    lacking = [name for names in missing.values() for name in names]
    problems = list(_conflicts(environ))
    if lacking:
        problems.insert(
            0,
            f"SGLang {compat.version()} lacks {', '.join(lacking)}: install SGLang {compat.OLDEST} "
            "or a later version this release knows",
        )
    return found, problems


def _found(role: compat.Role, missing: list[str]) -> str:
    total = len(compat.HOOKS[role]) + len(compat.SYMBOLS[role])
    lacks = f"; lacks {', '.join(missing)}" if missing else ""
    return f"{total - len(missing)} of {total} names found{lacks}"


def _conflicts(environ: Mapping[str, str]) -> Iterator[str]:
    if not any(point.name == NAME for point in metadata.entry_points(group=GROUP)):
        yield f"SGLang finds no plugin {NAME!r}: pip install recap-context beside it"
    chosen = environ.get(CHOICE, "")
    if chosen and NAME not in (name.strip() for name in chosen.split(",")):
        lost = f"{ENABLE} does nothing" if is_enabled(environ) else "--enable-recap is unknown"
        yield f"{CHOICE} leaves {NAME} out, so {lost}: add {NAME} to it, or unset it"
    if not is_enabled(environ):
        return
    try:
        refuse_arguments(None, environ)
        Options.inherited(environ)
    except RefusedError as err:
        yield str(err).removeprefix("recap: ")
    except (SettingsError, ValueError) as err:
        yield f"the configuration that {ENABLE} would run with: {err}"


def _is_there(module: str) -> bool:
    try:
        return util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
