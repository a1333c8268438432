"""What one token of a text names: paths, dotted, snake and camel names, symbols, and their parts.

A token is a run of characters without white space and brackets, as ``identifiers`` cuts them. Exact
forms keep their case, parts are lower-case words, so that a request in plain words meets them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from recap.blocks.lexicon import EXTENSIONS, STOP_WORDS

COLON = "\x1f"
"""Stands in a token for a colon that joins: in ``std::move``, ``https://host`` and ``C:\\dir``."""

MAX_TOKEN_CHARS = 200
MIN_PART_CHARS = 3
LAST_ASCII = "\x7f"  # words of other scripts may be shorter
MAX_WORD_CHARS = 24
"""A longer run of letters of one case is data, not a word."""
MIN_NOISE_CHARS = 16
"""From here on a name whose words average fewer than three characters is a hash or base64."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_WORD_ANY_SCRIPT = re.compile(r"[^\W\d_]+|\d+")
_PLAIN = re.compile(
    r"[+-]?(?:[A-Za-z][a-z]*|[A-Z]{2,4}|\d[\d.]*[A-Za-z]{0,2}|[^\W\d_A-Za-z]+)[.+-]*"
)
_JOINS = re.compile(r"[+#\\\x1f]")
_STEP_JOINS = re.compile(r"\.|::")
_TWO_LETTERS = re.compile(r"[^\W\d_]{2}")
_THREE_LETTERS = re.compile(r"[^\W\d_]{3}")
_BLOB = re.compile(
    r"[0-9a-fA-F]{16}|[0-9a-f]{8}-[0-9a-f]{4}-"  # digests, UUIDs
    rf"|[a-z]{{{MAX_WORD_CHARS}}}|[A-Z]{{{MAX_WORD_CHARS}}}"
)
_ENCODED = re.compile(r"[A-Za-z0-9+/]{24,}")
_COMMIT = re.compile(r"[0-9a-f]{7,12}")
_WIDE = re.compile(r"[\u2e80-\U0010ffff]+")  # scripts written without spaces
_DRIVE = re.compile(r"[A-Za-z]\x1f[\\/]")
_GREP_CONTEXT = re.compile(r"(?<=\.)([A-Za-z]{1,5})-\d+(?:-.*)?$")  # parser.py-12-import
_FLAG_OR_ISSUE = re.compile(r"(--[A-Za-z][A-Za-z0-9_-]+|#\d{2,7})\.*")
_SYMBOL = re.compile(
    r"_+[A-Za-z]\w*"  # private names
    r"|[A-Z]{5,}"  # ECONNREFUSED, SIGKILL
    r"|(?!L\d)[A-Z]{1,5}-?\d{2,6}"  # E1234, TS2345, JIRA-12
)

_NONE: frozenset[str] = frozenset()


def names_of(token: str) -> frozenset[str]:
    r"""Return the identifiers a token holds: itself where it is one, and its parts.

    Args:
        token: Run of word characters, ``. \ / + # -`` and ``COLON``, without white space.
    """
    if len(token) > MAX_TOKEN_CHARS or _PLAIN.fullmatch(token):
        return _NONE
    if _ENCODED.fullmatch(token) and is_noise(token, words_of(token)):
        return _NONE
    if token.isidentifier():
        return _name(token, False) or _NONE
    if _JOINS.search(token) is None:
        return _path(token)
    return _NONE.union(*map(_path, _paths(token)))


def words_of(text: str) -> list[str]:
    """Return the words of a name or text in order: snake and camel humps, numbers."""
    return (_WORD if text.isascii() else _WORD_ANY_SCRIPT).findall(text)


def parts_of(words: list[str]) -> set[str]:
    """Return the words that may stand for the names they occur in, lower-case."""
    return {
        word.lower()
        for word in words
        if (len(word) >= MIN_PART_CHARS or word > LAST_ASCII) and word.isalpha()
    } - STOP_WORDS


def is_noise(text: str, words: list[str]) -> bool:
    """Return True for a hash, an encoded blob or another unreadable run made of ``words``."""
    size = len(text)
    return size >= MIN_NOISE_CHARS and (
        size < MIN_PART_CHARS * len(words) or _BLOB.search(text) is not None
    )


def _paths(token: str) -> list[str]:
    """Return the paths and names a token is made of, with forward slashes."""
    if "\\\\" in token:  # encoded twice: single backslashes are escapes
        token = re.sub(r"(?<!\\)\\[nrt]", "+", token)
    if _DRIVE.match(token):
        path, *rest = token.split("+")
        return [re.sub(r"[\\/]+", "/", path.replace(COLON, ":")), *rest]
    # The scheme of a URL goes; "#" stays with what follows it.
    token = token.rpartition(f"{COLON}//")[2].replace(COLON * 2, "::").replace("#", "+#")
    pieces = [piece for piece in re.split(r"[\\+\x1f]+", token) if piece]
    if "\\" in token and len(pieces) > 1:
        relative = "/".join(pieces)
        pieces = [piece[piece[0] in "nrt" :] for piece in pieces]  # as in "one\\ntwo_three"
        if relative.rpartition(".")[2].lower() in EXTENSIONS:
            pieces.append(relative)
    return pieces


def _path(path: str) -> frozenset[str]:
    """Return a path, its last two steps, and what each step names."""
    if path[:1] in "#-" and (exact := _FLAG_OR_ISSUE.fullmatch(path)):
        return (_step(exact[1].lstrip("-#"), True) or _NONE) | {exact[1]}
    if "-" in path:
        path = _GREP_CONTEXT.sub(r"\1", path)
    path = path.rstrip("./:-#").lstrip("-:#").removeprefix("./")
    if "/" not in path:
        return _step(path.lstrip("."), path[:1] == ".") or _NONE
    steps = [step for step in path.split("/") if step.strip(".:-")]
    readings = [_step(step, True) for step in steps]
    names = _NONE.union(*filter(None, readings))
    if len(steps) > 1 and None not in readings and _THREE_LETTERS.search(path):
        names |= {path, "/".join(steps[-2:])}
    return names


@lru_cache(maxsize=1 << 13)
def _step(step: str, is_inner: bool) -> frozenset[str] | None:
    """Return what a file name, a dotted or a plain name names; None for noise."""
    pieces = _STEP_JOINS.split(step)
    if len(pieces) == 1:
        return _name(step, is_inner)
    is_file = pieces[-1].lower() in EXTENSIONS
    readings = [_known_name(piece, True) for piece in (pieces[:-1] if is_file else pieces)]
    if None in readings:
        return None
    names = _NONE.union(*filter(None, readings))
    is_dotted = not step[0].isdigit() and _THREE_LETTERS.search(step)
    return names | {step} if any(pieces[:-1]) and (is_file or is_dotted) else names


def _name(name: str, is_inner: bool) -> frozenset[str] | None:
    """Return a name without dots where it is one, and its words; None for noise.

    A plain word counts only as a part (``is_inner``) of something longer.
    """
    words = words_of(name)
    if not words:
        return _NONE
    if is_noise(name, words):
        return None
    name = name.strip("-")
    if _COMMIT.fullmatch(name) and len(words) > 1:
        return frozenset((name,))
    is_compound = len(words) > 1 and not name[0].isdigit() and _TWO_LETTERS.search(name)
    is_name = is_compound or _SYMBOL.fullmatch(name)
    names = parts_of(words) if is_name or is_inner else set()
    if is_name:
        names.add(name)
    if not name.isascii():
        names.update(*(_name(run, False) or () for run in _WIDE.split(name) if run != name))
    return frozenset(names)


_known_name = lru_cache(maxsize=1 << 13)(_name)
