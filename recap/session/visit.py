"""One request's visit to a session's past: what the boundary policy does with it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from recap.economics import Change, prices_of, tokens_of, verdict_of
from recap.policy import Step, decide, is_cache_alive, is_near_limit
from recap.select import kept as kept_sets
from recap.session.known import Memory, Prior, Remembered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from recap.config import Settings
    from recap.economics import Prices
    from recap.policy import Moment as Facts
    from recap.select.kept import Kept
    from recap.session.known import Known
    from recap.session.moment import Moment
    from recap.session.past import Past
    from recap.session.report import Compaction


LOSSES = ("never", "too-late")
"""Verdicts that a selection is not served against. Where no price is known, tokens decide."""


class Visit(Memory):
    """Looks up the past for the pipeline, and decides by it.

    Attributes:
        step: What is done with the request; known once the pipeline asked for the kept set.
        is_overruled: The cost verdict was against the selection made: it is not served.
    """

    def __init__(
        self,
        past: Past,
        format: str,
        settings: Settings,
        settings_key: bytes,
        facts: Facts,
        model: str = "",
    ) -> None:
        """Begin a visit; ``facts`` holds what the caller knows: the time and the cache."""
        self.model = model
        self._past = past
        self._format = format
        self._settings = settings
        self._settings_key = settings_key
        self._facts = facts
        self.step = Step("select", "lost")
        self.is_overruled = False
        self._is_whole = False

    def prior(self, moment: Moment) -> Prior:
        """Return what was known of the session before this moment."""
        return self._past.enter(moment, self._format)

    def kept(self, known: Known) -> Remembered | None:
        """Return what is served again by the policy's decision; None: select."""
        own = self._past.kept(known.moment.turn_key, self._settings_key)
        is_epoch = self._settings.mode == "epoch"
        latest, is_selected = None, False
        if own is None or is_epoch:  # a turn that has its own is served that, whatever others got
            turns = () if is_epoch else (each.turn_key for each in reversed(known.moment.closed))
            latest, is_selected = self._past.latest(self._settings_key, turns)
        row = self._past.row
        ratio = row.chars_per_token if row else None
        tokens = tokens_of(known.prompt_chars, ratio)
        served = known.prompt_chars if latest is None else _extended_chars(known, latest)
        self._facts = replace(
            self._facts,
            opens_turn=known.moment.opens_turn or is_epoch,
            has_user=bool(known.moment.turn_key),
            has_graph=True,
            has_selection=own is not None,
            has_previous=latest is not None,
            is_other_settings=is_selected and latest is None,
            is_whole_turn=own is not None and own.is_whole,
            is_root_changed=bool(row and row.parent and not row.rev),
            is_near_limit=is_near_limit(tokens_of(served, ratio), self._settings),
            last_response=row.last_response if row else None,
            cached=row.cached_tokens if row else None,
            prompt_tokens=tokens,
            epoch_tokens=tokens_of(latest.prompt_chars, ratio) if latest else None,
        )
        self.step = decide(self._facts, self._settings)
        if self.step.action == "select":
            return None
        if self.step.action == "reuse" and own is not None:
            # An epoch's selection is made in an open turn: its request is history one step later.
            return Remembered(own, extend=is_epoch)
        if self.step.action == "extend" and latest is not None:
            self._is_whole = latest.is_whole
            return Remembered(latest, extend=True)
        return Remembered(self._whole(), extend=True)

    def judged(self, done: Compaction, prices: Mapping[str, Prices]) -> Compaction:
        """Return the compaction with the decision and the cost verdict in it."""
        report = replace(done.report, action=self.step.action, reason=self.step.reason)
        verdict = verdict_of(
            self._change(done),
            prices_of(_model(done), prices),
            limit=self._settings.break_even_limit,
        )
        is_first = self._facts.verdict is None
        self.is_overruled = is_first and self.step.action == "select" and verdict.reason in LOSSES
        if self.is_overruled:
            self._facts = replace(self._facts, verdict=verdict)
        return replace(done, report=report, verdict=verdict)

    def kept_set(self, done: Compaction) -> Kept | None:
        """Return what is to be remembered of the turn; None where nothing is new."""
        is_fixed = self._settings.mode == "epoch" and self.step.action != "select"
        if self.step.action == "reuse" or is_fixed or self.step.reason in ("off", "observe"):
            return None
        if self.step.action == "pass" or (self.step.action == "extend" and self._is_whole):
            return self._whole()  # it stays whole, without markers of what the client took out
        return kept_sets.kept_of(done.selection, self._settings_key, done.known.prompt_chars)

    def _whole(self) -> Kept:
        return kept_sets.whole(self._settings.policy, self._settings_key)

    def _change(self, done: Compaction) -> Change:
        row, report = self._past.row, done.report
        ratio = row.chars_per_token if row else None
        is_alive = is_cache_alive(self._facts, self._settings)
        return Change(
            before=tokens_of(done.known.prompt_chars, ratio),
            after=tokens_of(report.prompt_chars, ratio),
            cached=(self._facts.cached or 0) if is_alive else 0,
            common=tokens_of(report.fixed_chars, ratio),
            reread=self._settings.reread,
        )


def _extended_chars(known: Known, kept: Kept) -> int:
    """Return the characters of the prompt if the kept set were extended."""
    if kept.is_whole:
        return known.prompt_chars
    ids, cost = known.table.ids, known.table.cost_chars
    chosen = set(kept.ids)
    since = ids.index(kept.last_id) + 1 if kept.last_id in ids else len(ids)
    left_out = (int(cost[i]) for i in range(since) if ids[i] not in chosen)
    inactive = int(cost[~known.table.is_active].sum())
    return max(known.prompt_chars + inactive - sum(left_out), 0)


def _model(done: Compaction) -> str:
    """Return the model that answered last, "" where it is not known."""
    models = (message.model for message in reversed(done.known.moment.messages))
    return next((model for model in models if model), "")
