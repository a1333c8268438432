"""Methods that can run here: with an endpoint, and a classifier, of the tests' own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from recap.baselines.table import baseline, baseline_names
from recap.capture.models import missing_packages
from tests.baselines.classifiers import make_classifier
from tests.baselines.servers import Endpoint, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recap.baselines.method import Method

SLOW = frozenset(("longllmlingua",))
"""Needs a minute for a history of 20,000 characters."""


@pytest.fixture(scope="session")
def endpoint() -> Iterator[Endpoint]:
    with serving() as running:
        yield running


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if missing := missing_packages(("torch", "transformers", "tokenizers")):
        pytest.skip(f"{' and '.join(missing)} not installed (extra proxy)")
    return make_classifier(tmp_path_factory.mktemp("models") / "classifier")


@pytest.fixture(params=[name for name in baseline_names() if name not in SLOW])
def method(request: pytest.FixtureRequest) -> Method:
    """Each method in turn; skipped with its own reason where it cannot run."""
    options = {}
    if request.param == "summary":
        options = {"url": request.getfixturevalue("endpoint").url, "model": "small"}
    if request.param == "llmlingua2":
        options = {"model": str(request.getfixturevalue("classifier"))}
    found = baseline(request.param, **options)
    if missing := found.missing():
        pytest.skip(missing)
    return found
