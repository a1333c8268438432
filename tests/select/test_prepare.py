from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.segment import segment
from recap.select.prepare import _pieces, clip_pastes, without_thinking
from tests.testing import message, read_messages, reply, text, thinking, user

LOG = "".join(f"2026-01-01 line {i} of the log\n" for i in range(400))


def test_a_pasted_log_is_clipped_and_the_words_around_it_stay():
    words = f"Why does this fail?\n\n{LOG}\nPlease do not touch config.py"
    (clipped,), removed = clip_pastes([user(words)], 1000)
    out = clipped.parts[0].text()
    assert out.startswith("Why does this fail?\n\n2026-01-01 line 0 ")
    assert out.endswith("line 399 of the log\n\nPlease do not touch config.py")
    assert clipped.parts[0].cost_chars == len(out) == len(words) - removed
    assert f"{len(LOG) + 1 - 1000} characters omitted]" in out


def test_a_fenced_block_with_blank_lines_is_one_blob():
    fence = "```\n" + LOG.replace("line 7 ", "\n\n") + "```\n"
    (clipped,), _ = clip_pastes([user(f"look\n\n{fence}and fix")], 1000)
    assert clipped.parts[0].text().count("characters omitted]") == 1


def test_long_prose_is_never_clipped():
    words = "word " * 5000
    messages = (user(words),)
    assert clip_pastes(messages, 1000) == (messages, 0)


def test_clipping_leaves_block_ids_alone():
    messages = [user(LOG)]
    clipped, _ = clip_pastes(messages, 1000)
    assert segment(clipped).blocks[0].id == segment(messages).blocks[0].id


def test_only_a_persons_texts_are_clipped():
    messages = (reply(LOG), message("user", text(LOG, "injected")))
    assert clip_pastes(messages, 1000)[1] == 0


@given(st.text(alphabet="a`~\n \r", max_size=200))
def test_pieces_add_up_to_the_text(words: str):
    assert "".join(_pieces(words)) == words


def test_without_thinking_leaves_other_parts_and_messages_alone():
    plain = reply("ok")
    messages = [plain, message("assistant", thinking("hm"), text("so", "agent"))]
    out = without_thinking(messages)
    assert out[0] is plain
    assert [part.kind for part in out[1].parts] == ["text"]


def test_the_vendors_own_message_does_not_go_out_for_a_clipped_one():
    (given_message,) = read_messages([{"role": "user", "content": LOG}]).messages
    (clipped,), _ = clip_pastes([given_message], 1000)
    assert given_message.envelope.raw is not None
    assert clipped.envelope.raw is None
    assert clipped.envelope.size == given_message.envelope.size
