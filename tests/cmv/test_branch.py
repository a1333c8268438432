"""Branches: new sessions that begin where a snapshot stands."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recap.cmv.branch import Wish
from recap.cmv.facts import slug
from recap.cmv.fork import fork
from recap.cmv.options import TrimOptions
from recap.cmv.rewriting import Moves, claude_lines
from recap.cmv.snapshot import Labels, look
from recap.errors import InputError, StoreError, UsageError
from recap.transcript.check import check_source
from recap.transcript.formats import READ, open_log, read_bytes
from recap.transcript.sources import ByteSource
from tests.cmv.raw_session import requests, texts
from tests.cmv.worlds import NOW, PROJECT, dumped, line, tool_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cmv.worlds import World

LONG = "long output " * 200
ALL = TrimOptions(keep_last=0, yes=True)
UNCONFIRMED = TrimOptions(keep_last=0)
SESSION = dumped(tool_steps([LONG, "short", LONG]))


def lines_of(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(each) for each in data.splitlines() if each.strip()]


def test_a_branch_is_a_new_session_where_its_client_looks(world: World) -> None:
    row = world.snap(world.session(SESSION), "one")
    made = world.branch(row, name="b", trim=ALL)
    assert made.path.parent == world.projects / "-srv-demo-app"
    assert made.path.stem == made.row.session
    assert re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab].*", made.row.session)
    assert made.resume_line == f"cd {PROJECT} && claude --resume {made.row.session}"
    assert made.row.sha256 == hashlib.sha256(made.path.read_bytes()).digest()
    assert world.store.history.branches(snapshot=row.id) == [made.row]


def test_its_lines_carry_its_own_id(world: World) -> None:
    row = world.snap(world.session(SESSION), "one")
    for wish in ({"trim": ALL}, {}):
        made = world.branch(row, **wish)
        ids = {each["sessionId"] for each in lines_of(made.path.read_bytes())}
        assert ids == {made.row.session}
        assert open_log(made.path).session_id == made.row.session


def test_untrimmed_it_is_the_session_but_for_the_id(world: World) -> None:
    odd = (
        SESSION + b'not json\n{"sessionId":"x","n":12345678901234567890.10,"s":"\\ud800"}\n\n{"cut'
    )
    path = world.session(odd)
    made = world.branch(world.snap(path, "one"))
    expected = odd.replace(b'"of-the-lines"', json.dumps(made.row.session).encode())
    expected = expected.replace(b'"sessionId":"x"', f'"sessionId":"{made.row.session}"'.encode())
    assert made.path.read_bytes() in (expected, expected.removesuffix(b'{"cut'))


def test_trimmed_it_keeps_every_text_and_request(world: World) -> None:
    row = world.snap(world.session(SESSION), "one")
    data = world.branch(row, trim=ALL).path.read_bytes()
    for role in ("user", "assistant"):
        assert texts(data, role) == texts(SESSION, role)
    assert requests(data) == requests(SESSION)
    assert f"restore: recap show {row.id[:12]} t0]".encode() in data
    assert len(data) < len(SESSION)


def test_branches_of_one_snapshot_are_independent(world: World) -> None:
    path = world.session(SESSION)
    row = world.snap(path, "one")
    made = [world.branch(row), world.branch(row, trim=ALL), world.branch(row)]
    assert len({each.path for each in made}) == 3
    assert path.read_bytes() == SESSION == world.bytes_of(row)
    made[0].path.write_bytes(b"")
    assert made[2].path.read_bytes()


def test_c26_the_orientation_message_reaches_the_model(
    world: World, case: Callable[[str], dict[str, Any]]
) -> None:
    found = case("c26")
    expect = found["expect"]
    row = world.snap(world.session(found["data"]), "one")
    for wish in ({"trim": ALL}, {}):
        data = world.branch(
            row, orientation=found["options"]["orientation"], **wish
        ).path.read_bytes()
        assert texts(data, "user") == expect["active_user_texts"]
        assert texts(data, "assistant") == expect["active_assistant_texts"]
        last = lines_of(data)[-1]
        assert set(expect["last_line_fields"]) <= set(last)
        assert last["parentUuid"] == lines_of(found["data"])[-1]["uuid"]
        assert (last["type"], last["message"]["role"], last["isSidechain"]) == (
            "user", "user", False,
        )  # fmt: skip
        assert not any(word.encode() in data for word in expect["must_not_contain"])
        assert not [f for f in check_source(ByteSource(data)) if f.severity == "error"]


def test_the_orientation_follows_the_leaf_the_client_takes(world: World) -> None:
    rewound = [
        line("user", 9, "another way", parentUuid="u0"),
        line("user", 5, "side", isSidechain=True),
    ]
    data = SESSION + dumped(rewound) + b'{"type":"last-prompt","leafUuid":"u2","sessionId":"s"}'
    made = world.branch(world.snap(world.session(data), "one"), orientation="go on")
    assert texts(made.path.read_bytes(), "user") == ["please look", "another way", "go on"]


def test_an_orientation_needs_words_and_a_conversation(world: World) -> None:
    row = world.snap(world.session(SESSION), "one")
    with pytest.raises(UsageError, match="blank"):
        world.branch(row, orientation=" \n")
    empty = world.snap(world.session(b'{"type":"mode","sessionId":"s","mode":"x"}\n'), "two")
    with pytest.raises(InputError, match="no conversation"):
        world.branch(empty, orientation="hi", project=world.home)
    assert world.store.history.branches() == []


def test_another_project_gets_the_folder_and_the_paths_of_its_own(
    world: World, tmp_path: Path
) -> None:
    inside = {"cwd": f"{PROJECT}/sub"}
    other = {"cwd": "/elsewhere"}
    said = f"work in {PROJECT}"
    data = dumped(
        [line("user", 0, said), line("user", 1, "x", **inside), line("user", 2, "y", **other)]
    )
    (tmp_path / "real.app").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real.app")
    made = world.branch(
        world.snap(world.session(data), "one"), project=tmp_path / "link", orientation="go"
    )
    real = str(tmp_path / "real.app")
    assert made.path.parent.name == re.sub("[^A-Za-z0-9]", "-", real)
    lines = lines_of(made.path.read_bytes())
    assert [each["cwd"] for each in lines] == [real, f"{real}/sub", "/elsewhere", "/elsewhere"]
    assert lines[0]["message"]["content"] == said
    assert stat.S_IMODE(made.path.parent.stat().st_mode) == 0o700


def with_output(world: World) -> Path:
    """Return a session whose client moved an output out of the log."""
    path = world.session(b"")
    folder = path.with_suffix("")
    (folder / "tool-results").mkdir(parents=True)
    (folder / "subagents").mkdir()
    (folder / "tool-results/a.txt").write_text("whole output")
    (folder / "subagents/agent-1.jsonl").write_bytes(dumped([line("user", 0, "sub")]))
    kept = f"{folder}/tool-results/a.txt"
    gone = f"{folder}/tool-results/gone.txt"
    stub = f"<persisted-output>saved to: {kept}, not {gone}</persisted-output>"
    lines = tool_steps([stub])
    lines[0]["message"]["content"] = f"read {kept}"
    lines[1]["message"]["content"][1]["input"]["file_path"] = kept
    lines[2]["toolUseResult"] = {"persistedOutputPath": kept}
    path.write_bytes(dumped(lines))
    return path


@pytest.mark.parametrize("trim", [None, TrimOptions()])
def test_paths_of_outputs_moved_out_point_into_the_new_session(
    world: World, trim: TrimOptions | None
) -> None:
    path = with_output(world)
    old = str(path.with_suffix(""))
    made = world.branch(world.snap(path, "one"), trim=trim)
    new = str(made.path.with_suffix(""))
    request, call, result, _ = lines_of(made.path.read_bytes())
    content = result["message"]["content"][0]["content"]
    assert f"saved to: {new}/tool-results/a.txt, not {old}/tool-results/gone.txt" in content
    if trim is None:
        assert result["toolUseResult"]["persistedOutputPath"] == f"{new}/tool-results/a.txt"
    assert Path(f"{new}/tool-results/a.txt").read_text() == "whole output"
    assert lines_of(Path(f"{new}/subagents/agent-1.jsonl").read_bytes())[0]["sessionId"] == (
        made.row.session
    )
    assert old in request["message"]["content"]
    assert old in call["message"]["content"][1]["input"]["file_path"]
    assert made.files == 2


def test_files_beside_it_are_for_their_owner_alone(world: World) -> None:
    made = world.branch(world.snap(with_output(world), "one"))
    for each in made.path.with_suffix("").rglob("*"):
        most = 0o700 if each.is_dir() else 0o600
        assert stat.S_IMODE(each.stat().st_mode) == most


def test_a_dry_run_writes_nothing(world: World) -> None:
    row = world.snap(with_output(world), "one")
    before = sorted(world.home.rglob("*"))
    made = world.branch(row, trim=ALL, orientation="go", dry_run=True)
    assert made.report is not None
    assert sorted(world.home.rglob("*")) == before
    assert world.store.history.branches() == []


def test_a_file_that_is_there_is_never_written_over(world: World, tmp_path: Path) -> None:
    row = world.snap(world.session(SESSION), "one")
    taken, dangling = tmp_path / "taken", tmp_path / "dangling"
    taken.write_text("mine")
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="is there already"):
        world.branch(row, out=taken)
    with pytest.raises(UsageError, match="is there already"):
        world.branch(row, out=taken / "x" / ".." / ".." / "taken")
    assert taken.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    assert world.store.history.branches() == []


def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_no_record(
    world: World, tmp_path: Path
) -> None:
    row = world.snap(world.session(SESSION), "one")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        world.branch(row, out=tmp_path / "file" / "b.jsonl")
    assert world.store.history.branches() == []


def test_a_branch_that_fails_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    row = world.snap(with_output(world), "one")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for call in ("link", "rename"):
        monkeypatch.setattr(os, call, full)
    with pytest.raises(InputError, match="No space left"):
        world.branch(row)
    monkeypatch.undo()
    assert world.store.history.branches() == []
    assert not list(world.projects.rglob(".recap-*"))
    assert len(list(world.projects.rglob("*.jsonl"))) == 2


def test_a_snapshot_that_is_damaged_makes_no_branch(world: World) -> None:
    from tests.store.factories import execute

    row = world.snap(world.session(SESSION), "one")
    execute(world.store, "UPDATE objects SET bytes = zeroblob(length(bytes))")
    with pytest.raises(StoreError):
        world.branch(row)
    assert len(list(world.projects.rglob("*"))) == 2


def test_a_session_without_a_project_asks_for_one(world: World) -> None:
    data = dumped([{k: v for k, v in line("user", 0, "x").items() if k != "cwd"}])
    row = world.snap(world.session(data), "one")
    with pytest.raises(UsageError, match="--to-project"):
        world.branch(row)
    assert world.branch(row, project=world.home).project == str(world.home.resolve())


def test_a_fork_that_cannot_branch_says_that_the_snapshot_stays(
    world: World, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    seen = look(world.session(SESSION))
    with pytest.raises(UsageError, match=r"snapshot one was kept"):
        fork(world.store, seen, Labels(name="one"), Wish(out=tmp_path / "taken"), world.homes)
    assert [row.name for row in world.store.history.snapshots()] == ["one"]


def test_a_fork_is_a_snapshot_and_its_branch(world: World) -> None:
    path = world.session(SESSION)
    row, made = fork(world.store, look(path), Labels(name="one"), Wish(trim=ALL), world.homes)
    assert made.row.snapshot == row.id
    assert path.read_bytes() == SESSION


CODEX = b"".join(
    json.dumps({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload}).encode()
    + b"\n"
    for kind, payload in (
        ("session_meta", {"id": "0199-own", "cwd": PROJECT, "cli_version": "0.140.0"}),
        ("session_meta", {"id": "0198-origin", "cwd": PROJECT}),
        ("turn_context", {"cwd": PROJECT, "model": "gpt"}),
        ("response_item", {
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]
        }),
        ("event_msg", {"type": "user_message", "message": "hi"}),
        ("response_item", {
            "type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": '"session_meta" 0199-own'}],
        }),
    )
)  # fmt: skip


def test_a_codex_branch_is_a_rollout_of_its_own(world: World, tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(CODEX)
    row = world.snap(path, "one")
    assert (row.agent, row.session, row.project, row.versions) == (
        "codex", "0199-own", PROJECT, ("0.140.0",),
    )  # fmt: skip
    made = world.branch(row, orientation="only auth", project=tmp_path)
    assert re.fullmatch(
        rf"rollout-2027-01-1\dT\d\d-\d\d-\d\d-{made.row.session}\.jsonl", made.path.name
    )
    assert made.resume == ("codex", "resume", made.row.session)
    lines = lines_of(made.path.read_bytes())
    assert [each["payload"].get("id") for each in lines[:2]] == [made.row.session, "0198-origin"]
    assert {each["payload"]["cwd"] for each in lines[:3]} == {str(tmp_path.resolve())}
    assert lines[5] == lines_of(CODEX)[5]
    said = [m.parts[0].text() for m in open_log(made.path).messages if m.role == "user"]
    assert said == ["hi", "only auth"]


def opencode() -> dict[str, Any]:
    ids = {"sessionID": "ses_34062dd03ffeQDqACw1NliCDjE"}
    user = {"role": "user", "id": "msg_cbf9d2301001v4GI9E5MaJ0v90", "agent": "build", **ids}
    words = {"type": "text", "text": "hi", "id": "prt_cbf9d2301001v4GI9E5MaJ0v91", **ids}
    return {
        "info": {"id": ids["sessionID"], "directory": PROJECT, "version": "1.2.18"},
        "messages": [{"info": user, "parts": [{**words, "messageID": user["id"]}]}],
    }


def test_an_opencode_branch_has_fresh_ids_throughout(world: World, tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(opencode(), indent=1))
    row = world.snap(path, "one")
    assert (row.agent, row.project, row.versions) == ("opencode", PROJECT, ("1.2.18",))
    made = world.branch(row, orientation="only auth", out=tmp_path / "branch.json")
    document = json.loads(made.path.read_bytes())
    assert document["info"]["id"] == made.row.session != row.session
    first, last = document["messages"]
    old = opencode()["messages"][0]
    assert first["info"]["id"] != old["info"]["id"]
    assert first["info"]["id"][:16] == old["info"]["id"][:16] < last["info"]["id"][:16]
    assert first["parts"][0]["messageID"] == first["info"]["id"]
    assert first["parts"][0]["id"] != old["parts"][0]["id"]
    for message in (first, last):
        assert {message["info"]["sessionID"], message["parts"][0]["sessionID"]} == {
            made.row.session
        }
    assert [m.parts[0].text() for m in open_log(made.path).messages] == ["hi", "only auth"]
    assert made.resume == ("opencode", "import", str(made.path))


LISTS = {
    "anthropic-messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}],
        },
    ],
    "openai-chat": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "assistant", "content": "ho"},
    ],
    "openai-responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "h"}]},
    ],
    "gemini-contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"text": "ho"}]},
    ],
    "langchain": [
        {"type": "human", "data": {"content": "hi"}},
        {"type": "ai", "data": {"content": "ho"}},
    ],
}


@pytest.mark.parametrize("format", LISTS)
@pytest.mark.parametrize("as_lines", [False, True])
def test_a_message_list_branches_into_a_file(
    world: World, tmp_path: Path, format: str, as_lines: bool
) -> None:
    text = (
        "".join(json.dumps(each) + "\n" for each in LISTS[format])
        if as_lines
        else json.dumps(LISTS[format], indent=1)
    )
    path = tmp_path / "list"
    path.write_text(text)
    row = world.snap(path, "one")
    if row.agent != format:
        pytest.skip(f"read as {row.agent}")
    with pytest.raises(UsageError, match="name a file with -o"):
        world.branch(row)
    made = world.branch(row, out=tmp_path / "raw")
    assert made.path.read_text() == text
    made = world.branch(row, out=tmp_path / "told", orientation="only auth")
    told = [m.parts[0].text() for m in open_log(made.path).messages if m.role == "user"]
    assert told == ["hi", "only auth"]
    assert world.snap(made.path, "child").parent == row.id


def test_only_sessions_of_claude_code_are_trimmed(world: World, tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(CODEX)
    with pytest.raises(UsageError, match="not trimmed"):
        world.branch(world.snap(path, "one"), trim=ALL)


def test_c24_a_branch_for_another_place_lands_where_its_client_looks(
    world: World, case: Callable[[str], dict[str, Any]]
) -> None:
    found = case("c24")
    row = world.snap(world.session(found["data"]), "one")
    for each in found["slugs"]:
        path, name = each if isinstance(each, list) else (each["path"], each["slug"])
        assert slug(path) == name
        if path.startswith("/"):
            assert world.branch(row, project=Path(path)).path.parent.name == name


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("of-the-lines"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["sessionId", "cwd", "a", "type"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(value=JSON, spaces=st.sampled_from(["", " "]), escaped=st.booleans())
def test_rewriting_changes_the_fields_of_a_line_and_nothing_below(
    value: Any, spaces: str, escaped: bool
) -> None:
    old = {"sessionId": "s", "cwd": PROJECT, "toolUseResult": value, "b": {"sessionId": "s"}}
    separators = ("," + spaces, ":" + spaces)
    data = json.dumps(old, ensure_ascii=escaped, separators=separators).encode("utf-8", "replace")
    moves = Moves(session="new", project=(PROJECT, "/other"))
    (new,) = claude_lines(ByteSource(data), moves)
    assert json.loads(new) == {**json.loads(data), "sessionId": "new", "cwd": "/other"}


@given(data=st.binary(max_size=200))
def test_rewriting_leaves_what_it_cannot_read(data: bytes) -> None:
    moves = Moves(session="new", project=(PROJECT, "/other"))
    if b"sessionId" not in data and b"cwd" not in data:
        assert b"".join(claude_lines(ByteSource(data), moves)) == data


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_claude_code_session_branches_with_all_its_words(world: World, corpus: Path) -> None:
    said = 0
    for at, path in enumerate(sorted((corpus / "sessions/claude-code").glob("*.jsonl"))):
        row = world.snap(path, f"s{at}")
        if row.agent != "claude-code" or set(dict(row.messages)) == {"sidechain"}:
            continue
        before = path.read_bytes()
        for wish in ({}, {"trim": TrimOptions(keep_last=0, yes=True)}):
            made = world.branch(row, project=world.home, orientation="ORIENT", **wish)
            data = made.path.read_bytes()
            assert texts(data, "user") == [*texts(before, "user"), "ORIENT"], path.name
            assert texts(data, "assistant") == texts(before, "assistant"), path.name
            assert requests(data) == requests(before), path.name
            said += len(texts(data, "user"))
    assert said


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_other_sessions_branch_with_the_same_messages(
    world: World, corpus: Path, tmp_path: Path
) -> None:
    formats = set()
    for folder in ("codex", "opencode", "swe-together"):
        for path in sorted((corpus / "sessions" / folder).glob("*"))[:3]:
            row = world.snap(path, f"{folder}-{path.stem}"[:100].replace(".", "-"))
            out = tmp_path / f"{path.name}-branch"
            made = world.branch(row, out=out)
            before, after = open_log(path), read_bytes(made.path.read_bytes())
            assert [p.digest for m in before.messages for p in m.parts] == [
                p.digest for m in after.messages for p in m.parts
            ]
            formats.add(row.agent)
    assert formats <= set(READ)
    assert {"codex", "opencode"} <= formats
    assert NOW


def test_a_dry_run_of_what_takes_nearly_all_is_not_refused(world: World) -> None:
    row = world.snap(world.session(dumped(tool_steps(["x" * 50_000]))), "one")
    looked = world.branch(row, dry_run=True, trim=UNCONFIRMED)
    assert looked.report is not None
    assert looked.report.is_drastic
    with pytest.raises(UsageError, match="--yes"):
        world.branch(row, trim=UNCONFIRMED)
    assert world.store.history.branches() == []
