"""SmolLM2 under a real server: what it attends to as Hugging Face computes it, and the same answers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from recap.capture.models import models_folder
from recap.capture.spans import Segments
from recap.sglang.payload import Payload
from tests.sglang.inside.client import Client
from tests.sglang.inside.server import ROOM, Server
from tests.sglang.inside.test_server import assert_measured, generate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("another_server")]
LAYERS = (0, 4, 8, 12, 17, 21, 25, 29)
PARAGRAPHS = (
    "The parser reads a file line by line. A line that is no JSON is kept as it is and counted.\n",
    "tests/test_parser.py fails: expected 3 records, got 4. The last line of the file is empty.\n",
    "The sea is wide and deep, and nobody on the shore has ever asked it for its name.\n",
    "Now change the parser so that an empty line is no record, and run the tests again.\n",
)


@pytest.fixture(scope="module")
def smollm() -> Path:
    folder = models_folder(os.environ) / "smollm2-135m-instruct-all"
    if not folder.is_dir():
        pytest.skip("SmolLM2 is not installed: recap proxy install --full")
    return folder


@pytest.fixture(scope="module")
def starting(
    smollm: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    """With the flag and without."""
    config = ("--enable-recap", "--recap-config", '{"edge_threshold": 0}')
    made = tmp_path_factory.mktemp
    pair = Server(smollm, made("smollm"), *config, *ROOM), Server(smollm, made("plain"), *ROOM)
    yield pair
    for one in pair:
        one.stop()


@pytest.fixture(scope="module")
def serving(starting: tuple[Server, Server]) -> Iterator[Server]:
    with starting[0] as server:
        yield server


@pytest.fixture(scope="module")
def plain(starting: tuple[Server, Server]) -> Iterator[Server]:
    with starting[1] as server:
        yield server


@pytest.fixture(scope="module")
def asked(smollm: Path) -> tuple[list[int], Payload]:
    """Token ids of the paragraphs, each a block, the last one the turn."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm)
    pieces = [tokenizer(text)["input_ids"] for text in PARAGRAPHS]
    offsets = np.cumsum([0, *map(len, pieces)])
    owner = np.arange(len(pieces), dtype=np.int32)
    segments = Segments(tuple(f"p{number}" for number in owner), offsets, owner)
    start = int(offsets[-2])
    return [token for piece in pieces for token in piece], Payload(
        "smollm", 17, 0, start, segments, tail="answer"
    )


def test_blocks_are_used_as_whole_attention_matrices_say(
    serving: Server, smollm: Path, asked: tuple[list[int], Payload]
) -> None:
    ids, payload = asked
    answer = generate(serving, ids, payload, 64)
    assert_measured(smollm, ids, answer, payload, payload.start, LAYERS)


def test_64_greedy_tokens_are_the_same_with_and_without_the_flag(
    serving: Server, plain: Server, asked: tuple[list[int], Payload]
) -> None:
    ids, payload = asked
    assert Client(serving).send("/flush_cache", {})[0] == 200
    measured = generate(serving, ids, payload, 64, return_logprob=True)
    without = generate(plain, ids, None, 64, return_logprob=True)
    assert len(measured["output_ids"]) == 64
    assert measured["output_ids"] == without["output_ids"]
    chosen = "output_token_logprobs"
    assert measured["meta_info"][chosen] == without["meta_info"][chosen]
