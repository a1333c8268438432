"""Random lists of every dialect: mostly well-formed messages, with any JSON in any place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXTS = st.sampled_from(
    ["a", "fix it", "", " ", "{}", "<system-reminder>x</system-reminder>", "\ud83d"]
)
IDS = st.sampled_from(["c1", "c2", "REDACTED", "", "x y"])
NAMES = st.sampled_from(["Read", "Edit", "fs.read", "", "a b"])
DATA_URL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABgAAAASCAYAAABB7B6e"
OBJECTS = st.dictionaries(st.sampled_from(["path", "n"]), TEXTS | st.integers(), max_size=2)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "role", "content", "text", "id", "parts", "info", "data", "kwargs", "lc"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


def some(fields: Mapping[str, st.SearchStrategy[Any]], **fixed: Any) -> st.SearchStrategy[Any]:
    """Return objects with the fixed fields and any of the others, one in ten of them junk."""
    mostly = {key: st.integers(0, 9).flatmap(_or_junk(value)) for key, value in fields.items()}
    return st.fixed_dictionaries(
        {key: st.just(value) for key, value in fixed.items()}, optional=mostly
    )


def _or_junk(value: st.SearchStrategy[Any]) -> Any:
    return lambda dice: value if dice else ANY


def blocks(*kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.one_of(*kinds), max_size=3)


# Responses
_INPUT = blocks(
    some({"text": TEXTS}, type="input_text"),
    some({"text": TEXTS}, type="text"),
    some({"image_url": st.just(DATA_URL)}, type="input_image"),
)
_OUTPUT = blocks(
    some({"text": TEXTS}, type="output_text"), some({"refusal": TEXTS}, type="refusal")
)
RESPONSES = st.one_of(
    some({"content": TEXTS | _INPUT, "id": IDS}, role="user"),
    some({"content": TEXTS | _INPUT}, role="developer"),
    some({"content": TEXTS | _OUTPUT, "id": IDS, "type": st.just("message")}, role="assistant"),
    some({"summary": st.just([]), "encrypted_content": TEXTS, "id": IDS}, type="reasoning"),
    some({"call_id": IDS, "name": NAMES, "arguments": TEXTS, "id": IDS}, type="function_call"),
    some({"call_id": IDS, "output": TEXTS | _INPUT, "id": IDS}, type="function_call_output"),
    some({"call_id": IDS, "name": NAMES, "input": TEXTS}, type="custom_tool_call"),
    some({"call_id": IDS, "output": TEXTS}, type="custom_tool_call_output"),
    some({"call_id": IDS, "id": IDS, "action": OBJECTS}, type="local_shell_call"),
    some({"call_id": IDS, "id": IDS, "output": TEXTS}, type="local_shell_call_output"),
    some({"call_id": IDS, "action": OBJECTS}, type="computer_call"),
    some(
        {
            "call_id": IDS,
            "output": some({"image_url": st.just(DATA_URL)}, type="computer_screenshot"),
        },
        type="computer_call_output",
    ),
    some({"id": IDS, "name": NAMES, "arguments": TEXTS}, type="mcp_approval_request"),
    some({"approval_request_id": IDS, "approve": st.booleans()}, type="mcp_approval_response"),
    some({"id": IDS, "status": TEXTS}, type="web_search_call"),
    some({"encrypted_content": TEXTS}, type="compaction"),
)

# Gemini
_CALL = some({"name": NAMES, "args": OBJECTS, "id": IDS})
_RESPONSE = some(
    {"name": NAMES, "id": IDS, "response": OBJECTS | some({"output": TEXTS, "error": TEXTS})}
)
_PART = st.one_of(
    some({"text": TEXTS, "thought": st.booleans(), "thoughtSignature": TEXTS}),
    some({"functionCall": _CALL, "thoughtSignature": TEXTS}),
    some({"functionResponse": _RESPONSE}),
    some({"function_call": _CALL}),
    some({"function_response": _RESPONSE}),
    some({"inlineData": some({"data": TEXTS}, mimeType="image/png")}),
    some({"fileData": some({"fileUri": TEXTS}, mimeType="image/png")}),
)
GEMINI = st.one_of(
    some({"parts": blocks(_PART)}, role="user"),
    some({"parts": blocks(_PART)}, role="model"),
)

# LangChain
_CONTENT = TEXTS | blocks(
    TEXTS,
    some({"text": TEXTS}, type="text"),
    some({"image_url": some({"url": st.just(DATA_URL)})}, type="image_url"),
    some({"id": IDS, "name": NAMES, "input": OBJECTS}, type="tool_use"),
    some({"thinking": TEXTS}, type="thinking"),
)
_CALLS = blocks(some({"name": NAMES, "args": OBJECTS, "id": IDS}, type="tool_call"))
_EXTRA = some(
    {
        "reasoning_content": TEXTS,
        "function_call": some({"name": NAMES, "arguments": TEXTS}),
        "tool_calls": blocks(
            some({"id": IDS, "function": some({"name": NAMES, "arguments": TEXTS})})
        ),
    }
)
_INVALID = blocks(some({"name": NAMES, "args": TEXTS, "id": IDS}, type="invalid_tool_call"))
_FIELDS = {
    "human": {"content": _CONTENT},
    "ai": {
        "content": _CONTENT,
        "tool_calls": _CALLS,
        "invalid_tool_calls": _INVALID,
        "additional_kwargs": _EXTRA,
    },
    "system": {"content": _CONTENT},
    "tool": {"content": _CONTENT, "tool_call_id": IDS, "status": st.just("error")},
    "function": {"content": _CONTENT},
    "chat": {"content": _CONTENT, "role": st.sampled_from(["user", "assistant", "x"])},
}
LANGCHAIN = st.one_of(
    *(
        st.fixed_dictionaries({"type": st.just(kind), "data": some(fields)})
        for kind, fields in _FIELDS.items()
    )
)
DUMPED = st.one_of(
    *(
        st.fixed_dictionaries(
            {
                "lc": st.just(1),
                "id": st.just(["langchain", "schema", "messages", f"{kind.capitalize()}Message"]),
                "kwargs": some({**fields, "type": st.just(kind)}),
            }
        )
        for kind, fields in _FIELDS.items()
        if kind != "ai"
    )
)

# OpenCode
_TIME = some({"start": st.integers(), "compacted": st.integers()})
_STATE = some(
    {
        "status": st.sampled_from(["completed", "error", "pending", "running"]),
        "input": OBJECTS,
        "output": TEXTS,
        "error": TEXTS,
        "time": _TIME,
        "metadata": some({"interrupted": st.booleans(), "output": TEXTS}),
        "attachments": blocks(some({"url": st.just(DATA_URL)}, type="file", mime="image/png")),
    }
)
_OC_PART = st.one_of(
    some(
        {"text": TEXTS, "synthetic": st.booleans(), "ignored": st.booleans(), "id": IDS},
        type="text",
    ),
    some({"text": TEXTS, "metadata": OBJECTS}, type="reasoning"),
    some({"callID": IDS, "tool": NAMES, "state": _STATE, "id": IDS}, type="tool"),
    some({"callID": IDS, "tool": NAMES, "state": _STATE, "id": IDS}, type="tool"),
    some(
        {"mime": st.sampled_from(["image/png", "text/plain", "x"]), "url": st.just(DATA_URL)},
        type="file",
    ),
    some({}, type="step-start"),
    some({}, type="compaction"),
    some({"tail_start_id": IDS}, type="compaction"),
    some({}, type="subtask"),
)
_INFO = {"id": IDS, "error": OBJECTS, "finish": TEXTS, "summary": st.booleans(), "parentID": IDS}
OPENCODE = st.one_of(
    *(
        st.fixed_dictionaries({"info": some(_INFO, role=role), "parts": blocks(_OC_PART)})
        for role in ("user", "assistant")
    )
)

LISTS: Mapping[str, st.SearchStrategy[list[Any]]] = {
    "responses": st.lists(RESPONSES | ANY, max_size=7),
    "gemini": st.lists(GEMINI | ANY, max_size=7),
    "langchain": st.lists(LANGCHAIN | ANY, max_size=7) | st.lists(DUMPED, max_size=5),
    "opencode": st.lists(OPENCODE | ANY, max_size=7),
}
