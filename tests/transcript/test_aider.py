from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript import aider
from recap.transcript.formats import read_bytes
from recap.transcript.sample import Sample
from recap.transcript.sources import ByteSource
from tests.transcript.agents import assert_contexts, authors, parts, said, shape
from tests.transcript.trajectories import MANGLE, found, user_authors

if TYPE_CHECKING:
    from pathlib import Path

    from recap.transcript.model import Transcript

START = "\n# aider chat started at 2025-01-01 10:00:00\n\n"
HEAD = "> Aider v0.86.1  \n> Git repo: .git with 300 files  \n"
TURN = "\n#### fix it  \n\nI will.\n\na.py\n```\n<<<<<<< SEARCH\nx\n```\n\n> Tokens: 7k sent  \n"


def read(text: str) -> Transcript:
    return aider.read(ByteSource(text.encode()))


def test_a_session_is_prompts_replies_and_output():
    transcript = read(START + HEAD + TURN)
    assert authors(transcript) == [
        ("tool", "Aider v0.86.1\nGit repo: .git with 300 files"),
        ("human", "fix it"),
        ("agent", "I will.\n\na.py\n```\n<<<<<<< SEARCH\nx\n```"),
        ("tool", "Tokens: 7k sent"),
    ]
    assert [message.role for message in transcript.messages] == [
        "user",
        "user",
        "assistant",
        "user",
    ]
    assert [message.line for message in transcript.messages] == [4, 7, 9, 17]
    assert (transcript.lines, transcript.counts) == (17, {"sessions": 1})
    assert transcript.findings == ()


def test_a_prompt_may_have_several_lines():
    transcript = read(START + "\n#### one  \n####   \n####     two  \n> x  \n")
    assert authors(transcript)[0] == ("human", "one\n\n    two")


def test_prompts_one_after_the_other_stay_apart():
    assert said(read(START + "\n#### one  \n\n#### two  \n")) == ["one", "two"]


@pytest.mark.parametrize(
    ("words", "author"),
    [
        ("/undo", "local"),
        ("/map-refresh", "local"),
        ("/add a.py", "command"),
        ("/ask why is it slow?", "command"),
        ("/run pytest", "command"),
        ("!ls", "command"),
        ("/home/me/a.py", "command"),
        ("/", "command"),
        ("read /undo", "human"),
    ],
)
def test_a_command_with_arguments_holds_the_persons_words(words, author):
    assert user_authors(read(f"{START}\n#### {words}  \n")) == [author]


def test_an_empty_prompt_is_counted():
    transcript = read(START + "\n#### <blank>  \n" + TURN)
    assert transcript.counts == {"sessions": 1, "empty_prompts": 1}
    assert said(transcript) == ["fix it"]


def test_the_live_session_is_the_last_one_with_words_of_the_person():
    transcript = read(START + TURN + START + HEAD + TURN.replace("fix it", "go on") + START + HEAD)
    assert transcript.counts == {"sessions": 3}
    assert [(m.is_active, m.parts[0].text()[:6]) for m in transcript.messages] == [
        (False, "fix it"), (False, "I will"), (False, "Tokens"),
        (True, "Aider "), (True, "go on"), (True, "I will"), (True, "Tokens"),
        (True, "Aider "),
    ]  # fmt: skip
    assert_contexts(transcript)


def test_sessions_without_words_of_a_person_are_live():
    transcript = read(START + HEAD + START + "\n#### /undo  \n")
    assert [message.is_active for message in transcript.messages] == [True, True]


@pytest.mark.parametrize("line", ["# aider chat started at noon", "# Title", "## Steps"])
def test_other_headings_are_the_assistants(line):
    transcript = read(f"{START}\n#### go  \n\n{line}\n\nok\n")
    assert authors(transcript)[1] == ("agent", f"{line}\n\nok")
    assert transcript.counts == {"sessions": 1}


def test_marks_without_the_ends_aider_writes_are_the_assistants():
    transcript = read(f"{START}{HEAD}\n#### go  \n\nSteps\n\n#### One\n\n> quoted\n>\n\nend\n")
    assert authors(transcript)[2] == ("agent", "Steps\n\n#### One\n\n> quoted\n>\n\nend")
    assert found(transcript) == [
        ("ambiguous-person", 11), ("ambiguous-console", 13), ("ambiguous-console", 14)
    ]  # fmt: skip
    assert {finding.severity for finding in transcript.findings} == {"note"}


def test_in_a_file_that_lost_its_ends_the_marks_decide():
    text = re.sub(
        " +\n", "\n", START + HEAD + TURN + "\n#### one\n####\n#### two\n\nok\n\n#### H\n"
    )
    transcript = read(text)
    assert said(transcript) == ["fix it", "one\n\ntwo", "H"]
    assert found(transcript) == [("ambiguous-person", 25)]


def test_a_session_may_have_lost_its_ends_and_a_later_one_not():
    stripped = re.sub(" +\n", "\n", START + HEAD + TURN)
    assert said(read(stripped + START + TURN)) == ["fix it", "fix it"]


def test_the_last_line_of_a_growing_file_goes_by_its_mark():
    assert said(read(START + TURN + "\n#### and no")) == ["fix it", "and no"]


def test_lines_end_at_line_feeds_only():
    text = START + "\n#### one\u2028two\x0bthree\rfour\u0085  \n\nok\x0c\u2029#### no  \n"
    transcript = read(text)
    assert said(transcript) == ["one\u2028two\x0bthree\rfour\u0085"]
    assert parts(transcript)[1].text() == "ok\x0c\u2029#### no  "


def test_line_ends_of_windows_and_a_byte_order_mark_are_taken():
    text = START.lstrip() + HEAD + TURN
    data = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    transcript = read_bytes(data)
    assert transcript.format == "aider"
    assert authors(transcript) == authors(read(text))


def test_bytes_that_are_no_text_are_reported():
    data = (START + TURN).encode().replace(b"fix", b"f\xffx").replace(b"will", b"wi\0ll")
    transcript = read_bytes(data)
    assert said(transcript) == ["f\ufffdx it"]
    assert parts(transcript)[1].text().startswith("I will.")
    assert found(transcript) == [("not-utf8", 5), ("nul-bytes", 7)]


def test_a_history_is_recognised():
    assert aider.detect(Sample(START + HEAD)) == "# aider chat started at"
    assert aider.detect(Sample("\ufeff" + START.lstrip()))
    assert aider.detect(Sample("see # aider chat started at 2025-01-01 10:00:00")) is None


@pytest.mark.parametrize("mangle", MANGLE)
def test_a_broken_file_is_read(mangle):
    data = mangle((START + HEAD + TURN + START + TURN).encode())
    transcript = read_bytes(data, format="aider")
    assert transcript.messages
    assert_contexts(transcript)


LINES = st.lists(
    st.sampled_from(["#### ", "####", "> ", ">", "", "/x ", "!", "#### /x ", "```"])
    .flatmap(lambda mark: st.text("ab# >\u2028\0\r", max_size=6).map(lambda words: mark + words))
    .flatmap(lambda line: st.sampled_from(["  \n", "\n", "\r\n", ""]).map(lambda end: line + end)),
    max_size=12,
)


@given(LINES)
def test_no_word_is_lost_moved_or_made_up(lines):
    text = "".join(lines)
    kept = "".join(part.text() for part in parts(read(text)))
    assert re.findall("[ab]", kept) == re.findall("[ab]", text)


# The counts below are taken from the raw lines, by the rules of the format alone.


def sessions(corpus: Path) -> list[Path]:
    return sorted(corpus.glob("sessions/aider/*"))


def raw_prompts(lines: list[str]) -> list[str]:
    """Return the prompts: runs of lines of the person, without marks and ends."""
    prompts: list[list[str]] = []
    before = ""
    for line in lines:
        if line.startswith("####"):
            if not before.startswith("####"):
                prompts.append([])
            prompts[-1].append(line[5:].removesuffix("  "))
        before = line
    return ["\n".join(prompt) for prompt in prompts]


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "n_prompts", "n_sessions"),
    [
        ("aider-22turns.md", 22, 1),
        ("aider-30sessions-a.md", 39, 30),
        ("aider-52turns.md", 52, 1),
        ("zen-mcp.md", 8, 4),
    ],
)
def test_every_history_of_the_corpus_is_read_whole(corpus: Path, name, n_prompts, n_sessions):
    data = (corpus / "sessions/aider" / name).read_bytes()
    lines = data.decode().split("\n")
    transcript = read_bytes(data)
    assert (transcript.format, transcript.findings) == ("aider", ())
    assert transcript.counts == {"sessions": n_sessions}
    prompts = raw_prompts(lines)
    bare = [words for words in prompts if re.fullmatch(r"/\w+", words)]
    assert said(transcript) == [words for words in prompts if words not in bare]
    assert [words for author, words in authors(transcript) if author == "local"] == bare
    assert len(prompts) == n_prompts
    output = "\n".join(line[2:] for line in lines if line.startswith("> "))
    read_output = "\n".join(words for author, words in authors(transcript) if author == "tool")
    assert read_output.split() == output.split()
    rest = [line for line in lines if not line.startswith(("> ", "####", "# aider chat started"))]
    agent = "\n".join(words for author, words in authors(transcript) if author == "agent")
    assert agent.split() == "\n".join(rest).split()
    assert {tuple(kinds) for _, kinds in shape(transcript)} == {("text",)}


@pytest.mark.corpus
def test_every_history_of_the_corpus_gives_valid_contexts(corpus: Path):
    paths = sessions(corpus)
    assert len(paths) == 4
    for path in paths:
        assert_contexts(read_bytes(path.read_bytes()))


@pytest.mark.corpus
def test_a_history_of_the_corpus_may_be_cut_at_any_line(corpus: Path):
    for path in sessions(corpus):
        lines = path.read_bytes().splitlines(keepends=True)
        for at in range(1, len(lines), 1 if len(lines) < 500 else 7):
            transcript = aider.read(ByteSource(b"".join(lines[:at])))
            assert transcript.lines == at
            if at % 50 == 1 and said(transcript):
                assert_contexts(transcript)
