"""The crafted cases of the trimmer: every input, option and expected outcome of the shared file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from recap.cli import run
from recap.cmv.options import TrimOptions
from tests.cmv.logs import trimmed
from tests.cmv.raw_session import active_lines, blocks_of, dangling, lines_of, requests, texts
from tests.conftest import corpus_path

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = corpus_path().parent / "cases" / "cmv"
ABSENT = "the cases beside the corpus are not there (set RECAP_CORPUS)"


def cases() -> list[Any]:
    """Return (case, options and expectation) of each case of a trim, and of its variants."""
    if not FOLDER.is_dir():
        return [pytest.param({}, {}, marks=pytest.mark.skip(reason=ABSENT), id="absent")]
    every = json.loads((FOLDER / "cases.json").read_text())["cases"]
    return [
        pytest.param(case, variant, id=case["id"] + ("-variant" if variant is not case else ""))
        for case in every
        if case["kind"] in ("trim", "read") and "bad_values" not in case
        for variant in (case, *case.get("variants", ()))
    ]


def options_of(given: dict[str, Any]) -> TrimOptions:
    wanted = dict(given)
    requests = "writes" if wanted.pop("stub_requests", False) else "keep"
    return TrimOptions(**wanted, requests=requests, yes=True)


@pytest.mark.parametrize(("case", "variant"), cases())
def test_a_case_comes_out_right(case: dict[str, Any], variant: dict[str, Any]):
    source = (FOLDER / case["input"]).read_bytes()
    expect = variant["expect"]
    out, report = trimmed(source, options_of(variant["options"]))
    for role in ("user", "assistant"):
        found = texts(out, role)
        assert len(found) == expect.get(f"{role}_texts", len(found))
        assert found == (expect.get(f"active_{role}_texts") or found)
    assert [text for text in expect.get("must_contain", ()) if text.encode() not in out] == []
    assert [text for text in expect.get("must_not_contain", ()) if text.encode() in out] == []
    assert all(bytes.fromhex(each) in out for each in expect.get("must_contain_hex", ()))
    assert out.endswith(expect.get("output_ends_with", "").encode())
    lines = iter(out.split(b"\n"))
    kept = [source.split(b"\n")[number] for number in expect.get("identical_lines", ())]
    assert all(line in lines for line in kept)  # in this order
    numbers = report.to_json()
    counted = expect.keys() & numbers.keys() - {"user_texts", "assistant_texts"}
    assert {name: numbers[name] for name in counted} == {name: expect[name] for name in counted}


@pytest.mark.parametrize(("case", "variant"), cases())
def test_the_output_of_a_case_is_sound(case: dict[str, Any], variant: dict[str, Any]):
    source = (FOLDER / case["input"]).read_bytes()
    expect, options = variant["expect"], options_of(variant["options"])
    out, _ = trimmed(source, options)
    active = active_lines(out)
    messages = [line for line in active if line["type"] in ("user", "assistant")]
    assert all(blocks_of(line) or line["message"]["content"] for line in messages)
    calls: set[str] = set()
    for block in (block for line in active for block in blocks_of(line)):
        calls |= {block["id"]} if block["type"] == "tool_use" else set()
        assert block["type"] != "tool_result" or block["tool_use_id"] in calls
    assert len(dangling(out)) == expect.get("dangling_parents", len(dangling(out)))
    assert dangling(out) <= dangling(source)
    if options.requests == "keep":
        assert requests(out) == requests(source)
    if "lf_without_cr" in expect:
        assert out.count(b"\n") - out.count(b"\r\n") == expect["lf_without_cr"]
    images = sum(
        block["type"] == "image" or '"type": "image"' in json.dumps(block)
        for line in active
        for block in blocks_of(line)
    )
    assert images == expect.get("image_blocks_left", images)
    assert len(out) <= expect.get("max_output_bytes", len(out))
    assert all(line is not None for line in lines_of(out))


@pytest.mark.parametrize(("case", "variant"), cases())
def test_a_case_trimmed_twice_is_a_case_trimmed_once(case: dict[str, Any], variant: dict[str, Any]):
    options = options_of(variant["options"])
    once, _ = trimmed((FOLDER / case["input"]).read_bytes(), options)
    assert trimmed(once, options)[0] == once


def thresholds() -> list[Any]:
    if not FOLDER.is_dir():
        return [pytest.param({}, "", True, marks=pytest.mark.skip(reason=ABSENT), id="absent")]
    every = json.loads((FOLDER / "cases.json").read_text())["cases"]
    return [
        pytest.param(case, value, name == "good_values", id=f"{case['id']}-{value!r}")
        for case in every if "bad_values" in case
        for name in ("bad_values", "good_values") for value in case[name]
    ]  # fmt: skip


@pytest.mark.parametrize(("case", "value", "is_good"), thresholds())
def test_a_threshold_is_a_whole_number_of_at_least_50(
    case: dict[str, Any], value: str, is_good: bool, tmp_path: Path, capsys: Any
):
    out = tmp_path / "out.jsonl"
    given = ["trim", str(FOLDER / case["input"]), "-o", str(out), "--yes", "--no-store"]
    status = run([*given, "--threshold", value])
    if is_good:
        assert status == 0
        assert out.exists()
        return
    error = case["expect"]["error"]
    said = capsys.readouterr().err
    assert status == error["exit_status"]
    assert all(word in said for word in error["message_has"])
    assert value in said
    assert not out.exists()
