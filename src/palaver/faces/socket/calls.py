"""Calls and their results as frames: a start for every call before any of them runs, and exactly one result. Pure.

Called by `project` and `answers`.
"""

import msgspec

from palaver.faces.socket.frame_types import Json, Said
from palaver.faces.socket.memory import Call, Memory
from palaver.schema.events import ToolCalled, ToolFinished, ToolOutputDelta
from palaver.schema.view import ToolError

ERROR_CODES = {
    "tool_interrupted": "tool_interrupted",
    "interaction_timeout": "interaction_timeout",
    "no_answer": "interaction_unavailable",
    "bad_arguments": "invalid_arguments",
    "invalid": "invalid_arguments",
    "rate_limit_tools": "rate_limit_tools",
}
"""Of a failed call, in the contract's words; any other code is plainly `tool_error`."""


def start_call(event: ToolCalled, memory: Memory) -> Said:
    known = memory.calls.get(event.call)
    if event.message not in memory.answers or (known is not None and known.told):
        return
    made = memory.calls[event.call] = Call(event.message, memory.turn or event.message, event.name)
    memory.writing.pop((event.message, event.block), None)
    memory.written.add((event.message, event.block))
    memory.said = True
    yield start(made.response, event.message, event.call, event.name, event.input)


def start(response: str, message: str, call: str, name: str, given: object) -> tuple[str, Json]:
    arguments = "{}" if given is None else msgspec.json.encode(given, enc_hook=str).decode()
    fields: Json = {"responseId": response, "messageId": message, "callId": call, "toolName": name}
    return "tool_call_start", {**fields, "arguments": arguments}


def output(event: ToolOutputDelta, memory: Memory) -> Said:
    call = memory.calls.get(event.call)
    if call is None or not event.text:
        return
    offset, call.output_chars = call.output_chars, call.output_chars + len(event.text)
    yield output_delta(event.call, call.name, event.text, offset)


def output_delta(call: str, name: str, text: str, offset: int = 0) -> tuple[str, Json]:
    return "tool_output_delta", {"callId": call, "toolName": name, "delta": text, "offset": offset}


def whole_output(event: ToolFinished, memory: Memory) -> Said:
    """Output that no fragment said: a tool that gives it as a whole yields start, delta and result like one that streams."""
    call = memory.calls.get(event.call)
    if call is not None and event.output and not call.output_chars and call.message not in memory.half_told:
        yield output_delta(event.call, call.name, event.output)


def result(event: ToolFinished, memory: Memory) -> Said:
    """The first result is the result."""
    call = memory.calls.pop(event.call, None)
    if call is None:
        return
    if not call.told:
        # Stopped while its arguments were still being written: it was a call of the batch, and has its one result.
        memory.said = True
        yield start(call.response, call.message, event.call, call.name, None)
    yield (
        "tool_result",
        outcome(
            event.call,
            call.name,
            ok=event.ok,
            output=event.output,
            error=event.error,
            truncated=event.truncated,
            lines=event.total_lines,
            size_bytes=event.total_bytes,
        ),
    )


def outcome(
    call: str,
    name: str,
    *,
    ok: bool,
    output: str = "",
    error: ToolError | None = None,
    truncated: bool = False,
    lines: int | None = None,
    size_bytes: int | None = None,
) -> Json:
    told: Json = {"callId": call, "toolName": name, "ok": ok}
    if ok:
        told["result"] = output
    else:
        code, why = (error.code, error.message) if error else ("tool_error", "The tool failed.")
        told["error"] = {"code": ERROR_CODES.get(code, "tool_error"), "message": why}
        if output:
            told["partialResult"] = output
    if truncated:
        told["truncated"] = True
    if lines is not None:
        told["totalLines"] = lines
    if size_bytes is not None:
        told["totalBytes"] = size_bytes
    return told
