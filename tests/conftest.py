"""Fixtures shared by all tests: where the corpus of real sessions lies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A loaded computer is slow, not wrong; pytest's own timeout ends what hangs.
settings.register_profile(
    "recap", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("recap")

# A shell that starts tests in the background has them ignore interrupts; what they start would as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent


def corpus_path() -> Path:
    """Return the folder of real sessions named by RECAP_CORPUS, else the one beside the checkout."""
    return Path(os.environ.get("RECAP_CORPUS") or ROOT.parent / "shared" / "corpus")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The corpus folder; tests that need it are skipped with a reason where it is absent."""
    path = corpus_path()
    if not path.is_dir():
        pytest.skip(f"corpus not found at {path} (set RECAP_CORPUS)")
    return path


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags of the long sweep over the whole corpus and of the long fuzzing."""
    parser.addoption(
        "--full-sweep", action="store_true", help="run every boundary of every real session"
    )
    parser.addoption(
        "--fuzz", type=int, default=300, metavar="N", help="inputs for each reader in tests/fuzz"
    )
    parser.addoption(
        "--kills", type=int, default=20, metavar="N", help="processes killed while they write"
    )
    parser.addoption(
        "--full-sglang", action="store_true", help="also tests that start an SGLang server each"
    )
