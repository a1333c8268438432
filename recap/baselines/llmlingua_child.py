"""Runs the ``llmlingua`` package in an interpreter of its own; started by ``llmlingua``, not imported.

Reads one JSON object a line from standard input and answers each with one: first the configuration,
then tasks. Imports nothing of Recap, so that the environment needs nothing but the package and its
pins. Conversation text goes nowhere but into the answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

FAMILIES = {"bert": "bert-base-multilingual-cased", "xlm-roberta": "xlm-roberta-large"}
"""Model type -> name by which llmlingua 0.2.2 knows how its tokens make words."""

LONGLLMLINGUA = {
    "condition_in_question": "after_condition",
    "condition_compare": True,
    "dynamic_context_compression_ratio": 0.3,
    "context_budget": "+100",
    "rank_method": "longllmlingua",
}
"""What the package's documents give for LongLLMLingua, but for the order, which stays."""


class Meter:
    """Counts calls of the model and the tokens it reads."""

    def __init__(self, model: Any) -> None:
        self.calls = 0
        self.tokens = 0
        model.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = args[0] if args else kwargs["input_ids"]
        mask: Any = kwargs.get("attention_mask")
        self.calls += 1
        # of a batch, without its padding; a mask longer than the ids tells of tokens read before
        is_padded = mask is not None and mask.shape == ids.shape
        self.tokens += int((mask if is_padded else ids >= 0).sum())


def load(config: dict[str, Any]) -> Any:
    """Return llmlingua's compressor of a local model; no code and no pickle of its folder is run."""
    import tiktoken
    import torch
    import transformers
    from llmlingua import PromptCompressor

    torch.set_num_threads(config["threads"])
    is_second = config["kind"] == "llmlingua2"
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        config["model"], trust_remote_code=False, local_files_only=True
    )
    # OpenAI's tokenizer would be fetched from the network. It weighs words and fills in reports;
    # the model's own does it instead.
    tiktoken.encoding_for_model = lambda _: Words(tokenizer)
    compressor = PromptCompressor(
        config["model"],
        device_map="cpu",
        model_config={"trust_remote_code": False, "use_safetensors": True},
        use_llmlingua2=is_second,
    )
    if is_second:
        kind = compressor.model.config.model_type
        if kind not in FAMILIES:
            raise ValueError(f"llmlingua knows classifiers of {', '.join(FAMILIES)}; not {kind}")
        compressor.model_name = FAMILIES[kind]
    return compressor


class Words:
    """The model's tokenizer under the one method that llmlingua calls on OpenAI's."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text; of one without any, a single one."""
        found: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False).input_ids
        return found or [0]


def longllmlingua(compressor: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Return one text of the documents, compressed for the question; for "" by LLMLingua."""
    documents: list[str] = task["documents"]
    tokens = sum(len(compressor.oai_tokenizer.encode(text)) for text in documents)
    target = int(task["target_chars"] * tokens / sum(map(len, documents)))
    question = task["question"]
    settings = LONGLLMLINGUA if question else {"context_budget": "+100"}
    arguments = {"question": question, "target_token": target, "concate_question": False}
    compressor.context_idxs.clear()  # it grows with every call and is never read
    try:
        result = compressor.compress_prompt(documents, **arguments, **settings)
    except AssertionError:
        # It asserts that the question and the first document, tokenized together, can be told apart
        # again, which not every text grants: then without contrasting the two.
        plain = {**settings, "condition_in_question": "after", "condition_compare": False}
        result = compressor.compress_prompt(documents, **arguments, **plain)
    return {"texts": [result["compressed_prompt"]]}


def llmlingua2(compressor: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Return each document with the words its classifier keeps."""
    documents: list[str] = task["documents"]
    rate = min(task["target_chars"] / sum(map(len, documents)), 1.0)
    result = compressor.compress_prompt(
        documents, rate=rate, use_context_level_filter=False, force_tokens=["\n"]
    )
    return {"texts": result["compressed_prompt_list"]}


def main() -> None:
    """Answer until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(value: dict[str, Any]) -> None:
        out.write(json.dumps(value) + "\n")
        out.flush()

    config = json.loads(sys.stdin.readline())
    compress = {"longllmlingua": longllmlingua, "llmlingua2": llmlingua2}[config["kind"]]
    try:
        compressor = load(config)
    except Exception as err:  # noqa: BLE001 - the edge of the process: the parent says what failed
        answer({"error": f"{type(err).__name__}: {err}"})
        return
    meter = Meter(compressor.model)
    answer({})
    for line in sys.stdin:
        task = json.loads(line)
        start, calls, tokens = time.process_time(), meter.calls, meter.tokens
        try:
            found = compress(compressor, task)
        except Exception as err:  # noqa: BLE001 - the same; its text may hold the conversation's
            answer({"error": type(err).__name__})
            continue
        answer(
            {
                **found,
                "calls": meter.calls - calls,
                "tokens": meter.tokens - tokens,
                "seconds": time.process_time() - start,
            }
        )


if __name__ == "__main__":
    main()
