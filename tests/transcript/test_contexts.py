from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.contexts import archived, has_words, is_copy, replaced
from recap.transcript.events import message_of
from recap.transcript.model import Author, Held, Message, Role
from recap.transcript.parts import text_part, thinking_part

AUTHORS: dict[Role, Author] = {"user": "human", "assistant": "agent", "system": "system"}


def says(role: Role, words: str, line: int = 0, author: Author | None = None) -> Message:
    part = text_part(Held(words), words, author or AUTHORS[role])
    return message_of(role, [part], line)


def told(messages: list[Message]) -> list[tuple[str, bool]]:
    return [(message.parts[0].text(), message.is_active) for message in messages]


ASKED = [says("user", "one"), says("assistant", "1"), says("user", "two"), says("assistant", "2")]


def test_what_the_context_lacks_is_replaced():
    old, live = replaced(ASKED, [says("user", "two"), says("assistant", "2")])
    assert told(old) == [("one", False), ("1", False)]
    assert told(live) == [("two", True), ("2", True)]
    assert live[0] is ASKED[2]


def test_a_request_without_its_answer_stays_where_it_was_but_the_last_one():
    old, live = replaced(ASKED, [says("user", "one"), says("system", "s"), says("user", "two")])
    assert told(old) == [("one", True), ("1", False), ("2", False)]
    assert told(live) == [("s", True), ("two", True)]


def test_steering_moves_with_the_request_it_steers():
    before = [*ASKED, says("user", "faster", author="steering"), says("assistant", "3")]
    context = [says("user", "one"), says("user", "two"), says("user", "faster")]
    old, live = replaced(before, context)
    assert told(live) == [("two", True), ("faster", True)]
    assert told(old)[0] == ("one", True)


def test_a_request_after_the_last_answer_moves():
    before = [*ASKED[:2], says("user", "two"), says("user", "three")]
    old, live = replaced(before, [says("user", "one"), says("user", "two"), says("user", "three")])
    assert told(old) == [("one", True), ("1", False)]
    assert told(live) == [("two", True), ("three", True)]


def test_what_a_later_context_takes_up_again_is_active_again():
    old, live = replaced(ASKED, [says("user", "two")])
    old, live = replaced([*old, *live], [says("user", "one"), says("assistant", "new")])
    assert ("one", True) in told(live)


def test_a_copy_is_known_by_the_persons_words():
    machine = text_part(Held("<hook/>"), "<hook/>", "injected")
    with_more = message_of("user", [*says("user", "one").parts, machine], 9)
    assert is_copy(ASKED[0], with_more)
    assert is_copy(ASKED[1], ASKED[1])
    assert not is_copy(ASKED[0], ASKED[2])


def test_thinking_alone_is_no_copy_of_other_thinking():
    first, second = (message_of("assistant", [thinking_part(Held("a"), "a")], 1) for _ in "12")
    assert not is_copy(first, second)
    assert is_copy(first, first)
    assert replaced([first], [second]) == (archived([first]), [second])


MESSAGES = st.lists(
    st.builds(says, st.sampled_from(["user", "assistant", "system"]), st.sampled_from("abc ")),
    max_size=8,
)


@given(MESSAGES, MESSAGES)
def test_no_word_of_a_person_is_lost_or_doubled(before: list[Message], context: list[Message]):
    old, live = replaced(before, context)

    def words(messages: list[Message]) -> Counter[str]:
        return Counter(m.parts[0].text() for m in messages if has_words(m))

    assert words([*old, *live]) == words(before) | words(context)


@given(MESSAGES, MESSAGES)
def test_active_is_what_the_context_holds(before: list[Message], context: list[Message]):
    old, live = replaced(before, context)
    active = [message for message in (*old, *live) if message.is_active]
    held = Counter((m.role, m.parts[0].text()) for m in context)
    assert Counter((m.role, m.parts[0].text()) for m in active) == held
