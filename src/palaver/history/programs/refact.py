"""One trajectory of Refact: `<project>/.refact/trajectories/<chat>.json`, a single JSON document.

Messages have the OpenAI shape, which `history/trajectory.py` reads. They carry no times of their own: each gets the
document's. Refact is no agent here, so nothing goes on in it; the conversation goes on with whoever answers here.

Pure: bytes in, a conversation out. A message that is none is counted, a document that is none is refused in words.
"""

from pathlib import PurePath

from msgspec.structs import replace

from palaver.errors import Invalid
from palaver.history.parts import decoded_document
from palaver.history.programs.foreign import Draft, ForeignConversation, first_words, milliseconds
from palaver.history.trajectory import trajectory_of

FOLDER = PurePath(".refact", "trajectories")


def read(data: bytes, project: str | None = None) -> ForeignConversation:
    """Raises Invalid."""
    document = decoded_document(data)
    if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
        raise Invalid("This is no trajectory: a trajectory is a JSON object with a list of `messages`.")
    shown = document["messages"]
    whole = [one for one in shown if isinstance(one, dict) and isinstance(one.get("role"), str)]
    found = trajectory_of({**document, "messages": whole})
    began = found.created_at or milliseconds(document.get("created_at"))
    ended = max(began, milliseconds(document.get("updated_at")))
    messages = tuple(
        replace(message, ts=message.ts or (ended if message is found.messages[-1] else began))
        for message in found.messages
    )
    drafts = [Draft(message.role, message.ts, list(message.blocks), hidden=message.hidden) for message in messages]
    return ForeignConversation(
        program="refact",
        session=found.id,
        messages=messages,
        title=found.title.strip() or first_words(drafts),
        project=project,
        created_at=began,
        updated_at=ended,
        skipped_lines=len(shown) - len(whole),
        of_another="it belongs to a subagent" if document.get("link_type") == "subagent" else None,
    )
