"""The main process: chat requests on their way in, what was measured of them on its way out.

Nothing raised here reaches serving: a request that cannot be measured is served as it came, and
counted by reason. Logs and counters hold no word of a conversation.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import finalize

from recap.capture.spans import SpanError
from recap.recognise import MODE_HEADER, Recognised, recognise
from recap.sglang import compaction
from recap.sglang.caller import BadTenantError, Caller, caller_of, tenant_of
from recap.sglang.counts import Counts
from recap.sglang.measured import TAIL, turn_seed
from recap.sglang.payload import KEY, PREFIX, Payload
from recap.sglang.rendering import NO_BLOCK, NotAttributable, attributed, owners
from recap.sglang.sessions import DIALECT, Arrived, Sessions, open_store, result_of, usage_of
from recap.transcript.lists import read_messages
from recap.turns import SessionKey, boundaries, session_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from recap.sglang.compaction import Shortened
    from recap.sglang.options import Options
    from recap.sglang.rendering import Items, Rendered
    from recap.sglang.sessions import Live
    from recap.transcript.model import Transcript

LOG = logging.getLogger(__name__)

PATIENCE = 0.5
"""Seconds that a request waits for another one of its session."""

Headers: TypeAlias = "Mapping[str, str]"


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A request that is to be measured, as its messages and its session say.

    Attributes:
        live: Its session.
        is_stored: The session is one of the server's; else it ends with the request.
        client_items: Messages as the client sent them.
        item_bytes: Bytes of these as JSON.
        items: Messages as they are served.
        ids: Blocks of the session.
        owner: Block of each served message, an index into ``ids`` or -1.
        turn: 0-based number of the current turn.
        turn_item: Served message that begins it.
        seed: What its rows are drawn by.
        short: What compaction made of it; None where none was asked for.
        wants_results: The client asked for metadata of its response.
    """

    live: Live
    is_stored: bool
    client_items: Items
    item_bytes: int
    items: Items
    ids: tuple[str, ...]
    owner: list[int]
    turn: int
    turn_item: int
    seed: int
    short: Shortened | None
    wants_results: bool


class Frontend:
    """All of the main process. Requests are converted in several threads at once."""

    def __init__(
        self, options: Options, *, has_keys: bool, now: Callable[[], float] = time.time
    ) -> None:
        """Begin with no sessions.

        Args:
            options: Of the server.
            has_keys: The server checks a key of its clients.
            now: Unix time, seconds.

        Raises:
            StoreError: The folder of ``options.store`` cannot be opened.
        """
        self.options = options
        self.counts = Counts()
        self.is_off = False
        self._has_keys = has_keys
        self._now = now
        self._failures = 0
        self._asked: dict[int, Asked] = {}
        self._is_answered = False
        self.sessions = Sessions(
            options.settings,
            most=options.sessions,
            most_bytes=options.session_mib << 20,
            idle=options.session_idle,
            shelf=open_store(Path(options.store)) if options.store else None,
            now=now,
        )

    @property
    def is_heard(self) -> bool | None:
        """Whether workers answer: False when requests ended unanswered and none ever was."""
        if self._is_answered:
            return True
        return False if self.counts.of("results").get("no-answer") else None

    def prepare(self, request: Any, headers: Headers, model: str) -> Asked | None:
        """Return how to measure a request; in a mode that compacts, shorten its messages first.

        Args:
            request: SGLang's chat request. Its messages may be replaced.
            headers: Headers it came with.
            model: What tells the served model from others: each has graphs of its own.
        """
        self.counts.add("requests")
        _drop_foreign(request)
        if self.is_off or self.options.settings.mode == "off":
            self.counts.add("prepared", "off")
            return None
        started, messages = time.perf_counter(), request.messages
        try:
            asked = self._prepared(request, headers, model)
        except NotAttributable as reason:
            self.counts.add("prepared", str(reason))
            return None
        except Exception as err:  # noqa: BLE001 - never reaches serving
            request.messages = messages
            self.fail(err)
            self.counts.add("prepared", "error")
            return None
        finally:
            self.counts.took(time.perf_counter() - started)
        return asked

    def attach(self, asked: Asked, adapted: Any, calls: Sequence[Rendered]) -> None:
        """Attach to SGLang's internal request what a worker has to know to measure it."""
        started = time.perf_counter()
        outcome = "asked"
        try:
            self._attach(asked, adapted, calls)
            self._failures = 0
        except SpanError as err:
            outcome = err.reason
        except NotAttributable as reason:
            outcome = str(reason)
        except Exception as err:  # noqa: BLE001 - never reaches serving
            self.fail(err)
            outcome = "error"
        self.counts.add("prepared", outcome)
        self.counts.took(time.perf_counter() - started)

    def take(
        self, meta_info: dict[str, Any], adapted: Any, values: Sequence[object], *, is_end: bool
    ) -> None:
        """Take the result that came with a response; leave it to a client that asked for it.

        Args:
            meta_info: Metadata of the response.
            adapted: SGLang's internal request.
            values: What the worker sent under our name, for this request.
            is_end: The response is complete.
        """
        asked = self._asked.pop(id(adapted), None) if is_end else None
        if asked is None:
            if values:
                meta_info[KEY] = list(values)  # spans of the client's own
            return
        try:
            result = result_of(values)
            self._note(asked, meta_info, "bad-result" if values and result is None else "", result)
            if asked.wants_results:
                meta_info[KEY] = list(values)
                if asked.short is not None:
                    meta_info[f"{KEY}_compaction"] = asked.short.report()
        except Exception as err:  # noqa: BLE001 - never reaches serving
            self.fail(err)

    def restore(self, request: Any, messages: list[Any], asked: Asked | None) -> None:
        """Put a client's messages back: the server did not take the shortened ones."""
        request.messages = messages
        self.counts.add("errors", "refused-messages")
        self.give_up(asked)
        if asked is not None:
            asked.live.action, asked.live.reason = "pass", "refused-messages"

    def give_up(self, asked: Asked | None) -> None:
        """Count a request that the server refused."""
        if asked is not None:
            self.counts.add("prepared", "refused-messages")

    def tenant(self, headers: Headers) -> str:
        """Return the tenant of a request. Raises BadTenantError."""
        return tenant_of(
            headers,
            has_keys=self._has_keys,
            trusted_header=self.options.tenant_header,
            key=self.sessions.secret_key,
        )

    def fail(self, err: Exception) -> None:
        """Count a fault of ours; after too many in a row nothing is measured any more."""
        self.counts.add("errors", type(err).__name__)
        self._failures += 1
        shown = err if os.environ.get("RECAP_DEBUG") == "1" else None  # it may quote a conversation
        LOG.warning("a request is served without Recap: %s", type(err).__name__, exc_info=shown)
        if self._failures >= self.options.error_limit and not self.is_off:
            self.is_off = True
            LOG.error("%d faults in a row: this server serves on without Recap", self._failures)

    def _prepared(self, request: Any, headers: Headers, model: str) -> Asked:
        if request.input_ids is not None:
            raise NotAttributable("own-ids")
        if (request.n or 1) > 1:
            raise NotAttributable("several-answers")
        caller = self._caller(request, headers)
        if caller.headers.get(MODE_HEADER, "").strip().lower() == "off":
            raise NotAttributable("off")
        items = [_plain(message) for message in request.messages]
        key = _key(items, caller)
        if not key.root:
            raise NotAttributable("no-user-message")
        if not key.id:
            return self._passing(request, items, self.sessions.opened(key, model), caller)
        live = self.sessions.enter(key, model)
        if not live.lock.acquire(timeout=PATIENCE):
            raise NotAttributable("busy")
        try:
            return self._known(request, items, live, caller)
        finally:
            live.lock.release()

    def _caller(self, request: Any, headers: Headers) -> Caller:
        try:
            tenant = self.tenant(headers)
        except BadTenantError as err:
            self.counts.add("malformed", "tenant")
            raise NotAttributable("bad-tenant") from err
        caller = caller_of(headers, request.session_id, tenant)
        if caller.malformed:
            self.counts.add("malformed", "label", caller.malformed)
        return caller

    def _passing(self, request: Any, items: Items, live: Live, caller: Caller) -> Asked:
        """Measure a request without a session: for its own response, if the client wants that."""
        if not request.return_meta_info:
            raise NotAttributable("no-session")
        return self._known(request, items, live, caller)

    def _known(self, request: Any, items: Items, live: Live, caller: Caller) -> Asked:
        transcript = live.read(items)
        live.take_results(is_judged=self.options.settings.mode in compaction.COMPACTING)
        known = live.observe(transcript)
        items, short = live.items, None
        if live.id:
            recognised = _recognised(request, transcript, caller)
            short = self._short(request, live, transcript, recognised)
        if not known.moment.closed:
            raise NotAttributable("no-user-message")
        owner = owners(known.moment.messages, known.whole, len(items))
        turn_item = known.moment.messages[known.moment.closed[-1].message].line - 1
        served = items
        if short is not None and short.is_changed:
            served = short.items
            owner = [owner[at] if at >= 0 else NO_BLOCK for at in short.source]
            if turn_item not in short.source:
                raise NotAttributable("turn-changed")
            turn_item = short.source.index(turn_item)
        return Asked(
            live=live,
            is_stored=bool(live.id),
            client_items=items,
            item_bytes=live.item_bytes,
            items=served,
            ids=tuple(block.id for block in known.whole.blocks),
            owner=owner,
            turn=known.closed_turns,
            turn_item=turn_item,
            seed=turn_seed(known.moment.session, known.moment.turn_key),
            short=short,
            wants_results=bool(request.return_meta_info),
        )

    def _short(
        self, request: Any, live: Live, transcript: Transcript, recognised: Recognised
    ) -> Shortened | None:
        """Shorten a request's messages; on a fault of ours they stay as they came."""
        mode = self.options.settings.mode
        if not compaction.is_asked_for(recognised, mode):
            if mode in compaction.COMPACTING:
                self.counts.add("kept_whole", recognised.passes or f"mode-{recognised.mode}")
            return None
        before = request.messages
        try:
            done = live.session.compact(transcript, is_cold=recognised.is_cold_resume)
            short = compaction.shortened(done, live.items)
            if short.is_changed:
                request.messages = compaction.models(request, short)
        except Exception as err:  # noqa: BLE001 - the client's messages are served
            request.messages = before
            self.fail(err)
            live.action, live.reason = "pass", "error"
            return None
        live.action, live.reason = short.action, short.reason
        self.counts.add("compactions", short.action)
        if not short.is_shorter:
            self.counts.add("kept_whole", short.reason)
        return short

    def _attach(self, asked: Asked, adapted: Any, calls: Sequence[Rendered]) -> None:
        found = attributed(
            calls,
            adapted,
            asked.items,
            asked.ids,
            asked.owner,
            asked.turn_item,
            asked.live.prompt,
        )
        if len(found.segments.owner) > self.options.most_segments:
            raise NotAttributable("too-many-segments")
        payload = Payload(asked.live.id, asked.seed, asked.turn, found.start, found.segments, TAIL)
        sampling = adapted.sampling_params
        sampling["custom_params"] = {**(sampling.get("custom_params") or {}), **payload.params()}
        self._asked[id(adapted)] = asked
        finalize(adapted, self._forget, id(adapted), asked).atexit = False

    def _forget(self, number: int, asked: Asked) -> None:
        """Count a request whose response ended without a word of its worker."""
        if self._asked.get(number) is not asked:
            return
        del self._asked[number]
        self.counts.add("results", "no-answer")
        if not self._is_answered:
            LOG.error("a request ended and no worker measured it: is recap on in the schedulers?")

    def _note(self, asked: Asked, meta_info: Mapping[str, Any], fault: str, result: Any) -> None:
        outcome = fault or ("no-answer" if result is None else result.dropped or "recorded")
        self._is_answered = self._is_answered or result is not None
        self.counts.add("results", outcome)
        if not asked.is_stored:
            return
        usage = usage_of(meta_info)
        asked.live.arrive(
            Arrived(asked.seed, asked.client_items, asked.item_bytes, result, usage, self._now()),
            outcome,
        )


def _plain(message: Any) -> dict[str, Any]:
    """Return a message as the client may have sent it."""
    if isinstance(message, dict):
        return {name: value for name, value in message.items() if value is not None}
    plain: dict[str, Any] = message.model_dump(exclude_none=True)
    return plain


def _key(items: Items, caller: Caller) -> SessionKey:
    """Return what names the session; the messages after its first real one are not read."""
    for at, item in enumerate(items):
        if item.get("role") != "user":
            continue
        messages = read_messages(items[: at + 1], DIALECT).messages
        if found := boundaries(messages):
            body = {"prompt_cache_key": caller.session_id}
            return session_key(messages, caller.headers, body, tenant=caller.tenant, found=found)
    return SessionKey(caller.tenant, "", "", "")


def _recognised(request: Any, transcript: Transcript, caller: Caller) -> Recognised:
    body = {"tools": bool(request.tools), "prompt_cache_key": caller.session_id}
    return recognise(body, caller.headers, tenant=caller.tenant, transcript=transcript)


def _drop_foreign(request: Any) -> None:
    """Drop what a client sent under our names: in a chat request they come from here alone."""
    params = request.custom_params
    if params and any(name.startswith(PREFIX) for name in params):
        request.custom_params = {n: v for n, v in params.items() if not n.startswith(PREFIX)}
