"""Where the store lies: its folder, the secret, the lock, and their permissions."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recap.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE_MODE = 0o600
FOLDER_MODE = 0o700
SECRET_BYTES = 32
LOCK_SECONDS = 30.0

_OWN = (
    "recap.db*", "secret", "secret.new-*", "lock", "making", "backups", "damaged-*", "repairing",
)  # fmt: skip


class Place(NamedTuple):
    """The files of one store."""

    folder: Path

    @property
    def database(self) -> Path:
        """The database; SQLite keeps ``-wal`` and ``-shm`` beside it."""
        return self.folder / "recap.db"

    @property
    def secret(self) -> Path:
        """The key of all identities at rest."""
        return self.folder / "secret"

    @property
    def lock(self) -> Path:
        """Held shared by every open store, exclusively while one is made or repaired."""
        return self.folder / "lock"

    @property
    def making(self) -> Path:
        """Held shared by whoever makes files outside the store, exclusively to settle what is left."""
        return self.folder / "making"

    @property
    def backups(self) -> Path:
        """Folder of the rolling copies."""
        return self.folder / "backups"

    def own_paths(self) -> list[Path]:
        """Return files and folders that are there and that the store made; others are left alone."""
        tops = [path for pattern in _OWN for path in self.folder.resolve().glob(pattern)]
        return sorted({*tops, *(path for top in tops for path in top.rglob("*"))})


def store_folder(folder: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the folder of the store: the argument, else RECAP_HOME, else the user's data folder."""
    if folder is not None:
        return folder
    if (named := environ.get("RECAP_HOME", "")).strip():
        try:
            return Path(named).expanduser()
        except RuntimeError as err:
            raise StoreError("RECAP_HOME names the home of nobody; name another folder") from err
    import platformdirs

    return platformdirs.user_data_path("recap", appauthor=False)


def make_folder(folder: Path) -> None:
    """Make the folder, for its owner only.

    Raises:
        StoreError: It cannot be made, or it is somebody else's folder that others can read.
    """
    try:
        if not folder.exists():
            folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            folder.chmod(FOLDER_MODE)
        mode = stat.S_IMODE(folder.stat().st_mode)
        if mode & 0o077:
            names = {path.name for path in folder.iterdir()}
            if names and "recap.db" not in names:
                raise StoreError(
                    f"{folder} holds other files and others can read it (mode {mode:03o}); "
                    f"name another folder with RECAP_HOME"
                )
            folder.chmod(FOLDER_MODE)
    except OSError as err:
        raise StoreError(f"cannot use {folder} as store ({err.strerror})") from err


def check_regular(path: Path) -> None:
    """Raise StoreError when a path is there and is no regular file: a link, a folder, a pipe."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as err:
        raise StoreError(f"cannot read {path} ({err.strerror})") from err
    if not stat.S_ISREG(mode):
        raise StoreError(f"{path} is no regular file; move it away, it is not the store's")


def make_private(path: Path) -> None:
    """Take a file's permissions from everybody but its owner."""
    try:
        if stat.S_IMODE(path.stat().st_mode) != FILE_MODE:
            path.chmod(FILE_MODE)
    except OSError as err:
        raise StoreError(f"cannot set the permissions of {path} ({err.strerror})") from err


def new_file(path: Path) -> int:
    """Return a descriptor of a new file with mode 0600, whatever the umask."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, FILE_MODE)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def sync_folder(folder: Path) -> None:
    """Make names that were just written survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_secret(path: Path) -> bytes | None:
    """Return the secret, None when there is none.

    Raises:
        StoreError: It is no regular file of 32 bytes.
    """
    check_regular(path)
    try:
        secret = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as err:
        raise StoreError(f"cannot read {path} ({err.strerror})") from err
    if len(secret) != SECRET_BYTES:
        raise StoreError(
            f"{path} is damaged: {len(secret)} bytes instead of {SECRET_BYTES}; put the original "
            f"back, or run: recap verify --repair"
        )
    return secret


def make_secret(path: Path) -> bytes:
    """Return a new secret, written whole or not at all. The caller holds the lock."""
    secret = os.urandom(SECRET_BYTES)
    temporary = path.with_name(f"{path.name}.new-{os.urandom(8).hex()}")
    descriptor = new_file(temporary)
    try:
        os.write(descriptor, secret)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(path)
    sync_folder(path.parent)
    return secret


def secret_id(secret: bytes) -> str:
    """Return what the database knows of its secret: enough to tell another one apart."""
    return hashlib.blake2b(secret, digest_size=16, person=b"recap secret id").hexdigest()


class Lock:
    """A lock on the folder: shared while a store is open, exclusive to make or repair one."""

    def __init__(self, path: Path, *, is_exclusive: bool, seconds: float = LOCK_SECONDS) -> None:
        check_regular(path)
        try:
            flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, FILE_MODE)
            os.fchmod(self._descriptor, FILE_MODE)
        except OSError as err:
            raise StoreError(f"cannot write {path.parent} ({err.strerror})") from err
        self._path = path
        try:
            self.change(is_exclusive=is_exclusive, seconds=seconds)
        except StoreError:
            self.release()
            raise

    def change(self, *, is_exclusive: bool, seconds: float = LOCK_SECONDS) -> None:
        """Make a shared lock exclusive, or the other way round.

        Raises:
            StoreError: Somebody else holds it for too long.
        """
        kind = fcntl.LOCK_EX if is_exclusive else fcntl.LOCK_SH
        deadline = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self._descriptor, kind | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StoreError(
                        f"the store {self._path.parent} is in use by another process; end it and try "
                        f"again"
                    ) from None
            time.sleep(0.01)

    def release(self) -> None:
        """Give the lock back; harmless when that has happened."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextlib.contextmanager
def locked(path: Path, *, is_exclusive: bool, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold a lock for the length of a block.

    Raises:
        StoreError: Somebody else holds it for too long, or the folder cannot be written.
    """
    lock = Lock(path, is_exclusive=is_exclusive, seconds=seconds)
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def is_free(path: Path) -> Iterator[bool]:
    """Hold a lock exclusively for the length of a block if nobody has it: True then, else False."""
    try:
        lock = Lock(path, is_exclusive=True, seconds=0)
    except StoreError:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()
