from __future__ import annotations

import dataclasses
import json
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.fingerprints import fingerprints
from recap.blocks.index_codec import MAGIC, VERSION, CachedIndex, decode_index, encode_index
from recap.blocks.segment import segment
from recap.blocks.table import BlockTable, build_table
from recap.errors import InputError
from tests.blocks.test_table import assert_equal, assert_same_index, conversations
from tests.testing import call, conversation, message, read_messages, reply, result, step, user

_HEAD = struct.Struct("<4sBII")


def sealed(body: bytes, *, version: int = VERSION, size: int | None = None) -> bytes:
    """Return bytes with a right checksum, as someone who means harm would send them."""
    packed = zlib.compress(body, 0)
    size = len(body) if size is None else size
    return _HEAD.pack(MAGIC, version, zlib.crc32(packed), size) + packed


def body_of(table: BlockTable) -> bytearray:
    return bytearray(zlib.decompress(encode_index(table)[_HEAD.size :]))


def table() -> BlockTable:
    return build_table(read_messages(conversation(3)).messages)


def assert_holds(cached: CachedIndex, table: BlockTable) -> None:
    assert cached.fingerprints.tolist() == fingerprints(table.messages, table.blocks).tolist()
    assert_same_index(cached.index, table.index)
    assert_same_index(cached.lines, table.lines)


@given(conversations())
def test_decode_returns_what_the_table_held(messages):
    built = build_table(messages)
    assert_holds(decode_index(encode_index(built)), built)


@given(conversations(), st.integers(0, 10))
def test_a_prefix_of_a_table_keeps_its_own_rows_alone(messages, blocks):
    prefix = build_table(messages)
    prefix = prefix.prefix(min(blocks, len(prefix)))
    assert_holds(decode_index(encode_index(prefix)), prefix)


def test_identifiers_far_apart_in_a_row_survive():
    names = [f"name_{i}" for i in range(2000)]
    built = build_table(
        [user(" ".join(names)), reply("name_0 name_254"), reply("name_1 name_1999")]
    )
    assert_holds(decode_index(encode_index(built)), built)


def test_what_packs_too_well_is_stored_as_it_is():
    built = build_table([reply("ok")] * 3000)
    assert_holds(decode_index(encode_index(built)), built)


@given(conversations(), conversations(), st.integers(0, 10), st.integers(0, 10))
def test_a_table_from_a_cache_equals_one_built_whole(one, other, begun, shared):
    """The cache may be of a shorter list, of a longer one, or of another one from some point on."""
    cached = decode_index(encode_index(build_table(one[:begun])))
    for messages in (one, one[: shared + begun], [*one[:shared], *other], other):
        assert_equal(build_table(messages, cached=cached), build_table(messages))


def test_rows_of_a_cache_are_not_read_again():
    messages = [user("ab_c"), reply("cd_e")]
    cached = decode_index(encode_index(build_table([user("xy_z"), reply("gh_i")])))
    lie = dataclasses.replace(cached, fingerprints=fingerprints(messages, segment(messages).blocks))
    assert "xy_z" in build_table(messages, cached=lie).index.vocabulary


@given(conversations(), conversations())
def test_a_cache_that_lies_gives_a_table_all_the_same(messages, other):
    cached = decode_index(encode_index(build_table(other)))
    prints = fingerprints(messages, segment(messages).blocks)[: len(cached.fingerprints)]
    lie = dataclasses.replace(cached, fingerprints=prints)
    built = build_table(messages, cached=lie)
    assert len(built.index.starts) == len(built) + 1
    assert_equal(built.extend(messages), built)
    assert len(built.prefix(len(built) // 2)) == len(built) // 2


def test_a_result_that_changed_is_read_again():
    before, after = [*step("t", "one_name")], [*step("t", "two_name")]
    cached = decode_index(encode_index(build_table(before)))
    assert_equal(build_table(after, cached=cached), build_table(after))


def test_a_result_that_arrived_is_read():
    begun = [message("assistant", call("a"), call("b")), message("tool", result("a"))]
    grown = [*begun, message("tool", result("b", "late_name"))]
    cached = decode_index(encode_index(build_table(begun)))
    assert_equal(build_table(grown, cached=cached), build_table(grown))


def test_bytes_do_not_depend_on_the_hash_seed():
    code = (
        "import sys\n"
        "from recap.blocks.table import build_table\n"
        "from recap.blocks.index_codec import encode_index\n"
        "from tests.testing import conversation, read_messages\n"
        "table = build_table(read_messages(conversation(3)).messages)\n"
        "sys.stdout.buffer.write(encode_index(table))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, check=True, cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert outputs == {encode_index(table())}


@given(st.data())
def test_a_cut_index_is_refused(data):
    whole = encode_index(table())
    with pytest.raises(InputError):
        decode_index(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(st.data())
def test_a_flipped_bit_is_refused(data):
    damaged = bytearray(encode_index(table()))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(InputError):
        decode_index(bytes(damaged))


@given(st.binary(max_size=80))
def test_bytes_from_anyone_are_refused_or_an_index(body):
    for data in (body, MAGIC + body, sealed(body)):
        try:
            decode_index(data)
        except InputError:
            continue


@given(conversations(), st.data())
def test_a_changed_index_with_a_right_checksum_is_refused_or_harmless(messages, data):
    built = build_table(messages)
    body = body_of(built)
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        cached = decode_index(sealed(bytes(body)))
    except InputError:
        return
    table = build_table(messages, cached=cached)
    assert table.ids == built.ids
    assert_equal(build_table(messages[:3]).extend(messages), built)


@pytest.mark.parametrize("count", range(4))
def test_huge_counts_do_not_take_memory(count):
    body = body_of(table())
    at = 0 if not count else 8 * len(table()) + 4 * count  # fingerprints follow the first one
    body[at : at + 4] = b"\xff" * 4
    with pytest.raises(InputError, match="end too early"):
        decode_index(sealed(bytes(body)))


def test_a_bomb_is_not_inflated():
    packed = zlib.compress(bytes(50_000_000), 9)
    for size in (50_000_000, 1000):
        bomb = _HEAD.pack(MAGIC, VERSION, zlib.crc32(packed), size) + packed
        with pytest.raises(InputError, match="size"):
            decode_index(bomb)


def forged(blocks=1, rows=(2,), near=(0, 1), far=(), names=("a", "b"), after=b"") -> bytes:
    """Return a sealed index of the given columns."""
    text = json.dumps(names).encode()
    body = struct.pack("<I", blocks) + bytes(8 * blocks)
    body += struct.pack("<III", len(near), len(far), len(text))
    body += struct.pack(f"<{len(rows)}I", *rows) + bytes(near) + struct.pack(f"<{len(far)}I", *far)
    body += bytes(-(-len(near) // 8)) + text
    return sealed(body + struct.pack("<III", 0, 0, 2) + bytes(4 * blocks) + b"[]" + after)


def test_a_forged_index_of_right_columns_is_one():
    assert decode_index(forged()).index.terms.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (None, "no bytes"),
        (b"", "begin otherwise"),
        (MAGIC, "begin otherwise"),
        (sealed(b"", version=9), f"version 9, this release reads version {VERSION}"),
        (encode_index(table()) + b"x", "checksum"),
        (_HEAD.pack(MAGIC, VERSION, zlib.crc32(b"no"), 2) + b"no", "damaged"),
        (sealed(b"x"), "end too early"),
        (sealed(bytes(20), size=12), "another size"),
        (sealed(bytes(28)), "names are damaged"),
        (forged(after=b"x"), "go on after their end"),
        (forged(rows=(3,)), "rows and entries"),
        (forged(near=(0, 255)), "distances do not add up"),
        (forged(names=("a", "a")), "stands twice"),
        (forged(near=(0, 0), names=("a",)), "out of order"),
        (forged(near=(0, 2)), "not numbered"),
        (forged(names=("a", "b", "c")), "not numbered"),
        (forged(near=(0, 255), far=(2**32 - 1,)), "not numbered"),
    ],
)
def test_the_refusal_says_what_is_wrong(data, complaint):
    with pytest.raises(InputError, match=complaint):
        decode_index(data)


@pytest.mark.corpus
def test_real_sessions_grow_through_the_cache(corpus):
    from recap.transcript.formats import open_log

    messages = open_log(corpus / "sessions/claude-code/entire-48b4-9turns.jsonl").messages
    cached = None
    for end in range(0, len(messages), 25):
        begun = build_table(messages[:end], cached=cached)
        cached = decode_index(encode_index(begun))
    whole = build_table(messages)
    assert_equal(build_table(messages, cached=cached), whole)
    assert len(encode_index(whole)) <= 600 * len(whole)
