from __future__ import annotations

from recap.select.alternate import alternate


def test_adjacent_users_are_joined_with_a_visible_border():
    """B029: strict templates refuse two user messages in a row."""
    first, second = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}
    answer = {"role": "assistant", "content": "c"}
    joined, sizes = alternate([first, second, answer])
    assert joined == [{"role": "user", "content": "a\n\nb"}, answer]
    assert joined[1] is answer
    assert sizes == [2, 1]
    assert first == {"role": "user", "content": "a"}


def test_content_lists_keep_their_blocks_apart():
    image = {"type": "image"}
    joined, _ = alternate(
        [{"role": "user", "content": [image]}, {"role": "user", "content": "look"}]
    )
    assert joined == [{"role": "user", "content": [image, {"type": "text", "text": "look"}]}]


def test_a_call_is_never_joined_with_what_follows():
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "tool", "tool_call_id": "1", "content": "x"},
        {"role": "assistant", "content": "a"},
    ]
    assert alternate(messages) == (messages, [1, 1, 1, 1])


def test_a_reply_joins_the_call_after_it():
    joined, _ = alternate(
        [
            {"role": "assistant", "content": "a"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        ]
    )
    assert joined == [{"role": "assistant", "content": "a", "tool_calls": [{"id": "1"}]}]
