"""Combinations that cannot be measured are refused with a sentence, before a model is loaded."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import pytest

from recap.sglang.refusals import REFUSALS, refuse_arguments, refuse_runner
from recap.sglang.refused import RefusedError

REFUSED = {
    "pp_size": 2,
    "tokenizer_worker_num": 2,
    "enable_two_batch_overlap": True,
    "dllm_algorithm": "LowConfidence",
    "disaggregation_mode": "prefill",
    "enable_pdmux": True,
    "enable_hisparse": True,
    "enable_unified_memory": True,
    "kv_cache_dtype": "fp8_e4m3",
    "cuda_graph_backend_prefill": "full",
    "is_embedding": True,
    "dcp_size": 2,
    "attn_cp_size": 2,
    "enable_prefill_cp": True,
}
DEFAULTS = {
    "pp_size": 1,
    "tokenizer_worker_num": 1,
    "enable_two_batch_overlap": False,
    "dllm_algorithm": None,
    "disaggregation_mode": "null",
    "kv_cache_dtype": "auto",
    "cuda_graph_backend_prefill": None,
    "speculative_algorithm": "EAGLE",
    "dcp_size": 1,
    "tp_size": 8,
}


def test_every_refusal_is_tested() -> None:
    assert {refusal.name for refusal in REFUSALS} == REFUSED.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_names_the_option_and_the_way_out(name: str) -> None:
    with pytest.raises(RefusedError) as refused:
        refuse_arguments(Namespace(**DEFAULTS | {name: REFUSED[name]}), {})
    assert str(refused.value).startswith("recap: ")
    assert ";" in str(refused.value)


def test_ordinary_arguments_pass() -> None:
    refuse_arguments(Namespace(**DEFAULTS), {})
    refuse_arguments(Namespace(), {"SGLANG_RUST_SERVER": "0"})


def test_the_rust_server_is_refused() -> None:
    with pytest.raises(RefusedError, match="SGLANG_RUST_SERVER"):
        refuse_arguments(Namespace(), {"SGLANG_RUST_SERVER": "1"})


def test_a_refusal_ends_a_process_that_swallows_exceptions() -> None:
    assert not issubclass(RefusedError, Exception)
    assert RefusedError("no").code == "recap: no"  # printed, exit status 1


def runner(**changes: object) -> SimpleNamespace:
    """What is read of SGLang's model runner."""
    plain = {
        "use_mla_backend": False,
        "kv_index_translator": SimpleNamespace(needs_read_translate=False),
        "kv_cache_dtype": "bfloat16",
        "dtype": "bfloat16",
        "token_to_kv_pool": SimpleNamespace(use_hnd=False),
        "server_args": SimpleNamespace(cuda_graph_config=None),
    }
    return SimpleNamespace(**plain | changes)


def test_an_ordinary_model_passes() -> None:
    refuse_runner(runner())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"use_mla_backend": True}, "proxy"),
        ({"kv_index_translator": SimpleNamespace(needs_read_translate=True)}, "unified"),
        ({"kv_cache_dtype": "float8_e4m3fn"}, "--kv-cache-dtype auto"),
        ({"token_to_kv_pool": SimpleNamespace(use_hnd=True)}, "SGLANG_USE_HND_KVCACHE"),
        (
            {
                "server_args": SimpleNamespace(
                    cuda_graph_config=SimpleNamespace(prefill=SimpleNamespace(backend="full"))
                )
            },
            "breakable",
        ),
    ],
)
def test_a_model_that_cannot_be_measured_is_refused(change: dict[str, object], named: str) -> None:
    with pytest.raises(RefusedError, match=named):
        refuse_runner(runner(**change))
