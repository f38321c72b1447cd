"""Reading the folded view: lookups, and the one place that derives a conversation's status.

Called by evolve, decide, settle and next. Must never change anything.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from palaver.schema.view import (
    Block,
    Message,
    Request,
    State,
    Status,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolStatus,
    Turn,
)

EDITOR_GRANT = "ide"
"""The grant of a call that the client itself executes; its result comes in as a command."""

NOTICE = "notice"
"""The event kind of a message that is for people alone."""

OPEN_TOOL: frozenset[ToolStatus] = frozenset({"input", "called", "waiting", "running"})
"""A tool call in one of these has no result yet."""


def status_of(state: State) -> Status:
    """The master status word, derived from what is open. Nobody sets it."""
    # What an agent elsewhere waits for holds up nothing here.
    kinds = {request.kind for request in state.requests if request.status == "open" and not is_from_elsewhere(request)}
    if state.turn is None:
        if kinds:
            return "waiting_user_input"
        outcome = state.last_turn.outcome if state.last_turn else None
        return "completed" if outcome == "task" else "error" if outcome == "failed" else "idle"
    if "approval" in kinds:
        return "paused"
    if kinds:
        return "waiting_user_input"
    running = [tool for tool in _tools_at_work(state, state.turn) if tool.status == "running"]
    if any(tool.grant == EDITOR_GRANT for tool in running):
        return "waiting_ide"
    return "executing_tools" if running else "generating"


def tools_of_turn(state: State, turn: str) -> Iterator[ToolBlock]:
    for message in messages_of_turn(state, turn):
        yield from (block for block in message.blocks if isinstance(block, ToolBlock))


def _tools_at_work(state: State, turn: Turn) -> Iterator[ToolBlock]:
    if turn.trigger.kind != "request":
        return tools_of_turn(state, turn.id)
    # A turn that goes on from a request may run calls that the turn before it made, wherever they stand.
    return (tool for _, tool in open_tools(state))


def messages_of_turn(state: State, turn: str) -> list[Message]:
    """A turn's messages, in order. They stand at the end, so the walk is short whatever the history.

    Only what a person or an agent said ends the walk: an event or a summary may stand between them.
    """
    found: list[Message] = []
    for message in reversed(state.messages):
        if message.turn == turn:
            found.append(message)
        elif message.role in ("user", "assistant"):
            break
    return found[::-1]


def says_something(block: Block) -> bool:
    """Whether a block holds any content; a text or thought that was only begun does not."""
    match block:
        case TextBlock():
            return bool(block.text or block.citations)
        case ThinkingBlock():
            return bool(block.text or block.redacted or block.provider)
        case _:
            return True


def open_tools(state: State) -> list[tuple[Message, ToolBlock]]:
    """Calls without a result, wherever they stand: in the active turn, or left waiting by one that a restart ended."""
    return [
        (message, block)
        for message in state.messages
        if message.role == "assistant"
        for block in message.blocks
        if isinstance(block, ToolBlock) and block.status in OPEN_TOOL
    ]


def shorten(state: State, tail: int) -> State:
    """With its last messages only, as it rests in memory; from the first call without a result on, for it is to get one."""
    waiting = (place for place, message in enumerate(state.messages) if _has_open_call(message))
    dropped = min(len(state.messages) - tail, next(waiting, len(state.messages)))
    if dropped <= 0:
        return state
    return replace(state, messages=state.messages[dropped:], offset=state.offset + dropped)


def misses_a_call(state: State) -> bool:
    """Somebody is asked about a call whose message is not at hand."""
    asked = {known.call for known in state.requests if known.status == "open" and known.call}
    return bool(state.offset) and any(find_call(state, call) is None for call in asked)


def _has_open_call(message: Message) -> bool:
    return any(isinstance(block, ToolBlock) and block.status in OPEN_TOOL for block in message.blocks)


def between_steps(state: State) -> bool:
    """Nothing of the active turn is half done: no answer streams in, no call is without its result."""
    if state.turn is None:
        return True
    answering = any(message.status == "streaming" for message in messages_of_turn(state, state.turn.id))
    return not answering and not any(tool.status in OPEN_TOOL for tool in _tools_at_work(state, state.turn))


def open_requests(state: State) -> list[Request]:
    return [request for request in state.requests if request.status == "open"]


def is_from_elsewhere(request: Request) -> bool:
    """Asked for a call of an agent that does not run here: no turn of ours waits for the answer."""
    return request.turn is None and request.call is None and request.kind == "approval"


def find_request(state: State, request: str) -> Request | None:
    return next((known for known in state.requests if known.id == request), None)


def find_call(state: State, call: str) -> ToolBlock | None:
    for message in reversed(state.messages):
        for block in reversed(message.blocks):
            if isinstance(block, ToolBlock) and block.call == call:
                return block
    return None


def message_count(state: State) -> int:
    return state.offset + len(state.messages)


def is_empty(state: State) -> bool:
    """Whether nothing was said yet: notices to people do not count."""
    return not state.offset and all(message.event_kind == NOTICE for message in state.messages)


def find_message(state: State, message: str) -> tuple[int, Message] | None:
    """A message and its index in the whole conversation."""
    for place, known in enumerate(state.messages):
        if known.id == message:
            return state.offset + place, known
    return None
