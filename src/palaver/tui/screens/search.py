"""Words looked for in this conversation or in all of them; a hit is shown where it stands. Opened by Ctrl+F.

In a conversation every message is read, also those not loaded yet; across all of them the server's index answers.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets.option_list import Option

from palaver.client.client import Client
from palaver.clock import Clock
from palaver.schema.view import Message, State, TextBlock, ThinkingBlock, ToolBlock
from palaver.tui.docks.keyline import Key
from palaver.tui.intents import JumpTo, OpenConversation
from palaver.tui.screens.field import FieldSheet
from palaver.tui.screens.frame import fill
from palaver.tui.text.safe import visible
from palaver.tui.text.screens import OPEN, Listed, Search

TYPING_S = 0.2
"""The hands rest: now it is worth asking."""
LIMIT = 100
PAGE = 500
MOST_PAGES = 40
"""Older messages read at most for one search: 20,000."""
AROUND = 60
"""Characters of context on each side."""


@dataclass(frozen=True, slots=True)
class Found:
    conversation: str
    message: str
    seq: int
    role: str
    before: str
    match: str
    after: str
    title: str = ""


def hits_in(messages: Iterable[Message], query: str, conversation: str) -> list[Found]:
    """One hit a message, the newest first: where all its words are, around the first of them."""
    wanted = query.lower().split()
    found: list[Found] = []
    for message in messages:
        text = _text_of(message)
        held = text.lower()
        if wanted and not message.hidden and all(word in held for word in wanted):
            at = held.find(wanted[0])
            end = at + len(wanted[0])
            before = text[:at] if at <= AROUND else f"…{text[at - AROUND : at]}"
            after = text[end:] if len(text) - end <= AROUND else f"{text[end : end + AROUND]}…"
            found.append(Found(conversation, message.id, message.seq, message.role, before, text[at:end], after))
    return sorted(found, key=lambda hit: -hit.seq)


def _text_of(message: Message) -> str:
    said: list[str] = []
    for block in message.blocks:
        if isinstance(block, TextBlock | ThinkingBlock):
            said.append(block.text)
        elif isinstance(block, ToolBlock):
            given = block.input_text if block.input is None else json.dumps(block.input, ensure_ascii=False)
            said.append(f"{block.name} {given} {block.output}")
    return "\n".join(said)


class SearchScreen(FieldSheet):
    LABEL = Search.LABEL
    PLACEHOLDER = Search.PLACEHOLDER
    BINDINGS: ClassVar[list[BindingType]] = [Binding("tab", "switch", show=False, priority=True)]

    def __init__(self, client: Client, clock: Clock, state: State | None, *, everywhere: bool = False) -> None:
        super().__init__()
        self._client = client
        self._clock = clock
        self._state = state if state is not None and state.conversation else None
        self._everywhere = everywhere or self._state is None
        self._hits: list[Found] = []

    def on_mount(self) -> None:
        self._say_where()
        self.say(Search.TYPE)

    def _say_where(self) -> None:
        self.title_is(f"{Search.LABEL} {Search.EVERYWHERE if self._everywhere else Search.HERE}")

    def keys(self) -> list[Key]:
        switch = [Key("Tab", Search.SWITCH, self.action_switch)] if self._state is not None else []
        return [Key("Enter", OPEN, self.take_chosen), *switch]

    def action_switch(self) -> None:
        if self._state is not None:
            self._everywhere = not self._everywhere
            self._say_where()
            self.look()

    def look(self) -> None:
        self.read(partial(self._look, self.typed))

    async def _look(self, query: str) -> None:
        if not query:
            self._show([], Search.TYPE)
            return
        await self._clock.sleep(TYPING_S)
        self.say(Search.SEARCHING)
        if self._everywhere:
            await self._look_everywhere(query)
        elif self._state is not None:
            await self._look_here(self._state, query)

    async def _look_everywhere(self, query: str) -> None:
        hits = await self._client.search(query, LIMIT)
        found = [
            Found(hit.conversation, hit.message, hit.seq, hit.role, hit.before, hit.match, hit.after, hit.title)
            for hit in hits
        ]
        self._show(found, Search.hits(len(found), len(found) >= LIMIT) if found else Search.none(query))

    async def _look_here(self, state: State, query: str) -> None:
        hits = hits_in(state.messages, query, state.conversation)
        first, left = (state.messages[0].seq if state.messages else 0), state.offset
        for _ in range(MOST_PAGES):
            if not left or len(hits) >= LIMIT:
                break
            older = await self._client.messages(state.conversation, first, PAGE)
            if not older:
                break
            hits += hits_in(older, query, state.conversation)
            first, left = older[0].seq, left - len(older)
            self._show(hits[:LIMIT], Search.SEARCHING)
        said = Search.hits(len(hits), more=bool(left) or len(hits) > LIMIT) if hits else Search.none(query)
        self._show(hits[:LIMIT], said)

    def _show(self, hits: list[Found], said: str) -> None:
        self._hits = hits
        fill(self.listed, [Option(self._row(hit), id=str(at)) for at, hit in enumerate(hits)])
        self.say(said)

    def _row(self, hit: Found) -> Content:
        who = {"user": Search.YOU, "assistant": Search.AGENT}.get(hit.role, Search.OTHER)
        title = visible(hit.title) or Listed.UNTITLED if self._everywhere else ""
        return Content.assemble(
            (f"{title}  " if title else "", "bold"),
            (f"{who}\n", "$ink-faint"),
            (_flat(hit.before), "$ink-soft"),
            (_flat(hit.match), "bold $live"),
            (_flat(hit.after), "$ink-soft"),
        )

    def take(self, chosen: str) -> None:
        hit = self._hits[int(chosen)]
        if self._state is not None and hit.conversation == self._state.conversation:
            self.post_message(JumpTo(hit.message, hit.seq, words=self.typed))
        else:
            self.post_message(OpenConversation(hit.conversation, message=hit.message, seq=hit.seq, words=self.typed))
        self.action_close()


def _flat(text: str) -> str:
    return visible(re.sub(r"\s+", " ", text))
