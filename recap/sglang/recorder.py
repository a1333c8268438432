"""Requests of one worker that are being measured: from their first token to their result.

A request is known from its first step on by the object SGLang keeps for it: when that object goes, for
whatever reason, what is held here goes too. Rows stay through a retraction, since the tokens stay.
Nothing raised here reaches serving: a failure costs the statistics of the requests it concerns, is
counted, and after ``error_limit`` in a row the worker stops measuring.
"""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from recap.capture.layers import edge_of
from recap.errors import CaptureError
from recap.sglang import compat
from recap.sglang.payload import Payload, PayloadError, Result
from recap.sglang.rows import RowSample
from recap.sglang.turn_end import NO_ROOM, FinishedTurn, measure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from recap.graph.observation import TurnObservation
    from recap.sglang.options import Options
    from recap.sglang.tap import Tap
    from recap.sglang.turn_end import LayerInput

LOG = logging.getLogger(__name__)

FAULTS = ("refused", "not-finite", "other-rank")
"""Reasons of a CaptureError that say that something is wrong with us, not with the request."""

_NONE = np.empty(0, np.int64)
_OTHER_ATTENTION = frozenset({"q_rope", "k_rope", "idx_q"})


@dataclass(slots=True, eq=False)
class Track:
    """A request that carries a payload.

    Attributes:
        payload: How to measure it, None when it was malformed.
        request: SGLang's object.
        sample: Its rows.
        part: Its part of the tap's store, None without one.
        dropped: Why it is not measured, "" when it is. The same on every rank.
        failure: What went wrong on this rank.
        result: What it became, for the output.
    """

    payload: Payload | None
    request: weakref.ref[Any]
    sample: RowSample | None = None
    part: int | None = None
    dropped: str = ""
    failure: Exception | None = None
    result: Result | None = None


class Recorder:
    """All of a worker. One thread: SGLang's scheduler calls everything here in turn."""

    def __init__(self, runner: Any, tap: Tap, options: Options, inner: str) -> None:
        """Record requests of a model runner through ``tap``; ``inner`` names the backend."""
        self.runner = runner
        self.counts: Counter[str] = Counter()
        self.is_off = False
        self._tap = tap
        self._options = options
        self._inner = inner
        self._edge_layer = edge_of(tuple(tap.layers), options.settings.edge_layer)
        self._tracks: dict[str, Track] = {}
        self._ready: set[Track] = set()
        self._step: list[Track] = []
        self._failures = 0

    def __len__(self) -> int:
        return len(self._tracks)

    def start_step(self, forward_batch: Any, requests: Sequence[Any]) -> None:
        """Stage the rows of the step that runs next.

        Args:
            forward_batch: Its ForwardBatch.
            requests: Its requests, in order.
        """
        tracks = [self._tracked(request) for request in requests]
        if self.is_off:
            return
        self._step = [track for track in tracks if track is not None and not track.dropped]
        try:
            self._stage(forward_batch, requests, tracks)
        except Exception as err:  # noqa: BLE001 - never reaches serving
            self._fail_step(err)
            self._unstage()

    def keep(self, layer: Any, q: Tensor, forward_batch: Any, options: dict[str, Any]) -> None:
        """Keep the staged rows of one attention layer; the wrapper calls it after each forward."""
        at = layer.layer_id
        if at not in self._tap.layers or self.is_off:
            return
        try:
            if not _OTHER_ATTENTION.isdisjoint(options):
                raise CaptureError("refused", "queries are not handed over whole")
            if (sinks := options.get("sinks")) is not None:
                self._tap.sinks[at] = sinks
            mode = forward_batch.forward_mode
            if mode.is_decode():
                self._tap.keep_decode(at, q, forward_batch.req_pool_indices)
            elif mode.is_extend_without_speculative():
                self._tap.keep_prefill(at, q, compat.prefill_spans(forward_batch))
        except Exception as err:  # noqa: BLE001 - never reaches serving
            self._fail_step(err)

    def end_request(self, request: Any) -> None:
        """Measure a finished request while it still holds its keys; a retracted one goes on."""
        track = self._known(request)
        if track is None or track.result is not None or not request.finished():
            return
        try:
            result = self._measured(request, track)
        except Exception as err:  # noqa: BLE001 - never reaches serving
            self._fail(err)
            result = self._empty(request.rid, track, "error")
        self._give_back(track)
        self.counts[result.dropped or "recorded"] += 1
        track.result = result
        self._ready.add(track)

    @property
    def has_results(self) -> bool:
        """Whether a result waits for the output of its request."""
        return bool(self._ready)

    def results(self, requests: Sequence[Any]) -> list[list[dict[str, Any]]]:
        """Return for each request what goes into its output: its result once, else nothing."""
        return [self._emitted(request) for request in requests]

    def _emitted(self, request: Any) -> list[dict[str, Any]]:
        track = self._known(request)
        if track is None or track.result is None or not request.finished():
            return []
        self._forget(request.rid, track)
        return [track.result.wire()]

    def _known(self, request: Any) -> Track | None:
        """Return the track of this very request: another one may have the same id."""
        track = self._tracks.get(request.rid)
        return track if track is not None and track.request() is request else None

    def _tracked(self, request: Any) -> Track | None:
        try:
            return self._known(request) or self._new(request)
        except Exception as err:  # noqa: BLE001 - never reaches serving
            self._fail(err)
            return None

    def _new(self, request: Any) -> Track | None:
        """Return the track of a request at its first step; None when it carries no payload."""
        params = compat.custom_params(request)
        if not params:
            return None
        track = Track(None, weakref.ref(request))
        try:
            tokens = len(request.origin_input_ids)
            track.payload = Payload.parse(params, tokens, self._options.most_segments)
            if track.payload is None:
                return None
        except PayloadError:
            track.dropped = "bad-payload"
        if compat.is_unattributable(request):
            track.dropped = "unattributable"
        if self.is_off:
            track.dropped = "off"
        if (other := self._tracks.get(request.rid)) is not None:
            self._forget(request.rid, other)
        self._enter(request, track)
        return track

    def _enter(self, request: Any, track: Track) -> None:
        self._tracks[request.rid] = track
        weakref.finalize(request, self._forget, request.rid, track).atexit = False
        if track.payload is None or track.dropped:
            return
        track.part = self._tap.take()
        if track.part is None and compat.tensor_parallel_group() is None:
            track.dropped = NO_ROOM
            return
        # Another rank may have room and waits for this one when the request ends.
        rows = self._options.settings.rows
        track.sample = RowSample(track.payload.seed, track.payload.start, rows)

    def _forget(self, rid: str, track: Track) -> None:
        """Let go of a track: emitted, replaced, or its request is gone."""
        if self._tracks.get(rid) is not track:
            return
        del self._tracks[rid]
        self._give_back(track)
        self._ready.discard(track)
        if track.result is None:
            self.counts["abandoned"] += 1

    def _give_back(self, track: Track) -> None:
        if track.part is not None:
            self._tap.give_back(track.part)
            track.part = None

    def _unstage(self) -> None:
        """Keep nothing of the next forward: what is staged may be of an earlier step."""
        try:
            self._tap.stage_prefill((), _NONE, _NONE)
            self._tap.stage_decode({})
        except Exception as err:  # noqa: BLE001 - never reaches serving
            for track in tuple(self._tracks.values()):
                track.failure = track.failure or err

    def _stage(self, batch: Any, requests: Sequence[Any], tracks: Sequence[Track | None]) -> None:
        mode = batch.forward_mode
        is_prefill = mode.is_extend_without_speculative() and not mode.is_decode()
        self._stage_prefill(batch, tracks if is_prefill else ())
        self._stage_decode(batch, requests, tracks if mode.is_decode() else ())

    def _stage_prefill(self, batch: Any, tracks: Sequence[Track | None]) -> None:
        tokens, places = [_NONE], [_NONE]
        spans = compat.prefill_spans(batch) if tracks else ()
        row = 0
        for track, (first, end) in zip(tracks, spans, strict=True):
            if track is not None and track.sample is not None:
                entered, place = track.sample.offer(first, end)
                if track.part is not None:
                    tokens.append(entered - first + row)
                    places.append(self._tap.places(track.part, place))
            row += end - first
        self._tap.stage_prefill(spans, np.concatenate(tokens), np.concatenate(places))

    def _stage_decode(
        self, batch: Any, requests: Sequence[Any], tracks: Sequence[Track | None]
    ) -> None:
        places: dict[int, int] = {}
        # With speculative decoding there may be no lengths; its steps keep no rows anyway.
        if any(track is not None for track in tracks) and batch.seq_lens_cpu is not None:
            lengths = batch.seq_lens_cpu.tolist()
            for request, track, length in zip(requests, tracks, lengths, strict=True):
                if track is None or track.sample is None:
                    continue
                _, place = track.sample.offer(length - 1, length)
                if len(place) and track.part is not None:
                    at = self._tap.places(track.part, place)
                    places[compat.request_row(request)] = int(at[0])
        self._tap.stage_decode(places)

    def _measured(self, request: Any, track: Track) -> Result:
        empty = partial(self._empty, request.rid, track)
        if track.payload is None or track.dropped:
            return empty(track.dropped)
        if compat.is_aborted(request):
            return empty("aborted")
        assert track.sample is not None
        end = compat.committed_tokens(request)
        segments = track.payload.segments_to(end)
        if int(segments.offsets[-1]) > end:
            return empty("cut-short")
        positions, places = track.sample.kept(end)
        if not len(positions):
            return empty("no-rows")
        turn = FinishedTurn(
            track.payload.turn, track.payload.seed, segments, positions, end, self._edge_layer
        )
        try:
            observation = self._observed(request, track, turn, places)
        except CaptureError as err:
            if err.reason in FAULTS:
                self._fail(err)
            return empty(err.reason)
        self._failures = 0
        done = empty("")
        return replace(done, observation=observation, rows=len(positions), end=end)

    def _observed(
        self, request: Any, track: Track, turn: FinishedTurn, places: Any
    ) -> TurnObservation:
        slots = compat.slots(self.runner, request, turn.end)

        def layers() -> Iterator[LayerInput]:
            if track.part is None:
                raise CaptureError(NO_ROOM, "the rows of the request were not kept")
            kept = self._tap.places(track.part, places)
            if track.failure is not None:
                raise CaptureError("refused", "a step of the request failed") from track.failure
            for at, layer in self._tap.layers.items():
                q, k = self._tap.kept(at, kept), compat.keys(self.runner, at)
                yield at, q, k, {
                    "kv_indices": slots,
                    "scale": layer.scale,
                    "softcap": layer.softcap,
                    "sinks": self._tap.sinks.get(at),
                }  # fmt: skip

        group = compat.tensor_parallel_group()
        return measure(turn, layers(), self._options.settings, slots.device, group)

    def _empty(self, rid: str, track: Track, reason: str) -> Result:
        payload = track.payload
        return Result(
            rid=rid,
            session="" if payload is None else payload.session,
            observation=None,
            dropped=reason,
            rows=0,
            layers=tuple(self._tap.layers),
            start=0 if payload is None else payload.start,
            end=0,
            inner=self._inner,
        )

    def _fail_step(self, err: Exception) -> None:
        """Spoil the requests of this step. They are dropped when they end, on all ranks alike."""
        LOG.warning("a step was not sampled: %s", type(err).__name__, exc_info=err)
        for track in self._step:
            track.failure = track.failure or err

    def _fail(self, err: Exception) -> None:
        """Count a failed measurement; the last of too many switches measuring off."""
        self.counts["errors"] += 1
        self._failures += 1
        LOG.warning("a request was not measured: %s", type(err).__name__, exc_info=err)
        if self._failures >= self._options.error_limit and not self.is_off:
            self._unstage()
            self._switch_off()

    def _switch_off(self) -> None:
        self.is_off = True
        for track in tuple(self._tracks.values()):  # one whose request is gone may leave meanwhile
            track.dropped = track.dropped or "off"
        LOG.error(
            "%d measurements failed in a row: this worker serves on without statistics",
            self._failures,
        )
