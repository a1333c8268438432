"""Selection written down plainly, from the description alone: sets, fractions, no shortcuts."""

from __future__ import annotations

import itertools
from fractions import Fraction
from hashlib import blake2b
from math import floor, fsum, log1p, sqrt
from typing import TYPE_CHECKING, NamedTuple

from recap.blocks.identifiers import identifiers, request_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.blocks.table import TermIndex
    from tests.select.tables import Case

KEPT = ("protected:user", "protected:edit", "protected:pin", "ranked", "recent", "coverage")
UNITS = 2**20
USES_GRAPH = ("paper", "coverage")


class Outcome(NamedTuple):
    """Rule of each block, and who pulled the expanded ones in."""

    rules: list[str]
    pulled_by: dict[int, int]


class Plain:
    """One case under one policy."""

    def __init__(self, case: Case, policy: str) -> None:
        self.case, self.policy, self.settings = case, policy, case.settings
        self.blocks, self.n = case.table.blocks, len(case.table.blocks)
        self.cost = [block.cost_chars for block in self.blocks]
        self.holds, self.wrote = held_of(case.table.index)
        self.lines, self.wrote_lines = held_of(case.table.lines)
        read = identifiers if policy in ("paper", "no-graph") else request_terms
        self.asked = read(case.request.text)
        self.rules = ["dropped"] * self.n
        self.pulled_by: dict[int, int] = {}
        self.adds: dict[int, float] = {}
        self.unfit: set[int] = set()
        self._read_graph()

    def _read_graph(self) -> None:
        graph = self.case.graph if self.policy in USES_GRAPH else None
        place = {block.id: i for i, block in enumerate(self.blocks)}
        self.u, self.observed, self.stale = [0.0] * self.n, set(), set()
        self.edges: list[tuple[int, int, float]] = []
        if graph is None:
            return
        where = [place.get(x) for x in graph.ids]
        for i, at in enumerate(where):
            if at is None:
                continue
            self.u[at] = float(graph.importance[i])
            if graph.is_observed[i]:
                self.observed.add(at)
            if graph.superseded_by[i] >= 0 and where[graph.superseded_by[i]] is not None:
                self.stale.add(at)
        for source, target, mass in zip(graph.source, graph.target, graph.mass, strict=True):
            if where[source] is not None and where[target] is not None:
                self.edges.append((where[source], where[target], float(mass)))

    def run(self) -> Outcome:
        base = sum(b.cost_chars for b in self.blocks if b.is_active)
        budget = floor(Fraction(self.settings.retention) * base)
        self._protect()
        left = budget - self._spent()
        live = [i for i in self._open() if self.blocks[i].is_active]
        if sum(self.cost[i] for i in live) <= left:
            left = self._pack(live, left)
            self._pack(self._open(), left)
        else:
            self._pack(self._open(), left)
        if self.policy in ("paper", "coverage"):
            limit = floor((1 + Fraction(self.settings.expansion)) * budget)
            self._expand(limit - self._spent())
        return Outcome(self.rules, self.pulled_by)

    def _open(self) -> list[int]:
        return [i for i in range(self.n) if self.rules[i] not in KEPT]

    def _spent(self) -> int:
        return sum(self.cost[i] for i in range(self.n) if self.rules[i] in KEPT)

    def _protect(self) -> None:
        cap = None if self.policy in ("paper", "no-graph") else self.settings.edit_cap
        last_edit = {path: i for i, b in enumerate(self.blocks) for path in b.edited_paths}
        for i, block in enumerate(self.blocks):
            if block.kind == "user":
                self.rules[i] = "protected:user"
            elif i in last_edit.values() and (cap is None or block.cost_chars <= cap):
                self.rules[i] = "protected:edit"
            elif block.id in self.case.pins:
                self.rules[i] = "protected:pin"

    def _pack(self, candidates: list[int], left: int) -> int:
        if self.policy == "coverage":
            share = floor(Fraction(str(self.settings.recency_share)) * left)
            half = self._fill("recent", candidates[::-1], share)
            left -= share - half
            rest = [i for i in candidates if self.rules[i] != "recent"]
            return self._cover(rest, left)
        score = {
            "paper": self._score, "no-graph": self._score, "recency": float,
            "bm25": self._bm25, "random": self._draw,
        }[self.policy]  # fmt: skip
        order = sorted(candidates, key=lambda i: (-score(i), i))
        return self._fill("ranked", order, left)

    def _fill(self, rule: str, order: Sequence[int], left: int) -> int:
        passed: list[int] = []
        for i in order:
            if self.cost[i] > left:
                passed.append(i)
                continue
            left -= self.cost[i]
            self.rules[i] = rule
            if rule != "recent":
                for before in passed:
                    self.rules[before] = "did-not-fit"
        return left

    def _cover(self, rest: list[int], left: int) -> int:
        weight = self._weights()
        holds = [
            {("name", w) for w in self.holds[i]} | {("line", w) for w in self.lines[i]}
            for i in range(self.n)
        ]
        covered: set[tuple[str, str]] = set()
        for i in range(self.n):
            if self.rules[i] in KEPT:
                covered |= holds[i]

        def density(i: int) -> float:
            price = max(self.cost[i], 1) / (1 + self.settings.importance_gain * self.u[i])
            return sum(weight[w] for w in holds[i] - covered) / price

        least = None
        while fitting := [i for i in rest if self.cost[i] <= left]:
            best = max(fitting, key=lambda i: (density(i), i))
            least = density(best)
            covered |= holds[best]
            self.rules[best] = "coverage"
            left -= self.cost[best]
            rest = [i for i in rest if i != best]
        for i in rest:
            self.adds[i] = density(i)
            if least is not None and self.adds[i] > least:
                self.rules[i] = "did-not-fit"
                self.unfit.add(i)
        return left

    def _expand(self, left: int) -> None:
        core = [i for i in range(self.n) if self.rules[i] in KEPT]
        visits: list[tuple[int, int]] = []
        for b in core:
            for a, _, _ in sorted(
                (e for e in self.edges if e[1] == b), key=lambda e: (-e[2], e[0])
            ):
                if a not in core and all(a != seen for seen, _ in visits):
                    visits.append((a, b))
        fresh = [(a, b) for a, b in visits if a not in self.stale]
        for a, _ in visits:
            if a in self.stale:
                self.rules[a] = "stale"
        if self.policy == "coverage":
            share = floor(Fraction(str(self.settings.edge_share)) * max(left, 0))
            spent = self._pull(fresh, share)
            left -= spent
            fresh = [(a, b) for a, b in fresh if a not in self.pulled_by]
            fresh.sort(key=lambda visit: -self.adds.get(visit[0], 0))
            for a, _ in fresh:  # what did not fit the share is asked again
                if self.rules[a] == "did-not-fit" and a not in self.unfit:
                    self.rules[a] = "dropped"
        self._pull(fresh, left)

    def _pull(self, visits: list[tuple[int, int]], left: int) -> int:
        """Add what fits; return what it costs."""
        refused: list[int] = []
        spent = 0
        for a, b in visits:
            if self.cost[a] > left - spent:
                refused.append(a)
                continue
            spent += self.cost[a]
            self.rules[a] = "expanded"
            self.pulled_by[a] = b
            for before in refused:
                self.rules[before] = "did-not-fit"
        return spent

    def _idf(self, name: str) -> float:
        return log1p(self.n / sum(name in held for held in self.holds))

    def _relevance(self, i: int) -> float:
        return sum(round(self._idf(w) * UNITS) for w in self.asked & self.holds[i]) / UNITS

    def _score(self, i: int) -> float:
        score = z(self.u, i) + self.settings.query_weight * z(
            [self._relevance(j) for j in range(self.n)], i
        )
        if i not in self.observed:
            low, high = self.settings.exploration_low, self.settings.exploration_high
            score += low + (high - low) * self._draw(i)
        return score - (self.settings.stale_penalty if i in self.stale else 0)

    def _draw(self, i: int) -> float:
        data = self.case.request.seed + self.blocks[i].id.encode()
        return (int.from_bytes(blake2b(data, digest_size=8).digest(), "little") >> 11) / 2**53

    def _bm25(self, i: int) -> float:
        mean = sum(map(len, self.holds)) / self.n or 1.0
        total = 0
        for name in self.asked & self.holds[i]:
            df = sum(name in held for held in self.holds)
            total += round(log1p((self.n - df + 0.5) / (df + 0.5)) * UNITS)
        return 2.2 / (1 + 1.2 * (0.25 + 0.75 * len(self.holds[i]) / mean)) * total / UNITS

    def _weights(self) -> dict[tuple[str, str], int]:
        """Return the weight of each identifier and line, by the description of ``need``."""
        names = self._needs(self.holds, self.wrote)
        for name in names:
            names[name] *= self.settings.request_factor if name in self.asked else 1
        lines = self._needs(self.lines, self.wrote_lines)
        share = self.settings.line_share
        return scaled("name", names, 1 - share) | scaled("line", lines, share)

    def _needs(self, holds: list[set[str]], wrote: list[set[str]]) -> dict[str, float]:
        level = [round((self.n - i) ** -self.settings.use_decay * UNITS) for i in range(self.n)]
        needs = {}
        for term in set().union(*holds):
            holders = [i for i in range(self.n) if term in holds[i]]
            used = sum(level[i] for i in holders)
            acted = sum(level[i] for i in holders if term in wrote[i]) + level[0]
            rare = log1p(self.n / len(holders))
            needs[term] = round(rare * used * (acted / UNITS) ** self.settings.act_power * 4096)
        return needs


def held_of(index: TermIndex) -> tuple[list[set[str]], list[set[str]]]:
    """Return what each block holds, and what of it the agent wrote."""
    names = {term: name for name, term in index.vocabulary.items()}
    rows = [range(a, b) for a, b in itertools.pairwise(index.starts.tolist())]
    return (
        [{names[index.terms[e]] for e in row} for row in rows],
        [{names[index.terms[e]] for e in row if index.wrote[e]} for row in rows],
    )


def scaled(kind: str, weight: dict[str, float], share: float) -> dict[tuple[str, str], int]:
    total = sum(weight.values())
    return {
        (kind, term): round(value * (share * 2.0**44 / total)) if total else 0
        for term, value in weight.items()
    }


def z(channel: list[float], i: int) -> float:
    if min(channel) == max(channel):
        return 0.0
    mean = fsum(channel) / len(channel)
    return (channel[i] - mean) / sqrt(fsum((x - mean) ** 2 for x in channel) / len(channel))
