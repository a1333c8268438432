"""What commands keep between runs: a store by default, none by ``--no-store``."""

from __future__ import annotations

import functools
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recap.cli.output import complain
from recap.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from recap.config import Settings
    from recap.economics import Prices
    from recap.session import Session
    from recap.store import Store
    from recap.transcript.model import Transcript


@dataclass(frozen=True, slots=True)
class State:
    """Where an invocation keeps what it learns.

    Attributes:
        folder: Folder of the store; None for RECAP_HOME or the user's data folder.
        is_kept: False keeps nothing.
    """

    folder: Path | None
    is_kept: bool

    @property
    def place(self) -> Path:
        """Folder of the store."""
        from recap.store.files import store_folder

        return store_folder(self.folder, os.environ)

    @property
    def is_made(self) -> bool:
        """A store is there already, or what is left of one."""
        from recap.store.files import Place
        from recap.store.opening import has_remains

        place = Place(self.place)
        return place.database.exists() or has_remains(place)

    @property
    def inputs(self) -> dict[str, Path | None]:
        """The files of the store that no output may be, by what they are."""
        from recap.store.files import Place

        place = Place(self.place)
        return {"the store": place.database, "the secret of the store": place.secret}

    @contextmanager
    def session(
        self,
        transcript: Transcript,
        label: str,
        settings: Settings,
        *,
        keep: bool,
        prices: Mapping[str, Prices] | None = None,
    ) -> Iterator[Session]:
        """Open the session of a transcript; without a store, and with a line, where that fails.

        Where nothing is to be kept no store is made. One that was asked for by name has to open: else
        StoreError is raised.
        """
        from recap.economics import PRICES
        from recap.session import Session

        priced = PRICES if prices is None else prices
        with (
            self._store(keep) as store,
            Session(
                transcript.session_id, store=store, label=label, settings=settings, prices=priced
            ) as session,
        ):
            yield session
            if session.failure is not None:
                complain(f"nothing was kept: {session.failure}")

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Open the store itself; StoreError where that fails."""
        from recap.store import Store

        with Store.open(self.folder) as store:
            yield store

    @contextmanager
    def _store(self, keep: bool) -> Iterator[Store | None]:
        from recap.store import Store

        store = None
        if self.is_kept and (keep or self.is_made):
            try:
                store = Store.open(self.folder)
            except StoreError as err:
                if self.folder is not None:
                    raise
                complain(f"nothing is kept: {err}")
        try:
            yield store
        finally:
            if store is not None:
                store.close()


NO_STATE = State(None, is_kept=False)
"""Keeps nothing, and uses nothing kept."""


def _folder_of(name: str | None) -> Path | None:
    if name is not None and not name.strip():
        raise UsageError("--store takes a folder")
    return Path(name) if name is not None else None


_folder = click.option(
    "--store", "folder", metavar="DIR", help="Folder of the store; see docs/store.md."
)


def folder_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --store alone, for commands about the store itself; the command gets ``state``."""

    @_folder
    @functools.wraps(function)
    def wrapped(folder: str | None, **given: Any) -> Any:
        return function(state=State(_folder_of(folder), is_kept=True), **given)

    return wrapped


def state_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --store and --no-store; the command gets ``state: State``."""

    @_folder
    @click.option("--no-store", is_flag=True, help="Keep nothing, and use nothing kept.")
    @functools.wraps(function)
    def wrapped(folder: str | None, no_store: bool, **given: Any) -> Any:
        if folder is not None and no_store:
            raise UsageError("give one of --store and --no-store")
        return function(state=State(_folder_of(folder), not no_store), **given)

    return wrapped
