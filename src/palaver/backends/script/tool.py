"""A tool of a script: what is asked about it, what it seems to do, and how it ends when it may not.

Called by the player. Like it, it never waits by itself: what takes time is a move.
"""

import json
from hashlib import sha256

from palaver.backends.base import Turn
from palaver.backends.script.script import Output, Tool
from palaver.backends.script.steps import Commit, Gate, Moves, Sleep
from palaver.schema.events import (
    ExchangeReturned,
    ExchangeSent,
    FilesChanged,
    RequestOpened,
    RequestResolved,
    ToolFinished,
    ToolOutputDelta,
    ToolStarted,
)
from palaver.schema.view import ToolError


def approval(turn: Turn, call: str, tool: Tool) -> RequestOpened:
    return RequestOpened(
        request=turn.new_id(),
        kind="approval",
        call=call,
        agent=turn.agent.id,
        tool=tool.name,
        input=tool.input,
        hash=_hash(tool),
        title=tool.title or tool.name,
        risk=tool.risk,
        sandbox=tool.sandbox,
        preview=tool.preview,
        scopes=tool.scopes,
        offers=tool.offers,
    )


def play_tool(turn: Turn, call: str, tool: Tool, decision: RequestResolved | None) -> Moves:
    """From its start to its result."""
    request = decision.request if decision else None
    grant = f"request:{request}" if request else "script"
    yield ToolStarted(call=call, grant=grant, request=request, hash=_hash(tool))
    yield Commit()
    began_ms = turn.now_ms()
    exchange = turn.new_id() if tool.message_to else None
    if exchange and tool.message_to:
        content = str(tool.input.get("message", ""))
        yield ExchangeSent(exchange=exchange, agent=tool.message_to, content=content, call=call)
    live: list[Output] = [("stdout", piece) if isinstance(piece, str) else piece for piece in tool.live]
    for stream, text in live:
        yield ToolOutputDelta(call=call, text=text, stream=stream)
        if tool.takes_s:
            yield Sleep(tool.takes_s / len(live))
    if tool.takes_s and not live:
        yield Sleep(tool.takes_s)
    if tool.wait:
        yield Gate(tool.wait)
    output = "".join(text for _, text in live) if tool.output is None else tool.output
    took_ms = max(0, turn.now_ms() - began_ms)
    if exchange:
        yield ExchangeReturned(exchange=exchange, status="complete", response=output, duration_ms=took_ms)
    if tool.changes:
        yield FilesChanged(call=call, files=tool.changes)
    yield ToolFinished(
        call=call,
        ok=tool.ok,
        output=output,
        error=None if tool.ok else ToolError(code=tool.error_code, message=tool.error or "The tool failed."),
        effect=tool.effect,
        exit_code=tool.exit_code,
        duration_ms=took_ms,
        exchange=exchange,
    )


def decline(call: str, decision: RequestResolved) -> ToolFinished:
    """Never a silent default: that nobody answered is said."""
    if decision.status == "answered":
        return not_run(call, "tool_denied", decision.text or "Declined by a person; nothing was done.")
    return not_run(call, "interaction_timeout", f"Nobody answered: the request was {decision.status}.")


def not_run(call: str, code: str, message: str) -> ToolFinished:
    return ToolFinished(call=call, ok=False, error=ToolError(code=code, message=message), effect="none")


def _hash(tool: Tool) -> str:
    bound = json.dumps([tool.name, tool.input], sort_keys=True, ensure_ascii=False)
    return sha256(bound.encode()).hexdigest()
