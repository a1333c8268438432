"""Chat templates of several families, in Jinja, each with a twin in Python that knows its pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

jinja2 = pytest.importorskip("jinja2", reason="jinja2 is not installed (extra proxy)")
sandbox = pytest.importorskip("jinja2.sandbox")

Messages = Sequence[Mapping[str, Any]]
Piece = tuple[str, int]  # text, and the message whose words it is: -1 for none

CHATML = """
{%- for message in messages -%}
{%- if loop.first and message.role != 'system' -%}
<|im_start|>system\nYou help.<|im_end|>\n{{- '\\n' -}}
{%- endif -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
"""

LLAMA = """
{{- '<|begin|>' -}}
{%- for message in messages -%}
{{- '<|start|>' + message.role + '<|end|>\\n\\n' -}}
{%- if message.tool_calls -%}
{%- for call in message.tool_calls -%}
{{- '{"name": "' + call.function.name + '", "parameters": ' -}}
{{- call.function.arguments | tojson + '}' -}}
{%- endfor -%}
{%- else -%}
{{- message.content | trim -}}
{%- endif -%}
{{- '<|eot|>' -}}
{%- endfor -%}
"""

GEMMA = """
{{- '<bos>' -}}
{%- if messages[0].role == 'system' -%}
{%- set first = messages[0].content + '\\n\\n' -%}
{%- set rest = messages[1:] -%}
{%- else -%}
{%- set first = '' -%}
{%- set rest = messages -%}
{%- endif -%}
{%- for message in rest -%}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) -%}
{{- raise_exception('roles must alternate') -}}
{%- endif -%}
{%- set role = 'model' if message.role == 'assistant' else message.role -%}
{{- '<start_of_turn>' + role + '\\n' + (first if loop.first else '') -}}
{{- message.content | trim + '<end_of_turn>\\n' -}}
{%- endfor -%}
"""

QWEN = """
{%- set ns = namespace(query=0) -%}
{%- for message in messages -%}
{%- if message.role == 'user' -%}{%- set ns.query = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
{%- set said = message.content -%}
{%- if loop.index0 < ns.query and '</think>' in said -%}
{%- set said = said.split('</think>')[-1].lstrip('\\n') -%}
{%- endif -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if loop.last and '</think>' not in said -%}{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}
{{- said + '<|im_end|>\\n' -}}
{%- elif message.role == 'tool' -%}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
{{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' -}}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{- '<|im_end|>\\n' -}}{%- endif -%}
{%- else -%}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}
{%- endif -%}
{%- endfor -%}
"""


def raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


@cache
def jinja(source: str) -> Callable[[Messages], str]:
    """Return what renders a template as Hugging Face tokenizers do."""
    environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.globals["raise_exception"] = raise_exception
    template = environment.from_string(source)
    return lambda messages: template.render(messages=messages)


def words(content: str, owner: int, *, trim: bool = False) -> list[Piece]:
    """Return the pieces of a content: what is its words, and the white space around them."""
    core = content.strip()
    if trim or not core:
        return [(core or ("" if trim else content), owner if core else -1)]
    at = content.index(core)
    return [(content[:at], -1), (core, owner), (content[at + len(core) :], -1)]


def chatml(messages: Messages) -> list[Piece]:
    pieces: list[Piece] = []
    if messages and messages[0]["role"] != "system":
        pieces.append(("<|im_start|>system\nYou help.<|im_end|>\n", -1))
    for at, message in enumerate(messages):
        pieces.append((f"<|im_start|>{message['role']}\n", -1))
        pieces += [*words(message["content"], at), ("<|im_end|>\n", -1)]
    return pieces


def llama(messages: Messages) -> list[Piece]:
    pieces: list[Piece] = [("<|begin|>", -1)]
    for at, message in enumerate(messages):
        pieces.append((f"<|start|>{message['role']}<|end|>\n\n", -1))
        pieces += [*words(message["content"], at, trim=True), ("<|eot|>", -1)]
    return pieces


def gemma(messages: Messages) -> list[Piece]:
    pieces: list[Piece] = [("<bos>", -1)]
    has_system = messages[0]["role"] == "system"
    for at, message in enumerate(messages[has_system:], has_system):
        if (message["role"] == "user") != ((at - has_system) % 2 == 0):
            raise ValueError("roles must alternate")
        role = "model" if message["role"] == "assistant" else message["role"]
        pieces.append((f"<start_of_turn>{role}\n", -1))
        if at == 1 and has_system:
            pieces += [*words(messages[0]["content"], 0), ("\n\n", -1)]
        pieces += [*words(message["content"], at, trim=True), ("<end_of_turn>\n", -1)]
    return pieces


def qwen(messages: Messages) -> list[Piece]:
    query = max((at for at, m in enumerate(messages) if m["role"] == "user"), default=0)
    pieces: list[Piece] = []
    for at, message in enumerate(messages):
        role, said = message["role"], message["content"]
        before = messages[at - 1]["role"] if at else ""
        after = messages[at + 1]["role"] if at + 1 < len(messages) else ""
        head, tail = f"<|im_start|>{role}\n", "<|im_end|>\n"
        if role == "tool":
            head = ("" if before == "tool" else "<|im_start|>user") + "\n<tool_response>\n"
            tail = "\n</tool_response>" + ("" if after == "tool" else tail)
        if role == "assistant" and at < query and "</think>" in said:
            said = said.split("</think>")[-1].lstrip("\n")
        if role == "assistant" and not after and "</think>" not in said:
            head += "<think>\n\n</think>\n\n"
        pieces += [(head, -1), *words(said, at), (tail, -1)]
    return pieces


def trimmed_at_the_end(messages: Messages) -> list[Piece]:
    """Plain lines, the whole text stripped: a prefix's text begins the next one, and yet lies."""
    pieces: list[Piece] = []
    for at, message in enumerate(messages):
        pieces += [(f"{message['role']}: ", -1), *words(message["content"], at), ("\n", -1)]
    while pieces and not pieces[-1][0].strip():
        pieces.pop()
    if pieces:
        pieces[-1] = (pieces[-1][0].rstrip(), pieces[-1][1])
    return pieces


def told_to_the_last(messages: Messages) -> list[Piece]:
    """The last message says more: no prefix's text begins the next one."""
    pieces = chatml(messages)
    return [*pieces[:-1], (" /now", -1), pieces[-1]]


def bare(messages: Messages) -> list[Piece]:
    """Nothing between the messages' words."""
    return [piece for at, m in enumerate(messages) for piece in words(m["content"], at, trim=True)]


def noting_code(messages: Messages) -> list[Piece]:
    """What stands around the words depends on them."""
    pieces: list[Piece] = []
    for at, message in enumerate(messages):
        mark = "[CODE]" if "code" in message["content"] else "[TEXT]"
        pieces += [(mark, -1), *words(message["content"], at), (mark, -1)]
    return pieces


def even_only(messages: Messages) -> list[Piece]:
    """Refuses most prefixes of a list."""
    if len(messages) % 2:
        raise ValueError("a question needs its answer")
    return chatml(messages)


class Family(NamedTuple):
    """A template as Jinja (None where it has none) and its twin."""

    source: str | None
    twin: Callable[[Messages], list[Piece]]


FAMILIES = {
    "chatml": Family(CHATML, chatml),
    "llama": Family(LLAMA, llama),
    "gemma": Family(GEMMA, gemma),
    "qwen": Family(QWEN, qwen),
    "trimmed_at_the_end": Family(None, trimmed_at_the_end),
    "told_to_the_last": Family(None, told_to_the_last),
    "bare": Family(None, bare),
    "noting_code": Family(None, noting_code),
    "even_only": Family(None, even_only),
}


def text_of(pieces: Sequence[Piece]) -> str:
    return "".join(text for text, _ in pieces)


def hulls_of(pieces: Sequence[Piece], messages: int) -> list[tuple[int, int] | None]:
    """Return characters from the first to the last word of each message; None for no words."""
    hulls: list[tuple[int, int] | None] = [None] * messages
    at = 0
    for text, owner in pieces:
        if owner >= 0 and text:
            known = hulls[owner]
            hulls[owner] = (at if known is None else known[0], at + len(text))
        at += len(text)
    return hulls
