"""The terminal UI as a whole: one conversation on the screen, others behind a key. Carries out what docks and screens want.

Started by `palaver tui` with a connected client. Every intent ends here and becomes a command, a request to read, or a
screen; a refusal goes back to the one who asked, or is said in one line. Knows the native face alone.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from subprocess import SubprocessError
from typing import Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.worker import Worker

from palaver.client.client import Client, Unreachable
from palaver.clock import Clock
from palaver.errors import LogUnavailable, PalaverError
from palaver.schema.commands import (
    Branch,
    CreateConversation,
    EditQueued,
    Interrupt,
    Regenerate,
    SendMessage,
    UpdateConversation,
)
from palaver.tui.background import begin, defect_in
from palaver.tui.conversation import ConversationScreen
from palaver.tui.intents import (
    Act,
    ActionName,
    Begin,
    Copy,
    JumpTo,
    KeepSettingsOff,
    Notice,
    OpenConversation,
    Order,
    Read,
    Refused,
    Say,
    Send,
    TrustSettings,
    ViewAt,
)
from palaver.tui.key_queue import Typing
from palaver.tui.keys import tell_alt_from_letters
from palaver.tui.local_memory import Remembered
from palaver.tui.outbox import Outbox
from palaver.tui.past_view import state_at
from palaver.tui.people import People
from palaver.tui.screens.actions import WRITING
from palaver.tui.screens.frame import Sheet
from palaver.tui.screens.open import Where, screen_for
from palaver.tui.text import docks, rows, words
from palaver.tui.theme import DARK_NAME, DARK_THEME, LIGHT_NAME, LIGHT_THEME
from palaver.tui.uploads import with_images
from palaver.tui.welcome import first_agent, welcome

SAVE_S = 5.0
"""How often what was read is written down."""
UNREAD_S = 1.0
"""A list opens at once, also when it cannot be said what is unread; so does the question at the end."""
KEEP_TITLE, BRING_TITLE_BACK = "\x1b[22;2t", "\x1b[23;2t"
"""xterm's, known to most terminals and passed over by the others: the window's title as it was before."""
LAST_WORDS_S = 2.0
"""What was written last reaches the server before the terminal goes; one that does not answer is not waited for."""


class PalaverApp(Typing):
    TITLE = words.NAME
    ENABLE_COMMAND_PALETTE = False
    # A word in passing stands over what was read, not over what is being written. What is chosen in a list is told from the
    # others also where a terminal has too few colours for its shade.
    CSS = """
    ToastRack { dock: top; align: right top; margin: 1 0 0 0; }
    Toast { padding: 0 1; margin: 0; width: auto; max-width: 80%; }
    .has-few-colours OptionList > .option-list--option-highlighted { text-style: bold underline; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+q", "quit", show=False, priority=True)]

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        conversation: str | None = None,
        remembered: Remembered | None = None,
        theme: str = DARK_NAME,
        stop_server: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`stop_server`: there when the server was started for this terminal and may end with it."""
        super().__init__()
        self.client = client
        self.clock = clock
        self.remembered = remembered or Remembered(None)
        self.outbox = Outbox(client, clock, self._pending_changed, self._on_reached)
        self._first = conversation
        self._turns: dict[str, asyncio.Lock] = {}
        self._begun = asyncio.Event()
        self._answers: str | None = None
        """Whoever was said to answer the first words; None: whom the server chooses."""
        self._stop_server = stop_server
        # Nothing here gains from moving slowly, and a connection by ssh has no frames to spare.
        self.animation_level = "none"
        # Before the first style sheet is read, which names their colours.
        self.register_theme(DARK_THEME)
        self.register_theme(LIGHT_THEME)
        self.theme = theme
        self.main = ConversationScreen(client, clock, self.outbox, words.start_of_day, self.remembered.mark)

    # -- beginning and end

    async def on_mount(self) -> None:
        tell_alt_from_letters()
        self._write(KEEP_TITLE)
        self.set_class(self.console.color_system in (None, "standard", "windows"), "has-few-colours")
        await self.push_screen(self.main)
        begin(self, self.outbox.run, "outbox")
        begin(self, self._begin, "begin")
        self.set_interval(SAVE_S, self.remembered.save)

    async def _begin(self) -> None:
        """The conversation that was named, else the latest; the agents' names a moment later."""
        conversation, session = await asyncio.gather(self._latest(), self._session())
        roles = session.get("roles", ("send", "decide"))
        here = People(
            me=session.get("user"),
            client=self.client.name,
            may_write="send" in roles,
            may_decide="decide" in roles,
            may_trust="admin" in roles,
        )
        self.main.introduce(here)
        # Whatever the person opened meanwhile stays: a list, a command, a conversation of their own choice.
        if conversation and not self.main.conversation:
            self._show(conversation)
        elif not conversation:
            self.main.close()
        self._begun.set()
        try:
            agents, last_used = await asyncio.gather(self.client.agents(), self.client.last_used_agent())
        except PalaverError:
            return  # Names are a comfort; ids will do.
        first = first_agent(agents, last_used)
        self._answers = first.id if first is not None and first.id == last_used else None
        if here.may_write:
            self.main.welcome(welcome(first))
        self.main.introduce(replace(here, names={agent.id: agent.name for agent in agents}))

    async def _latest(self) -> str | None:
        if self._first:
            return self._first
        last = self.remembered.last_conversation
        try:
            found = await self.client.conversations(50)
        except PalaverError as failure:
            self.say(failure.message, is_trouble=True)
            return last
        ids = [listing.id for listing in found if not listing.deleted]
        return last if last in ids else next(iter(ids), None)

    async def _session(self) -> Mapping[str, Any]:
        """Who is here, and what they may do."""
        try:
            return await self.client.session()
        except PalaverError:
            return {}

    async def action_quit(self) -> None:
        from palaver.tui.exit_prompt import Leaving

        self.remembered.save()
        if self._stop_server is None:
            begin(self, self._leave_and_exit, "leave")
        elif not isinstance(self.screen, Leaving):
            await self.push_screen(Leaving(await self._at_work()), self._leave)

    async def _at_work(self) -> int:
        try:
            async with asyncio.timeout(UNREAD_S):
                return sum(listing.turn is not None for listing in await self.client.conversations(200))
        except (PalaverError, TimeoutError):
            return 0

    def _leave(self, choice: str | None) -> None:
        if choice:
            stop = self._stop_server if choice == "stop" else None
            begin(self, partial(self._leave_and_exit, stop), "leave")

    async def _leave_and_exit(self, stop: Callable[[], Awaitable[None]] | None = None) -> None:
        message = None if await self._say_last_words() else rows.UNHEARD
        try:
            if stop is not None:
                await stop()
        except (SubprocessError, OSError):
            message = rows.SERVER_STAYED
        self._write(BRING_TITLE_BACK)
        self.exit(message=message)

    async def _say_last_words(self) -> bool:
        """Keeps the draft, lets go of what is held for an edit, delivers what was sent. False: the server did not answer."""
        last_word = self.main.docks.leave()
        try:
            async with asyncio.timeout(LAST_WORDS_S):
                if last_word is not None:
                    await self._carry_out(last_word)
                await self.outbox.emptied()
        except TimeoutError:
            return False
        return True

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if defect := defect_in(event):
            self.log.error(event.worker.error)
            self.say(defect.words, is_trouble=True)

    # -- where to look

    def open_conversation(self, conversation: str, at: tuple[str, int, str] | None = None) -> None:
        # One that is still coming up would wait for itself for ever once it is gone.
        self.workers.cancel_group(self, "screens")
        while self.screen is not self.main and self.main in self.screen_stack:
            _ = self.pop_screen()
        self._show(conversation, at)

    def _show(self, conversation: str, at: tuple[str, int, str] | None = None) -> None:
        self.main.open(conversation, self.remembered.last_read_seq(conversation), at)

    @on(OpenConversation)
    def _open(self, intent: OpenConversation) -> None:
        intent.stop()
        at = (intent.message, intent.seq, intent.words) if intent.message and intent.seq is not None else None
        if at and intent.conversation == self.main.conversation:
            self.main.jump(*at)
        else:
            self.open_conversation(intent.conversation, at)

    @on(JumpTo)
    def _jump(self, intent: JumpTo) -> None:
        intent.stop()
        self.main.jump(intent.message, intent.seq, intent.words)

    @on(Read)
    def _read(self, intent: Read) -> None:
        from palaver.tui.screens.full_text import WholeScreen

        intent.stop()
        screen = WholeScreen(self.client, intent.whole)
        begin(self, partial(self.opening, partial(self._push, screen)), "screens", newest=True)

    async def _push(self, sheet: Sheet) -> None:
        await self.push_screen(sheet)

    @on(ViewAt)
    def _view_at(self, intent: ViewAt) -> None:
        intent.stop()
        if intent.seq is None:
            self.main.show_past(None)
        else:
            begin(self, partial(self._look_back, intent.seq), "past", newest=True)

    async def _look_back(self, seq: int) -> None:
        try:
            self.main.show_past(await state_at(self.client, self.main.conversation, seq))
        except PalaverError as refusal:
            self.say(refusal.message, is_trouble=True)

    # -- commands

    @on(Send)
    def _send(self, intent: Send) -> None:
        intent.stop()
        if intent.conversation or self.main.conversation:
            self._deliver(intent)
        else:
            begin(self, partial(self._send_first, intent), "create")
        self.main.transcript.go_to_end()

    def _deliver(self, intent: Send) -> None:
        # Written before the conversation that is being opened was there: it is meant for that one.
        intent.conversation = intent.conversation or self.main.conversation
        intent.refused = intent.refused or partial(self.say, is_trouble=True)
        if not self.outbox.add(intent):
            intent.refused(rows.TOO_MUCH_WAITS)

    async def _send_first(self, first: Send) -> None:
        """Right after the start it is not known yet whether there is a conversation to go on with."""
        await self._begun.wait()
        if self.main.conversation:
            self._deliver(first)
        else:
            await self._create_with(first)

    @on(Order)
    def _order(self, intent: Order) -> None:
        intent.stop()
        begin(self, partial(self._carry_out, intent), "orders")

    async def _carry_out(self, intent: Order) -> None:
        """One after the other for each conversation; only a stop waits for nothing."""
        turns = self._turns.setdefault(intent.conversation, asyncio.Lock())
        try:
            async with nullcontext() if isinstance(intent.command, Interrupt) else turns:
                accepted = await self.client.command(intent.conversation, intent.command)
        except PalaverError as refusal:
            if not isinstance(refusal, Unreachable | LogUnavailable):
                self._on_reached()
            if not intent.quiet:
                self._refuse(intent.refused, refusal.message)
            return
        self._on_reached()
        if intent.accepted is not None:
            intent.accepted(accepted)

    @on(TrustSettings)
    def _trust(self, intent: TrustSettings) -> None:
        intent.stop()
        begin(self, partial(self._decide_trust, intent), "trust")

    async def _decide_trust(self, intent: TrustSettings) -> None:
        try:
            if intent.hash is None:
                await self.client.distrust_program(intent.project, intent.program)
            else:
                await self.client.trust_program(intent.project, intent.program, intent.hash)
        except PalaverError as refusal:
            self._refuse(intent.refused, refusal.message)
            return
        self._on_reached()
        intent.accepted()
        self.main.look_at_settings()

    @on(KeepSettingsOff)
    def _keep_settings_off(self, intent: KeepSettingsOff) -> None:
        intent.stop()
        self.main.docks.keep_settings_off()

    @on(Begin)
    def _begin_another(self, intent: Begin) -> None:
        intent.stop()
        begin(self, partial(self._create, intent.body, intent.refused), "create")

    async def _create_with(self, first: Send) -> None:
        try:
            content = await with_images(self.client, first.content, first.images)
        except PalaverError as refusal:
            self._refuse(first.refused, refusal.message)
        else:
            await self._create(CreateConversation(message=content, agent=self._answers), first.refused)

    async def _create(self, body: CreateConversation, refused: Refused | None) -> None:
        try:
            created = await self.client.create(body)
        except PalaverError as refusal:
            self._refuse(refused, refusal.message)
            return
        self.open_conversation(created.conversation)

    def _refuse(self, refused: Refused | None, sentence: str) -> None:
        if refused is not None:
            refused(sentence)
        else:
            self.say(sentence, is_trouble=True)

    def _pending_changed(self) -> None:
        if self.main.is_mounted and self.is_running:
            self.main.pending_changed()

    def _on_reached(self) -> None:
        if self.main.following is not None:
            self.main.following.reached()

    # -- words for the person

    def say(self, sentence: str, *, is_trouble: bool = False) -> None:
        self.notify(
            words.in_typographic_quotes(sentence), severity="error" if is_trouble else "information", markup=False
        )

    @on(Say)
    def _say(self, intent: Say) -> None:
        intent.stop()
        self.say(intent.words, is_trouble=intent.is_trouble)

    @on(Notice)
    def _notice(self, intent: Notice) -> None:
        intent.stop()
        self.title = intent.title
        # Only a terminal that tells when nobody looks at it is heard.
        if intent.rings and not self.app_focus:
            self.bell()

    def watch_title(self, title: str) -> None:
        self._write(f"\x1b]2;{title}\x07")

    def _write(self, sequence: str) -> None:
        """To the terminal itself, beside what is drawn."""
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    @on(Copy)
    def _copy(self, intent: Copy) -> None:
        intent.stop()
        self.copy_to_clipboard(intent.text)
        self.say(rows.COPIED)

    # -- actions by name

    @on(Act)
    def _act(self, intent: Act) -> None:
        intent.stop()
        self.act(intent.action)

    def act(self, action: ActionName) -> None:
        main, conversation = self.main, self.main.conversation
        if action in WRITING and not main.people.may_write:
            self.say(docks.Composer.READ_ONLY, is_trouble=True)
            return
        match action:
            case "stop":
                main.docks.stopping()
                self._command(Interrupt())
            case "hold":
                main.docks.stopping()
                self._command(Interrupt(hold_queue=True))
            case "release":
                self._command(EditQueued(held=False))
            case "continue":
                self._command(SendMessage(content=rows.CONTINUE_MESSAGE))
            case "regenerate":
                self._command(Regenerate())
            case "archive":
                self._command(UpdateConversation(archived=True))
            case "unarchive":
                self._command(UpdateConversation(archived=False))
            case "branch":
                body = CreateConversation(branch=Branch(conversation=conversation))
                begin(self, partial(self._create, body, None), "create")
            case "edit":
                main.edit()
            case "end":
                main.transcript.go_to_end()
            case "start":
                main.transcript.action_to_start()
            case "plan":
                main.docks.open_plan()
            case "processes":
                main.docks.focus_processes()
            case "queue":
                main.docks.focus_queue()
            case "theme":
                self.theme = LIGHT_NAME if self.theme == DARK_NAME else DARK_NAME
                self.remembered.choose_theme(self.theme)
            case "copy_id":
                self.post_message(Copy(conversation))
            case "copy_answer":
                self.post_message(Copy(main.last_answer()))
            case "next_region" | "previous_region":
                main.action_region(1 if action == "next_region" else -1)
            case "quit":
                begin(self, self.action_quit, "quit")
            case _:
                begin(self, partial(self.opening, partial(self._open_screen, action)), "screens", newest=True)

    def _command(self, command: Interrupt | EditQueued | SendMessage | Regenerate | UpdateConversation) -> None:
        if self.main.conversation:
            self.post_message(Order(self.main.conversation, command))

    async def _open_screen(self, action: ActionName) -> None:
        """The screens that are opened by name."""
        unread = await self._unread() if action == "list" else frozenset[str]()
        where = Where(self.client, self.clock, self.main.state, self.main.people, unread)
        sheet = screen_for(action, where)
        if sheet is not None:
            await self.push_screen(sheet)

    async def _unread(self) -> frozenset[str]:
        """What changed since it was read here; what never was is not counted."""
        try:
            async with asyncio.timeout(UNREAD_S):
                listings = await self.client.conversations(200)
        except (PalaverError, TimeoutError):
            return frozenset()
        seen = self.remembered.last_read_seq
        return frozenset(row.id for row in listings if row.seq > (seen(row.id) or row.seq))
