"""Reading an inbox: its newest messages, or those after an id. Both read the log, so they agree at every moment.

Called by the MCP servers. Keeps nothing between two reads. Lines that say nothing to an inbox are passed over undecoded.
A read goes through the log twice, from where it begins: what was taken away later is left out.
"""

from collections.abc import AsyncIterator, Callable

from msgspec import Struct
from msgspec.structs import replace

from palaver.errors import Invalid, NotFound
from palaver.faces.inbox.default import generation_of
from palaver.faces.inbox.projection import TELLING, InboxMessage, Posted, posts_of, seq_of
from palaver.faces.inbox.removals import Removals, is_telling
from palaver.log.base import EventLog, lines_after
from palaver.schema.commands import Accepted
from palaver.schema.events import AnswerStarted, Event, QueueAdded, TextFinished, decode_event

PAGE = 50
PAGE_MOST = 200
PAGE_BYTES = 1 << 20
"""Of text, in one answer: a client asks for the next page with the last id."""
WINDOW = 1_000
"""Messages of the resource; an inbox that holds more shows its newest, and says so."""
LOOK_BACK = 2_000
"""Events that are looked through first for the newest messages; four times as many each time that was too few."""

COMMAND_EVENTS = 8
"""More than follow a message in what its own command did."""


class Page(Struct, frozen=True, kw_only=True, omit_defaults=True):
    last_id: str | None
    messages: list[InboxMessage]
    truncated: bool = False
    """Of the resource: there are older ones."""


EMPTY = Page(last_id=None, messages=[])


class Pages:
    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def newest(self, conversation: str) -> Page:
        span = LOOK_BACK
        while True:
            head = await self._head(conversation)
            begin = max(0, head - span)
            found = [one async for one in self._after(conversation, begin)]
            if begin == 0 or len(found) > WINDOW:
                break
            span *= 4
        kept: list[InboxMessage] = []
        size_bytes = 0
        for one in reversed(found[-WINDOW:]):
            message = await self._whole(one)
            size_bytes += len(message.content.encode())
            if kept and size_bytes > PAGE_BYTES:
                break
            kept.append(message)
        kept.reverse()
        return Page(last_id=kept[-1].id if kept else None, messages=kept, truncated=len(kept) < len(found))

    async def since(self, conversation: str, after_id: str | None, limit: int | None) -> Page:
        """Strictly greater ids, oldest first."""
        if limit is not None and limit < 1:
            raise Invalid("`limit` is at least 1.")
        wanted = min(limit or PAGE, PAGE_MOST)
        begin = 0 if after_id is None else seq_of(after_id, generation_of(conversation))
        if begin > await self._head(conversation):
            raise Invalid("`after_id` is of another inbox: this one has not come that far.")
        messages: list[InboxMessage] = []
        size_bytes = 0
        # The event of the id itself is read again: it may hold more than one message.
        async for one in self._after(conversation, max(0, begin - 1)):
            if after_id is not None and one.message.id <= after_id:
                continue
            message = await self._whole(one)
            size_bytes += len(message.content.encode())
            if messages and size_bytes > PAGE_BYTES:
                break
            messages.append(message)
            if len(messages) == wanted:
                break
        return Page(last_id=messages[-1].id if messages else after_id, messages=messages)

    async def message_of_command(self, accepted: Accepted) -> InboxMessage:
        """The message that a command made. It stands at the end of what the command did."""
        async for event in self._events(accepted.conversation, max(0, accepted.seq - COMMAND_EVENTS)):
            if accepted.id is None:
                made = event.seq == accepted.seq
            else:
                made = accepted.id in (getattr(event, "message", None), getattr(event, "item", None))
            if made:
                for one in posts_of(event, generation=generation_of(accepted.conversation)):
                    return one.message
        raise NotFound("The message is not in the inbox.")

    # -- the log

    async def _head(self, conversation: str) -> int:
        head = await self._log.head(conversation)
        if head is None:
            raise NotFound("No such conversation.", conversation=conversation)
        return head.seq

    async def _after(self, conversation: str, after: int) -> AsyncIterator[Posted]:
        removals = Removals()
        async for event in self._events(conversation, after, is_telling):
            removals.take(event)
        said, generation = _Said(self, conversation), generation_of(conversation)
        async for event in self._events(conversation, after):
            match event:
                case AnswerStarted():
                    await said.begun(event)
                    continue
                case TextFinished():
                    messages = posts_of(event, await said.before(event), generation)
                    began: int | None = said.place(event)
                    said.finished(event)
                case QueueAdded():
                    messages, began = posts_of(event, generation=generation), None
                case _:
                    messages, began = posts_of(event, generation=generation), event.seq
            for one in messages:
                if not removals.covers(one.source, began):
                    yield one

    async def _events(
        self, conversation: str, after: int, wanted: Callable[[bytes], bool] = lambda line: line.startswith(TELLING)
    ) -> AsyncIterator[Event]:
        while segments := await self._log.read(conversation, after):
            for segment in segments:
                for line in lines_after(segment, after):
                    if wanted(line):
                        yield decode_event(line)
                after = segment.last

    async def _whole(self, one: Posted) -> InboxMessage:
        stored = await self._log.blobs.get(one.blob.id) if one.blob is not None else None
        return one.message if stored is None else replace(one.message, content=stored[0].decode(errors="replace"))

    async def start_of(self, conversation: str, answer: str, before: int) -> list[Event]:
        """Everything from the beginning of an answer up to a number, however far back that lies."""
        span = LOOK_BACK
        while True:
            begin = max(0, before - 1 - span)
            events = [event async for event in self._events(conversation, begin) if event.seq < before]
            for place, event in enumerate(events):
                if isinstance(event, AnswerStarted) and event.message == answer:
                    return events[place:]
            if begin == 0:
                return []
            span *= 4


class _Said:
    """What the attempts said that an answer takes the place of. Looks back only where a read began within an answer."""

    def __init__(self, pages: Pages, conversation: str) -> None:
        self._pages = pages
        self._conversation = conversation
        self._before: dict[str, frozenset[str]] = {}
        self._texts: dict[str, frozenset[str]] = {}
        self._places: dict[str, int] = {}

    def place(self, event: TextFinished) -> int:
        """Where the answer of a text stands in the history."""
        return self._places.get(event.message, event.seq)

    async def begun(self, event: AnswerStarted) -> None:
        self._places[event.message] = event.seq
        before = frozenset[str]()
        if event.replaces is not None:
            if event.replaces not in self._before:
                await self._look_back(event.replaces, event.seq)
            before = self._before[event.replaces] | self._texts.get(event.replaces, frozenset())
        self._before[event.message] = before

    async def before(self, event: TextFinished) -> frozenset[str]:
        if event.message not in self._before:
            await self._look_back(event.message, event.seq)
        return self._before[event.message]

    def finished(self, event: TextFinished) -> None:
        if not event.interrupted:
            self._texts[event.message] = self._texts.get(event.message, frozenset()) | {event.text}

    async def _look_back(self, answer: str, seq: int) -> None:
        # One whose beginning is not in the log takes the place of nothing.
        self._before[answer] = frozenset()
        for event in await self._pages.start_of(self._conversation, answer, seq):
            if isinstance(event, AnswerStarted) and event.message == answer:
                await self.begun(event)
            elif isinstance(event, TextFinished) and event.message == answer:
                self.finished(event)
