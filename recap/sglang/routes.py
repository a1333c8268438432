"""Routes of a server that show what it measured: ids, numbers and scores, no word of a conversation.

They stand on SGLang's own application, behind the check of its key. A caller sees the sessions of
its own tenant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recap.sglang.caller import BadTenantError

if TYPE_CHECKING:
    from recap.graph.state import ContextGraph
    from recap.sglang.frontend import Frontend
    from recap.sglang.sessions import Live

SCHEMA = "recap.sglang/1"


def add_routes(app: Any, front: Frontend) -> None:
    """Add ``/recap/status``, ``metrics``, ``sessions`` and ``sessions/{id}`` to a Starlette."""
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, PlainTextResponse

    def tenant(request: Any) -> str:
        try:
            return front.tenant(request.headers)
        except BadTenantError as err:
            raise HTTPException(400, str(err)) from err

    async def recap_status(_: Any) -> Any:
        return JSONResponse(status(front))

    async def recap_metrics(_: Any) -> Any:
        return PlainTextResponse(metrics(front))

    async def recap_sessions(request: Any) -> Any:
        rows = [session_row(live) for live in front.sessions.of(tenant(request))]
        return JSONResponse({"schema": SCHEMA, "sessions": rows})

    async def recap_session(request: Any) -> Any:
        live = front.sessions.find(tenant(request), request.path_params["id"])
        if live is None:
            raise HTTPException(404, "no such session")
        view = {"schema": SCHEMA, **session_row(live), "graph": graph_view(live.graph)}
        return JSONResponse(view)

    app.add_route("/recap/status", recap_status)
    app.add_route("/recap/metrics", recap_metrics)
    app.add_route("/recap/sessions", recap_sessions)
    app.add_route("/recap/sessions/{id}", recap_session)


def status(front: Frontend) -> dict[str, Any]:
    """Return whether everything works, and all counters."""
    counts = front.counts
    return {
        "schema": SCHEMA,
        "mode": front.options.settings.mode,
        "is_on": not front.is_off and front.options.settings.mode != "off",
        "is_healthy": not front.is_off and front.is_heard is not False,
        "workers": {None: "not heard of yet", True: "answer", False: "silent"}[front.is_heard],
        "sessions": len(front.sessions),
        "bytes": front.sessions.size,
        "requests": sum(counts.of("requests").values()),
        "prepared": counts.of("prepared"),
        "results": counts.of("results"),
        "compactions": counts.of("compactions"),
        "kept_whole": counts.of("kept_whole"),
        "malformed": counts.of("malformed"),
        "errors": counts.of("errors"),
        "evicted": dict(front.sessions.evicted),
    }


def metrics(front: Frontend) -> str:
    """Return the counters in Prometheus' text format."""
    sessions = front.sessions
    gauges = {
        "sessions": (float(len(sessions)), "Sessions in memory."),
        "session_bytes": (float(sessions.size), "Memory that sessions take, about."),
        "is_on": (float(not front.is_off), "1 while requests are measured."),
    }
    return front.counts.text(gauges, sessions.evicted)


def session_row(live: Live) -> dict[str, Any]:
    """Return a session in numbers."""
    graph = live.graph
    return {
        "id": live.id,
        "label": live.key.id,
        "agent": live.key.agent,
        "turns": graph.turns,
        "blocks": len(graph.ids),
        "edges": len(graph.source),
        "results": dict(live.counts),
        "waiting": len(live.arrived),
        "action": live.action,
        "reason": live.reason,
        "bytes": live.size,
    }


def graph_view(graph: ContextGraph) -> dict[str, Any]:
    """Return a graph as plain values."""
    blocks = zip(
        graph.ids,
        graph.importance.tolist(),
        graph.is_observed.tolist(),
        graph.superseded_by.tolist(),
        strict=True,
    )
    edges = zip(graph.source.tolist(), graph.target.tolist(), graph.mass.tolist(), strict=True)
    return {
        "observer": graph.observer,
        "turns": graph.turns,
        "blocks": [
            {"id": id, "importance": score, "is_observed": seen, "superseded_by": by}
            for id, score, seen, by in blocks
        ],
        "edges": [{"source": a, "target": b, "mass": mass} for a, b, mass in edges],
    }
