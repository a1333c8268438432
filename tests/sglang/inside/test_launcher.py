"""The command line: flags, the alias, and what a server that is switched off changes."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from recap.sglang import compat, launcher, plugin, worker
from recap.sglang.options import Options, is_enabled
from recap.sglang.refused import RefusedError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RECAP_ENABLE", "RECAP_SGLANG"):
        monkeypatch.setenv(name, "")  # put back afterwards
    if compat.not_applied("arguments"):  # as SGLang does when it loads its plugins
        plugin.register()
        compat.apply()


def parsed(*arguments: str) -> Namespace:
    """Return what a parser with our flags makes of a command line."""

    def original(parser: ArgumentParser) -> None:
        for phase in ("", "decode-", "prefill-"):
            parser.add_argument(f"--{phase}attention-backend", choices=compat.backend_choices())

    parser = ArgumentParser(exit_on_error=False)
    launcher.add_flags(original, parser)
    return parser.parse_args(list(arguments))


def read(*arguments: str) -> Namespace:
    """Return the arguments that SGLang goes on with."""
    given = parsed(*arguments)
    result = launcher.read_flags(lambda _, namespace: namespace, object, given)
    assert isinstance(result, Namespace)
    return result


def test_without_the_flag_nothing_is_switched_on() -> None:
    assert read("--attention-backend", "triton").attention_backend == "triton"
    assert not is_enabled(os.environ)


@pytest.mark.parametrize(
    ("arguments", "inner"),
    [
        (("--enable-recap",), None),
        (("--enable-recap", "--attention-backend", "fa3"), "fa3"),
        (("--attention-backend", "recap"), None),
        (("--attention-backend", "recap:torch_native"), "torch_native"),
    ],
)
def test_flag_and_alias_keep_the_name_of_the_inner_backend(
    arguments: tuple[str, ...], inner: str | None
) -> None:
    assert read(*arguments).attention_backend == inner
    assert is_enabled(os.environ)


def test_the_configuration_reaches_the_children_as_text(tmp_path: Path) -> None:
    file = tmp_path / "recap.json"
    file.write_text('{"rows": 5}')
    read("--enable-recap", "--recap-config", f"@{file}")
    file.unlink()
    assert Options.inherited(os.environ).settings.rows == 5


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--recap-config", "{}"), "needs --enable-recap"),
        (("--enable-recap", "--recap-config", '{"rowz": 1}'), "rowz"),
        (("--enable-recap", "--recap-config", "@/nowhere"), "/nowhere"),
        (("--decode-attention-backend", "recap"), "--attention-backend recap"),
        (("--prefill-attention-backend", "recap:fa3"), "--attention-backend recap"),
    ],
)
def test_a_wrong_command_line_is_refused(arguments: tuple[str, ...], named: str) -> None:
    with pytest.raises(RefusedError, match=named):
        read(*arguments)


def test_an_unknown_inner_backend_is_refused_by_the_parser() -> None:
    with pytest.raises((SystemExit, Exception), match="invalid choice"):
        parsed("--attention-backend", "recap:nonsense")


def test_adding_the_flags_twice_adds_the_aliases_once() -> None:
    parsed()
    once = list(compat.backend_choices())
    parsed()
    assert compat.backend_choices() == once
    assert len(set(once)) == len(once)


def test_an_engine_that_is_given_the_alias_is_told_what_to_do() -> None:
    with pytest.raises(RefusedError, match=r"recap\.enable\(\)"):
        worker.build_backend(print, model_runner=None, backend_str="recap")


def test_an_engine_whose_configuration_is_wrong_is_told_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry

    targets = {hook.target for hook in compat.HOOKS["scheduler"]}
    monkeypatch.setattr(HookRegistry, "_patched", targets)
    monkeypatch.setattr(worker, "_recorder", None)
    monkeypatch.setenv("RECAP_SGLANG", '{"rowz": 1}')
    runner = SimpleNamespace(is_draft_worker=False)
    with pytest.raises(RefusedError, match=r"recap: .*rowz"):
        worker.build_backend(lambda **_: None, model_runner=runner, backend_str="fa3")


def test_a_hook_that_sglang_did_not_apply_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    from sglang.srt.plugins.hook_registry import HookRegistry

    targets = {hook.target for hook in compat.HOOKS["scheduler"]}
    monkeypatch.setattr(HookRegistry, "_patched", set(targets))
    plugin.demand_applied("scheduler")
    monkeypatch.setattr(HookRegistry, "_patched", targets - {min(targets)})
    with pytest.raises(RefusedError, match=min(targets)):
        plugin.demand_applied("scheduler")


def test_everything_hooked_exists_in_the_installed_version() -> None:
    assert [name for role in compat.HOOKS for name in compat.missing(role)] == []


def test_a_switched_off_plugin_hooks_the_two_argument_functions_only(tmp_path: Path) -> None:
    code = (
        "from sglang.srt.plugins import load_plugins\n"
        "from sglang.srt.plugins.hook_registry import HookRegistry\n"
        "load_plugins(); print(*sorted(HookRegistry._patched), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    ours = [line for line in done.stdout.splitlines() if line.startswith("sglang.")]
    assert ours == sorted(hook.target for hook in compat.HOOKS["arguments"])
