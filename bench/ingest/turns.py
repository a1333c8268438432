"""Turns of made-up coding sessions, the same for every format, from a seed.

Lengths and shares are those of the Claude Code logs of the corpus: two thirds of the steps think, a
third says something, results are log-normal with a mean of 2,500 characters.
"""

from __future__ import annotations

from itertools import count
from random import Random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 6
SHARE_THINKING, SHARE_WORDS = 0.64, 0.33
THINKING, WORDS, CODE, REQUEST = 400, 450, 500, 400
RESULT_LOG_MEAN, RESULT_LOG_SIGMA, MAX_RESULT = 6.8, 1.4, 60_000
"""Lengths in characters; those of results as the mean and deviation of their logarithm."""

POOL, WINDOW, SHIFT = 6000, 900, 60
"""Lines to draw from, those one turn draws from, and how far the next turn's lie from them."""

FRESH = "@"
"""Gives way to a number that grows from turn to turn, so that new names come up all the time."""

NAMES, HEAPS = 6.6, 0.65
"""Numbers used after n turns: NAMES x n ^ HEAPS. A long session brings up less that is new."""

_PLAIN_WORDS = """
    the a is in and of to for with on this that it now first then should check file test error value
    result function module class reads writes returns because before after still only new old same
    other change remove again works fails line type following implementation condition currently
    directory existing expected information instead possible previous provided required returned
    several similar specific together understand whether without
"""
_PLAIN = _PLAIN_WORDS.split()
_TOOLS = ("Read", "Read", "Bash", "Bash", "Bash", "Grep", "Edit", "Write")
_VERBS = ("load", "save", "parse", "render", "merge", "split", "check", "read", "write", "find")
_NOUNS = ("table", "graph", "block", "index", "session", "token", "window", "cache", "request")


class Step(NamedTuple):
    """A call with its result, and what the agent thought and said before it; "" for nothing."""

    id: str
    tool: str
    thinking: str
    words: str
    path: str
    code: str
    result: str

    @property
    def arguments(self) -> dict[str, str]:
        """Arguments of the call."""
        return {"file_path": self.path, "old_string": self.code[:40], "new_string": self.code}


class Turn(NamedTuple):
    """A request, the steps of the agent, and its answer."""

    number: int
    request: str
    steps: list[Step]
    answer: str


def turns(seed: int = 0) -> Iterator[Turn]:
    """Yield turns without end."""
    rng = Random(seed)
    prose, code = [_prose(rng) for _ in range(POOL)], [_code(rng) for _ in range(POOL)]
    for number in count():
        start = number * SHIFT % (POOL - WINDOW)
        fresh = str(int(NAMES * number**HEAPS))
        told = _Writer(rng, prose[start : start + WINDOW], fresh)
        shown = _Writer(rng, code[start : start + WINDOW], fresh)
        steps = [_step(rng, f"{number}_{at}", told, shown) for at in range(STEPS)]
        yield Turn(number, told.text(REQUEST), steps, told.text(WORDS))


def _step(rng: Random, uid: str, told: _Writer, shown: _Writer) -> Step:
    size = min(MAX_RESULT, int(rng.lognormvariate(RESULT_LOG_MEAN, RESULT_LOG_SIGMA)))
    return Step(
        f"call_{uid}",
        rng.choice(_TOOLS),
        told.text(THINKING) if rng.random() < SHARE_THINKING else "",
        told.text(WORDS) if rng.random() < SHARE_WORDS else "",
        f"src/{rng.choice(_NOUNS)}/{_snake(rng)}.py",
        shown.text(CODE),
        shown.text(size),
    )


class _Writer:
    """Draws lines."""

    def __init__(self, rng: Random, pool: list[str], fresh: str) -> None:
        self.rng = rng
        self.pool = pool
        self.fresh = fresh
        self.mean = sum(map(len, pool)) / len(pool)

    def text(self, size: int) -> str:
        """Return lines of about ``size`` characters in all, between a third and the triple."""
        drawn = round(size * self.rng.choice((0.4, 0.7, 1, 1, 1.9)) / self.mean)
        return "\n".join(self.rng.choices(self.pool, k=max(1, drawn))).replace(FRESH, self.fresh)


def _prose(rng: Random) -> str:
    words = rng.choices(_PLAIN, k=rng.randint(6, 16))
    words[0] = words[0].title()
    names = (f"`{_snake(rng)}`", _camel(rng), "naïve →", "itself", "anything")
    words[rng.randrange(1, len(words))] = rng.choice(names)
    return " ".join(words) + "."


def _code(rng: Random) -> str:
    indent = " " * rng.choice((4, 8, 12, 16, 20))
    number = rng.randint(1, 999)
    return rng.choice(
        (
            f"{number:6}\t{indent}def {_snake(rng)}(value: int) -> None:",
            f'{number:6}\t{indent}result = self.{_snake(rng)}("{" ".join(rng.choices(_PLAIN, k=5))}")',
            f"{number:6}\t{indent}# {_prose(rng)}",
            f"{number:6}\t{indent}if value is None or value[{number}] == 'none':  # {_prose(rng)}",
            f"src/{rng.choice(_NOUNS)}/{_snake(rng)}.py:{number}: {_prose(rng)}",
            f"[12:34:{number % 60:02}.{number:03}] INFO  {_prose(rng)} ({number} ms)",
            f"tests/test_{_snake(rng)}.py::test_{_snake(rng)} PASSED [{number % 100:3}%]",
            f"{number:6}\t{indent}" + ("}", "},", "pass", "else:", "return None")[number % 5],
            "",
        )
    )


def _snake(rng: Random) -> str:
    ending = rng.choice(("", "", "s", FRESH, f"_{rng.choice(_NOUNS)}", f"_of_{rng.choice(_NOUNS)}"))
    return f"{rng.choice(_VERBS)}_{rng.choice(_NOUNS)}{ending}"


def _camel(rng: Random) -> str:
    ending = rng.choice(("", "Error", "Reader", FRESH))
    return f"{rng.choice(_VERBS).title()}{rng.choice(_NOUNS).title()}{ending}"
