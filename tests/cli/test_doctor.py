"""``recap doctor``: always prints, and says what is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import recap
from recap.cli.doctor import OPTIONAL, REQUIRED, diagnose, version_of

if TYPE_CHECKING:
    import pytest

    from tests.cli.conftest import Cli


def distribution(folder: Path, name: str, version: str) -> None:
    """Install metadata of a distribution, as pip leaves it."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_the_report_names_recap_python_packages_and_observers(cli: Cli) -> None:
    out = cli("doctor").out
    assert str(Path(recap.__file__).parent) in out
    assert recap.__version__ in out
    assert all(name in out for name in (*REQUIRED, *OPTIONAL))
    assert "reuse" in out
    assert ".claude" in out


def test_json_has_the_same_sections(cli: Cli) -> None:
    answer = cli("doctor", "--json").json()
    assert answer["schema"] == "recap.doctor/1"
    assert answer["recap"]["version"] == recap.__version__
    assert answer["packages"].keys() == {*REQUIRED, *OPTIONAL}
    assert answer["observers"]["reuse"].startswith("active")


def test_the_unrelated_package_of_the_same_name_is_a_problem(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "recap", "0.1.8")
    monkeypatch.syspath_prepend(str(tmp_path))
    result = cli("doctor")
    assert result.status == 1
    assert "0.1.8" in result.out
    assert "pip uninstall recap" in result.out


def test_a_missing_package_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    """Run with numpy, msgspec and rich hidden: doctor is what tells a person that they are."""
    code = (
        "import sys\n"
        "hidden = ('numpy', 'msgspec', 'rich')\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in hidden: raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "from importlib import metadata\n"
        "version = metadata.version\n"
        "def without(name):\n"
        "    if name in hidden: raise metadata.PackageNotFoundError(name)\n"
        "    return version(name)\n"
        "metadata.version = without\n"
        "from recap.cli import run\n"
        "sys.exit(run(['doctor']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    assert "package numpy is missing" in done.stdout
    assert "Traceback" not in done.stderr


def test_settings_that_differ_are_named_with_their_origin(cli: Cli) -> None:
    assert "0.3 (from RECAP_RETENTION)" in cli("doctor", RECAP_RETENTION="0.3").out


def test_a_wrong_setting_is_a_problem(cli: Cli) -> None:
    result = cli("doctor", RECAP_RETENTION="7")
    assert result.status == 1
    assert "RECAP_RETENTION" in result.out


def test_a_variable_that_means_nothing_is_a_problem(cli: Cli) -> None:
    misspelt = "RECAP_" + "RETENTOIN"
    result = cli("doctor", **{misspelt: "0.3"})
    assert result.status == 1
    assert misspelt in result.out


def test_torch_is_not_imported(tmp_path: Path) -> None:
    before = set(sys.modules)
    diagnose({}, tmp_path)
    assert not {"torch", "triton"} & (set(sys.modules) - before)


def test_a_distribution_that_is_not_there_has_no_version() -> None:
    assert version_of("no-such-distribution-at-all") == ""
