"""Rules about the images of one request: number, pixels, bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recap.transcript.images import Image
from recap.transcript.limits import exceeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.transcript.check.rules import Report
    from recap.transcript.model import Dialect

LinedImage = tuple[int, Image]
"""(message number, (width, height, base64 characters))."""


def check_images(images: Sequence[LinedImage], dialect: Dialect, report: Report) -> None:
    """Report the images of a request that go over a limit of the dialect."""
    count = len(images)
    if most := exceeded(count, dialect, "images"):
        report.add("image-count", count=count, limit=most)
    elif most := exceeded(count, dialect, "images_small_window"):
        report.add("image-count-small-window", count=count, limit=most)
    many = exceeded(count, dialect, "many_images")
    for line, (width, height, size) in images:
        side = max(width, height)
        if most := exceeded(side, dialect, "image_side"):
            report.add("image-pixels", line, width=width, height=height, limit=most)
        elif many and (most := exceeded(side, dialect, "image_side_many")):
            report.add("image-pixels-many", line, width=width, height=height, limit=most, many=many)
        if most := exceeded(size, dialect, "image_bytes"):
            report.add("image-bytes", line, count=size, limit=most)
        elif most := exceeded(size, dialect, "image_bytes_hosted"):
            report.add("image-bytes-hosted", line, count=size, limit=most)
