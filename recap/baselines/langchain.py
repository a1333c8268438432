"""LangChain's context editing: the oldest tool results are cleared until the rest fits.

``ClearToolUsesEdit`` is what ``ContextEditingMiddleware`` applies to a request. By default it touches
results alone: what the agent says and calls stays, and a small budget cannot be met.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recap.baselines.chat import edited, rest_of
from recap.baselines.method import option
from recap.capture.models import missing_packages
from recap.errors import MethodError
from recap.transcript.convert import arguments_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recap.baselines.chat import ChatMessage
    from recap.baselines.method import Context, Task


@dataclass(frozen=True, slots=True)
class LangChainEditing:
    """Clears tool results, oldest first, counting characters as the study does."""

    keep: int = option(0, "newest results that are never cleared; LangChain's default is 3")
    name: str = "langchain-editing"
    help: str = "LangChain's ContextEditingMiddleware: oldest tool results are cleared"

    def missing(self) -> str:
        """Return what to install, "" where LangChain is there."""
        return (
            "install LangChain: pip install langchain" if missing_packages(("langchain",)) else ""
        )

    def shorten(self, task: Task) -> Context:
        """Return what the edit leaves of the rest, P beside it.

        Raises:
            MethodError: LangChain is not installed.
        """
        if missing := self.missing():
            raise MethodError(missing)
        said = rest_of(task)
        given, edit_of = _langchain(said)

        def count_tokens(messages: Sequence[Any]) -> int:
            return sum(map(_cost, said, given, messages))

        edited_messages = list(given)
        too_many = count_tokens(given) - task.free_chars
        if too_many > 0:
            edit = edit_of(trigger=task.free_chars, clear_at_least=too_many, keep=self.keep)
            edit.apply(edited_messages, count_tokens=count_tokens)
        return edited(task, said, [str(message.content) for message in edited_messages])


def _cost(said: ChatMessage, given: Any, message: Any) -> int:
    """Return the characters of a message: what it costs whole, or those of its placeholder."""
    return said.cost_chars if message is given else len(message.content)


def _langchain(said: Sequence[ChatMessage]) -> tuple[list[Any], Any]:
    """Return the messages as LangChain's, and its edit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain.agents.middleware.context_editing import ClearToolUsesEdit
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    given: list[Any] = []
    for message in said:
        if message.role == "assistant":
            calls = [
                {"id": call_id, "name": call.name, "args": arguments_object(call.payload())}
                for call, call_id in zip(message.calls, message.call_ids, strict=True)
            ]
            given.append(AIMessage(message.content, tool_calls=calls))
        elif message.role == "tool":
            given.append(ToolMessage(message.content, tool_call_id=message.call_ids[0]))
        else:
            given.append(HumanMessage(message.content))
    return given, ClearToolUsesEdit
