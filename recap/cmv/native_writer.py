"""What the native module is handed to write the common lines of a log as planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recap.cmv import native
from recap.cmv.index import HISTORY, NODE, NULL, QUEUE, STATE
from recap.transcript.links import GAP, ROOT, UNKNOWN

if TYPE_CHECKING:
    from recap.cmv.calls import Calls
    from recap.cmv.plan import Plan


def native_writer(plan: Plan, session: bytes | None, calls: Calls) -> Any:
    """Return the native writer of a plan; None where the module was not built.

    Args:
        plan: What is done with each line. Its arrays keep their sizes from now on.
        session: JSON of the new session's id, None to leave it.
        calls: Tells what stands for a result, and ids of nodes.
    """
    if native.lines is None:
        return None
    links = plan.links
    planned = {
        "fates": plan.index.fates,
        "state": plan.state,
        "flags": plan.index.flags,
        "cost": plan.index.cost,
        "new_parents": plan.new_parents,
        "stated": plan.parents.stated,
        "uuid": links.uuid,
        "parent": links.parent,
        "tools": links.tools,
        "first_tool": links.first_tool,
        "makers": plan.pairs.makers,
        "boundary": plan.boundary,
        "has_orphans": plan.pairs.has_orphans,
        "session": session,
        "node": NODE,
        "kept_state": STATE,
        "history": HISTORY,
        "queue": QUEUE,
        "null": NULL,
        "unknown": UNKNOWN,
        "gap": GAP,
        "root": ROOT,
    }
    return native.lines.Writer(plan.index.reading(), planned, calls.stub_of, calls.uuid_json)
