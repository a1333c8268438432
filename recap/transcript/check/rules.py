"""Every rule of the validator, as one table per format, and the collector of findings.

``error``: the vendor refuses the request, or the client loses what the line holds. ``warning``: some
models, hosts or compatible servers refuse it, or the client repairs it. What every vendor takes in
normal use has no rule: unknown block types and fields, adjacent messages of one role, results in any
order, empty results.

Where a rule comes from:

- ``vendor``: read in the vendor's documents (Messages API, vision, tool use, extended thinking,
  mid-conversation system messages; Chat Completions reference, images and vision; Responses
  reference; function calling of Gemini), text of 2026, or in its sources (LangChain 1.8, OpenCode).
- ``measured``: refusals that users of the API reported, with the vendor's words; not re-run by us.
- ``client``: seen with Claude Code 2.1.197 as a black box.
- ``ours``: follows from the shape of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from recap.transcript.model import Dialect, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

Format = Dialect | Literal["claude-code"]
Origin = Literal["vendor", "measured", "client", "ours"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a format.

    Attributes:
        code: Stable short name; the same name means the same in every format.
        severity: What breaking it costs.
        origin: Where the rule comes from.
        sentence: What a finding says; fields in braces are numbers, never conversation text.
    """

    code: str
    severity: Severity
    origin: Origin
    sentence: str


# fmt: off
_ANTHROPIC = (
    # the list
    Rule("not-a-list", "error", "ours", "This is no list of messages."),
    Rule("no-messages", "error", "measured", "The list holds no message."),
    Rule("not-json", "error", "ours", "It holds a lone surrogate, a number that is not finite, or a value JSON does not have."),
    Rule("request-bytes", "error", "vendor", "The request takes {bytes} bytes or more; {limit} are allowed."),
    Rule("message-count", "error", "vendor", "The list holds {count} messages; {limit} are allowed."),
    Rule("cache-markers", "error", "vendor", "{count} blocks carry cache_control; {limit} are allowed."),
    # messages
    Rule("not-a-message", "error", "ours", "This is no message object."),
    Rule("unknown-role", "error", "vendor", "The role is none of user, assistant, system."),
    Rule("first-not-user", "error", "measured", "The first message is the assistant's; it must be the user's."),
    Rule("misplaced-system", "error", "measured", "A system message must follow a user message (or a server tool's result) and come before an assistant message or last."),
    Rule("no-content", "error", "vendor", "The content is neither text nor a list of blocks."),
    Rule("empty-content", "error", "measured", "The content is empty."),
    Rule("empty-assistant", "warning", "measured", "The assistant's content is an empty list; not every server takes it."),
    # blocks
    Rule("malformed-block", "error", "vendor", "Block {block} lacks what its type needs."),
    Rule("blank-text", "error", "measured", "Text {block} is empty or only white space."),
    Rule("wrong-role", "error", "vendor", "Block {block} is of a type the other role owns."),
    # thinking
    Rule("unsigned-thinking", "error", "vendor", "Thinking block {block} has no signature."),
    Rule("empty-redacted-thinking", "error", "vendor", "Redacted thinking block {block} has no data."),
    Rule("thinking-last", "error", "measured", "An assistant message must not end with thinking."),
    Rule("thinking-only", "error", "measured", "An assistant message must not hold thinking alone."),
    # calls and results
    Rule("call-id", "error", "measured", "The id of call {block} is empty or holds characters other than letters, digits, _ and -."),
    Rule("call-id-long", "warning", "vendor", "The id of call {block} has {count} characters; some hosts allow {limit}."),
    Rule("call-input", "error", "measured", "The input of call {block} is no object."),
    Rule("call-name", "error", "measured", "The name of call {block} is empty or too long."),
    Rule("call-name-doubtful", "warning", "vendor", "The name of call {block} is not of the form documented for tools."),
    Rule("duplicate-call-id", "error", "measured", "Call {block} has the id of an earlier call."),
    Rule("unanswered-call", "error", "vendor", "Call {block} has no result in the user turn after it."),
    Rule("orphan-result", "error", "vendor", "Result {block} answers no call of the assistant turn before it."),
    Rule("duplicate-result", "error", "measured", "Result {block} answers a call that has a result already."),
    Rule("result-not-first", "error", "vendor", "Result {block} stands behind other content; results come first in their turn."),
    Rule("split-results", "warning", "vendor", "The results of one turn are spread over several messages; strict servers refuse that."),
    Rule("empty-error-result", "error", "measured", "Result {block} reports an error and is empty."),
    Rule("blank-result-text", "warning", "measured", "Result {block} holds a text that is empty or only white space."),
    Rule("open-server-call", "error", "vendor", "Server tool call {block} has no result before the user goes on."),
    Rule("orphan-server-result", "error", "measured", "Server tool result {block} answers no call before it."),
    # images
    Rule("image-count", "error", "vendor", "The request holds {count} images; {limit} are allowed."),
    Rule("image-count-small-window", "warning", "vendor", "The request holds {count} images; models with a window of 200,000 tokens allow {limit}."),
    Rule("image-pixels", "error", "vendor", "An image is {width} x {height} pixels; {limit} a side are allowed."),
    Rule("image-pixels-many", "error", "vendor", "An image is {width} x {height} pixels; with more than {many} images {limit} a side are allowed."),
    Rule("image-bytes", "error", "measured", "An image takes {count} base64 characters; {limit} are allowed."),
    Rule("image-bytes-hosted", "warning", "measured", "An image takes {count} base64 characters; cloud hosts allow {limit}."),
    Rule("image-type", "error", "vendor", "Image {block} is no JPEG, PNG, GIF or WebP by its media type."),
)

_OPENAI = (
    # the list
    Rule("not-a-list", "error", "ours", "This is no list of messages."),
    Rule("no-messages", "error", "measured", "The list holds no message."),
    Rule("not-json", "error", "ours", "It holds a lone surrogate, a number that is not finite, or a value JSON does not have."),
    Rule("request-bytes", "error", "vendor", "The request takes {bytes} bytes or more; {limit} are allowed."),
    # messages
    Rule("not-a-message", "error", "ours", "This is no message object."),
    Rule("unknown-role", "error", "vendor", "The role is none of developer, system, user, assistant, tool, function."),
    Rule("no-content", "error", "vendor", "The content is neither text nor a list of parts, and no calls, refusal or audio stand in for it."),
    Rule("empty-content", "error", "measured", "The content is an empty list."),
    Rule("content-chars", "error", "measured", "A text has {count} characters; {limit} are allowed."),
    Rule("blank-text", "warning", "measured", "Text {block} is empty or only white space; several servers refuse that."),
    Rule("malformed-part", "error", "vendor", "Part {block} lacks what its type needs."),
    Rule("foreign-part", "error", "vendor", "Part {block} is of a type Anthropic's messages have; chat messages have none like it."),
    # calls and results
    Rule("empty-calls", "error", "measured", "The list of tool calls is empty."),
    Rule("call-count", "error", "measured", "The message makes {count} tool calls; {limit} are allowed."),
    Rule("malformed-call", "error", "vendor", "Call {block} lacks its function, or its arguments are no string."),
    Rule("call-id", "error", "vendor", "Call {block} has no id."),
    Rule("call-id-long", "warning", "measured", "The id of call {block} has {count} characters; many models allow {limit}."),
    Rule("call-name", "error", "measured", "The name of call {block} is empty or holds characters other than letters, digits, _ and -."),
    Rule("call-name-doubtful", "warning", "vendor", "The name of call {block} is longer than documented."),
    Rule("arguments-not-object", "warning", "vendor", "The arguments of call {block} are no JSON object."),
    Rule("duplicate-call-id", "error", "measured", "Call {block} has the id of another call of its message."),
    Rule("repeated-call-id", "warning", "measured", "Call {block} has the id of a call of an earlier message."),
    Rule("unanswered-call", "error", "vendor", "Call {block} has no tool message directly after its message."),
    Rule("orphan-result", "error", "vendor", "The tool message answers no call of the assistant message before it."),
    Rule("duplicate-result", "error", "measured", "The tool message answers a call that has a result already."),
    # images
    Rule("image-count", "error", "vendor", "The request holds {count} images; {limit} are allowed."),
)

_RESPONSES = (
    # the list
    Rule("not-a-list", "error", "ours", "This is no list of items."),
    Rule("no-messages", "error", "ours", "The list holds no item."),
    Rule("not-json", "error", "ours", "It holds a lone surrogate, a number that is not finite, or a value JSON does not have."),
    Rule("request-bytes", "error", "vendor", "The request takes {bytes} bytes or more; {limit} are allowed."),
    # items
    Rule("not-a-message", "error", "ours", "This is no item object."),
    Rule("no-type", "error", "vendor", "The item has neither a type nor a role."),
    Rule("unknown-role", "error", "vendor", "The role is none of user, assistant, system, developer."),
    Rule("duplicate-item-id", "error", "measured", "The item has the id of an earlier item."),
    # messages
    Rule("no-content", "error", "vendor", "The content is neither text nor a list of parts."),
    Rule("empty-content", "warning", "ours", "The content is an empty list."),
    Rule("content-chars", "error", "measured", "A text has {count} characters; {limit} are allowed."),
    Rule("blank-text", "warning", "ours", "Text {block} is empty or only white space."),
    Rule("malformed-part", "error", "vendor", "Part {block} lacks what its type needs."),
    Rule("wrong-part", "error", "measured", "Part {block} is of a type that messages of this role do not take."),
    # reasoning
    Rule("malformed-reasoning", "error", "measured", "The reasoning item has no summary; an empty list will do."),
    Rule("reasoning-alone", "error", "measured", "The reasoning item is not followed by the item it belongs to."),
    # calls and outputs
    Rule("malformed-call", "error", "vendor", "The call lacks its arguments, or they are no string."),
    Rule("call-id", "error", "vendor", "The call has no call_id."),
    Rule("call-id-long", "warning", "measured", "The call_id has {count} characters; {limit} are allowed."),
    Rule("call-name", "error", "measured", "The name of the function is empty or holds characters other than letters, digits, _ and -."),
    Rule("call-name-doubtful", "warning", "vendor", "The name of the function is longer than documented."),
    Rule("arguments-not-object", "warning", "vendor", "The arguments are no JSON object."),
    Rule("duplicate-call-id", "error", "measured", "The call has the call_id of an earlier call."),
    Rule("unanswered-call", "error", "measured", "The call has no output after it."),
    Rule("malformed-result", "error", "vendor", "The output is neither text nor a list of parts."),
    Rule("orphan-result", "error", "measured", "The output answers no call before it."),
    Rule("duplicate-result", "error", "measured", "The output answers a call that has an output already."),
    # images
    Rule("image-count", "error", "vendor", "The request holds {count} images; {limit} are allowed."),
)

_GEMINI = (
    # the list
    Rule("not-a-list", "error", "ours", "This is no list of contents."),
    Rule("no-messages", "error", "measured", "The list holds no content."),
    Rule("not-json", "error", "ours", "It holds a lone surrogate, a number that is not finite, or a value JSON does not have."),
    # contents
    Rule("not-a-message", "error", "ours", "This is no content object."),
    Rule("unknown-role", "error", "vendor", "The role is none of user, model, function."),
    Rule("first-not-user", "error", "measured", "The first content is the model's; it must be the user's."),
    Rule("no-content", "error", "vendor", "The content has no list of parts."),
    Rule("empty-content", "error", "measured", "The list of parts is empty."),
    # parts
    Rule("malformed-part", "error", "measured", "Part {block} holds nothing, or lacks what it needs."),
    Rule("blank-text", "warning", "measured", "Text {block} is empty; Vertex AI refuses that."),
    Rule("wrong-role", "error", "vendor", "Part {block} is of a kind the other role owns."),
    # calls and responses
    Rule("call-input", "error", "vendor", "The args of call {block} are no object."),
    Rule("call-name", "error", "vendor", "The name of call {block} is empty or of another form than documented for functions."),
    Rule("call-name-doubtful", "warning", "vendor", "The name of call {block} is longer than documented."),
    Rule("misplaced-call", "error", "measured", "Calls must come right after a content of the user."),
    Rule("unanswered-call", "error", "measured", "The content after these calls holds no response."),
    Rule("response-count", "error", "measured", "There are {count} responses to {calls} calls."),
    Rule("malformed-result", "error", "measured", "Response {block} has no name, or its response is no object."),
    Rule("orphan-result", "error", "measured", "Response {block} does not stand right after the content with its call."),
    # images
    Rule("image-count", "error", "vendor", "The request holds {count} images; {limit} are allowed."),
)

_LANGCHAIN = (
    # the list
    Rule("not-a-list", "error", "ours", "This is no list of messages."),
    Rule("no-messages", "warning", "ours", "The list holds no message."),
    Rule("not-json", "error", "ours", "It holds a lone surrogate, a number that is not finite, or a value JSON does not have."),
    Rule("mixed-forms", "error", "vendor", "The message is in the other form than the first one; no loader takes both."),
    # messages
    Rule("not-a-message", "error", "vendor", "This is no message: it has neither type and data nor lc and kwargs."),
    Rule("unknown-role", "error", "vendor", "The type is none of human, ai, system, tool, function, chat."),
    Rule("no-content", "error", "vendor", "The content is neither text nor a list of blocks."),
    Rule("blank-text", "warning", "ours", "Text {block} is empty or only white space; several providers refuse that."),
    Rule("malformed-block", "error", "vendor", "Block {block} is neither text nor an object, or lacks its text."),
    # calls and results
    Rule("malformed-call", "error", "vendor", "Call {block} has no name, or its args are of the wrong type."),
    Rule("call-id", "error", "ours", "Call {block} has no id; nothing can answer it."),
    Rule("duplicate-call-id", "error", "ours", "Call {block} has the id of another call of its message."),
    Rule("repeated-call-id", "warning", "ours", "Call {block} has the id of a call of an earlier message."),
    Rule("unanswered-call", "error", "measured", "Call {block} has no tool message directly after its message."),
    Rule("orphan-result", "error", "measured", "The tool message answers no call of the message before it."),
    Rule("duplicate-result", "error", "measured", "The tool message answers a call that has a result already."),
)

_OPENCODE = (
    # the list
    Rule("not-a-list", "error", "ours", "This is no list of messages."),
    Rule("no-messages", "warning", "ours", "The list holds no message."),
    Rule("not-json", "error", "ours", "It holds a lone surrogate, a number that is not finite, or a value JSON does not have."),
    # messages
    Rule("not-a-message", "error", "vendor", "This is no message: it has no info and parts."),
    Rule("unknown-role", "error", "vendor", "The role is none of user, assistant."),
    Rule("empty-content", "warning", "vendor", "The message has no parts; the client does not send it."),
    Rule("duplicate-message-id", "warning", "ours", "The message has the id of an earlier one; an import would keep one of them."),
    # parts
    Rule("malformed-part", "error", "vendor", "Part {block} lacks what its type needs."),
    Rule("duplicate-part-id", "warning", "ours", "Part {block} has the id of an earlier one; an import would keep one of them."),
    Rule("wrong-role", "warning", "vendor", "Part {block} is of a type the client does not send for this role."),
    Rule("blank-text", "warning", "ours", "Text {block} is empty or only white space; several providers refuse that."),
    # tools
    Rule("call-id", "error", "vendor", "Tool part {block} has no callID."),
    Rule("call-name", "error", "vendor", "Tool part {block} names no tool."),
    Rule("call-input", "error", "vendor", "The input of tool part {block} is no object."),
    Rule("tool-status", "error", "vendor", "The status of tool part {block} is none of pending, running, completed, error."),
    Rule("no-output", "error", "vendor", "Tool part {block} is completed and has no output."),
    Rule("no-error", "error", "vendor", "Tool part {block} failed and has no error."),
    Rule("no-time", "error", "vendor", "Finished tool part {block} has no time; the client cannot send it."),
    Rule("unanswered-call", "warning", "vendor", "Tool part {block} never finished; the client says it was interrupted."),
    Rule("duplicate-call-id", "warning", "ours", "Tool part {block} has the callID of another one of its message."),
)

_CLAUDE_CODE = (
    # lines
    Rule("bad-line", "error", "client", "The line is no JSON; the client skips it."),
    Rule("cut-line", "error", "client", "Records are cut into one another; the client skips the line."),
    Rule("glued-lines", "error", "client", "Several records stand on one line; the client skips it."),
    Rule("nul-bytes", "error", "client", "The line holds NUL bytes; the client skips it."),
    Rule("too-deep", "error", "ours", "The line nests too deeply to be read."),
    Rule("unfinished-line", "note", "ours", "The last line has no end yet."),
    Rule("null-line", "error", "client", "The line is null; the client cannot resume the file."),
    Rule("not-a-record", "warning", "client", "The line is no log record; the client skips it."),
    # records
    Rule("no-timestamp", "error", "client", "The message has no timestamp; the client does not find the conversation."),
    Rule("no-uuid", "error", "client", "The message has no uuid; what stands before it is lost."),
    Rule("no-model", "error", "client", "The assistant's message names no model; the client cannot resume the file."),
    Rule("no-message", "error", "client", "The message is null or missing; the client cannot resume the file."),
    Rule("no-content", "warning", "ours", "The content is neither text nor a list of blocks."),
    Rule("empty-content", "warning", "client", "The content is empty; the client drops it or invents a text."),
    Rule("null-block", "error", "client", "Block {block} is null; the client cannot resume the file."),
    Rule("bare-block", "warning", "client", "Block {block} is no object; the client does not send it."),
    # the chain
    Rule("duplicate-uuid", "error", "client", "The uuid stands on an earlier line too; the earlier message is lost."),
    Rule("dangling-parent", "warning", "client", "The parent is not in the file; the client takes the line before."),
    Rule("parent-cycle", "error", "ours", "The chain of parents runs in a circle."),
    Rule("no-chain", "error", "client", "No message has a parent; only the last one survives."),
    Rule("cut-chain", "warning", "client", "The live conversation starts on this line; {count} earlier messages are not loaded."),
    Rule("no-conversation", "warning", "client", "The file holds no message; the client does not find the conversation."),
    Rule("several-sessions", "warning", "client", "From here on the lines belong to another session."),
    # calls and results, over the whole file
    Rule("unanswered-call", "warning", "client", "Call {block} has no result in the file; the client drops it or invents one."),
    Rule("orphan-result", "warning", "client", "Result {block} answers no call in the file; the client drops it."),
)
# fmt: on

RULES: Mapping[Format, Mapping[str, Rule]] = {
    "anthropic": {rule.code: rule for rule in _ANTHROPIC},
    "openai": {rule.code: rule for rule in _OPENAI},
    "responses": {rule.code: rule for rule in _RESPONSES},
    "gemini": {rule.code: rule for rule in _GEMINI},
    "langchain": {rule.code: rule for rule in _LANGCHAIN},
    "opencode": {rule.code: rule for rule in _OPENCODE},
    "claude-code": {rule.code: rule for rule in _CLAUDE_CODE},
}
"""Rules by format and code, in the order of a reading."""


@dataclass(slots=True)
class Report:
    """Collects the findings of one run."""

    format: Format
    findings: list[Finding] = field(default_factory=list)

    def add(self, code: str, line: int = 0, **numbers: int) -> None:
        """Add a finding of rule ``code``; ``numbers`` fill the rule's sentence."""
        rule = RULES[self.format][code]
        self.findings.append(Finding(code, rule.sentence.format(**numbers), line, rule.severity))

    def in_order(self) -> list[Finding]:
        """Return the findings by line; those of the whole input first."""
        return sorted(self.findings, key=lambda finding: finding.line)
