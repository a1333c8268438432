"""Recognition of a captured request: whose session, which turn, a boundary or a step, or neither.

Body and headers in, no server. The turn itself comes from ``recap.turns``; here stands what only a
request shows: side calls that share the session's id, the client's own name of the turn, and what
it says of its cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import msgspec

from recap.config import MODES
from recap.transcript.lists import read_messages
from recap.transcript.model import HUMAN_AUTHORS, Dialect, Json
from recap.turns import SessionKey, boundaries, current_boundary, session_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.transcript.model import Message, Transcript
    from recap.turns import Boundary

MODE_HEADER = "x-recap-mode"
TURN_HEADER = "x-recap-turn"
NAME_HEADER = "x-recap-agent"
CODEX_HEADER = "x-codex-turn-metadata"

COMPACTION_PROMPTS = (
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools",  # Claude Code
    "Your task is to create a detailed summary of the conversation so far",  # Claude Code, earlier
    "You are performing a CONTEXT CHECKPOINT COMPACTION.",  # Codex
    "First, reason in your scratchpad. Then, generate the <state_snapshot>.",  # Gemini CLI
)
"""How the last user text begins by which a client asks its model to summarise the session."""

PassReason = Literal["side_call", "native_compaction", "no_user_message"]
Action = Literal["select", "reuse", "pass"]


@dataclass(frozen=True, slots=True)
class Recognised:
    """What a request is.

    Attributes:
        session: Key of the session.
        turn_key: 32 hex digits, hash of the messages up to the last real user message; "" where
            there is none.
        selection_key: Key of the turn whose selection is served: the last turn key whose message is
            no steering.
        is_boundary: The last real user message is the last message; system messages after it do not
            count.
        is_steering: That message was written into an open tool loop.
        step: Messages of results after the last real user message.
        user_messages: Real user messages.
        is_side_call: It carries no tools, and does not ask to be treated as a turn.
        passes: Why it goes through untouched, "" where it does not.
        mode: Mode the request asks for by header, "" for none.
        agent_name: Name of the agent to show, never part of a key.
        claimed_turn: The client's own id of the turn, "" where it sends none.
        turn_disagrees: The client's id and ours disagree on whether this and the request before are
            one turn. Ours decides.
        is_new_epoch: The root changed under the same id and agent: the client compacted by itself.
        is_cold_resume: The client says that it resumed the session and nothing is cached.
        dialect: Dialect of the message list.
        model: Model asked for, "" where the body names none.
    """

    session: SessionKey
    turn_key: str
    selection_key: str
    is_boundary: bool
    is_steering: bool
    step: int
    user_messages: int
    is_side_call: bool
    passes: PassReason | Literal[""]
    mode: str
    agent_name: str
    claimed_turn: str
    turn_disagrees: bool
    is_new_epoch: bool
    is_cold_resume: bool
    dialect: Dialect
    model: str

    @property
    def opens_turn(self) -> bool:
        """True for the first request of a turn: only there a selection may change."""
        return self.is_boundary and not self.is_steering

    @property
    def action(self) -> Action:
        """What a gateway does that knows no selection yet: a retry finds one and reuses it."""
        if self.passes:
            return "pass"
        return "select" if self.opens_turn else "reuse"


def recognise(
    body: Mapping[str, Json],
    headers: Mapping[str, str],
    *,
    tenant: str = "",
    previous: Recognised | None = None,
    transcript: Transcript | None = None,
) -> Recognised:
    """Return what a request is. Pure and total over JSON bodies.

    Args:
        body: The request, decoded: of OpenAI chat, OpenAI Responses, Anthropic or Gemini.
        headers: Its headers; names are matched without regard to case.
        tenant: Whose it is.
        previous: The last request of the same tenant, id and agent that did not pass through.
        transcript: The body as read before, to read it once.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    read = transcript if transcript is not None else read_messages(body)
    found = boundaries(read.messages)
    last, current = found[-1] if found else None, current_boundary(found)
    after = read.messages[last.message + 1 :] if last else read.messages
    mode = lowered.get(MODE_HEADER, "").strip().lower()
    mode = mode if mode in MODES else ""
    is_side_call = not (body.get("tools") or body.get("functions") or mode)
    claims = _codex_claims(lowered, body)
    now = Recognised(
        session=session_key(read.messages, lowered, body, tenant=tenant, found=found),
        turn_key=last.turn_key if last else "",
        selection_key=current.turn_key if current else "",
        is_boundary=last is not None and all(message.role == "system" for message in after),
        is_steering=last is not None and last.is_steering,
        step=sum(message.role == "tool" for message in after),
        user_messages=len(found),
        is_side_call=is_side_call,
        passes=_pass_reason(read.messages, last, is_side_call=is_side_call),
        mode=mode,
        agent_name=lowered.get(NAME_HEADER) or claims.get("agent_name", ""),
        claimed_turn=lowered.get(TURN_HEADER) or claims.get("turn_id", ""),
        turn_disagrees=False,
        is_new_epoch=False,
        is_cold_resume=claims.get("history_initialization") == "cold_resume",
        dialect=read.dialect,
        model=_text(body.get("model")),
    )
    return _compared(now, previous) if previous is not None and not now.passes else now


def _pass_reason(
    messages: Sequence[Message], last: Boundary | None, *, is_side_call: bool
) -> PassReason | Literal[""]:
    if last is None:
        return "no_user_message"
    if is_side_call:
        return "side_call"
    words = (part for part in messages[last.message].parts if part.author in HUMAN_AUTHORS)
    if any(part.text().lstrip().startswith(COMPACTION_PROMPTS) for part in words):
        return "native_compaction"
    return ""


def _compared(now: Recognised, previous: Recognised) -> Recognised:
    """Return the request with what the one before it shows."""
    one, other = now.session, previous.session
    if (one.tenant, one.id, one.agent) != (other.tenant, other.id, other.agent):
        return now
    is_same_claim = now.claimed_turn == previous.claimed_turn
    is_same_turn = now.selection_key == previous.selection_key
    is_claimed = bool(now.claimed_turn and previous.claimed_turn)
    return replace(
        now,
        turn_disagrees=is_claimed and is_same_claim != is_same_turn,
        is_new_epoch=bool(one.id) and one.root != other.root,
    )


def _codex_claims(headers: Mapping[str, str], body: Mapping[str, Json]) -> Mapping[str, str]:
    """Return the texts of Codex's metadata, which stand in a header and in the body."""
    held = body.get("client_metadata")
    beside = held if isinstance(held, Mapping) else {}
    text = headers.get(CODEX_HEADER) or beside.get(CODEX_HEADER)
    try:
        claims = msgspec.json.decode(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        claims = None
    fields = {**beside, **claims} if isinstance(claims, dict) else beside
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
