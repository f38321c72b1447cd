"""Words on their way: what a person sent, in order, until the server has it.

Held by the app, which runs it. While there is no connection a message is kept and tried again under its one client request
id, so it takes effect once. What the server refuses goes back to the one who wrote it, with the reason.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal
from uuid import uuid4

from palaver.client.client import Client, Unreachable
from palaver.clock import Clock
from palaver.errors import LogUnavailable, PalaverError
from palaver.schema.commands import SendMessage
from palaver.tui.intents import Send
from palaver.tui.text import docks
from palaver.tui.uploads import with_images

PAUSE_S = 1.0
"""Between two tries while there is no connection; the client itself has tried several times in each."""
MOST = 50
"""As many as a server queues."""


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    conversation: str
    text: str
    ts: int
    state: Literal["sending", "offline", "accepted"] = "sending"
    seq: int = 0
    """Where it stands in the log, once it is accepted."""


class Outbox:
    def __init__(self, client: Client, clock: Clock, changed: Callable[[], None], reached: Callable[[], None]) -> None:
        """`changed` is told that `entries` are others now, `reached` that the server answered."""
        self._client = client
        self._clock = clock
        self._changed = changed
        self._reached = reached
        self._entries: dict[str, Entry] = {}
        self._waiting: asyncio.Queue[tuple[str, Send]] = asyncio.Queue(MOST)

    def entries(self, conversation: str, seen_seq: int) -> list[Entry]:
        """What has not come back yet in a view of this seq; what has is forgotten."""
        for entry in list(self._entries.values()):
            if entry.conversation == conversation and entry.state == "accepted" and entry.seq <= seen_seq:
                del self._entries[entry.id]
        return [entry for entry in self._entries.values() if entry.conversation == conversation]

    def add(self, send: Send) -> bool:
        """False when too much waits already."""
        entry = Entry(str(uuid4()), send.conversation, send.text or docks.Composer.IMAGE, self._clock.now_ms())
        try:
            self._waiting.put_nowait((entry.id, send))
        except asyncio.QueueFull:
            return False
        self._set(entry)
        return True

    async def run(self) -> None:
        while True:
            id, send = await self._waiting.get()
            await self._deliver(id, send)
            self._waiting.task_done()

    async def emptied(self) -> None:
        """Until the server has all of it, or has refused it: for ever, while there is no connection."""
        await self._waiting.join()

    async def _deliver(self, id: str, send: Send) -> None:
        while True:
            try:
                content = await with_images(self._client, send.content, send.images)
                command = SendMessage(
                    content=content,
                    delivery=send.delivery,
                    priority=send.priority,
                    merge=send.merge,
                    held=send.held,
                    agent=send.agent,
                    mode=send.mode,
                    client_request_id=id,
                )
                accepted = await self._client.command(send.conversation, command)
            except (Unreachable, LogUnavailable):
                self._set(replace(self._entries[id], state="offline"))
                await self._clock.sleep(PAUSE_S)
            except PalaverError as refusal:
                del self._entries[id]
                self._changed()
                self._reached()
                if send.refused is not None:
                    send.refused(refusal.message)
                return
            else:
                self._set(replace(self._entries[id], state="accepted", seq=accepted.seq))
                self._reached()
                return

    def _set(self, entry: Entry) -> None:
        self._entries[entry.id] = entry
        self._changed()
