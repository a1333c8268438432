from __future__ import annotations

from recap.blocks.pairing import PartRef, pair
from tests.testing import call, message, result, text


def refs(*pairs: tuple[int, int]) -> list[PartRef]:
    return [PartRef(*each) for each in pairs]


def test_parallel_calls_pair_by_id_in_any_order_of_results():
    messages = [
        message("assistant", call("a"), call("b")),
        message("tool", result("b")),
        message("tool", result("a")),
    ]
    assert pair(messages).result_of == {PartRef(0, 0): PartRef(2, 0), PartRef(0, 1): PartRef(1, 0)}


def test_a_result_before_its_call_still_pairs():
    """B007: a real result that stood before its call was replaced by an invented error."""
    messages = [message("tool", result("a")), message("assistant", call("a"))]
    found = pair(messages)
    assert found.result_of == {PartRef(1, 0): PartRef(0, 0)}
    assert found.excluded == ()


def test_one_constant_id_pairs_by_position():
    messages = [
        message("assistant", call("REDACTED")),
        message("tool", result("REDACTED", "first")),
        message("assistant", call("REDACTED"), call("REDACTED")),
        message("tool", result("REDACTED", "second"), result("REDACTED", "third")),
    ]
    assert pair(messages).result_of == dict(
        zip(refs((0, 0), (2, 0), (2, 1)), refs((1, 0), (3, 0), (3, 1)), strict=True)
    )


def test_an_interrupted_constant_id_does_not_shift_later_pairs():
    messages = [
        message("assistant", call("REDACTED")),
        message("assistant", call("REDACTED")),
        message("tool", result("REDACTED")),
    ]
    found = pair(messages)
    assert found.result_of == {PartRef(1, 0): PartRef(2, 0)}
    assert found.excluded == ((PartRef(0, 0), "open-call"),)


def test_open_calls_and_orphan_results_are_named():
    messages = [message("tool", result("gone")), message("assistant", call("never"))]
    assert pair(messages).excluded == (
        (PartRef(0, 0), "orphan-result"),
        (PartRef(1, 0), "open-call"),
    )


def test_a_call_id_repeated_in_one_message_and_answered_once_is_a_duplicate():
    """B011: the same id stored twice in one message made every later request fail."""
    messages = [
        message("assistant", call("t1"), call("t2"), call("t1")),
        message("tool", result("t1"), result("t2")),
    ]
    found = pair(messages)
    assert found.excluded == ((PartRef(0, 2), "duplicate-call"),)
    assert len(found.result_of) == 2


def test_a_second_result_of_an_answered_call_is_a_duplicate():
    messages = [message("assistant", call("t")), message("tool", result("t"), result("t"))]
    assert pair(messages).excluded == ((PartRef(1, 1), "duplicate-result"),)


def test_text_is_never_paired():
    messages = [message("assistant", text("hello", "agent")), message("user", text("hi"))]
    assert pair(messages) == pair([])
