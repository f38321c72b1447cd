"""Messages as this face shows them: flat, in the OpenAI shape, each result of a tool a message of its own. Pure.

Which messages and results are shown is `core/openai_index.py`, by which commands count too: `entries` and its `count` must always
agree. Called by the snapshot and the projector.
"""

from typing import Any

from palaver.core.openai_index import is_draft, is_shown, results
from palaver.history.parts import KEY
from palaver.history.trajectory import messages_json
from palaver.schema.view import Message, State, ThinkingBlock

Json = dict[str, Any]

_ABORTED = frozenset({"interrupted", "abort"})
"""Finish reasons of an aborted answer where its turn's end is not known: our own, and that of an imported one."""


def entries(message: Message, state: State) -> list[Json]:
    """The message and the results that its calls have so far; empty when it is not shown."""
    if not is_shown(message, state):
        return []
    main, *outcomes = ({name: value for name, value in one.items() if name != KEY} for one in messages_json(message))
    if message.role == "assistant":
        _as_answer(main, message, is_draft(message, state))
    return [main, *(one for one in outcomes if one["message_id"] in results(message, state))]


def list_messages(state: State) -> list[Json]:
    return [entry for message in state.messages for entry in entries(message, state)]


def _as_answer(main: Json, message: Message, draft: bool) -> None:
    if "tool_calls" in main:
        # What a provider has of its own in a call is for the next request to it, and no part of this shape.
        main["tool_calls"] = [{name: call[name] for name in ("id", "type", "function")} for call in main["tool_calls"]]
    thinking = [block for block in message.blocks if isinstance(block, ThinkingBlock)]
    # A thought is whole, with its signature, once it is finished; until then its words are in `reasoning_content`.
    whole = [one for one, block in zip(main.pop("thinking_blocks", ()), thinking, strict=False) if _is_whole(block)]
    if whole:
        main["thinking_blocks"] = whole
    if draft:
        main.pop("finish_reason", None)
    elif message.status == "interrupted":
        main["finish_reason"] = _reason_cut(message)


def _reason_cut(message: Message) -> str:
    """Why an answer broke off: a stop and a restart of the server abort it, anything else is an error."""
    if message.ended is not None:
        return "error" if message.ended.outcome == "failed" else "abort"
    return "abort" if message.finish_reason in _ABORTED else "error"


def _is_whole(block: ThinkingBlock) -> bool:
    return block.status != "streaming"
