"""Boundary policy: select anew, extend what was served, serve it again, or leave the request alone.

A pure decision on plain numbers; the caller carries it out and remembers what this needs of the
past. Two rules hold in every mode: what is served within a turn only grows, and a selection is made
anew only where a turn opens or an epoch begins. Warm, idle, epoch: ReCAP section 4.4 and ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from recap.config import Settings
    from recap.economics import CostVerdict

Action = Literal["select", "extend", "reuse", "pass"]
State = Literal["warm", "idle", "epoch", "new-epoch"]
Reason = Literal[
    "off",  # the mode says so
    "observe",
    "side_call",  # the request is no turn of the session
    "native_compaction",
    "no_user_message",
    "same_turn",  # the selection of this turn is served again
    "whole_turn",  # the turn began whole and stays whole
    "lost",  # the selection of this turn is not there any more: it is computed again
    "warm",  # the cache is good
    "fixed",  # the epoch is not over
    "unknown",  # nothing is known of the cache: no response was seen yet
    "idle",  # the last response is further away than the cache lives
    "cache_fell",  # the vendor reported fewer cached tokens than before
    "settings",  # what was served before was selected under others
    "cold_resume",  # the client says that nothing is cached
    "near_limit",  # the window is nearly full
    "epoch",  # the prompt has grown enough
    "new_epoch",  # the client compacted by itself
    "not_worth_it",  # the cost verdict says: nothing
    "no_graph",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A request and what is known of its session. Every default is the unknowing one.

    Attributes:
        opens_turn: A real user message that is no steering is the last message.
        has_user: There is a real user message.
        is_side_call: The request carries no tools (``recap.recognise``).
        is_compaction_prompt: The client asks its model for a summary.
        has_graph: A graph of the session exists.
        has_selection: A selection of this very turn (and epoch, in mode epoch) is stored.
        has_previous: A selection of an earlier turn or epoch of this session is stored.
        is_other_settings: Selections are stored, all under other settings or with other pins.
        is_whole_turn: A request of this turn has gone out untouched.
        is_root_changed: The root differs from that of the requests before under the same id.
        is_cold_resume: The client says that it resumed and nothing is cached.
        is_near_limit: The prompt as it would be served nearly fills the window, see ``is_near_limit``.
        cache_life: Seconds that the cached prefix lives, as ``economics.cache_life`` last told; None
            where it never did: then ``idle_ttl``.
        now: Seconds; any clock, the one of ``last_response``.
        last_response: When the last response of the session came; None for never.
        cached: Tokens that the last response reported as read from the cache; None for unknown.
        cached_before: The same of the response before it; None when a selection was made between
            them, which lowers the count by itself.
        prompt_tokens: Of the client's whole prompt, uncompacted; about, None for unknown.
        epoch_tokens: ``prompt_tokens`` when the last epoch began; None for no epoch yet.
        verdict: Whether selecting now would pay; None where nobody computed it.
    """

    opens_turn: bool = False
    has_user: bool = True
    is_side_call: bool = False
    is_compaction_prompt: bool = False
    has_graph: bool = False
    has_selection: bool = False
    has_previous: bool = False
    is_other_settings: bool = False
    is_whole_turn: bool = False
    is_root_changed: bool = False
    is_cold_resume: bool = False
    is_near_limit: bool = False
    cache_life: float | None = None
    now: float = 0.0
    last_response: float | None = None
    cached: int | None = None
    cached_before: int | None = None
    prompt_tokens: int | None = None
    epoch_tokens: int | None = None
    verdict: CostVerdict | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """What is done with a request.

    Attributes:
        action: ``select``: a new selection, stored for the turn. ``extend``: the previous kept set and
            all blocks since, stored for the turn. ``reuse``: the stored selection of the turn.
            ``pass``: the request goes out as it came.
        reason: Why.
        state: What the session is in.
        starts_epoch: The prefix begins anew: the caller notes ``prompt_tokens`` as ``epoch_tokens``
            and, in state ``new-epoch``, links the session to the one before.
    """

    action: Action
    reason: Reason
    state: State = "warm"
    starts_epoch: bool = False


def decide(moment: Moment, settings: Settings, *, mode: str = "") -> Step:
    """Return what is done with a request.

    Args:
        moment: The request and its session.
        settings: ``mode``, ``idle_ttl``, ``epoch_start_tokens`` and ``epoch_step_tokens`` count.
        mode: Mode that this request asks for, "" for that of the settings.
    """
    mode = mode or settings.mode
    if reason := _untouched(moment, mode):
        return Step("pass", reason)
    return _at_epoch(moment, settings) if mode == "epoch" else _at_turn(moment, settings)


def is_near_limit(prompt_tokens: int | None, settings: Settings) -> bool:
    """Return True when a prompt fills the model's window so far that compaction cannot wait.

    ``prompt_tokens`` are those of the prompt as it would be served, extended: the client's whole
    prompt passes the limit once and for all, and would bring a selection at every turn.
    """
    if prompt_tokens is None or settings.context_tokens is None:
        return False
    return prompt_tokens >= settings.near_limit * settings.context_tokens


def is_cache_alive(moment: Moment, settings: Settings) -> bool:
    """Return True when the last response is no further away than the cached prefix lives."""
    if moment.last_response is None or moment.is_cold_resume:
        return False
    life = settings.idle_ttl if moment.cache_life is None else moment.cache_life
    # A response from the future was noted by another clock: it proves no warm cache either.
    return abs(moment.now - moment.last_response) <= life


def _untouched(moment: Moment, mode: str) -> Reason | None:
    """Return why a request is none that a selection is for."""
    if mode == "off":
        return "off"
    if moment.is_side_call:
        return "side_call"
    if moment.is_compaction_prompt:
        return "native_compaction"
    if not moment.has_user:
        return "no_user_message"
    return "observe" if mode == "observe" else None


def _at_turn(moment: Moment, settings: Settings) -> Step:
    if moment.has_selection:
        return Step("reuse", "same_turn")
    if moment.is_whole_turn:
        return Step("pass", "whole_turn")
    if moment.is_root_changed:
        return _worth(moment, "new_epoch", "new-epoch")
    if not moment.opens_turn:
        return Step("select", "lost") if moment.has_graph else Step("pass", "no_graph")
    reason = _cold(moment, settings)
    return _worth(moment, reason, "idle") if reason else _kept(moment, "warm")


def _at_epoch(moment: Moment, settings: Settings) -> Step:
    if moment.is_root_changed and not moment.has_selection:
        first = _is_due(moment.prompt_tokens, None, settings)
        return _worth(moment, "new_epoch", "new-epoch") if first else _begun(moment)
    if _is_due(moment.prompt_tokens, moment.epoch_tokens, settings):
        return _worth(moment, "epoch", "epoch")
    return Step("reuse", "same_turn") if moment.has_selection else _kept(moment, "fixed")


def _is_due(prompt: int | None, epoch: int | None, settings: Settings) -> bool:
    if prompt is None or prompt <= settings.epoch_start_tokens:
        return False
    # A prompt that shrank as much was rewritten by the client: nothing of it is cached.
    return epoch is None or abs(prompt - epoch) >= settings.epoch_step_tokens


def _cold(moment: Moment, settings: Settings) -> Reason | None:
    """Return why the cached prefix is no reason to keep what was served; None: it is one."""
    if moment.is_near_limit:
        return "near_limit"
    if moment.is_cold_resume:
        return "cold_resume"
    if moment.last_response is None:
        return "unknown"
    if moment.is_other_settings:
        return "settings"
    if not is_cache_alive(moment, settings):
        return "idle"
    return "cache_fell" if _fell(moment.cached, moment.cached_before) else None


def _fell(now: int | None, before: int | None) -> bool:
    return now is not None and before is not None and now < before


def _worth(moment: Moment, reason: Reason, state: State) -> Step:
    """Return a new selection, unless the cost verdict is against it."""
    is_against = moment.verdict is not None and moment.verdict.advice == "nothing"
    if is_against and reason != "near_limit":
        return _kept(moment, "not_worth_it", state)
    return _selected(moment, reason, state)


def _selected(moment: Moment, reason: Reason, state: State) -> Step:
    if not moment.has_graph:
        return _kept(moment, "no_graph", state)
    return Step("select", reason, state, starts_epoch=state in ("epoch", "new-epoch"))


def _kept(moment: Moment, reason: Reason, state: State = "warm") -> Step:
    """Return what leaves the served prefix as it is."""
    if state == "new-epoch":
        return _begun(moment, reason)
    return Step("extend" if moment.has_previous else "pass", reason, state)


def _begun(moment: Moment, reason: Reason = "new_epoch") -> Step:
    """Return the beginning of an epoch the client made, nothing of which is left out yet."""
    return Step("pass", reason, "new-epoch", starts_epoch=True)
