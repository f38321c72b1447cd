"""What can be edited in the composer: a message of the queue, and one of one's own that was answered. Pure.

Each says what it holds, the commands that begin, end and save the edit, and the words for it.
"""

from dataclasses import dataclass

from palaver.schema.commands import EditMessage, EditQueued
from palaver.schema.content import Content, ImagePart, ImageUrl, Part, TextPart, plain_text
from palaver.schema.view import QueueItem, State
from palaver.tui.text import docks


def _content(text: str, images: tuple[ImagePart, ...]) -> str | Content:
    parts: tuple[Part, ...] = (*((TextPart(text=text),) if text else ()), *images)
    return parts if images else text


@dataclass(frozen=True, slots=True)
class OfQueue:
    """Held back on the server while it is edited, so that it cannot leave half-changed."""

    item: QueueItem
    stays_held: bool = False
    """Of a queue that is paused: editing one does not send it."""

    hint = docks.Queue.EDITING
    save_label = docks.Queue.SAVE
    gone = docks.Queue.GONE

    @property
    def id(self) -> str:
        return self.item.id

    @property
    def text(self) -> str:
        return plain_text(self.item.content)

    def begin(self) -> EditQueued | None:
        return EditQueued(item=self.item.id, held=True)

    def cancel(self) -> EditQueued | None:
        return EditQueued(item=self.item.id, held=self.stays_held)

    def save(self, text: str) -> EditQueued:
        images = tuple(part for part in self.item.content if isinstance(part, ImagePart))
        return EditQueued(item=self.item.id, held=self.stays_held, content=_content(text, images))

    def is_in(self, state: State) -> bool:
        return any(item.id == self.item.id for item in state.queue)


@dataclass(frozen=True, slots=True)
class OfTranscript:
    """Sending it drops what follows, and the agent answers again."""

    id: str
    text: str
    images: tuple[str, ...] = ()

    hint = docks.Composer.EDIT_HINT
    save_label = docks.Composer.EDIT_SEND
    gone = docks.Composer.EDIT_GONE

    def begin(self) -> EditQueued | None:
        return None

    def cancel(self) -> EditQueued | None:
        return None

    def save(self, text: str) -> EditMessage:
        images = tuple(ImagePart(image_url=ImageUrl(url=url)) for url in self.images)
        return EditMessage(message=self.id, content=_content(text, images), regenerate=True)

    def is_in(self, state: State) -> bool:
        return any(message.id == self.id for message in state.messages)


Edited = OfQueue | OfTranscript
