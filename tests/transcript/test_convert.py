from __future__ import annotations

import pytest

from recap.transcript.convert import (
    UNCONVERTED_IMAGE,
    anthropic_image,
    anthropic_result,
    arguments_object,
    arguments_text,
    openai_image,
    openai_result,
    with_call_id,
    without_images,
)
from recap.transcript.model import Held
from recap.transcript.parts import call_part, result_part

DATA = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
IMAGE = {"type": "image", "source": DATA}
IMAGE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
REMOTE = {"type": "image", "source": {"type": "url", "url": "https://x/a.png"}}
REMOTE_URL = {"type": "image_url", "image_url": {"url": "https://x/a.png"}}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("payload", "value", "words"),
    [
        ({"a": 1}, {"a": 1}, '{"a":1}'),
        ('{ "a": 1 }', {"a": 1}, '{ "a": 1 }'),
        ("ls -l", {"input": "ls -l"}, '{"input":"ls -l"}'),
        ('{"a":1}{"b":2}', {"input": '{"a":1}{"b":2}'}, '{"input":"{\\"a\\":1}{\\"b\\":2}"}'),
        ("[1]", {"input": "[1]"}, '{"input":"[1]"}'),
        ([1], {"input": [1]}, '{"input":[1]}'),
        ("", {}, "{}"),
        (None, {}, "{}"),
    ],
)
def test_arguments_are_an_object_or_the_text_of_one(payload, value, words):
    assert arguments_object(payload) == value
    assert arguments_text(payload) == words


def test_arguments_are_written_without_what_json_forbids():
    assert arguments_text({"a": "\ud83d", "b": float("nan")}) == '{"a":"\ufffd","b":null}'


@pytest.mark.parametrize(("one", "other"), [(IMAGE, IMAGE_URL), (REMOTE, REMOTE_URL)])
def test_images_are_converted_both_ways(one, other):
    assert openai_image(one) == openai_image(other) == other
    assert anthropic_image(one) == anthropic_image(other) == one


@pytest.mark.parametrize(
    "url", ["", "data:image/bmp;base64,QUJD", "data:image/png,raw", "data:image/png;base64"]
)
def test_an_image_the_vendor_cannot_take_leaves_a_marker(url):
    assert anthropic_image({"type": "image_url", "image_url": url}) == text(UNCONVERTED_IMAGE)
    assert openai_image({"type": "image", "source": {"type": "file", "file_id": "f"}}) == text(
        UNCONVERTED_IMAGE
    )


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        ("x", "x"),
        (None, ""),
        ([text("x"), IMAGE_URL, text(" ")], [text("x"), IMAGE]),
        ([{"type": "input_text", "text": "x"}, "y"], [text("x"), text("y")]),
        ([{"type": "odd", "n": 1}], [text('{"type":"odd","n":1}')]),
        ({"text": "x"}, "x"),
        ({"n": 1}, '{"n":1}'),
        (5, "5"),
    ],
)
def test_results_for_anthropic_hold_text_and_images(content, sent):
    assert anthropic_result(content) == sent


@pytest.mark.parametrize(
    ("content", "words", "images"),
    [
        ("x", "x", []),
        (None, "", []),
        ([text("x"), IMAGE, text("y")], "x\ny", [IMAGE_URL]),
        ([IMAGE], "", [IMAGE_URL]),
        ([text("x"), {"type": "odd"}], 'x\n{"type":"odd"}', []),
        ({"n": 1}, '{"n":1}', []),
    ],
)
def test_results_for_openai_are_text_with_the_images_apart(content, words, images):
    assert openai_result(content) == (words, images)


def test_a_part_of_no_dialect_takes_a_new_id_without_a_copy_of_its_block():
    part = call_part(Held("ls"), "run", "a", "ls", path=())
    renamed = with_call_id(part, "b")
    assert (renamed.call_id, renamed.raw) == ("b", part.raw)


def test_images_of_a_result_that_is_its_own_content_give_way_too():
    part = result_part(Held([text("x"), IMAGE]), "a", [text("x"), IMAGE], path=())
    assert without_images(part, "gone").payload() == [text("x"), text("gone")]
    assert without_images(part, "gone").cost_chars == len("x\ngone")
