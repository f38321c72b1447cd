"""One trajectory of Refact: `<project>/.refact/trajectories/<chat>.json`, a single JSON document.

Messages have the OpenAI shape, which `history/trajectory.py` reads. They carry no times of their own: each gets the
document's. Refact is no agent here, so nothing goes on in it; the conversation goes on with whoever answers here.

Pure: a document in, a conversation out. A message that is none is counted, a document that is none is refused in words.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import PurePath
from typing import Any

from msgspec.structs import replace

from palaver.history.lazy_sequence import LazySequence
from palaver.history.programs.drafts import Draft
from palaver.history.programs.foreign import ForeignConversation, first_words, milliseconds
from palaver.history.trajectory import message_list, trajectory_of
from palaver.schema.view import Message

FOLDER = PurePath(".refact", "trajectories")


def read(document: Any, project: str | None = None) -> ForeignConversation:
    """Raises Invalid."""
    shown = message_list(document)
    whole = LazySequence(sum(1 for _ in _whole(shown)), lambda skip: islice(_whole(shown), skip, None))
    found = trajectory_of({**document, "messages": whole})
    began = found.created_at or milliseconds(document.get("created_at"))
    ended = max(began, milliseconds(document.get("updated_at")))
    count = len(found.messages)

    def with_times() -> Iterator[Message]:
        for place, message in enumerate(found.messages, 1):
            yield replace(message, ts=message.ts or (ended if place == count else began))

    drafts = (Draft(message.role, message.ts, list(message.blocks), hidden=message.hidden) for message in with_times())
    return ForeignConversation(
        program="refact",
        session=found.id,
        messages=LazySequence(count, lambda skip: islice(with_times(), skip, None)),
        title=found.title.strip() or first_words(drafts),
        project=project,
        created_at=began,
        updated_at=ended,
        skipped_lines=len(shown) - len(whole),
        of_another="it belongs to a subagent" if document.get("link_type") == "subagent" else None,
    )


def _whole(shown: Iterable[Any]) -> Iterator[Any]:
    return (one for one in shown if isinstance(one, dict) and isinstance(one.get("role"), str))
