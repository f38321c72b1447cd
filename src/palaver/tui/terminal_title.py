"""What a terminal says to someone who looks elsewhere: in the title of its window, and with its bell. Pure.

Asked by the conversation screen after every change; the app writes the title and rings.
"""

from palaver.core.state import open_requests
from palaver.schema.view import State, Status
from palaver.tui.text import rows, words
from palaver.tui.text.safe import one_line

SIGNS: dict[Status, str] = {
    "idle": "○",
    "generating": "●",
    "executing_tools": "●",
    "paused": "◆",
    "waiting_ide": "◆",
    "waiting_user_input": "◆",
    "completed": "✓",
    "error": "✗",
}
"""How a conversation stands, in one sign: the same in the title and in the top line."""


def title_of(state: State) -> str:
    if not state.conversation:
        return words.NAME
    return f"{SIGNS[state.status]} {words.join(one_line(state.title) or rows.NO_TITLE, words.NAME)}"


def is_worth_ringing(before: State, now: State) -> bool:
    """The agent ended its turn, or somebody is asked for something more than before."""
    if before.conversation != now.conversation or not before.conversation:
        return False
    known = {request.id for request in open_requests(before)}
    # By the last turn, not by the running one: a short one may begin and end between two looks.
    has_ended = now.last_turn is not None and (before.last_turn is None or before.last_turn.id != now.last_turn.id)
    return has_ended or any(request.id not in known for request in open_requests(now))
