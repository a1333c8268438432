from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.transcript.lines import (
    MAX_FINDINGS,
    Record,
    Report,
    Rows,
    elements,
    members,
    parse,
    read_records,
    split_lines,
)
from recap.transcript.model import Finding, Held, Slice
from recap.transcript.sources import CHUNK_BYTES, ByteSource, open_source

GOOD = b'{"type": "user", "n": 1}'
ANY = msgspec.json.Decoder(dict[str, object])


def read(data: bytes) -> tuple[list[Record[dict[str, object]]], list[Finding]]:
    report = Report()
    return list(read_records(ByteSource(data), ANY, report)), list(report.sorted())


def values(data: bytes) -> list[object]:
    return [record.value for record in read(data)[0]]


def codes(data: bytes) -> list[tuple[str, int]]:
    return [(finding.code, finding.line) for finding in read(data)[1]]


def slice_of(data: bytes, *, is_clean: bool = True) -> Slice:
    return Slice(ByteSource(data), 0, len(data), is_clean)


# Lines


@given(st.lists(st.text("ab\r\0\u2028\x0b\x85", max_size=3)), st.booleans())
def test_lines_end_at_line_feeds_only(texts, is_ended):
    data = "\n".join(texts).encode() + b"\n" * is_ended
    lines = list(split_lines(ByteSource(data)))
    assert [line.data for line in lines] == (data.removesuffix(b"\n").split(b"\n") if data else [])
    assert all(data[line.start :].startswith(line.data) for line in lines)


@pytest.mark.parametrize("size", [1, CHUNK_BYTES - 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 7])
def test_lines_longer_than_a_chunk_are_whole(size, tmp_path):
    lines = [b"a" * size, b"b", b"", b"c" * size]
    (tmp_path / "log").write_bytes(b"\n".join(lines))
    source = open_source(tmp_path / "log", held_bytes=0)
    assert [line.data for line in split_lines(source)] == lines
    assert [line.is_ended for line in split_lines(source)] == [True, True, True, False]


def test_a_byte_order_mark_is_no_part_of_the_first_record():
    """Report B053."""
    (record, other), findings = read(b"\xef\xbb\xbf" + GOOD + b"\n" + GOOD + b"\n")
    assert record.value == other.value == json.loads(GOOD)
    assert (record.start, other.start) == (3, 4 + len(GOOD))
    assert not findings


def test_carriage_returns_before_line_feeds_are_white_space():
    records, findings = read(GOOD + b"\r\n" + GOOD + b"\r\n\r\n")
    assert [record.line for record in records] == [1, 2]
    assert not findings


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\r"])
def test_separators_inside_strings_do_not_cut_a_line(separator):
    """Report B048."""
    line = json.dumps({"text": f"a{separator}b"}, ensure_ascii=False).encode()
    raw = line.replace(json.dumps(separator)[1:-1].encode(), separator.encode())
    (record,), findings = read(raw + b"\n")
    assert not findings
    assert slice_of(raw).load() == {"text": f"a{separator}b"}
    assert record.is_exact == (separator not in "\x0b\x0c\r")


def test_the_locale_does_not_matter(tmp_path):
    """Report B052."""
    path = tmp_path / "log.jsonl"
    path.write_bytes('{"role": "user", "content": "schön 漢字"}\n'.encode())
    code = (
        "import sys; from recap.transcript.formats import open_log;"
        "print(ascii(open_log(sys.argv[1]).messages[0].parts[0].text()))"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, path], env=environment, capture_output=True, check=True
    )
    assert done.stdout.strip().decode() == ascii("schön 漢字")


# Bad lines


@pytest.mark.parametrize(
    ("line", "code", "found"),
    [
        pytest.param(b"\0" * 500, "nul-bytes", 0, id="run of NUL"),
        pytest.param(GOOD + b"\0" * 9000, "nul-bytes", 1, id="JSON, then NUL"),
        pytest.param(b"\0\0" + GOOD, "nul-bytes", 1, id="NUL, then JSON"),
        pytest.param(GOOD + GOOD, "glued-lines", 2, id="two records"),
        pytest.param(GOOD + b"\0\0" + GOOD + b" " + GOOD, "glued-lines", 3, id="NUL between"),
        pytest.param(b'{"type":"a","t":"abc{"type":"user","n":1}', "cut-line", 1, id="spliced"),
        pytest.param(b'{"a":{"b":{"c":null}', "bad-line", 0, id="inner object only"),
        pytest.param(b'{"type":"user"}{"type":"us', "cut-line", 1, id="second one cut"),
        pytest.param(b'{"type":"a","t":"abc', "bad-line", 0, id="cut in a string"),
        pytest.param(b'{"a":[{"b":1}', "bad-line", 0, id="cut between values"),
        pytest.param(b"plain text", "bad-line", 0, id="no JSON"),
        pytest.param(b"\xff\xfe\x00\x01", "bad-line", 0, id="binary"),
        pytest.param(b"[" * 100_000, "too-deep", 0, id="nested"),
    ],
)
def test_a_bad_line_is_reported_and_what_is_whole_in_it_is_read(line, code, found):
    """Reports B044 and B046."""
    records, findings = read(GOOD + b"\n" + line + b"\n" + GOOD + b"\n")
    assert [record.line for record in records] == [1, *[2] * found, 3]
    assert [(finding.code, finding.line) for finding in findings] == [(code, 2)]
    assert f"byte {len(GOOD) + 1}" in findings[0].detail


def test_a_salvaged_record_has_its_place_in_the_file():
    data = GOOD + b'\n\0 {"type":"a","t":"abc{"type":"user","n":"}\\""}\0\n'
    record = read(data)[0][1]
    assert record.value == {"type": "user", "n": '}"'}
    assert data[record.start :].startswith(b'{"type":"user"')


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_cutting_records_into_one_another_loses_only_the_cut_one(seed, length):
    source = random.Random(seed)
    text = "".join(source.choices('ab"\\{}[]:,\n{"type":é', k=length))
    whole = json.dumps({"type": "user", "text": text}).encode()
    head = json.dumps({"type": "user", "text": text * 2}).encode()
    head = head[: source.randrange(20, len(head))]
    (record,), _ = read(head + whole.replace(b'{"type": ', b'{"type":', 1) + b"\n")
    assert record.value == {"type": "user", "text": text}


def test_a_marker_inside_a_string_begins_no_record():
    line = json.dumps({"t": 'quoted {"type":"user","n":1}'}).encode()
    assert values(line[:-2] + b"\n") == []
    assert values(line + b"\n") == [json.loads(line)]


def test_what_strict_json_forbids_is_read_from_a_twin():
    line = b'{"a": "\\ud83d", "b": NaN, "c": "\x0b", "d": "x"}'
    (record,), findings = read(line + b"\n")
    assert not record.is_exact
    assert len(record.data) == len(line)
    assert record.value is not None
    assert record.value["d"] == "x"
    assert not findings


@pytest.mark.parametrize("line", [b"null", b"[1]", b"5", b'"x"', b"NaN"])
def test_json_of_another_kind_is_a_record_without_value(line):
    (record,), findings = read(line + b"\n")
    assert record.value is None
    assert not findings


def test_a_last_line_without_end_counts_only_if_it_parses():
    assert values(GOOD + b"\n" + GOOD) == [json.loads(GOOD)] * 2
    assert values(GOOD + b"\n" + GOOD[:-3]) == [json.loads(GOOD)]
    assert codes(GOOD + b"\n" + GOOD[:-3]) == [("unfinished-line", 2)]


@given(st.integers(0, 400), st.integers(0, 400))
def test_a_growing_file_gives_the_records_it_would_give_later(cut, other):
    log = b"".join(b'{"n": %d, "t": "%s"}\n' % (n, b"x" * n) for n in range(20))
    first, second = sorted((cut, other))
    early, late = values(log[:first]), values(log[:second])
    assert late[: len(early)] == early


def test_findings_of_one_kind_end_in_a_count():
    findings = read(b"x\n" * (MAX_FINDINGS + 5))[1]
    assert len(findings) == MAX_FINDINGS + 1
    assert findings[0] == Finding("bad-line", "5 more of these are not listed", 0, "warning")


def test_parse_refuses_what_is_no_json():
    for data in (b"", b"{", b"{} {}", b"\xff", b"{'a': 1}"):
        with pytest.raises(ValueError, match="no JSON"):
            parse(data, ANY)


# Handles


def test_members_and_elements_of_a_file_keep_its_bytes():
    data = b'{"a": [1.0, -0.0, "\\/"], "b" : {"k": 12345678901234567890} }'
    fields = members(slice_of(data))
    assert {key: raw.dump() for key, raw in fields.items()} == {
        "a": b'[1.0, -0.0, "\\/"]',
        "b": b'{"k": 12345678901234567890}',
    }
    assert [raw.dump() for raw in elements(fields["a"])] == [b"1.0", b"-0.0", b'"\\/"']
    assert len(fields) == 2
    assert "c" not in fields


def test_members_and_elements_of_python_objects_are_those_objects():
    inner = [{"deep": True}]
    fields = members(Held({"a": inner}))
    assert fields["a"].load() is inner
    assert elements(fields["a"])[0].load() is inner[0]


@pytest.mark.parametrize("value", [b"1", b'"text"', b"null", b"[", b"{"])
def test_what_has_no_members_or_elements_gives_none(value):
    assert dict(members(slice_of(value))) == {}
    assert elements(slice_of(value)) == []


def test_python_scalars_have_no_members_or_elements():
    assert dict(members(Held("text"))) == {}
    assert elements(Held({"a": 1})) == []


def test_cleanness_is_found_out_part_by_part():
    data = b'{"good": "a", "lone": "\\ud83d", "bytes": "\xff", "number": NaN, "list": [1, NaN]}'
    fields = members(slice_of(data, is_clean=False))
    assert {key for key, raw in fields.items() if raw.is_clean} == {"good"}
    assert [raw.is_clean for raw in elements(fields["list"])] == [True, False]
    held = members(Held({"good": "a", "lone": "\ud83d"}, is_clean=False))
    assert [raw.is_clean for raw in held.values()] == [True, False]


def test_rows_stand_for_an_array():
    rows = Rows((slice_of(b"1"), slice_of(b'"\\ud83d"', is_clean=False)))
    assert rows.load() == [1, "\ud83d"]
    assert rows.dump() == b'[1,"\\ud83d"]'
    assert elements(rows) == list(rows.items)
    assert not rows.is_clean


# Cost


@pytest.mark.parametrize(
    ("unit", "size"),
    [
        pytest.param(b"x\n", 4_000, id="bad lines"),
        pytest.param(b"{}\n", 8_000, id="tiny records"),
        pytest.param(b'{"type":"a"}', 2_000, id="glued records"),
        pytest.param(b'{"type":', 8_000, id="markers"),
        pytest.param(b'{"type":"%s' % (b"x" * 40), 2_000, id="cut strings"),
        pytest.param(b'{"type":{"a":1},', 2_000, id="cut objects"),
    ],
)
def test_time_grows_with_the_bytes_not_their_square(unit, size):
    def seconds(data: bytes) -> float:
        start = time.process_time()
        read(data)
        return time.process_time() - start

    small, large = (min(seconds(unit * n + b"\n") for _ in range(3)) for n in (size, size * 8))
    assert large < 0.02 + 24 * small  # a square would be 64 times


@pytest.mark.slow
def test_a_line_of_300_megabytes_is_read_in_a_few_times_its_size(tmp_path):
    """Report B123."""
    path = tmp_path / "log.jsonl"
    with path.open("wb") as file:
        file.write(b'{"type":"user","uuid":"u","parentUuid":null,"message":{"content":"')
        for _ in range(300):
            file.write(b"x" * 1_000_000)
        file.write(b'"}}\n')
    peak, resting = memory_of(path)
    assert peak < 5 * 300 + 100
    assert resting < 60


@pytest.mark.slow
def test_a_log_of_200_megabytes_needs_little_memory(tmp_path):
    """Report B123: at most 80 MB of anonymous memory and 1 KB a block."""
    path = tmp_path / "log.jsonl"
    blocks = 10_000
    with path.open("wb") as file:
        for n in range(blocks):
            parent = f'"u{n - 1}"' if n else "null"
            text = "y" * 20_000
            line = f'{{"type":"user","uuid":"u{n}","parentUuid":{parent},"message":{{"content":"{text}"}}}}\n'
            file.write(line.encode())
    peak, _ = memory_of(path)
    assert peak < 80 + blocks * 1024 / 1e6


def memory_of(path: os.PathLike[str]) -> tuple[float, float]:
    """Return peak and final anonymous memory in MB of a process that opens a log."""
    if not os.path.exists("/proc/self/status"):  # noqa: PTH110
        pytest.skip("reads /proc/self/status")
    code = """
import re, sys
from recap.transcript.formats import open_log
transcript = open_log(sys.argv[1])
status = dict(re.findall(r"(\\w+):\\s+(\\d+) kB", open("/proc/self/status").read()))
shared = int(status["VmRSS"]) - int(status["RssAnon"])
print((int(status["VmHWM"]) - shared) / 1e3, int(status["RssAnon"]) / 1e3)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, check=True, text=True
    )
    peak, resting = map(float, done.stdout.split())
    return peak, resting


# Lines in great number


JUNK = [
    *(
        b"plain text",
        b"INFO {'a': 1} done",
        b'{"type":"user","message":{"a',
        b"\0" * 30,
        b"\xff\xfe",
    ),
    *(b"2026-01-01 at noon", b'"a"}}', b"]]"),
]


@pytest.mark.parametrize("junk", JUNK)
def test_junk_without_end_is_counted_and_not_listed_one_by_one(junk):
    report = Report()
    data = GOOD + b"\n" + (junk + b"\n") * (3 * MAX_FINDINGS) + GOOD + b"\n"
    records = list(read_records(ByteSource(data), ANY, report))
    assert [record.line for record in records] == [1, 3 * MAX_FINDINGS + 2]
    assert report.counts["bad_lines"] == 3 * MAX_FINDINGS
    first, *listed = report.sorted()
    assert first.detail == f"{2 * MAX_FINDINGS:,} more of these are not listed"
    assert len(listed) == MAX_FINDINGS


@pytest.mark.parametrize("value", [b"17", b"null", b"[1]", b'"text"', b"NaN", b"-1.5e3", b" true"])
def test_values_that_are_no_objects_are_no_junk(value):
    (record,), findings = read(value + b"\n")
    assert (record.value, record.line) == (None, 1)
    assert not findings
