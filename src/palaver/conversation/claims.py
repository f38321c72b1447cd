"""Client request ids and what each was used for: how a command that comes twice has one effect and one answer.

The log keeps every claim for ever, in the commit of the events that made it, and refuses a second. This holds the latest of
one conversation, so that a new command is decided without asking the log, and a double click never meets a read of it that
began before the first click was committed. Used by the owner.
"""

from collections import OrderedDict
from collections.abc import Sequence

from palaver.core.decide.decide import acceptance_of, body_hash
from palaver.errors import Conflict, LogError
from palaver.log.base import EventLog, Used
from palaver.schema.commands import Accepted, Order
from palaver.schema.events import KnownEvent, UnknownEvent, decode_event

KEEP = 1_000
"""More commands than can be under way at once."""


class Claims:
    def __init__(self, log: EventLog, conversation: str) -> None:
        self._log = log
        self._conversation = conversation
        self._latest: OrderedDict[str, Used] = OrderedDict()

    async def look_up(self, command: Order) -> bool:
        """Whether the id was used before this owner's time, or too long ago to be remembered. From now on it is known.

        Only asked when something is odd about a command: the log itself refuses an id that is used up.
        """
        request_id = command.client_request_id
        if not request_id or request_id in self._latest:
            return False
        used = await self._log.used(self._conversation, request_id)
        if used is not None:
            self._remember(request_id, used)
        return used is not None

    async def were_used(self, refusal: LogError, commands: Sequence[Order]) -> bool:
        """Whether the log refused these commands for an id that was used up. Then all that were are known from now on."""
        if "client_request_id" not in refusal.details:
            return False
        found = False
        for command in commands:
            self.withdraw(command)
            found = await self.look_up(command) or found
        return found

    def used(self, command: Order) -> Used | None:
        return self._latest.get(command.client_request_id or "")

    def claim(self, command: Order, events: Sequence[KnownEvent]) -> None:
        if command.client_request_id:
            self._remember(command.client_request_id, Used(body_hash(command), events[0].seq, events[-1].seq))

    def withdraw(self, command: Order) -> None:
        """Nothing was written, so the id is free again."""
        self._latest.pop(command.client_request_id or "", None)

    async def repeat(self, command: Order, used: Used, undecided: Sequence[KnownEvent]) -> Accepted:
        """The same id again: the same answer, read off the same events; or a refusal when the body differs."""
        if used.body_hash != body_hash(command):
            raise Conflict(
                "This client_request_id was used for another command. Use a fresh id for a new command.",
                client_request_id=command.client_request_id,
            )
        events = [event for event in undecided if used.first <= event.seq <= used.last]
        return acceptance_of(self._conversation, events or await self._events_of(used), command.client_request_id)

    async def _events_of(self, used: Used) -> list[KnownEvent]:
        events: list[KnownEvent] = []
        cursor = used.first - 1
        while cursor < used.last and (segments := await self._log.read(self._conversation, cursor)):
            for line in (line for segment in segments for line in segment.body.splitlines()):
                event = decode_event(line)
                if cursor < event.seq <= used.last and not isinstance(event, UnknownEvent):
                    events.append(event)
            cursor = segments[-1].last
        return events

    def _remember(self, request_id: str, used: Used) -> None:
        self._latest[request_id] = used
        while len(self._latest) > KEEP:
            self._latest.popitem(last=False)
