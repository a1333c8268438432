"""Sessions of the server's main process: bounded, apart by tenant, each for one request at a time."""

from __future__ import annotations

import secrets
import time
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from recap.economics import Usage
from recap.graph.state import ContextGraph
from recap.session import Session
from recap.session.reading import GrowingList
from recap.session.shelf import Volatile
from recap.sglang.measured import OBSERVER, MeasuredTurns, Step, observation_bytes
from recap.sglang.payload import PayloadError, Result
from recap.sglang.tokens import GrowingPrompt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from recap.config import Settings
    from recap.graph.observation import TurnObservation
    from recap.session.known import Known
    from recap.session.shelf import Shelf
    from recap.sglang.rendering import Items
    from recap.transcript.model import Transcript
    from recap.turns import SessionKey

MOST_WAITING = 256
"""Results of a session that wait for the request after them."""

MEMORY_FACTOR = 12
"""Memory of a session per byte of its messages as JSON, about: texts, parts, blocks and tokens."""

OVERHEAD = 1 << 14
"""Bytes that a session takes beside its messages, about."""

DIALECT = "openai"


class MemoryShelf(Volatile):
    """A shelf of this process whose keys nobody outside can compute."""

    def __init__(self, secret: bytes, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self._secret = secret

    def key(self, *pieces: str | bytes) -> bytes:
        """Return 16 bytes that stand for the pieces."""
        return super().key(blake2b(super().key(*pieces), key=self._secret, digest_size=16).digest())


@dataclass(frozen=True, slots=True, eq=False)
class Arrived:
    """The result of a request, as it waits for the next one of its session.

    Attributes:
        seed: The turn it is of.
        items: The client's messages of its request.
        item_bytes: Bytes of these as JSON.
        result: What was measured; None where no result came with the response.
        usage: Tokens of the response.
        at: Unix time of the response.
    """

    seed: int
    items: Items
    item_bytes: int
    result: Result | None
    usage: Usage
    at: float

    @property
    def observation(self) -> TurnObservation | None:
        """What was measured."""
        return None if self.result is None else self.result.observation

    @property
    def size(self) -> int:
        """Bytes of memory it takes, about."""
        seen = self.observation
        return self.item_bytes + (0 if seen is None else observation_bytes(seen))

    @property
    def place(self) -> tuple[int, int]:
        """Which answer of the session it is: several of one place are answers to one request."""
        return self.seed, len(self.items)


@dataclass(slots=True, eq=False)
class Live:
    """A session in memory. What is not said to be for any thread is for who holds ``lock``.

    Attributes:
        id: 32 hex digits by which operators know it.
        key: What names it.
        session: Its past.
        turns: What was measured of its turns.
        items: The client's messages of its last request; equal ones stay the same objects.
        graph: Its graph as of the last request; any thread may read it.
        prompt: Tokens of its last prompt; any thread may use it.
        arrived: Results that wait.
        counts: Results by what became of them; any thread may read.
        action, reason: What the boundary policy did last, and why.
        item_bytes: Bytes of ``items`` as JSON.
        size: Bytes of memory it takes, about; any thread may read.
        used: When it was used last, seconds of a clock that never goes back.
    """

    id: str
    key: SessionKey
    session: Session
    turns: MeasuredTurns
    lock: Lock = field(default_factory=Lock)
    items: Items = field(default_factory=list)
    graph: ContextGraph = field(default_factory=lambda: ContextGraph.empty(OBSERVER))
    prompt: GrowingPrompt = field(default_factory=GrowingPrompt)
    arrived: deque[Arrived] = field(default_factory=lambda: deque(maxlen=MOST_WAITING))
    counts: Counter[str] = field(default_factory=Counter)
    action: str = ""
    reason: str = ""
    item_bytes: int = 0
    size: int = OVERHEAD
    used: float = 0.0
    _gone_chars: int = 0  # of messages that the client does not send any more
    _list: GrowingList = field(default_factory=GrowingList)

    def read(self, items: Items) -> Transcript:
        """Return the transcript of a request's messages; what it repeats is not read again."""
        known = self.items
        self.items = [
            old if old == new else new for old, new in zip(known, items, strict=False)
        ] + items[len(known) :]
        self.item_bytes = len(msgspec.json.encode(self.items))
        self._weigh()
        return self._list.read(self.items, DIALECT)

    def arrive(self, arrived: Arrived, outcome: str) -> None:
        """Keep a result for the request after it, and count it. For any thread."""
        self.counts[outcome] += 1
        self.arrived.append(arrived)
        self._weigh()

    def take_results(self, *, is_judged: bool) -> None:
        """Take what arrived since the last request; ``items`` are those of this one.

        Args:
            is_judged: The boundary policy judges by what responses cached.
        """
        waiting = [self.arrived.popleft() for _ in range(len(self.arrived))]
        ready = [each for each in waiting if len(each.items) < len(self.items)]
        # A request sent again waits on, for the answer that the client goes on from.
        self.arrived.extend(each for each in waiting if len(each.items) >= len(self.items))
        answers = Counter(each.place for each in ready if each.observation is not None)
        for each in ready:
            if is_judged:
                self.session.responded(each.usage, each.at)
            self._take(each, is_only=answers[each.place] == 1)
        self._weigh()

    def _take(self, each: Arrived, *, is_only: bool) -> None:
        if each.result is None or each.observation is None:
            return
        size = len(each.items)
        is_continued = is_only and self.items[:size] == each.items
        is_answer = is_continued and self.items[size].get("role") == "assistant"
        step = Step(each.observation, each.result.rows, size + 1 if is_answer else 0)
        self.turns.add(each.seed, step)

    def observe(self, transcript: Transcript) -> Known:
        """Return what is known of the session, its closed turns folded into the graph."""
        known = self.session.observe(transcript, open_turn=False)
        self.graph = known.graph
        gone = (known.moment.messages[index] for index in known.moment.gone)
        self._gone_chars = sum(part.cost_chars for message in gone for part in message.parts)
        self._weigh()
        return known

    def _weigh(self) -> None:
        texts = MEMORY_FACTOR * (self.item_bytes + self._gone_chars)
        waiting = sum(each.size for each in tuple(self.arrived))
        self.size = OVERHEAD + texts + self.turns.size + waiting


class Sessions:
    """All sessions in memory: the least recently used go first. For any thread."""

    def __init__(
        self,
        settings: Settings,
        *,
        most: int,
        most_bytes: int,
        idle: float,
        shelf: Shelf | None = None,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with none.

        Args:
            settings: Coefficients of every session.
            most: Sessions in memory.
            most_bytes: Memory they may take, about.
            idle: Seconds without a request after which a session goes.
            shelf: Where graphs and selections stay; None keeps them with their session in memory.
            now: Unix time, seconds: what responses are stamped with.
            clock: Seconds, never going back.
        """
        self._settings = settings.replace(observer=OBSERVER)
        self._most = most
        self._most_bytes = most_bytes
        self._idle = idle
        self._now = now
        self._clock = clock
        self._shelf = shelf
        self._secret = secrets.token_bytes(32)
        self._keys: Shelf = shelf or MemoryShelf(self._secret)
        self._lock = Lock()
        self._live: OrderedDict[tuple[str, str], Live] = OrderedDict()
        self.evicted: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._live)

    @property
    def size(self) -> int:
        """Bytes of memory that the sessions take, about."""
        with self._lock:
            return sum(live.size for live in self._live.values())

    def secret_key(self, *pieces: str) -> bytes:
        """Return 16 bytes that stand for the pieces, for nobody outside this server."""
        return self._keys.key(*pieces)

    def enter(self, key: SessionKey, fingerprint: str) -> Live:
        """Return the session of a key, made if it is new; its ``lock`` is not taken."""
        id = self._keys.key("session", key.id, key.agent, key.root, OBSERVER).hex()
        with self._lock:
            live = self._live.get((key.tenant, id))
            if live is None or live.turns.fingerprint != fingerprint:
                live = self._live[key.tenant, id] = self.opened(key, fingerprint, id)
            live.used = self._clock()
            self._live.move_to_end((key.tenant, id))
            self._make_room()
        return live

    def opened(self, key: SessionKey, fingerprint: str, id: str = "") -> Live:
        """Return a session that is not one of these: it ends with whoever asked for it."""
        turns = MeasuredTurns(fingerprint)
        session = Session(
            key.id,
            agent=key.agent,
            tenant=key.tenant,
            store=MemoryShelf(self._secret) if self._shelf is None or not id else self._shelf,
            settings=self._settings,
            clock=self._now,
            observer=turns,
        )
        return Live(id, key, session, turns)

    def of(self, tenant: str) -> list[Live]:
        """Return the sessions of a tenant, last used first."""
        with self._lock:
            self._make_room()
            return [live for (whose, _), live in reversed(self._live.items()) if whose == tenant]

    def find(self, tenant: str, id: str) -> Live | None:
        """Return a tenant's session by its id."""
        with self._lock:
            return self._live.get((tenant, id))

    def _make_room(self) -> None:
        """Let go of sessions beyond a limit; one that a request is at ends with that request."""
        now = self._clock()
        total = sum(live.size for live in self._live.values())
        while self._live:
            live = next(iter(self._live.values()))
            if now - live.used > self._idle:
                cause = "idle"
            elif len(self._live) > self._most:
                cause = "sessions"
            elif total > self._most_bytes and len(self._live) > 1:
                cause = "bytes"
            else:
                return
            total -= live.size
            self._live.popitem(last=False)
            self.evicted[cause] += 1


def result_of(values: Sequence[object]) -> Result | None:
    """Return the result that a scheduler sent with a finished request; None for none or a bad one."""
    for value in values:
        try:
            return Result.parse(value)
        except PayloadError:
            return None
    return None


def usage_of(meta_info: Mapping[str, Any]) -> Usage:
    """Return the tokens of a response."""
    prompt, cached = (_count(meta_info.get(name)) for name in ("prompt_tokens", "cached_tokens"))
    cached = min(cached, prompt)
    output = _count(meta_info.get("completion_tokens"))
    return Usage(uncached=prompt - cached, cache_read=cached, output=output)


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def open_store(folder: Path) -> Shelf:
    """Return the store of a folder. Raises StoreError."""
    from recap.store import Store

    return Store.open(folder)
