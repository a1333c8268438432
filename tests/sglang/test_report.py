"""What ``recap doctor`` says of SGLang: read from its files, which are never imported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from recap.cli.doctor import diagnose
from recap.sglang.compat import HOOKS, SYMBOLS
from recap.sglang.report import report
from recap.sglang.source import Source

if TYPE_CHECKING:
    from pathlib import Path

NAMES = sorted(
    {hook.target for hooks in HOOKS.values() for hook in hooks}
    | {name for names in SYMBOLS.values() for name in names}
)
GONE = "sglang.srt.mem_cache.common.release_kv_cache"


def definition(names: list[str]) -> str:
    """Return a module body that defines names such as ``function`` and ``Class.method``."""
    lines = [f"def {name}(): ..." for name in names if "." not in name]
    for owner in dict.fromkeys(name.partition(".")[0] for name in names if "." in name):
        methods = [name.partition(".")[2] for name in names if name.startswith(f"{owner}.")]
        lines += [f"class {owner}:", *(f"    def {method}(self): ..." for method in methods)]
    return "\n".join(lines)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package ``sglang`` of the names Recap needs, which raises when it is imported; its folder."""
    modules: dict[str, list[str]] = {}
    for name in NAMES:
        parts = name.split(".")
        is_member = len(parts) > 2 and parts[-2][0].isupper()
        cut = len(parts) - (2 if is_member else 1)
        modules.setdefault("/".join(parts[:cut]), []).append(".".join(parts[cut:]))
    for module, names in modules.items():
        path = tmp_path / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(definition(names))
    (tmp_path / "sglang" / "__init__.py").write_text("raise RuntimeError('imported')")
    info = tmp_path / "sglang-0.9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.9.9\n")
    plugin = tmp_path / "ours-1.dist-info"
    plugin.mkdir()
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (plugin / "entry_points.txt").write_text("[sglang.srt.plugins]\nrecap = recap:enable\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "sglang"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Source, "installed", lambda: None)


def lose(fake: Path, name: str) -> None:
    """Take a function of a module away."""
    module, _, function = name.rpartition(".")
    path = fake / f"{module.replace('.', '/')}.py"
    path.write_text(path.read_text().replace(f"def {function}(", "def another("))


@pytest.mark.usefixtures("fake")
def test_all_names_are_found_and_nothing_is_imported() -> None:
    found, problems = report({})
    assert found["version"] == "0.9.9"
    assert found["switched on"] == "by --enable-recap"
    assert found["workers"] == "11 of 11 names found"
    assert problems == []
    assert "sglang" not in sys.modules


def test_a_missing_name_is_a_problem_that_names_it(fake: Path) -> None:
    lose(fake, GONE)
    found, problems = report({})
    assert found["workers"] == f"10 of 11 names found; lacks {GONE}"
    assert len(problems) == 1
    assert problems[0].startswith(f"SGLang 0.9.9 lacks {GONE}: install SGLang")


def test_a_file_that_python_cannot_read_defines_nothing(fake: Path) -> None:
    (fake / "sglang/srt/mem_cache/common.py").write_text("def broken(:")
    assert GONE in report({})[0]["workers"]


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"SGLANG_PLUGINS": "other"}, "--enable-recap is unknown"),
        ({"SGLANG_PLUGINS": "other", "RECAP_ENABLE": "1"}, "RECAP_ENABLE does nothing"),
        ({"SGLANG_RUST_SERVER": "1", "RECAP_ENABLE": "1"}, "SGLANG_RUST_SERVER cannot be combined"),
        ({"RECAP_SGLANG": '{"rowz": 1}', "RECAP_ENABLE": "1"}, "rowz"),
        ({"RECAP_SGLANG": "{", "RECAP_ENABLE": "1"}, "the configuration"),
    ],
)
def test_a_conflict_in_the_environment_is_a_problem(environ: dict[str, str], told: str) -> None:
    _, problems = report(environ)
    assert len(problems) == 1
    assert told in problems[0]


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    "environ",
    [{"SGLANG_PLUGINS": "other, recap"}, {"SGLANG_PLUGINS": ""}, {"SGLANG_RUST_SERVER": "1"}],
)
def test_what_stands_in_nobodys_way_is_none(environ: dict[str, str]) -> None:
    assert report(environ)[1] == []


def test_a_plugin_that_sglang_cannot_find_is_a_problem(fake: Path) -> None:
    (fake / "ours-1.dist-info/entry_points.txt").write_text("")
    (fake / "recap_context-1.dist-info").mkdir()  # found before the one that is installed
    metadata = "Metadata-Version: 2.1\nName: recap-context\nVersion: 1\n"
    (fake / "recap_context-1.dist-info/METADATA").write_text(metadata)
    (problem,) = report({})[1]
    assert "pip install recap-context" in problem


@pytest.mark.usefixtures("absent")
def test_without_sglang_there_is_one_line_and_no_problem() -> None:
    assert report({"SGLANG_PLUGINS": "other"}) == ({"version": "not installed"}, [])


@pytest.mark.usefixtures("absent")
def test_recap_switched_on_without_sglang_is_a_problem() -> None:
    assert report({"RECAP_ENABLE": "1"})[1] == ["RECAP_ENABLE is set and SGLang is not installed"]


@pytest.mark.usefixtures("fake")
def test_doctor_has_a_section_of_it(tmp_path: Path) -> None:
    diagnosis = diagnose({"SGLANG_PLUGINS": "other"}, tmp_path)
    assert diagnosis.sglang["version"] == "0.9.9"
    assert diagnosis.observers["engine"] == "in an SGLang server; SGLang 0.9.9"
    assert any("--enable-recap is unknown" in problem for problem in diagnosis.problems)
