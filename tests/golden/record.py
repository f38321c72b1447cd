"""Writes a golden log by hand: events from the schema, numbered and timed the same on every machine.

Used by the scenes. Knows nothing of decide or settle: a golden log says what a log once held, not what today's core would write.
"""

import json
from typing import Any

from msgspec.structs import replace

from palaver.schema.base import Origin
from palaver.schema.content import as_content
from palaver.schema.events import (
    ConversationCreated,
    KnownEvent,
    MessageAdded,
    TurnFinished,
    TurnInterrupted,
    TurnStarted,
    encode_event,
)
from palaver.schema.view import State, Trigger

FIRST_MS = 1_760_000_000_000
STEP_MS = 250
BROWSER = Origin(client="tab-1", user="ada")


class Record:
    """One conversation's log in the making. `check()` asks for the expected state at this point."""

    def __init__(self, name: str, *, start: State | None = None) -> None:
        self.name = name
        self.start = start
        self.lines: list[bytes] = []
        self.checks: list[int] = []
        self._seq = start.seq if start else 0
        self._turn = start.turn.id if start and start.turn else None

    @property
    def seq(self) -> int:
        return self._seq

    @property
    def now(self) -> int:
        """The time of the next event."""
        return FIRST_MS + (self._seq + 1) * STEP_MS

    def add(self, *events: KnownEvent) -> None:
        """Events of an active turn carry its id without being told."""
        for event in events:
            if isinstance(event, TurnStarted):
                self._turn = event.turn
            now = self.now
            self._seq += 1
            stamped = replace(
                event,
                seq=self._seq,
                id=f"{self.name}-{self._seq}",
                ts=now,
                conversation=self.name,
                turn=event.turn or self._turn,
            )
            self.lines.append(encode_event(stamped))
            if isinstance(event, TurnFinished | TurnInterrupted) and event.turn in (None, self._turn):
                self._turn = None

    def raw(self, **fields: Any) -> None:
        """A line as another release, or a broken one, might have written it."""
        now = self.now
        self._seq += 1
        line = {"type": fields.pop("type"), "seq": self._seq, "id": f"{self.name}-{self._seq}", "ts": now}
        line |= {"conversation": self.name} | fields
        self.lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode())

    def keep(self, lines: list[bytes], seq: int) -> None:
        """Lines that are numbered already."""
        self.lines.extend(lines)
        self._seq = seq

    def check(self) -> None:
        self.checks.append(self._seq)

    # -- what nearly every scene begins with

    def created(self, agent: str = "default", title: str = "") -> None:
        self.add(ConversationCreated(agent=agent, title=title, project="garden", origin=BROWSER))

    def asked(self, message: str, text: str, turn: str, *, backend: str = "scripted", resumable: bool = False) -> None:
        """A person's message and the turn it begins."""
        self.add(
            MessageAdded(message=message, content=as_content(text), turn=turn, origin=BROWSER),
            TurnStarted(
                turn=turn,
                agent="default",
                backend=backend,
                model="demo-1",
                trigger=Trigger(messages=(message,)),
                resumable=resumable,
                origin=BROWSER,
            ),
        )
