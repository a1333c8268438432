from __future__ import annotations

import base64
import os
import random
import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.blocks.identifiers import MEMO_TOKENS, _Memo, identifiers, request_terms

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open /repo/src/http_client.py now", {"/repo/src/http_client.py"}),
        ("./src/main.rs", {"src/main.rs", "main.rs"}),
        ("see src/core/ for it", {"src/core"}),
        (r"C:\repo\src\main.py", {"C:/repo/src/main.py", "src/main.py", "main.py"}),
        (r"src\core\render.py", {"src/core/render.py"}),
        ("parser.py:12: error", {"parser.py"}),
        ("parser.py:12:5", {"parser.py"}),
        ("blob/parser.py#L12-L20", {"blob/parser.py"}),
        ("src/parser.py-12-import os", {"src/parser.py"}),
        ("pkg.mod.func()", {"pkg.mod.func"}),
        ("std::vec::Vec", {"std::vec::Vec"}),
        ("turn_key", {"turn_key"}),
        ("_private __init__", {"_private", "__init__"}),
        ("parseHTTPHeader HttpClient", {"parseHTTPHeader", "HttpClient"}),
        ("MAX_RETRIES", {"MAX_RETRIES"}),
        ("ValueError: ECONNREFUSED", {"ValueError", "ECONNREFUSED"}),
        ("E1234, TS2345 and JIRA-12", {"E1234", "TS2345", "JIRA-12"}),
        ("ERR_FOO", {"ERR_FOO"}),
        ("run with --no-markers.", {"--no-markers"}),
        ("fixes #1234 and owner/repo#77", {"#1234", "#77", "owner/repo"}),
        ("at commit a3b5c9d", {"a3b5c9d"}),
        ("scikit-learn", {"scikit-learn"}),
        ("node_modules/@types/node", {"types/node"}),
        ("https://docs.rs/serde/latest?x=1", {"docs.rs/serde/latest", "docs.rs", "serde/latest"}),
        ("sha256", {"sha256"}),
    ],
)
def test_names_are_found_in_their_exact_form(text: str, expected: set[str]):
    assert expected <= identifiers(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("turn_key", {"turn", "key"}),
        ("parseHTTPHeader", {"parse", "http", "header"}),
        ("/repo/src/http_client.py", {"http_client.py", "http_client", "http", "client", "repo"}),
        ("pkg.mod.func", {"pkg", "mod", "func"}),
        ("--no-markers", {"markers"}),
        ("README.md", {"README.md", "readme"}),
        ("cat .gitignore", {"gitignore"}),
        ("GET /login", {"login"}),
    ],
)
def test_names_come_with_their_parts(text: str, expected: set[str]):
    assert expected <= identifiers(text)


@pytest.mark.parametrize(
    "text",
    [
        "The client should retry when the server is busy.",
        "and so on... I.e. nothing - well, e.g. this.",
        "exit code 1, 3.14, 2026-02-10T10:10:43.404Z, 10px, 1,024",
        "     12→",
        "// --- *** === ... ../.. /",
        "",
        " \n\t",
    ],
)
def test_plain_words_and_numbers_are_none(text: str):
    assert identifiers(text) == frozenset()


def test_extensions_and_stop_words_are_no_parts():
    assert identifiers("is_not_from.yaml") == {"is_not_from.yaml", "is_not_from"}


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ('print("connection lost")', "connection lost"),
        ("raise Refused('no such turn')", "no such turn"),
        ("the option `retention` is", "retention"),
        ("“file is empty” was shown", "file is empty"),
        ("点击「保存设置」按钮", "保存设置"),
        ("错误 “连接失败”", "连接失败"),
        (r"{\"name\": \"retention\"}", "retention"),
    ],
)
def test_quoted_literals_are_found(text: str, literal: str):
    assert literal in identifiers(text)


@pytest.mark.parametrize(
    "text",
    [
        "don't do it, it's fine",
        "I don't see the authors' notes",
        '"' + "long " * 20 + '"',
        '"one two three four five six"',
        '": "',
        '"two\nlines"',
        '"1234"',
    ],
)
def test_long_quotes_and_apostrophes_are_no_literals(text: str):
    assert identifiers(text) == frozenset()


def test_names_in_other_scripts_are_found():
    assert {"テスト.md", "docs/テスト.md"} <= identifiers("開く docs/テスト.md を")
    assert "функция_поиска" in identifiers("вызвать функция_поиска(x)")
    assert "foo_bar" in identifiers("修改foo_bar函数")
    assert "café_menu.txt" in identifiers("open café_menu.txt")


def test_composed_and_decomposed_letters_are_the_same_name():
    assert identifiers("cafe\u0301_menu.txt") == identifiers("caf\u00e9_menu.txt")


def test_windows_and_posix_spellings_meet():
    shared = identifiers(r"D:\a\src\main_loop.py") & identifiers("src/main_loop.py")
    assert {"src/main_loop.py", "main_loop.py", "main_loop"} <= shared


def test_backslash_escapes_in_encoded_text_are_no_letters():
    found = identifiers(r"first_line\nsecond_line\tthird_line")
    assert {"first_line", "second_line", "third_line"} <= found
    assert "nsecond_line" not in found


def test_doubled_backslashes_separate_and_single_ones_escape():
    found = identifiers(r"C:\\repo\\next.py\nsecond_line")
    assert {"C:/repo/next.py", "second_line"} <= found


def test_line_number_prefixes_do_not_stick_to_names():
    assert "import_order" in identifiers("     7→import_order = 1")


def test_terminal_escapes_do_not_stick_to_names():
    coloured = "\x1b[31mfoo_bar\x1b[0m \x1b]8;;http://x.y\x07link_text\x1b]8;;\x07"
    assert {"foo_bar", "link_text"} <= identifiers(coloured)
    assert not any("31m" in name for name in identifiers(coloured))


def test_injected_reminders_do_not_count():
    text = "one_name <system-reminder>\ntwo_name\n</system-reminder> three_name"
    assert {"one_name", "three_name"} <= identifiers(text)
    assert "two_name" not in identifiers(text)
    assert "two" not in request_terms(text)


def test_an_unclosed_reminder_hides_nothing():
    assert "two_name" in identifiers("the tag <system-reminder> and two_name")


def blobs() -> dict[str, str]:
    rng = random.Random(7)
    lines = [rng.randbytes(57) for _ in range(300)]
    return {
        "base64": base64.b64encode(b"".join(lines)).decode(),
        "wrapped base64": "\n".join(base64.b64encode(line).decode() for line in lines),
        "quoted hex": "\n".join(f'"{line.hex()}"' for line in lines),
        "sha1": "\n".join(line[:20].hex() for line in lines),
        "uuid": "\n".join(str(uuid.UUID(bytes=line[:16])) for line in lines),
        "one word": "a" * 10_000,
        "one token": "ab_c." * 10_000,
    }


@pytest.mark.parametrize("kind", blobs())
def test_encoded_blobs_and_hashes_do_not_flood(kind: str):
    assert len(identifiers(blobs()[kind])) <= 5


def test_a_hash_in_a_path_leaves_the_file_name():
    found = identifiers(f"/tmp/{'3fa94c1b' * 4}/src/main_loop.py")
    assert "main_loop.py" in found
    assert not any("3fa94c1b" in name for name in found)


def test_identifiers_are_bounded():
    found = identifiers("/".join(["long_name"] * 40) + ' "' + "x y" * 40 + '"')
    assert all(len(name) <= 200 for name in found)


def test_requests_in_plain_words_meet_names_through_parts():
    assert {"turn", "key"} <= request_terms("the turn key function") & identifiers(
        "def turn_key():"
    )


def test_requests_hold_their_words_without_stop_words():
    assert request_terms("Please fix the Retry logic with it") == {"fix", "retry", "logic"}


def test_words_of_a_request_are_bounded():
    assert request_terms("a" * 10_000 + " 重试") == {"重试"}


@given(st.text())
def test_any_text_is_read(text: str):
    assert all(name and name.strip() for name in identifiers(text) | request_terms(text))


@given(st.text(alphabet=" aB_./\\:\"'`#+-→\u3000\ud800\x1b1C", max_size=60))
def test_texts_of_marks_and_broken_unicode_are_read(text: str):
    assert all(len(name) <= 200 for name in identifiers(text) | request_terms(text))


@given(
    st.lists(st.sampled_from(["ab_c", "http/x.py", "plainword", '"two words"', "é_x"]), min_size=1)
)
def test_lines_are_read_independently(lines: list[str]):
    whole = identifiers("\n".join(lines))
    assert whole == frozenset().union(*map(identifiers, lines))


HOSTILE: dict[str, Callable[[int], str]] = {
    pattern: lambda size, pattern=pattern: pattern * (size // len(pattern))  # type: ignore[misc]
    for pattern in (
        "a.", "_", '"', "\\", "'", "`", '"a', "a\\", "a/", ":", "a::", "-", "#1", "+", "修", "修_",
        "😀", "\x1b[", "\x1b]", "<system-reminder>", "</system-reminder>", "\\n", "C:\\a\\",
        "'foo bar", "http://a.b/c ", "\ud800ab_c ",
    )
}  # fmt: skip
HOSTILE["distinct"] = lambda size: " ".join(f"x_{i:07d}" for i in range(size // 10))


@pytest.mark.parametrize("pattern", HOSTILE)
def test_time_grows_linearly_on_hostile_text(pattern: str):
    """Quadratic work would take 16 times as long for four times the text."""
    make = HOSTILE[pattern]
    identifiers(make(50_000))

    def seconds(size: int) -> float:
        text = make(size)
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            request_terms(text)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(200_000) <= 8 * seconds(50_000) + 0.02


def test_the_memo_stays_within_its_bound():
    memo = _Memo(lambda token: frozenset((token,) if token.startswith("a") else ()))
    for number in range(0, MEMO_TOKENS + 10, 2):
        assert list(memo.names({b"a%d" % number})) == [f"a{number}"]
        assert list(memo.names({b"b%d" % number})) == []
    assert len(memo) + len(memo.nameless) == 10


def test_results_do_not_depend_on_the_hash_seed():
    code = (
        "from recap.blocks.identifiers import identifiers, request_terms\n"
        "text = 'Fix `retry` in src/http_client.py: ValueError at pkg.mod.func #12 \"no such turn\"'\n"
        "print(sorted(identifiers(text)), sorted(request_terms(text)))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, check=True, text=True, env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(outputs) == 1


# Long texts


@pytest.mark.parametrize("joint", ["\n", "\n\n    "])
def test_a_text_read_in_pieces_has_the_names_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, joint: str
) -> None:
    lines = [f"call_{n}(path/to_{n}.py) says \"error {n} in part\" and 'x_{n}'" for n in range(60)]
    whole = identifiers(joint.join(lines))
    for size in (70, 100, 333):
        monkeypatch.setattr("recap.blocks.identifiers.PIECE_CHARS", size)
        assert identifiers(joint.join(lines)) == whole


def test_a_long_line_is_cut_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recap.blocks.identifiers.PIECE_CHARS", 40)
    assert identifiers(" ".join(f"name_of_{n}" for n in range(50))) >= {
        f"name_of_{n}" for n in range(50)
    }
    assert "a" * 30 not in identifiers("b" * 200)
