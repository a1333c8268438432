"""Reported bugs about images: wherever they stand, they count, and they fit the vendor's limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import recap
from tests.bugs.cases import ask, blocks_in, compacted, compacted_log, image, result, say, text, use
from tests.transcript import logs

if TYPE_CHECKING:
    from pathlib import Path


def test_b054_old_images_over_the_limit_give_way_to_their_size() -> None:
    """With more than twenty images an old large one made every request invalid, texts included."""
    messages: list[Any] = [ask(text("This one"), image(2560, 1440)), say("Seen.")]
    for number in range(20):
        messages += [
            ask(text(f"Look {number}"), image()),
            say(use(f"t{number}")),
            ask(result(f"t{number}", [image()])),
            say("Seen."),
        ]
    messages[4]["content"][0]["content"] = [image(2560, 1440)]
    assert "image-pixels-many" in {f.code for f in recap.check(messages)}
    done = compacted(messages, "And now?")
    assert done.report.notes["image-over-limit"] == 2
    texts = [block["text"] for block in blocks_in(done.messages, "text")]
    assert "[recap: image 2560x1440 over the limit]" in texts
    assert done.messages[4]["content"][0]["content"][0]["text"] in texts
    assert len(blocks_in(done.messages, "image")) == 20


def test_b056_pasted_images_obey_the_same_rule_and_copies_for_a_screen_go_nowhere(
    tmp_path: Path,
) -> None:
    """Only images in results were taken out, and a copy beside the result kept all that was."""
    body = "the body of the file " * 45
    answer = logs.answer("r1", "a1", "t1")
    answer["message"]["content"][0]["content"] = body
    answer["toolUseResult"] = {"file": {"content": body}}
    data = logs.log(
        logs.user("u1", None, [image(9000, 9000), logs.said("What is this?")]),
        logs.agent("a1", "u1", logs.use("t1")),
        answer,
        logs.agent("a2", "r1", logs.said("A screen.")),
    )
    done = compacted_log(data, tmp_path, "And now?")
    assert blocks_in(done.messages, "image") == []
    assert done.report.notes["image-over-limit"] == 1
    assert done.to_json().count(b"the body of the file") == 45
    (tools,) = (d for d in done.selection.decisions() if d.kind == "tools")
    assert tools.cost_chars < len(body) + 100


def test_b056_an_image_costs_its_pixels_wherever_it_stands() -> None:
    """The same image pasted and in a result costs the same."""
    messages = [
        ask(image(1000, 750)),
        say(use("t1")),
        ask(result("t1", [image(1000, 750)])),
        say("Seen."),
    ]
    costs = [d.cost_chars for d in compacted(messages, "now").selection.decisions()]
    assert costs[0] == 4 * 1000 * 750 // 750
    assert costs[1] == costs[0] + len('{"type":"tool_use","id":"t1","name":"Read","input":{}}')
