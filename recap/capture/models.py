"""Where proxy models lie, which one is installed, and which folder a setting means.

Imports the standard library alone, so that ``recap doctor`` can ask when packages are missing. A
folder that ``recap proxy install`` made holds a manifest; its bytes are treated as hostile.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from recap.errors import InputError, NotInstalledError, RecapError, UsageError, shown_path
from recap.files import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Report: TypeAlias = "Callable[[str], None]"
"""Takes what is being done at the moment, for people."""

PACKAGES = ("torch", "transformers", "safetensors")
"""What running a proxy model imports; installing the default imports gguf and tokenizers."""

PACKAGES_COMMAND = 'pip install "recap-context[proxy]"'
INSTALL_COMMAND = "recap proxy install"

MANIFEST = "recap-model.json"
WEIGHTS, CONFIG = "model.safetensors", "config.json"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
FILES = (CONFIG, TOKENIZER, TOKENIZER_CONFIG, WEIGHTS)
"""All that ``install`` writes beside the manifest, and all that ``remove`` ever takes away."""

WORK_PREFIX = ".work-"
"""Begins the names of folders that an installation works in."""

MOST_CONFIG_BYTES = 1 << 24
PIECE_BYTES = 1 << 20
SCHEMA = "recap.model/1"


class ModelError(RecapError):
    """A proxy model cannot be fetched, converted or removed, or is damaged (exit status 1)."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file as it was installed: its bytes and its sha256 as hex digits."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model that ``recap proxy install`` made.

    Attributes:
        folder: Its Hugging Face model folder, with bf16 safetensors.
        name: Name of the model, for people.
        layers: Layers that were kept.
        source: Requirement of the wheel it came from.
        sha256: Hash of the GGUF file in that wheel.
        files: What is in the folder, by name.
    """

    folder: Path
    name: str
    layers: int
    source: str
    sha256: str
    files: Mapping[str, FileRecord]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(record.size for record in self.files.values())

    def to_json(self) -> bytes:
        """Return the manifest."""
        content = asdict(self) | {"schema": SCHEMA}
        del content["folder"]
        return json.dumps(content, indent=2).encode()


def models_folder(environ: Mapping[str, str]) -> Path:
    """Return where models are installed: RECAP_HOME/models, else the user's cache folder."""
    if (home := environ.get("RECAP_HOME", "")).strip():
        return _expanded(home) / "models"
    import platformdirs

    return platformdirs.user_cache_path("recap", appauthor=False) / "models"


def installed(folder: Path) -> InstalledModel | None:
    """Return the model in a models folder, the one with most layers; None where there is none."""
    return max(all_installed(folder), key=lambda model: model.layers, default=None)


def all_installed(folder: Path) -> tuple[InstalledModel, ...]:
    """Return the models in a models folder, sorted by name of their folder."""
    try:
        inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return ()
    return tuple(model for path in inside if (model := read_manifest(path)) is not None)


def read_manifest(folder: Path) -> InstalledModel | None:
    """Return the model in its own folder; None where no readable manifest of ours is in it."""
    try:
        content = _json_object(folder / MANIFEST)
        if content.pop("schema") != SCHEMA:
            return None
        records = {name: FileRecord(**record) for name, record in content.pop("files").items()}
        model = InstalledModel(folder=folder, files=records, **content)
    except (InputError, ValueError, TypeError, KeyError, AttributeError):
        return None
    texts = (model.name, model.source, model.sha256, *(r.sha256 for r in records.values()))
    numbers = (model.layers, *(record.size for record in records.values()))
    is_sound = (
        records.keys() == set(FILES)
        and all(isinstance(text, str) for text in texts)
        and all(type(number) is int and number >= 0 for number in numbers)
    )
    return model if is_sound else None


def damage(model: InstalledModel, report: Report = lambda _: None) -> str:
    """Return what is wrong with the files of an installed model, "" when their hashes agree."""
    for name, record in model.files.items():
        report(f"checking {name}")
        path = model.folder / name
        try:
            if path.is_symlink() or path.stat().st_size != record.size:
                return f"{name} is not the file that was installed"
            if sha256_of(path) != record.sha256:
                return f"{name} was changed since it was installed"
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as err:
            return f"{name}: {err.strerror}"
    return ""


def leftovers(folder: Path) -> list[Path]:
    """Return what runs that were killed left in a models folder, and one that is at work."""
    return sorted(folder.glob(f"{WORK_PREFIX}*"))


def remove_leftovers(folder: Path) -> None:
    """Remove what runs that were killed left behind, once none is at work."""
    with locked(folder, lambda _: None):
        for path in leftovers(folder):
            shutil.rmtree(path)


def remove(model: InstalledModel) -> tuple[str, ...]:
    """Remove what installing a model made; return the names of other files, which stay.

    Raises ModelError when a file cannot be removed.
    """
    try:
        with locked(model.folder.parent, lambda _: None):
            for name in (*FILES, MANIFEST):  # the manifest last: until then it can be run again
                (model.folder / name).unlink(missing_ok=True)
            left = tuple(sorted(path.name for path in model.folder.iterdir()))
            if not left:
                model.folder.rmdir()
            return left
    except FileNotFoundError:  # another run was first
        return ()
    except OSError as err:
        raise ModelError(f"cannot remove {shown_path(model.folder)}: {err.strerror}") from err


def resolve(setting: str, environ: Mapping[str, str]) -> Path:
    """Return the model folder that the setting ``proxy_model`` means, ready to be loaded.

    Args:
        setting: A folder; "" for the default that ``recap proxy install`` made.
        environ: Environment, see ``models_folder``.

    Raises:
        NotInstalledError: Packages are missing, or the default model.
        UsageError: The folder holds no model that can be loaded.
        ModelError: The default model is damaged. The text names the command that mends it.
    """
    demand_packages("a proxy model")
    if setting.strip():
        folder = _expanded(setting)
        if trouble := fault_of(folder):
            raise UsageError(
                f"proxy_model {shown_path(folder)}: {trouble}; name a model folder, or leave "
                f"proxy_model empty and run: {INSTALL_COMMAND}"
            )
        return folder
    model = installed(models_folder(environ))
    if model is None:
        raise NotInstalledError(
            f"the proxy model is not installed; get it once with: {INSTALL_COMMAND}"
        )
    if trouble := fault_of(model.folder):
        raise ModelError(
            f"the proxy model in {shown_path(model.folder)} is damaged ({trouble}); run: "
            f"{INSTALL_COMMAND}"
        )
    return model.folder


def fault_of(folder: Path) -> str:
    """Return why a folder is no model that can be replayed, "" when it looks like one.

    Looks at the files a Hugging Face causal language model has, and loads none of them: weights as
    safetensors (no pickles), and a fast tokenizer, whose tokens know their characters.
    """
    if not folder.is_dir():
        return "there is no such folder"
    try:
        layers = layers_of(folder)
    except InputError as err:
        return str(err)
    if layers < 1:
        return f"{CONFIG} names no num_hidden_layers: it is no language model"
    if not any(folder.glob("*.safetensors")):
        return "it has no weights as safetensors"
    if not (folder / TOKENIZER).is_file():
        return f"it has no {TOKENIZER}"
    return ""


def layers_of(folder: Path) -> int:
    """Return the layers that a model folder's config states, 0 where it states none.

    Raises InputError when there is no readable config.
    """
    config = _json_object(folder / CONFIG)
    nested = config.get("text_config")
    for part in (config, nested if isinstance(nested, dict) else {}):
        if type(layers := part.get("num_hidden_layers")) is int:
            return layers
    return 0


def demand_packages(what: str, names: tuple[str, ...] = PACKAGES) -> None:
    """Raise NotInstalledError, with the command that gets them, where packages are missing.

    Args:
        what: What needs them, as the message begins.
        names: The packages, of the extra ``proxy``.
    """
    if missing := missing_packages(names):
        raise NotInstalledError(
            f"{what} needs {' and '.join(missing)}, not installed here: {PACKAGES_COMMAND}"
        )


def missing_packages(names: tuple[str, ...] = PACKAGES) -> list[str]:
    """Return those packages that are not installed, without importing them."""
    return [name for name in names if not _is_there(name)]


@contextmanager
def locked(folder: Path, report: Report) -> Iterator[None]:
    """Hold a models folder for this process alone; waits for another one that holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another recap proxy")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file as hex digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; InputError when there is none."""
    with suppress(OSError):
        if path.stat().st_size > MOST_CONFIG_BYTES:
            raise InputError(f"{path.name} is too large")
    try:
        content = json.loads(read_file(path))
    except (ValueError, RecursionError) as err:
        raise InputError(f"{path.name} is no JSON") from err
    if not isinstance(content, dict):
        raise InputError(f"{path.name} is no JSON object")
    return content


def _expanded(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError as err:
        raise UsageError(
            f"{shown_path(name)} names the home of nobody; name another folder"
        ) from err


def _is_there(name: str) -> bool:
    try:
        return util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
