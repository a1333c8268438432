from __future__ import annotations

import dataclasses
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.config import Settings
from recap.errors import GraphFormatError
from recap.graph.codec import MAGIC, VERSION, decode, encode
from recap.graph.state import ContextGraph
from recap.graph.update import update_all
from tests.graph.factories import observations

_HEAD = struct.Struct("<4sBI")

graphs = st.builds(
    lambda seen, observer: update_all(ContextGraph.empty(observer), seen, Settings()),
    st.lists(observations(), max_size=4),
    st.sampled_from(["reuse", "proxy", "engine", "é\ud800", ""]),
)


def sealed(body: bytes, version: int = VERSION) -> bytes:
    """Return bytes with a right checksum, as someone who means harm would send them."""
    return _HEAD.pack(MAGIC, version, zlib.crc32(body)) + body


def graph_of(nodes: int = 40, edges_each: int = 5) -> ContextGraph:
    """Return a graph with every kind of value in it."""
    random = np.random.default_rng(7)
    index = np.arange(nodes, dtype=np.int32)
    target = np.repeat(index, np.minimum(index, edges_each))
    rank = np.concatenate([np.arange(count) for count in np.bincount(target, minlength=nodes)])
    return ContextGraph(
        "reuse",
        3,
        tuple(f"{random.integers(1 << 63):016x}" for _ in range(nodes)),
        random.random(nodes, np.float32),
        random.random(nodes) < 0.5,
        np.where((index % 3 == 0) & (index < nodes - 1), index + 1, -1).astype(np.int32),
        (target - 1 - rank).astype(np.int32),
        target,
        ((edges_each - rank) / (edges_each + 1)).astype(np.float32),
    )


@given(graphs)
def test_decode_returns_what_encode_was_given(graph):
    assert decode(encode(graph)) == graph


@pytest.mark.parametrize("graph", [ContextGraph.empty("engine"), graph_of(), graph_of(70_000, 2)])
def test_graphs_of_any_size_survive(graph):
    assert decode(encode(graph)) == graph


@given(st.lists(st.text(st.characters(codec=None)), unique=True, min_size=1, max_size=5))
def test_ids_may_be_any_text(ids):
    graph = dataclasses.replace(graph_of(len(ids)), ids=tuple(ids))
    assert decode(encode(graph)) == graph


@pytest.mark.parametrize("odd", ["ABCDEF0123456789", "abc", "0" * 17, "000000000000000\n", "é"])
def test_one_id_that_is_no_hash_does_no_harm_to_the_others(odd):
    graph = graph_of()
    graph = dataclasses.replace(graph, ids=(*graph.ids[:-1], odd))
    assert decode(encode(graph)) == graph


def test_edges_against_the_order_of_ids_survive():
    """An observer that sees only part of a session meets blocks in any order."""
    graph = dataclasses.replace(
        graph_of(3, 0),
        superseded_by=np.array([-1, 0, -1], np.int32),
        source=np.array([2], np.int32),
        target=np.array([0], np.int32),
        mass=np.array([0.5], np.float32),
    )
    assert decode(encode(graph)) == graph


def test_equal_graphs_have_equal_bytes():
    assert encode(graph_of()) == encode(graph_of())


def test_a_block_costs_13_bytes_and_an_edge_5():
    size = len(encode(graph_of(130, 5)))
    assert size <= 64 + 130 * 14.5 + 130 * 5 * 5


@given(graphs, st.data())
def test_a_cut_graph_is_refused(graph, data):
    whole = encode(graph)
    with pytest.raises(GraphFormatError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@given(graphs, st.data())
def test_a_flipped_bit_is_refused(graph, data):
    damaged = bytearray(encode(graph))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(GraphFormatError):
        decode(bytes(damaged))


@given(st.binary(max_size=80))
def test_bytes_from_anyone_are_refused_or_a_graph(body):
    for data in (body, MAGIC + body, sealed(body)):
        try:
            graph = decode(data)
        except GraphFormatError:
            continue
        assert decode(encode(graph)) == graph


@given(graphs, st.data())
def test_a_changed_graph_with_a_right_checksum_is_refused_or_a_graph(graph, data):
    body = bytearray(encode(graph)[_HEAD.size :])
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        changed = decode(sealed(bytes(body)))
    except GraphFormatError:
        return
    assert decode(encode(changed)) == changed


@pytest.mark.parametrize("at", [4, 8])
def test_huge_counts_do_not_take_memory(at):
    body = bytearray(encode(graph_of())[_HEAD.size :])
    body[at : at + 4] = b"\xff" * 4
    with pytest.raises(GraphFormatError):
        decode(sealed(bytes(body)))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (None, "no bytes"),
        ("RCPG", "no bytes"),
        (b"", "begin otherwise"),
        (b"{}", "begin otherwise"),
        (MAGIC, "begin otherwise"),
        (sealed(b"", version=2), "version 2, this release reads version 1"),
        (_HEAD.pack(MAGIC, VERSION, 1) + b"x", "checksum"),
        (sealed(b"short"), "end too early"),
        (encode(graph_of()) + b"x", "checksum"),
        (sealed(encode(graph_of())[_HEAD.size :] + b"x"), "left over"),
    ],
)
def test_the_refusal_says_what_is_wrong(data, complaint):
    with pytest.raises(GraphFormatError, match=complaint):
        decode(data)


def broken(**changes) -> bytes:
    graph = graph_of(4, 2)
    for name, (at, value) in changes.items():
        column = getattr(graph, name).copy()
        column[at] = value
        graph = dataclasses.replace(graph, **{name: column})
    return encode(graph)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (broken(importance=(0, 1.5)), "score"),
        (broken(importance=(0, np.nan)), "score"),
        (broken(mass=(0, -0.5)), "score"),
        (broken(superseded_by=(1, 4)), "superseder"),
        (broken(source=(0, 9)), "no two blocks"),
        (broken(source=(0, 1)), "no two blocks"),
        (broken(source=(1, 0)), "stands twice"),
        (broken(mass=(2, 0.95)), "out of order"),
        (encode(dataclasses.replace(graph_of(4), ids=tuple("aabc"))), "stands twice"),
        (encode(dataclasses.replace(graph_of(2), ids=("0" * 16,) * 2)), "stands twice"),
    ],
)
def test_a_graph_that_cannot_be_is_refused(data, complaint):
    with pytest.raises(GraphFormatError, match=complaint):
        decode(data)
