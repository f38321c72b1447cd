"""A transcript as OpenAI-shaped clients count it: flat, each result of a tool a message of its own. Pure.

An answer that broke off is counted, whatever ended it, unless nothing was said in it. While its turn lasts it is still the
draft: another attempt may replace it.

Used by the face that shows it so, and by commands whose index is meant so: both must count alike.
"""

from collections.abc import Sequence

from palaver.core.state import says_something
from palaver.schema.view import Block, Message, State, ToolBlock

_RAN = frozenset({"ok", "error", "denied"})
_RESULTS = _RAN | {"interrupted"}


def is_draft(message: Message, state: State) -> bool:
    """An answer that is being written, or that broke off in the turn that runs."""
    if message.role != "assistant":
        return False
    cut = message.status == "interrupted" and state.turn is not None and message.turn == state.turn.id
    return message.status == "streaming" or cut


def is_shown(message: Message, state: State) -> bool:
    if message.status == "superseded":
        return False
    if message.role != "assistant" or message.status != "interrupted" or is_draft(message, state):
        return True
    return any(_is_shown(block) for block in message.blocks)


def _is_shown(block: Block) -> bool:
    return _was_made(block) if isinstance(block, ToolBlock) else says_something(block)


def results(message: Message, state: State) -> Sequence[str]:
    """The ids of the results, in the order of their calls. Calls that broke off with a draft have theirs when its turn ends."""
    if message.role != "assistant":
        return ()
    shown = _RAN if message.status == "interrupted" and is_draft(message, state) else _RESULTS
    return [
        f"{message.id}-{block.index}"
        for block in message.blocks
        if isinstance(block, ToolBlock) and block.status in shown and _was_made(block)
    ]


def _was_made(tool: ToolBlock) -> bool:
    """As in a trajectory: a call cut while its arguments came in was never made."""
    return not (tool.status == "interrupted" and tool.input is None)


def count(message: Message, state: State) -> int:
    """How many entries a message has."""
    return 1 + len(results(message, state)) if is_shown(message, state) else 0


def index_of(place: int, state: State) -> int:
    """Where the entries of a message begin; the messages before the view's own are counted as one each."""
    return state.offset + sum(count(message, state) for message in state.messages[:place])


def place_at(index: int, state: State) -> int | None:
    """The place of the message that an index is about: itself or one of its results. None: there is no such index.

    One past the last is the end.
    """
    ahead = state.offset
    if index < ahead:
        return None
    for place, message in enumerate(state.messages):
        ahead += count(message, state)
        if index < ahead:
            return state.offset + place
    return state.offset + len(state.messages) if index == ahead else None


def owner_of(message_id: str, state: State) -> str | None:
    """The id of the message that an entry belongs to: its own, or for a result that of the answer with the call."""
    for message in reversed(state.messages):
        if message.id == message_id or message_id in results(message, state):
            return message.id
    return None
