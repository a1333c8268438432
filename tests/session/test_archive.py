"""Blocks a client no longer sends can come back; what a person took back cannot."""

from __future__ import annotations

from typing import Any

import recap
from recap.session import Compaction, Session
from tests.testing import conversation

SUMMARY = "This session is being continued from a previous conversation that ran out of context."


def history(turns: int = 6) -> list[dict[str, Any]]:
    return conversation(turns)


def ask(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


def revived(done: Compaction) -> set[str]:
    table = done.table
    return {id for id, active in zip(table.ids, table.is_active, strict=True) if not active}


def test_the_middle_a_condenser_took_out_stays_selectable() -> None:
    messages = history()
    condensed = [*messages[:7], *messages[-7:]]
    with Session() as session:
        before = session.compact(messages, "next")
        done = session.compact(condensed, "and now")
    assert done.table.ids[: len(before.table)] == before.table.ids
    assert revived(done)
    assert done.selection.active_chars == recap.compact(condensed, "and now").selection.active_chars


def test_a_condensed_block_is_kept_when_it_is_asked_for() -> None:
    messages = history(8)
    condensed = [*messages[:7], *messages[-7:]]
    with Session() as session:
        session.compact(messages, "next")
        done = session.compact(condensed, "look at module_3.py again", retention=0.9)
    assert done.report.revived_blocks > 0
    assert recap.check(done.messages, "anthropic") == []


def test_a_native_compaction_keeps_the_old_blocks_selectable() -> None:
    messages = history()
    compacted = [ask(f"{SUMMARY} The summary is: modules were fixed."), *history(9)[-7:]]
    with Session("s") as session:
        before = session.compact(messages, "next")
        done = session.compact(compacted, "and now")
    assert set(before.table.ids) <= set(done.table.ids)
    assert revived(done) == set(before.table.ids)


def test_another_conversation_under_the_same_id_shares_nothing() -> None:
    with Session("s") as session:
        session.compact(history(), "next")
        done = session.compact([ask("What is the capital of France?")])
    assert len(done.table) == 0


def test_a_rewound_tail_is_gone() -> None:
    messages = history()
    other = [*messages[:14], ask("no, do it in rust"), {"role": "assistant", "content": "fine"}]
    with Session() as session:
        session.compact(messages, "next")
        done = session.compact(other, "and now")
    assert done.table.ids == recap.compact(other, "and now").table.ids


def test_the_archive_lasts_while_the_session_goes_on() -> None:
    messages = history(8)
    condensed = [*messages[:7], *messages[-14:]]
    with Session() as session:
        session.compact(messages, "next")
        first = session.compact(condensed, "and now")
        more = [*condensed, ask("and now"), *history(9)[-6:]]
        second = session.compact(more, "and then")
    assert revived(first) == revived(second) != set()


def test_turn_keys_do_not_depend_on_the_archive() -> None:
    messages = history()
    condensed = [*messages[:7], *messages[-7:]]
    with Session() as session:
        session.compact(messages, "next")
        done = session.compact(condensed)
    assert done.report.turn_key == recap.compact(condensed).report.turn_key


def test_a_native_compaction_to_plain_texts_keeps_the_dialect() -> None:
    with Session("s") as session:
        session.compact(history(), "next")
        done = session.compact([ask(f"{SUMMARY} All is done."), ask("and now")], retention="0.9")
    assert done.report.dialect == "anthropic"
    assert recap.check(done.messages, "anthropic") == []


def test_a_reply_said_again_brings_nothing_back_that_was_taken_back() -> None:
    done = {"role": "assistant", "content": "Done."}
    messages = [*history(2), ask("remove everything"), done, ask("thanks"), done]
    sure = {"role": "assistant", "content": "Sure."}
    other = [*history(2), ask("keep it"), sure, ask("all"), done, ask("thanks"), done, ask("now")]
    with Session("s") as session:
        session.compact(messages, "next")
        assert "remove everything" not in str(session.compact(other, retention="0.9").messages)


def test_what_followed_a_native_compaction_and_was_taken_back_is_gone() -> None:
    compacted = [ask(f"{SUMMARY} All is done."), {"role": "assistant", "content": "OK"}]
    with Session("s") as session:
        session.compact(history(), "next")
        session.compact([*compacted, ask("remove everything"), *history(9)[-7:]])
        session.compact(compacted)
        done = session.compact([*compacted, ask("keep everything")], retention="0.9")
    assert "remove everything" not in str(done.messages)


def test_another_conversation_with_the_same_reply_shares_nothing() -> None:
    done = {"role": "assistant", "content": "Done."}
    with Session("s") as session:
        session.compact([*history(), ask("and this"), done], "next")
        other = session.compact([ask("What is the capital of France?"), done, ask("thanks")])
    assert len(other.table) == 2


def test_what_a_native_compaction_took_away_lasts_within_the_turn() -> None:
    compacted = [ask(f"{SUMMARY} All is done."), ask("now module_3.py")]
    with Session("s") as session:
        session.compact(history(), "next")
        first = session.compact(compacted, retention="0.9")
        second = session.compact([*compacted, *history(9)[-7:-1]], retention="0.9")
    assert revived(first)
    assert second.messages[: len(first.messages)] == first.messages


def test_a_reply_said_again_moves_nothing_that_was_condensed() -> None:
    done = {"role": "assistant", "content": "Done."}
    compacted = [ask(f"{SUMMARY} All is done."), ask("now module_3.py"), *history(9)[-7:-1]]
    with Session("s") as session:
        session.compact([*history(), ask("and this"), done], "next")
        before = session.compact(compacted, "first", retention="0.9").table.ids
        after = session.compact([*compacted, done], "second", retention="0.9").table.ids
    assert after[: len(before)] == before


def test_a_condensation_undone_leaves_nothing_twice() -> None:
    messages = history(8)
    with Session("s") as session:
        session.compact(messages, "next")
        session.compact([*messages[:7], *messages[-14:]], "and now")
        done = session.compact(messages, "and then")
    assert done.table.ids == recap.compact(messages, "and then").table.ids
    assert done.table.is_active.all()


def test_a_session_that_is_sent_whole_stays_so_when_the_client_condenses() -> None:
    messages = history()
    condensed = [*messages[:7], *messages[-7:], ask("and now")]
    usage = {"input_tokens": 10, "cache_read_input_tokens": 9000, "output_tokens": 5}
    with Session("s") as session:
        session.observe(messages[:1])
        session.responded(usage)
        assert session.compact([*messages, ask("next")]).report.action == "pass"
        first = session.compact(condensed)
        step = session.compact([*condensed, *history(9)[-7:-5]])
    assert first.messages == condensed
    assert step.messages[: len(condensed)] == condensed
