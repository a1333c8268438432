"""Context graphs of a session that travel with its snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recap.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from recap.store import History, SessionRow, SnapshotRow, Store

GRAPH = ".recap/graph-"


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph as a snapshot keeps it.

    Attributes:
        observer: What measured it.
        observed_key: What proves the turns it has seen.
        turns: How many these are.
        blocks: How many blocks it scores.
        format: Format the session was read as.
        graph: The graph, see ``recap.graph.codec``.
    """

    observer: str
    observed_key: str
    turns: int
    blocks: int
    format: str
    graph: bytes


class Kept(NamedTuple):
    """A graph to keep: its name below ``.recap/``, its revision, its bytes."""

    name: str
    revision: int
    data: bytes


_DECODER = msgspec.msgpack.Decoder(Graph)


def graphs_of(store: Store, session: str, path: Path) -> list[Kept]:
    """Return the graphs a store has of a session, one for each observer, the newest of each.

    A session's row is found by what people know it by: its file, or the client's id.
    """
    tenant = store.key("tenant", "")
    labels = {session, str(path), str(path.resolve())}
    newest: dict[str, SessionRow] = {}
    for listed in store.sessions(tenant):
        if listed.label in labels and listed.observer and listed.observer not in newest:
            row = store.load_session(tenant, listed.id)
            if row is not None and row.graph:
                newest[listed.observer] = row
    return [
        Kept(f"graph-{number}", row.rev, _encoded(row))
        for number, row in enumerate(newest.values())
    ]


def graphs_in(history: History, row: SnapshotRow) -> list[Graph]:
    """Return the graphs a snapshot keeps.

    Raises:
        StoreError: One cannot be read.
    """
    sides = [side for side in row.sides if side.name.startswith(GRAPH)]
    try:
        return [_DECODER.decode(b"".join(history.read(side))) for side in sides]
    except msgspec.DecodeError as err:
        raise StoreError(f"a graph of snapshot {row.name!r} cannot be read: {err}") from err


def _encoded(row: SessionRow) -> bytes:
    graph = Graph(
        observer=row.observer,
        observed_key=row.observed_key,
        turns=row.turns,
        blocks=row.blocks,
        format=row.format,
        graph=row.graph,
    )
    return msgspec.msgpack.encode(graph)
