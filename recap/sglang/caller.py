"""Who sent a request: the tenant that its credential proves, and the session that it names itself.

A session's name is a label of the client's choosing and never an authority: whose session it is
comes from the credential that the server checked, or from a header that the operator trusts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recap.sglang.payload import MOST_LABEL
from recap.turns import AGENT_HEADER, ID_HEADERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEFAULT = "default"
"""The tenant of a server without keys."""

_LABEL = re.compile(rf"[\x21-\x7e]{{1,{MOST_LABEL}}}", re.ASCII)


class BadTenantError(ValueError):
    """The trusted header names no tenant. The text repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request.

    Attributes:
        tenant: Whose sessions it may meet.
        headers: Its headers, names in lower case; without a label that is no label.
        session_id: The body's own label, "" for none.
        malformed: How many labels were none.
    """

    tenant: str
    headers: Mapping[str, str]
    session_id: str
    malformed: int = 0


def caller_of(headers: Mapping[str, str], session_id: object, tenant: str) -> Caller:
    """Return who sent a request.

    Args:
        headers: Its headers.
        session_id: ``session_id`` of its body.
        tenant: See ``tenant_of``.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    given = [name for name in (*ID_HEADERS, AGENT_HEADER) if lowered.get(name)]
    bad = [name for name in given if not _is_label(lowered[name])]
    for name in bad:
        del lowered[name]
    own = session_id if session_id is not None and _is_label(session_id) else ""
    malformed = len(bad) + (not own and session_id not in (None, ""))
    return Caller(tenant, lowered, str(own), malformed)


def tenant_of(
    headers: Mapping[str, str],
    *,
    has_keys: bool,
    trusted_header: str,
    key: Callable[[str, str], bytes],
) -> str:
    """Return the tenant of a request that the server has let in.

    Args:
        headers: Headers; names are matched without regard to case.
        has_keys: The server checks a key of its clients.
        trusted_header: Header that a gateway before the server sets; "" trusts none.
        key: Keyed hash, so that no credential is kept.

    Raises:
        BadTenantError: The trusted header holds no label.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    tenant = DEFAULT
    if has_keys:
        tenant = key("credential", lowered.get("authorization", "").partition(" ")[2]).hex()
    named = lowered.get(trusted_header.lower()) if trusted_header else None
    if named is None:
        return tenant
    if not _is_label(named):
        raise BadTenantError("the trusted header names no tenant")
    return f"{tenant}/{named}"


def _is_label(value: object) -> bool:
    return isinstance(value, str) and _LABEL.fullmatch(value) is not None
