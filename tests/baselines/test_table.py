from __future__ import annotations

import subprocess
import sys

import pytest

from recap.baselines.method import options_of
from recap.baselines.table import baseline, baseline_names
from recap.errors import MethodError, UsageError
from tests.baselines.histories import demo_task


def test_every_name_gives_its_method():
    for name in baseline_names():
        method = baseline(name)
        assert method.name == name
        assert "\n" not in method.help + method.missing()


def test_an_unknown_name_is_answered_with_the_list():
    with pytest.raises(UsageError, match="unknown method 'llmlinga'") as caught:
        baseline("llmlinga")
    assert all(name in str(caught.value) for name in baseline_names())


def test_options_come_in_their_type_or_as_text():
    assert baseline("langchain-editing", keep="3") == baseline("langchain-editing", keep=3)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("langchain-editing", {"kep": "3"}, "no option 'kep'; its options: keep"),
        ("langchain-editing", {"keep": "few"}, "keep must be a whole number; got 'few'"),
        ("langchain-editing", {"name": "mine"}, "no option 'name'"),
        ("litellm-compress", {"form": "xml"}, "form must be one of openai, anthropic; got 'xml'"),
        ("coverage-lines", {"unit": "words"}, "unit must be one of paragraphs, lines"),
        ("coverage-lines", {"policy": "best"}, "unknown policy 'best'"),
        ("full-history", {"size": "1"}, "its options: none"),
    ],
)
def test_a_wrong_option_is_an_error(name: str, options: dict[str, str], said: str):
    with pytest.raises(UsageError, match=said):
        baseline(name, **options)


def test_a_method_that_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch):
    for variable in ("RECAP_SUMMARY_URL", "RECAP_LLMLINGUA_PYTHON"):
        monkeypatch.delenv(variable, raising=False)
    for name in baseline_names():
        method = baseline(name)
        if missing := method.missing():
            with pytest.raises(MethodError) as caught:
                method.shorten(demo_task())
            assert str(caught.value) == missing


PACKAGES = """
import sys
for package in ("litellm", "langchain", "llmlingua"):
    sys.modules[package] = None  # what Python does for a package that must not be found
from recap.baselines.table import baseline, baseline_names
for name in baseline_names():
    method = baseline(name)
    print(name, "|", method.missing())
loaded = {"torch", "transformers", "numpy.testing"} & set(sys.modules)
assert not loaded, loaded
"""


def test_without_packages_methods_say_what_to_install():
    run = subprocess.run([sys.executable, "-c", PACKAGES], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    said = dict(line.split(" | ") for line in run.stdout.splitlines())
    assert said["litellm-compress"] == "install LiteLLM: pip install litellm"
    assert said["langchain-editing"] == "install LangChain: pip install langchain"
    assert said["full-history"] == said["coverage-lines"] == ""


def test_every_option_is_told_and_taken():
    for name in baseline_names():
        method = baseline(name)
        for option in options_of(method):
            assert option.help
            assert baseline(name, **{option.name: option.default}) == method
    assert "key" not in {option.name for option in options_of(baseline("summary"))}
