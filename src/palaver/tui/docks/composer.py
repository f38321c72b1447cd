"""Writing into a conversation: send at rest, queue while the agent works, steer where it can be steered.

Mounted once; told with `show(state)` and `show_connection(…)`. What is written is kept on the server as the conversation's
draft a moment after the last key, and at once when one leaves. A message of the queue is edited here too, held back on the
server until it is saved. Posts `Send`, `Order`, `Act`; calls nothing but the source of file names it was given.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea
from textual.worker import Worker

from palaver.clock import Clock
from palaver.errors import PalaverError
from palaver.schema.base import Delivery
from palaver.schema.commands import ClearDraft, EditQueued, SetDraft
from palaver.schema.content import ImagePart, Part, TextPart, plain_text
from palaver.schema.view import QueueItem, State
from palaver.tui import words
from palaver.tui.connection import Connection
from palaver.tui.docks.completion import (
    CommandSource,
    FileSource,
    Suggestion,
    Suggestions,
    at_word,
    commands_like,
    files_like,
    folder_of,
    slash_word,
)
from palaver.tui.docks.keyline import Key, KeyLine
from palaver.tui.docks.prompt import Prompt
from palaver.tui.intents import Act, ActionName, Order, Send
from palaver.tui.newest import defect_in, run_newest
from palaver.tui.safe import prose, visible

MESSAGE_BYTES = 1024 * 1024
"""The server's bound on a message."""
DRAFT_PAUSE_S = 1.0
"""A draft is saved when the hands rest, not with every key."""
OWN_DRAFTS = 8
"""More than can be on their way at once."""
LONG_PASTE_LINES = 20
"""A paste that is not all in sight is said in words."""
FILES_S = 3.0
"""Names of files that come later than this are not waited for."""


class Composer(Vertical):
    DEFAULT_CSS = """
    Composer {
        height: auto; border-top: solid $line;
        &:focus-within { border-top: solid $line-strong; }
        .line { height: auto; padding: 0 1; }
        .sign { width: 2; color: $live; text-style: bold; }
        Prompt {
            height: auto; min-height: 1; max-height: 8; width: 1fr; border: none; padding: 0; background: $background;
            scrollbar-size-vertical: 1;
            &:focus { border: none; background: $background; }
            .text-area--placeholder { color: $ink-faint; }
            .text-area--cursor-line { background: $background; }
        }
        .mode { height: 1; padding: 0 1 0 3; color: $wait; text-wrap: nowrap; text-overflow: ellipsis; }
        .mode.is-bad { color: $bad; text-style: bold; }
        .notice { height: auto; padding: 0 1 0 3; color: $wait; }
        .notice.is-bad { color: $bad; }
        .hints { height: 1; padding: 0 1 0 3; color: $ink-faint; }
    }
    """

    class EditLast(Message):
        """Up in an empty prompt."""

    def __init__(self, clock: Clock, commands: CommandSource | None = None, files: FileSource | None = None) -> None:
        super().__init__()
        self._clock = clock
        self._commands = commands
        self._files = files
        self._entries: dict[str, list[str]] = {}
        self._state = State()
        self._connection = Connection("open")
        self._saved_draft = ""
        """What the server has, or is about to have, as far as is known here."""
        self._own_drafts: list[str] = []
        """Told to the server, and not yet heard back from it."""
        self._editing: QueueItem | None = None
        self._set_aside = ""
        self._notice = ""
        self._refusal = ""
        self._said_of = ""
        self._read_only = ""

    def compose(self) -> ComposeResult:
        yield Static(classes="mode")
        yield Suggestions()
        with Horizontal(classes="line"):
            yield Static(Content(">"), classes="sign")
            yield Prompt(
                placeholder=words.Composer.PLACEHOLDER, compact=True, highlight_cursor_line=False, classes="region"
            )
        yield Static(classes="notice")
        yield KeyLine(is_quiet=True, has_one_line=True, classes="hints")

    def on_mount(self) -> None:
        self.prompt.pressed, self.prompt.pasted = self._pressed, self._pasted
        self.retell()

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    @property
    def editing(self) -> QueueItem | None:
        return self._editing

    def take_focus(self) -> None:
        self.prompt.focus()

    # -- being told

    def show(self, state: State) -> None:
        # Told with every token; drawn only when something of it changed.
        is_same = _told(state) == _told(self._state) and state.queue is self._state.queue
        before, self._state = self._state, state
        if state.conversation != before.conversation:
            self._enter(state, was_nowhere=not before.conversation)
        elif state.draft != before.draft:
            self._take_draft(state.draft)
        if self._editing is not None and all(item.id != self._editing.id for item in state.queue):
            self._leave_edit(keep=True)
        if not is_same:
            self.retell()

    def _take_draft(self, draft: str) -> None:
        """Changed on another device, unless it is our own coming back; what is being written here is never replaced."""
        if draft in self._own_drafts:
            del self._own_drafts[: self._own_drafts.index(draft) + 1]
        elif self._editing is None and self.prompt.text == prose(self._saved_draft):
            self._saved_draft = draft
            self._load(draft)

    def show_connection(self, connection: Connection) -> None:
        self._connection = connection
        self.retell()

    @property
    def is_read_only(self) -> bool:
        return bool(self._read_only)

    def read_only(self, because: str) -> None:
        """Nothing can be written, and why; "" when it can."""
        self._read_only = because
        self.prompt.read_only = bool(because)
        self.retell()

    def insert(self, text: str) -> None:
        """Words from elsewhere (a message to be edited and sent again) for the person to go on with."""
        self._load(text)
        self.take_focus()

    def _enter(self, state: State, *, was_nowhere: bool) -> None:
        self._editing, self._set_aside, self._notice, self._refusal = None, "", "", ""
        self._entries, self._own_drafts = {}, []
        self._saved_draft = state.draft
        # Written before the conversation was there: it came with the person.
        if not (was_nowhere and self.prompt.text and not state.draft):
            self._load(state.draft)

    def leave(self) -> None:
        """Another conversation is about to be shown: keep what is written, let go of what is held."""
        self._release()

    def _release(self) -> None:
        if self._editing is not None:
            self._order(EditQueued(item=self._editing.id, held=False))
            self._editing = None
        else:
            self._save_draft()

    def _load(self, text: str) -> None:
        self.prompt.load_text(prose(text))
        self.prompt.move_cursor(self.prompt.document.end)

    def retell(self) -> None:
        if not self.query(KeyLine):
            return
        busy = self._state.turn is not None
        at_rest = words.Composer.PLACEHOLDER if self._state.conversation else words.Composer.PLACEHOLDER_FRESH
        self.prompt.placeholder = words.Composer.PLACEHOLDER_BUSY if busy else at_rest
        self._tell_mode()
        notice = self.query_one(".notice", Static)
        told, is_bad = self._told()
        notice.update(Content(visible(told)))
        notice.set_class(is_bad, "is-bad")
        notice.display = bool(told)
        self.query_one(".hints", KeyLine).show(self._hints())

    @property
    def _mode(self) -> str:
        mode = self._state.params.get("mode", "ask")
        return mode if mode in words.Modes.NAMES else "ask"

    def _tell_mode(self) -> None:
        """A mode in which less is asked stays in sight."""
        line, banner = self.query_one(".mode", Static), words.Modes.BANNER.get(self._mode, "")
        line.update(Content(banner))
        line.set_class(self._mode == "full", "is-bad")
        line.display = bool(banner)

    def _told(self) -> tuple[str, bool]:
        """What stands below the text, and whether it is in the way of sending."""
        if self._read_only:
            return self._read_only, False
        if (size := _size(self.prompt.text)) > MESSAGE_BYTES:
            return words.Composer.too_long(words.size(size)), True
        if self._refusal:
            return self._refusal, True
        if self._editing is not None:
            return words.Queue.EDITING, False
        if not self._connection.is_open and self._connection.kind != "connecting":
            return words.Composer.OFFLINE, False
        return self._notice, False

    def _hints(self) -> list[Key]:
        said, busy = words.Composer, self._state.turn is not None
        if self._editing is not None:
            return [Key("Enter", words.Queue.SAVE, self._submit), Key("Esc", words.Queue.CANCEL, self._cancel_edit)]
        steer = busy and self._state.turn is not None and self._state.turn.steerable
        return [
            Key("Enter", said.QUEUE if busy else said.SEND, self._submit),
            *([Key("Ctrl+S", said.STEER, lambda: self._submit("boundary"))] if steer else []),
            *([Key("Esc", said.STOP, partial(self._act, "stop"))] if busy else []),
            Key("Ctrl+J", said.NEWLINE, lambda: self.prompt.insert("\n")),
            Key("Ctrl+K", said.COMMANDS, partial(self._act, "palette")),
            *(
                [Key("/mode", words.Modes.NAMES[self._mode], partial(self._act, "mode"))]
                if self._state.conversation
                else []
            ),
        ]

    def _act(self, action: ActionName) -> None:
        self.post_message(Act(action))

    # -- writing

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self.prompt.text != self._said_of:
            self._notice = self._refusal = ""
        if self._editing is None and self.prompt.text != prose(self._saved_draft):
            run_newest(self, self._save_later, "draft")
        self._suggest()
        self.retell()

    def _pasted(self, pasted: str) -> None:
        if (size := _size(pasted)) > MESSAGE_BYTES:
            self._tell(refusal=words.Composer.too_long(words.size(size)))
        else:
            # What is pasted may hold the same tricks as what a model writes.
            text = prose(pasted.replace("\r\n", "\n").replace("\r", "\n"))
            self.prompt.replace(text, *self.prompt.selection)
            lines = text.count("\n") + 1
            if lines > LONG_PASTE_LINES:
                self._tell(words.Composer.pasted(lines, words.size(size)))
        self.retell()

    def _tell(self, notice: str = "", refusal: str = "") -> None:
        """Said of what is written now; gone with the next change of it."""
        self._notice, self._refusal, self._said_of = notice, refusal, self.prompt.text
        self.retell()

    def _pressed(self, pressed: str) -> None:
        choosing = self.query_one(Suggestions)
        match pressed:
            case "up" if not choosing.display:
                self.post_message(self.EditLast())
            case "up" | "down":
                choosing.move(-1 if pressed == "up" else 1)
            case "escape":
                self._offer(())
            case "tab":
                self._take_suggestion()
            case "enter" if choosing.display:
                self._take_suggestion()
            case "enter":
                self._submit()
            case _:
                self._submit("boundary")

    def _submit(self, delivery: Delivery = "turn") -> None:
        text = self.prompt.text
        if not text.strip() or _size(text) > MESSAGE_BYTES or self._read_only:
            return
        if self._editing is not None:
            self._save_edit(self._editing, text)
            return
        turn = self._state.turn
        steers = delivery == "boundary" and turn is not None and turn.steerable
        conversation = self._state.conversation
        refused = partial(self._not_sent, conversation, text)
        self.post_message(Send(conversation, text, "boundary" if steers else "turn", refused=refused))
        self._load("")
        self._save_draft()

    def _not_sent(self, conversation: str, text: str, sentence: str) -> None:
        """What was written is not lost with a refusal."""
        if self._state.conversation == conversation and not self.prompt.text:
            self._load(text)
        self._tell(refusal=words.said(sentence))

    # -- the draft

    async def _save_later(self) -> None:
        await self._clock.sleep(DRAFT_PAUSE_S)
        self._save_draft()

    def _save_draft(self) -> None:
        text = self.prompt.text
        if not self._state.conversation or self._editing is not None or text == prose(self._saved_draft):
            return
        self._saved_draft = text
        self._own_drafts = [*self._own_drafts[-OWN_DRAFTS:], text]
        self._order(SetDraft(text=text) if text else ClearDraft())

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if defect := defect_in(event):
            self.log.error(event.worker.error)
            self.post_message(defect)

    def _order(self, command: SetDraft | ClearDraft | EditQueued) -> None:
        self.post_message(Order(self._state.conversation, command, quiet=True))

    # -- a message of the queue

    def begin_edit(self, item: QueueItem) -> None:
        """Hold it back on the server, and let the person change it here."""
        if self._editing is not None:
            self._cancel_edit()
        self._save_draft()
        self._set_aside, self._editing = self.prompt.text, item
        self._order(EditQueued(item=item.id, held=True))
        self._load(plain_text(item.content))
        self.take_focus()
        self.retell()

    def _save_edit(self, item: QueueItem, text: str) -> None:
        images = tuple(part for part in item.content if isinstance(part, ImagePart))
        content: str | tuple[Part, ...] = (TextPart(text=text), *images) if images else text
        conversation = self._state.conversation
        command = EditQueued(item=item.id, held=False, content=content)
        self.post_message(Order(conversation, command, refused=partial(self._not_edited, conversation, text)))
        self._leave_edit()

    def _not_edited(self, conversation: str, text: str, _: str) -> None:
        """It left before the change arrived."""
        self._not_sent(conversation, text, words.Queue.GONE)

    def _cancel_edit(self) -> None:
        if self._editing is not None:
            self._order(EditQueued(item=self._editing.id, held=False))
            self._leave_edit()

    def _leave_edit(self, *, keep: bool = False) -> None:
        """Back to what was being written before; `keep`: it left the queue, and the words stay with the person."""
        self._editing, aside, self._set_aside = None, self._set_aside, ""
        if keep and not aside:
            self._tell(words.Queue.GONE)
        else:
            self._load(aside)
        self.retell()

    def escape(self) -> bool:
        """Whether Esc closed something here."""
        if self.query_one(Suggestions).display:
            self._offer(())
        elif self._editing is not None:
            self._cancel_edit()
        else:
            return False
        return True

    # -- suggestions

    def _suggest(self) -> None:
        text = self.prompt.text
        if self._commands is not None and (written := slash_word(text)) is not None:
            self._offer(commands_like(written, self._commands()))
            return
        row, column = self.prompt.cursor_location
        begun = at_word(self.prompt.document.get_line(row), column)
        if self._files is None or begun is None:
            self._offer(())
        elif (folder := folder_of(begun[1])) in self._entries:
            found = files_like(begun[1], self._entries[folder])
            self._offer([] if found == [Suggestion(begun[1])] else found)
        else:
            run_newest(self, partial(self._look_into, self._files, folder), "files")

    async def _look_into(self, files: FileSource, folder: str) -> None:
        try:
            async with asyncio.timeout(FILES_S):
                self._entries[folder] = list(await files(folder))
        except (PalaverError, TimeoutError):
            self._offer(())
            return
        self._suggest()

    def _offer(self, suggestions: Sequence[Suggestion]) -> None:
        self.query_one(Suggestions).offer(suggestions)
        self.prompt.is_choosing = bool(suggestions)

    def _take_suggestion(self) -> None:
        chosen = self.query_one(Suggestions).chosen
        self._offer(())
        if chosen is None:
            return
        if chosen.action is not None:
            self._load("")
            self.post_message(Act(chosen.action))
            return
        row, column = self.prompt.cursor_location
        begun = at_word(self.prompt.document.get_line(row), column)
        if begun is not None:
            ending = "" if chosen.text.endswith("/") else " "
            self.prompt.replace(f"@{chosen.text}{ending}", (row, begun[0]), (row, column))


def _told(state: State) -> tuple[object, ...]:
    """What of a view changes what the composer says."""
    turn = (state.turn.id, state.turn.steerable) if state.turn else None
    return state.conversation, state.draft, state.params.get("mode"), turn


def _size(text: str) -> int:
    """Bytes on the wire. Counting is only worth it near the bound: a character is at most four bytes."""
    return len(text) if len(text) * 4 < MESSAGE_BYTES else len(text.encode(errors="replace"))
