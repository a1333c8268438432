"""Images over a provider's limits give way to a short text that says so; the newest stay."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from recap.transcript.authors import OMISSION_PREFIX
from recap.transcript.convert import without_images
from recap.transcript.limits import LimitName, limit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recap.select.outline import Group
    from recap.select.vendor.notes import Notes
    from recap.transcript.model import Dialect, Part

IMAGE_SHARE = 0.75
"""Images may fill this share of a request's bytes; the rest is for text."""


def bounded_images(groups: list[Group], dialect: Dialect, notes: Notes) -> list[Group]:
    """Return groups whose images fit the vendor's limits; the newest images stay."""
    refused = _refused_images(groups, dialect)
    if not refused:
        return groups
    notes["image-over-limit"] += len(refused)
    return [
        group.with_parts(
            [
                (_without_images(part) if id(part) in refused else part, at)
                for part, at in zip(group.parts, group.messages, strict=True)
            ]
        )
        if any(id(part) in refused for part in group.parts)
        else group
        for group in groups
    ]


def _refused_images(groups: Iterable[Group], dialect: Dialect) -> set[int]:
    """Return the ids of part objects whose images have to go, judged from the newest back."""
    holders = [part for group in groups for part in group.parts if part.images]
    is_many = sum(len(part.images) for part in holders) > _most(dialect, "many_images")
    most_side = _most(dialect, "image_side_many" if is_many else "image_side")
    most_bytes = _most(dialect, "image_bytes")
    most_images = min(_most(dialect, "images"), _most(dialect, "images_small_window"))
    most_in_all = _most(dialect, "request_bytes") * IMAGE_SHARE
    refused: set[int] = set()
    count = size = 0
    for part in reversed(holders):
        images = part.images
        part_size = sum(chars for _, _, chars in images)
        fits = count + len(images) <= most_images and size + part_size <= most_in_all
        if fits and all(max(w, h) <= most_side and chars <= most_bytes for w, h, chars in images):
            count += len(images)
            size += part_size
        else:
            refused.add(id(part))
    return refused


def _most(dialect: Dialect, name: LimitName) -> float:
    most = limit(dialect, name)
    return math.inf if most is None else most


def _without_images(part: Part) -> Part:
    sizes = ", ".join(f"{width}x{height}" for width, height, _ in part.images)
    return without_images(part, f"{OMISSION_PREFIX}image {sizes} over the limit]")
