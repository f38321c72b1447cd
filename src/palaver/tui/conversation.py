"""The main screen: one conversation. Header, connection line, transcript, subagents beside it, docks and composer below.

Shown by the app, which carries out what is wanted here and tells it which conversation to open. It follows that one
conversation, makes rows of its view at the beat of the live turn, and gives every part what it shows. It calls the client to
read only; whatever changes something goes to the app as an intent.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen

from palaver.client.client import Client
from palaver.client.projects import ProgramFolderInfo
from palaver.clock import Clock
from palaver.errors import PalaverError
from palaver.schema.view import State, TextBlock
from palaver.tui.background import begin
from palaver.tui.connection import Connection
from palaver.tui.docks.activity import ConnectionLine
from palaver.tui.docks.completion import SlashCommand
from palaver.tui.docks.frame import Docks, next_region
from palaver.tui.docks.trust import SettingsOff
from palaver.tui.edit_resend import to_resend, whole_edit
from palaver.tui.follow import Following
from palaver.tui.header import Header
from palaver.tui.intents import Act, Copy, Notice, OpenConversation, Read, Say
from palaver.tui.keys import ANSWER_BINDINGS, Digit
from palaver.tui.outbox import Entry, Outbox
from palaver.tui.people import People
from palaver.tui.relatives import Relatives
from palaver.tui.screens.actions import slash_commands
from palaver.tui.subagents import Family
from palaver.tui.terminal_title import is_worth_ringing, title_of
from palaver.tui.text import docks, rows
from palaver.tui.transcript.full_text import whole_of
from palaver.tui.transcript.live_turn import Beat
from palaver.tui.transcript.row_book import RowBook
from palaver.tui.transcript.rows import (
    ErrorRow,
    InterruptedRow,
    PendingRow,
    Row,
    ToolRow,
    UserRow,
    text_of,
)
from palaver.tui.transcript.start_row import Above, Edge
from palaver.tui.transcript.transcript import Transcript

WIDE_COLUMNS = 120
"""From here on subagents have a place of their own."""
FAMILY_S = 2.0
"""How often subagents are looked at while some are at work."""
MOST_PAGES = 100
"""Older pages loaded at most to reach a message that was jumped to."""


class Body(Horizontal):
    DEFAULT_CSS = """
    Body { height: 1fr; min-height: 3; }
    """


class ConversationScreen(Screen[None]):
    DEFAULT_CSS = """
    ConversationScreen { layout: vertical; background: $paper; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *ANSWER_BINDINGS,
        Binding("escape", "escape", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("f6", "region(1)", show=False),
        Binding("shift+f6", "region(-1)", show=False),
        Binding("ctrl+k", "act('palette')", show=False, priority=True),
        Binding("ctrl+f", "act('find')", show=False, priority=True),
        Binding("ctrl+l", "act('list')", show=False, priority=True),
        Binding("ctrl+n", "act('new')", show=False, priority=True),
        Binding("ctrl+r", "go_on", show=False, priority=True),
        Binding("ctrl+g", "hold", show=False, priority=True),
        Binding("f1,question_mark", "act('keys')", show=False),
        Binding("i", "write", show=False),
    ]

    def __init__(
        self,
        client: Client,
        clock: Clock,
        outbox: Outbox,
        day_of: Callable[[int], int],
        seen: Callable[[str, int], None],
    ) -> None:
        """`seen` is told how far a conversation was read here."""
        super().__init__()
        self._client = client
        self._clock = clock
        self._outbox = outbox
        self._day_of = day_of
        self._seen = seen
        self._beat = Beat(self._flush)
        self._following: Following | None = None
        self._book: RowBook | None = None
        self._rows: tuple[Row, ...] = ()
        self._edge = Edge()
        self._shown_offset = 0
        self._people = People()
        self._relatives = Relatives(client)
        self._past: State | None = None
        self._noticed = State()
        self._wanted: tuple[str, int, str] | None = None
        self._settings_of: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield Header()
        yield ConnectionLine(self._clock)
        with Body():
            yield Transcript(id="transcript")
            yield Family()
        yield Docks(self._clock, self._commands, self._files)

    def on_mount(self) -> None:
        self.query_one(Transcript).add_class("region")
        self.query_one(Transcript).open_another(rows.OPENING)
        self.query_one(Docks).focus_composer()
        self.set_interval(FAMILY_S, self._look_at_family)

    def on_unmount(self) -> None:
        self._beat.end()

    # -- which conversation

    @property
    def conversation(self) -> str:
        return self._following.conversation if self._following else ""

    @property
    def state(self) -> State:
        """What is shown: the conversation as it is, or as it was."""
        return self._past or (self._following.state if self._following else None) or State()

    @property
    def following(self) -> Following | None:
        return self._following

    @property
    def docks(self) -> Docks:
        return self.query_one(Docks)

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    def open(self, conversation: str, seen_seq: int | None, at: tuple[str, int, str] | None = None) -> None:
        """`at` is a message, its seq, and what was looked for in it."""
        if last_word := self.docks.leave():
            # By the way of what was ordered there before, so that it comes after it.
            self.docks.composer.post_message(last_word)
        for under_way in ("reach", "edit", "past"):
            # It is of the conversation that is left, and would come up in this one.
            self.app.workers.cancel_group(self.app, under_way)
        self.transcript.open_another(rows.OPENING)
        self._past, self._wanted, self._rows = None, at, ()
        self._edge.forget()
        self._relatives.forget()
        self._book = RowBook(self._day_of, seen_seq)
        self._following = Following(self._client, conversation, self._clock, self._beat.news, self._connection)
        begin(self.app, self._following.run, "following", newest=True)
        self.docks.is_past = False
        self._tell_composer()
        self.docks.focus_composer()

    def close(self) -> None:
        """No conversation: what is written begins a new one."""
        self.app.workers.cancel_group(self.app, "following")
        self.transcript.open_another(rows.FRESH)
        self._following, self._book, self._past, self._rows = None, None, None, ()
        self._connection(Connection("open"))
        self._flush()
        self.docks.focus_composer()

    def welcome(self, notice: str) -> None:
        """What is said while there is no conversation."""
        if self._following is None:
            self.transcript.say(notice)

    @property
    def people(self) -> People:
        return self._people

    def _commands(self) -> list[SlashCommand]:
        return slash_commands(self.state, may_write=self._people.may_write)

    async def _files(self, folder: str) -> list[str]:
        """What a folder of the project holds, for whoever names a file."""
        project = self.state.project
        if project is None:
            return []
        found = await self._client.tree(project, folder or ".")
        return [f"{entry.name}/" if entry.kind == "folder" else entry.name for entry in found.entries]

    def introduce(self, people: People) -> None:
        self._people = people
        self._settings_of = ()
        self.docks.introduce(people)
        self._tell_composer()
        self._flush()

    def _tell_composer(self) -> None:
        """Whether something can be written here, and if not why."""
        barred = "" if self._people.may_write else docks.Composer.READ_ONLY
        self.docks.composer.read_only(docks.Composer.PAST if self._past is not None else barred)

    def show_past(self, state: State | None) -> None:
        """An earlier moment instead of now; None: now again."""
        self._past = state
        self._book = RowBook(self._day_of)
        self.docks.is_past = state is not None
        self._tell_composer()
        self._flush()
        # What happened at that moment is at its end.
        self.transcript.go_to_end()

    def pending_changed(self) -> None:
        self._beat.news()

    # -- showing

    @property
    def _is_whole(self) -> bool:
        """Not yet put together, or being taken apart, it has no parts to show anything in."""
        return self.is_mounted and self.app.is_running

    def _connection(self, connection: Connection) -> None:
        if self._is_whole:
            self.query_one(ConnectionLine).show(connection)
            self.docks.show_connection(connection)
            self._beat.news()

    def _flush(self) -> None:
        """Everything that shows the view gets the newest one."""
        if not self._is_whole:
            return
        state = self.state
        self._show_rows(state)
        name = self._name_of(state.turn.agent if state.turn else state.agent)
        self.query_one(Header).show(state, name, past_seq=self._past.seq if self._past else None)
        self.docks.show(state, self._relatives.below)
        self._show_family(state)
        self._ask_for_settings(state)
        if self._following is not None and self._past is None and state.seq:
            self._seen(state.conversation, state.seq)
        if self._past is None:
            self._notice(state)
        if self._wanted is not None and state.seq:
            begin(self.app, partial(self._reach, *self._wanted), "reach", newest=True)
            self._wanted = None

    def _ask_for_settings(self, state: State) -> None:
        """Anew for each conversation, agent and turn: a turn may have changed the files."""
        last = state.last_turn.id if state.last_turn else ""
        asked = (state.conversation, state.agent, state.project or "", last) if self._past is None else ()
        if asked != self._settings_of:
            self._settings_of = asked
            self.look_at_settings()

    def look_at_settings(self) -> None:
        """Ask the server which settings of the folder are off."""
        begin(self.app, partial(self._load_settings, self.state), "settings", newest=True)

    async def _load_settings(self, state: State) -> None:
        found: list[ProgramFolderInfo] = []
        if self._people.may_trust and state.project and state.agent:
            with suppress(PalaverError):
                found = await self._client.program_settings(state.project, state.agent)
        off = next((one for one in found if one.paths and not one.trusted), None)
        if self._is_whole and self.conversation == state.conversation:
            self.docks.show_settings(state.conversation, SettingsOff(state.project or "", off) if off else None)

    def _notice(self, state: State) -> None:
        before, self._noticed = self._noticed, state
        title, rings = title_of(state), is_worth_ringing(before, state)
        if title != title_of(before) or rings:
            self.post_message(Notice(title, rings=rings))

    def _name_of(self, agent: str) -> str:
        return self._people.names.get(agent, agent) if self._following else ""

    def _show_rows(self, state: State) -> None:
        rows = self._book.rows(state) if self._book and state.seq else ()
        pending = [] if self._past else self._outbox.entries(state.conversation, state.seq)
        is_open = self._following is None or self._following.connection.is_open
        edge = self._edge.row(state)
        shown = (*((edge,) if edge else ()), *rows, *(_pending_row(entry, is_open) for entry in pending))
        is_older = state.offset < self._shown_offset
        self.transcript.show(shown, now_ms=self._clock.now_ms(), people=self._people, is_older=is_older)
        self._rows, self._shown_offset = shown, state.offset

    # -- what is above

    @on(Transcript.OlderWanted)
    def _want_older(self, event: Transcript.OlderWanted) -> None:
        event.stop()
        if self.state.offset and self._past is None and self._following is not None:
            begin(self.app, partial(self._load_older, self._following), "older")

    async def _load_older(self, following: Following) -> bool:
        if following.is_loading:
            return False
        self._tell_edge(following, "loading")
        try:
            loaded = await following.load_older()
        except PalaverError:
            self._tell_edge(following, "failed")
            return False
        self._tell_edge(following, "more")
        return loaded

    def _tell_edge(self, following: Following, above: Above) -> None:
        # Another conversation may have been opened meanwhile, whose edge this is not.
        if following is self._following:
            self._edge.say(above)
            self._beat.news()

    async def _reach(self, message: str, seq: int, looked_for: str) -> None:
        """Loads older pages until a message is at hand, and goes there."""
        following = self._following
        for _ in range(MOST_PAGES):
            state = self.state
            if following is None or not state.offset or not state.messages or state.messages[0].seq <= seq:
                break
            if not await self._load_older(following):
                break
        self._flush()
        if not self.transcript.go_to_message(message, looked_for):
            self.post_message(Say(rows.NOT_AT_HAND, is_trouble=True))
        else:
            self.transcript.focus()

    def jump(self, message: str, seq: int, looked_for: str = "") -> None:
        begin(self.app, partial(self._reach, message, seq, looked_for), "reach", newest=True)

    # -- subagents

    def _show_family(self, state: State) -> None:
        members = self._relatives.members(state)
        self.query_one(Family).show(members, self._people.names, has_room=self.size.width >= WIDE_COLUMNS)
        self.docks.tell_way()

    def on_resize(self, event: events.Resize) -> None:
        self._show_family(self.state)

    def _look_at_family(self) -> None:
        if self._relatives.is_worth_asking(self.state):
            begin(self.app, partial(self._ask_family, self.state), "family", newest=True)

    async def _ask_family(self, state: State) -> None:
        told = await self._relatives.ask(state)
        if told is not None and state.conversation == self.conversation:
            self._relatives.heard(*told)
            self._flush()

    # -- where the reader is

    @on(Transcript.Chosen)
    def _on_row_chosen(self, event: Transcript.Chosen) -> None:
        """Enter goes deeper: into another conversation, on with what was stopped, else it opens the row."""
        event.stop()
        match event.row:
            case ToolRow(child=child) if child is not None:
                self.post_message(OpenConversation(child.conversation))
            case ToolRow(exchange=exchange) if exchange is not None and exchange.conversation:
                self.post_message(OpenConversation(exchange.conversation))
            case InterruptedRow(is_last=True):
                self.post_message(Act("continue"))
            case ErrorRow(is_last=True):
                self.post_message(Act("regenerate"))
            case row:
                self.transcript.toggle(row.key)

    @on(Transcript.Wanted)
    def _on_row_wanted(self, event: Transcript.Wanted) -> None:
        event.stop()
        match event.what:
            case "copy":
                if text := text_of(event.row):
                    self.post_message(Copy(text))
            case "whole":
                if whole := whole_of(event.row):
                    self.post_message(Read(whole))
            case "edit":
                self.edit(event.row)

    def edit(self, row: Row | None = None) -> None:
        """One's own message into the composer, to be changed and sent again: this one, else the last."""
        wanted = to_resend(self._rows, row)
        if not self._people.may_write:
            self.post_message(Say(docks.Composer.READ_ONLY, is_trouble=True))
        elif wanted is None or self._past is not None:
            self.post_message(Say(docks.Composer.EDIT_NONE, is_trouble=True))
        elif self.state.turn is not None:
            self.post_message(Say(docks.Composer.EDIT_BUSY, is_trouble=True))
        else:
            begin(self.app, partial(self._edit, wanted), "edit", newest=True)

    async def _edit(self, row: UserRow) -> None:
        try:
            self.docks.composer.begin_edit(await whole_edit(self._client, row))
        except PalaverError as failure:
            self.post_message(Say(failure.message, is_trouble=True))

    # -- keys

    def on_descendant_focus(self) -> None:
        self.docks.focus_went(self.focused)

    def action_answer(self, digit: Digit) -> None:
        self.docks.answer(digit)

    def action_act(self, name: str) -> None:
        self.post_message(Act(name))  # type: ignore[arg-type]

    def action_region(self, by: int) -> None:
        next_region(self, by)  # type: ignore[arg-type]

    def action_page(self, by: int) -> None:
        if by < 0:
            self.transcript.action_page_up()
        else:
            self.transcript.action_page_down()

    def action_write(self) -> None:
        self.docks.focus_composer()

    def action_escape(self) -> None:
        """Closes the top layer, else interrupts."""
        if self.docks.escape():
            return
        if self._past is not None:
            self.show_past(None)
        elif self.state.turn is not None and self._people.may_write:
            self.post_message(Act("stop"))
        elif not self.docks.composer.prompt.has_focus:
            self.docks.focus_composer()

    def action_hold(self) -> None:
        """Interrupts, and what waits goes on waiting."""
        if self._past is None and self.state.turn is not None:
            self.post_message(Act("hold"))

    def action_go_on(self) -> None:
        """Continue what was interrupted, try again what failed."""
        outcome = self.state.last_turn.outcome if self.state.last_turn else None
        if self.state.turn is None and outcome in ("interrupted", "limited"):
            self.post_message(Act("continue"))
        elif self.state.turn is None and outcome == "failed":
            self.post_message(Act("regenerate"))

    def last_answer(self) -> str:
        """What the agent said last, to be copied."""
        for message in reversed(self.state.messages):
            if message.role == "assistant":
                text = "\n\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))
                if text:
                    return text
        return ""


def _pending_row(entry: Entry, is_open: bool) -> PendingRow:
    state = "offline" if entry.state == "offline" or not is_open else "sending"
    return PendingRow(key=f"pending:{entry.id}", seq=0, ts=entry.ts, text=entry.text, state=state)  # type: ignore[arg-type]
