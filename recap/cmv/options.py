"""How a session is trimmed: the options, their bounds, and the two profiles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from recap.errors import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

LEAST_THRESHOLD = 50
MOST = 10**12
"""Largest number an option takes."""

Requests = Literal["keep", "writes", "paper"]
"""Tool requests stay verbatim; payloads of writing tools are stubbed; what the paper's tool stubs."""

ToolRule: TypeAlias = "Literal['keep', 'stub'] | int"
"""Results of a tool stay, are stubbed whatever their length, or have a threshold of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimOptions:
    """What is stubbed, removed and kept. Checked when it is made.

    Attributes:
        threshold: Characters above which a result becomes a stub.
        keep_last: Newest lines of the conversation in which nothing that is sent changes.
        requests: What becomes of tool requests.
        stub_errors: Shorten results that report an error to their first and last 1,000 characters.
        stub_local_output: Stub output of local commands that stands in the user role.
        strip_user_images: Stub images the person pasted.
        keep_thinking: Keep the thinking of finished turns.
        drop_inactive: Leave out rewound turns and side chains.
        tools: Rule by name of tool, before the threshold.
        snapshot: What stubs name as the snapshot to restore from.
        yes: Whether more than 95 % of the active characters may go.

    Raises:
        UsageError: A number is out of its range.
    """

    threshold: int = 500
    keep_last: int = 20
    requests: Requests = "keep"
    stub_errors: bool = False
    stub_local_output: bool = False
    strip_user_images: bool = False
    keep_thinking: bool = False
    drop_inactive: bool = False
    tools: Mapping[str, ToolRule] = field(default_factory=dict)
    snapshot: str = "SNAPSHOT"
    yes: bool = False

    def __post_init__(self) -> None:
        check_number("threshold", self.threshold, LEAST_THRESHOLD)
        check_number("keep-last", self.keep_last, 0)
        for rule in self.tools.values():
            if rule not in ("keep", "stub"):
                check_number("threshold of a tool", rule, LEAST_THRESHOLD)

    def threshold_of(self, tool: str) -> int | None:
        """Return the characters above which a tool's results are stubbed; None for never."""
        rule = self.tools.get(tool, self.threshold)
        return None if rule == "keep" else 0 if rule == "stub" else int(rule)

    @property
    def least(self) -> int:
        """Characters up to which no result of any tool is stubbed."""
        own = (self.threshold_of(tool) for tool in self.tools)
        return min((self.threshold, *(each for each in own if each is not None)))


def whole_number(name: str, text: str, least: int) -> int:
    """Return the number that an option's text states.

    Raises:
        UsageError: It is no whole number, or less than ``least``.
    """
    value: object = int(text) if re.fullmatch(r"[0-9]{1,13}", text) else text
    check_number(name, value, least)
    assert isinstance(value, int)
    return value


def tool_rule(text: str) -> tuple[str, ToolRule]:
    """Return the tool and the rule of ``NAME=keep``, ``NAME=stub`` or ``NAME=NUMBER``.

    Raises:
        UsageError: It is none of these.
    """
    name, equals, rule = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--tool takes NAME=keep, NAME=stub or NAME=NUMBER; got {shown(text)}")
    if rule == "keep" or rule == "stub":
        return name, rule  # type: ignore[return-value]  # a str that is one of the literals
    return name, whole_number("threshold of a tool", rule, LEAST_THRESHOLD)


def check_number(name: str, value: object, least: int) -> None:
    """Raise UsageError for what is no whole number from ``least`` on."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not least <= value <= MOST:  # type: ignore[operator]  # an int, by is_whole
        raise UsageError(f"{name} takes a whole number of at least {least}; got {shown(value)}")


PAPER = TrimOptions(keep_last=0, requests="paper")
"""As the published tool trims, for comparison."""
