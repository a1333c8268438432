"""Context graphs that a branch inherits from its snapshot: what mattered goes on to matter.

A trimmed branch holds other results than its snapshot, so what proves a graph has to be made anew:
the message that closed the turns the graph has seen is found again in the branch. The blocks keep
their ids; those that are gone leave the graph.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from recap.capture.reuse import OBSERVER
from recap.cmv.graphs import graphs_in
from recap.errors import InputError
from recap.graph.codec import decode, encode
from recap.graph.rename import renamed
from recap.session.known import Memory, known_of
from recap.session.model import fingerprint_of
from recap.store import SessionRow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recap.cmv.graphs import Graph
    from recap.config import Settings
    from recap.graph.state import ContextGraph
    from recap.session.known import Known
    from recap.store import SnapshotRow, Store
    from recap.transcript.model import Transcript
    from recap.turns import Boundary


def inherit(
    store: Store,
    snapshot: SnapshotRow,
    before: Transcript,
    after: Transcript,
    settings: Settings,
    *,
    label: str,
    environ: Mapping[str, str] = os.environ,
) -> int:
    """Give a branch the graphs its snapshot keeps, and return how many it got.

    A graph that the snapshot's messages do not prove, under these settings, is left out: it would be
    made anew anyway.

    Args:
        store: Where both are.
        snapshot: Keeps the graphs.
        before: The snapshot's session.
        after: The branch.
        settings: Coefficients.
        label: What people know the branch by.
        environ: Environment variables, by which a model that measured is found.

    Raises:
        StoreError: A graph cannot be read or saved.
    """
    count = 0
    for kept in graphs_in(store.history, snapshot):
        own = settings.replace(observer=kept.observer)
        model = "" if kept.observer == OBSERVER else fingerprint_of(own.proxy_model, environ)
        found = _inherited(kept, _known(before, own, model), known := _known(after, own, model))
        if found is not None:
            store.save_session(_row(store, kept, known, *found, label, after.session_id))
            count += 1
    return count


class _Of(Memory):
    """Remembers nothing but whose model measures."""

    def __init__(self, model: str) -> None:
        self.model = model


def _known(transcript: Transcript, settings: Settings, model: str) -> Known:
    return known_of(transcript, None, settings, memory=_Of(model))


def _inherited(kept: Graph, before: Known, after: Known) -> tuple[ContextGraph, str] | None:
    """Return a graph as the branch has it, with what proves it there; None where nothing does."""
    try:
        graph = decode(kept.graph)
    except InputError:  # of another release
        return None
    if not kept.observed_key or kept.observed_key != before.proof(graph.turns):
        return None
    turns = _same_turns(before, after, before.closed[graph.turns])
    if turns is None:
        return None
    gone = set(graph.ids) - {block.id for block in after.whole.blocks}
    return renamed(graph, {}, turns, gone=gone), after.proof(turns)


def _same_turns(before: Known, after: Known, closing: Boundary) -> int | None:
    """Return how many turns of the branch a message of the snapshot closes; None if it is gone."""
    uid = before.moment.messages[closing.message].uid
    for turns, found in after.closed.items():
        if found.turn_key == closing.turn_key:
            return turns
        if uid and after.moment.messages[found.message].uid == uid:
            return turns
    return None


def _row(
    store: Store,
    kept: Graph,
    known: Known,
    graph: ContextGraph,
    key: str,
    label: str,
    session: str,
) -> SessionRow:
    root = known.moment.session.root
    return SessionRow(
        tenant=store.key("tenant", ""),
        id=store.key("session", session, "", root, kept.observer),
        label=label,
        format=kept.format,
        observer=kept.observer,
        observed_key=key,
        turns=graph.turns,
        blocks=len(graph.ids),
        graph=encode(graph),
    )
