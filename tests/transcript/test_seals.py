from __future__ import annotations

from typing import Any

import pytest

from recap.transcript.lists import read_messages
from recap.transcript.seals import signature_chars

SEALED: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s" * 40},
                {"type": "text", "text": "done"},
            ],
        },
    ],
    "responses": [
        {"role": "user", "content": "go"},
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "s" * 40},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "k"}]},
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "go"}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s" * 40},
            ],
        },
    ],
}


@pytest.mark.parametrize("dialect", SEALED)
def test_what_is_sent_and_not_counted_is_told(dialect: str) -> None:
    messages = read_messages(SEALED[dialect], dialect).messages
    assert signature_chars(messages) == 40
    assert sum(part.cost_chars for message in messages for part in message.parts) < 60


def test_a_session_without_seals_has_none() -> None:
    assert signature_chars(read_messages([{"role": "user", "content": "signature"}]).messages) == 0
