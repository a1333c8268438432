"""I(.): the identifiers of a text, by which blocks, requests and turns are compared.

Everything that touches each character runs in C over the UTF-8 bytes: cut the text into tokens,
make them distinct, look each up in a memo. Only a token never seen before costs Python time.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING
from unicodedata import normalize

from recap.blocks.names import COLON, MAX_WORD_CHARS, is_noise, names_of, parts_of, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMO_TOKENS = 1 << 17
"""Tokens remembered per process, 30 MiB; when the memo is full it starts afresh."""

PIECE_CHARS = 1 << 20
"""Characters whose tokens are made at once."""

MAX_LITERAL_WORDS = 5

_INJECTED_OPEN, _INJECTED_CLOSE = "<system-reminder>", "</system-reminder>"
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")

_TOKEN_BYTES = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.\\/+#-\x1f"
# First bytes of U+0080-00BF, U+2000-2FFF, U+F000-FFFF and beyond the BMP: nearly all of it is
# punctuation, arrows, boxes and emoji. What follows such a byte is dropped when the token decodes.
_PUNCTUATION_LEADS = b"\xc2\xe2\xef\xf0\xf1\xf2\xf3\xf4"
_SEPARATE = bytes(
    byte if byte in _TOKEN_BYTES or (byte >= 128 and byte not in _PUNCTUATION_LEADS) else 32
    for byte in range(256)
)
_QUOTES = tuple(quote.encode() for quote in "“”„«»")
_WIDE_QUOTES = tuple(quote.encode() for quote in "「」『』")
_WIDE_PUNCTUATION = b"\xe3\x80"  # U+3000-303F; the third byte is dropped as well
_DOUBLE_QUOTED = re.compile(rb'"([\w\x80-\xff][^"\n\\]{1,64}+)\\*"')
_SINGLE_QUOTED = re.compile(  # and no apostrophes
    rb"'(?<!\w\w')([\w\x80-\xff][^'\n\\]{1,64}+)\\*'(?!\w)"
)
_BACKTICKED = re.compile(rb"`([\w\x80-\xff][^`\n\\]{1,64}+)\\*`")
_PLAIN_WORD = re.compile(r"[^\W\d_]{2,}")
_LETTERS = re.compile(r"[^\W\d_]{2}")


class _Memo(dict[bytes, tuple[str, ...]]):
    """What tokens name, remembered within bounds; most name nothing and are kept apart."""

    def __init__(self, function: Callable[[str], frozenset[str]]) -> None:
        self.function = function
        self.nameless: set[bytes] = set()

    def names(self, tokens: set[bytes]) -> Iterator[str]:
        """Return the names of all tokens."""
        return chain.from_iterable(map(self.__getitem__, tokens - self.nameless))

    def __missing__(self, token: bytes) -> tuple[str, ...]:
        text = token.decode("utf-8", "ignore")
        found = tuple(self.function(text if text.isascii() else normalize("NFC", text)))
        if len(self) + len(self.nameless) >= MEMO_TOKENS:
            self.clear()
            self.nameless = set()
        if found:
            self[token] = found
        else:
            self.nameless.add(token)
        return found


def identifiers(text: str) -> frozenset[str]:
    """Return I(text): names a person or an agent would search for (ReCAP section 4.3).

    File names and paths, dotted names, snake_case, camelCase, CONSTANT_CASE, flags, issue numbers,
    error symbols and short quoted literals in their exact form; their parts as lower-case words.
    Plain words outside quotes, numbers, hashes and encoded blobs are none. Injected reminders,
    terminal escapes and line numbers count for nothing. Linear in the length of the text.
    """
    found: set[str] = set()
    for piece in _pieces(visible(text)):
        found.update(_identifiers_in(piece))
    return frozenset(found)


def _pieces(text: str) -> Iterator[str]:
    """Yield a long text in pieces that end at a line, or at a word where a line is longer still.

    No name crosses the end of a line, so nothing is missed; tokens take many times the memory of
    their text, and only those of one piece are there at once.
    """
    start = 0
    while len(text) - start > PIECE_CHARS:
        end = start + PIECE_CHARS
        cut = text.rfind("\n", start, end) + 1 or text.rfind(" ", start, end) + 1 or end
        yield text[start:cut]
        start = cut
    yield text[start:] if start else text


def _identifiers_in(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "replace")
    if len(data) > len(text):
        data = _plain_quotes(data)
    joint = COLON.encode()
    joined = (
        data.replace(b"::", joint * 2).replace(b":/", joint + b"/").replace(b":\\", joint + b"\\")
    )
    tokens = set(joined.translate(_SEPARATE).split())
    literals = set(_DOUBLE_QUOTED.findall(data))
    literals.update(_SINGLE_QUOTED.findall(data), _BACKTICKED.findall(data))
    return chain(_NAMES.names(tokens), _QUOTED.names(literals))


def request_terms(text: str) -> frozenset[str]:
    """Return I(text) and the plain words of a request, lower-case, without stop words.

    "the turn key function" then meets blocks that hold ``turn_key`` through its parts.
    """
    words = _PLAIN_WORD.findall(normalize("NFC", visible(text)))
    return identifiers(text) | parts_of([word for word in words if len(word) <= MAX_WORD_CHARS])


def _plain_quotes(data: bytes) -> bytes:
    """Return UTF-8 text with the quotes of other scripts as plain ones."""
    is_wide = _WIDE_PUNCTUATION in data
    for quote in (*_QUOTES, *_WIDE_QUOTES) if is_wide else _QUOTES:
        data = data.replace(quote, b'"')
    return data.replace(_WIDE_PUNCTUATION, b" ") if is_wide else data


def visible(text: str) -> str:
    """Return the text without injected reminders and terminal escapes."""
    if _INJECTED_OPEN in text:
        first, *rest = text.split(_INJECTED_OPEN)
        text = first + " ".join(_after_close(piece) for piece in rest)
    return _ANSI.sub("", text) if "\x1b" in text else text


def _after_close(piece: str) -> str:
    inside, close, after = piece.partition(_INJECTED_CLOSE)
    return after if close else inside


def _literal(content: str) -> frozenset[str]:
    """Return a quoted literal as an identifier when it is a word or a short phrase."""
    content = content.strip()
    words = words_of(content)
    is_phrase = content.count(" ") < MAX_LITERAL_WORDS and _LETTERS.search(content) is not None
    if not is_phrase or is_noise(content, words):
        return frozenset()
    return frozenset((content, *(parts_of(words) if len(words) == 1 else ())))


_NAMES = _Memo(names_of)
_QUOTED = _Memo(_literal)
