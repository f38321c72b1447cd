"""Writing into a conversation: send at rest, queue while the agent works, steer where it can be steered.

Mounted once; told with `show(state)` and `show_connection(…)`. What is written is kept on the server as the conversation's
draft a moment after the last key, and at once when one leaves. A message of the queue is edited here too, and one's own of
the transcript. The path of an image that is pasted is an image to be sent. Posts `Send`, `Order`, `Act`; calls nothing but
the source of file names it was given.
"""

from dataclasses import dataclass
from functools import partial

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea
from textual.worker import Worker

from palaver.clock import Clock
from palaver.schema.base import Delivery
from palaver.schema.commands import ClearDraft, EditQueued, SetDraft
from palaver.schema.view import QueueItem, State
from palaver.tui.background import begin, defect_in
from palaver.tui.connection import Connection
from palaver.tui.docks.attachments import Attached, Attachment, images_in
from palaver.tui.docks.completion import CommandSource, FileSource
from palaver.tui.docks.completion_list import Completing
from palaver.tui.docks.draft import Draft
from palaver.tui.docks.edits import Edited, OfQueue
from palaver.tui.docks.keyline import Key, KeyLine
from palaver.tui.docks.prompt import Prompt
from palaver.tui.docks.queue_pause import is_paused
from palaver.tui.intents import Act, ActionName, Order, Send
from palaver.tui.text import docks, words
from palaver.tui.text.safe import prose, visible

MESSAGE_BYTES = 1024 * 1024
"""The server's bound on a message."""
DRAFT_PAUSE_S = 1.0
"""A draft is saved when the hands rest, not with every key."""
LONG_PASTE_LINES = 20
"""A paste that is not all in sight is said in words."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The focus is in another region, where other keys are heard."""

    keys: tuple[Key, ...] = ()
    leaves: bool = False
    """Esc only leaves it; else it stops the agent from there too."""
    is_written: bool = False
    """A letter is written there."""


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

    class Editing(Message):
        """Another message of the queue is edited here now, or none."""

    def __init__(self, clock: Clock, commands: CommandSource | None = None, files: FileSource | None = None) -> None:
        super().__init__()
        self._clock = clock
        self.prompt = Prompt(
            placeholder=docks.Composer.PLACEHOLDER, compact=True, highlight_cursor_line=False, classes="region"
        )
        self._completing = Completing(self.prompt, commands, files)
        self._attached = Attached()
        self._left_images: dict[str, tuple[Attachment, ...]] = {}
        """Of conversations that were left: an image is of this machine, so it waits here, not with the draft."""
        self._state = State()
        self._connection = Connection("open")
        self._draft = Draft()
        self._editing: Edited | None = None
        self._set_aside = ""
        self._notice = ""
        self._refusal = ""
        self._said_of = ""
        self._read_only = ""
        self.elsewhere: Elsewhere | None = None

    def compose(self) -> ComposeResult:
        yield Static(classes="mode")
        yield self._completing
        yield self._attached
        with Horizontal(classes="line"):
            yield Static(Content(">"), classes="sign")
            yield self.prompt
        yield Static(classes="notice")
        yield KeyLine(is_quiet=True, has_one_line=True, classes="hints")

    def on_mount(self) -> None:
        self.prompt.pressed, self.prompt.pasted = self._on_press, self._on_paste
        self.retell()

    @property
    def images(self) -> tuple[Attachment, ...]:
        return self._attached.images

    @property
    def edited_item(self) -> str | None:
        """The message of the queue that is edited here."""
        return self._editing.id if isinstance(self._editing, OfQueue) else None

    def take_focus(self) -> None:
        self.prompt.focus()

    # -- being told

    def show(self, state: State) -> None:
        # Told with every token; drawn only when something of it changed.
        is_same = _told(state) == _told(self._state) and state.queue is self._state.queue
        before, self._state = self._state, state
        if state.conversation != before.conversation:
            self._enter(state, before.conversation)
        elif state.draft != before.draft and self._draft.heard(state.draft, self._written):
            self._load(state.draft)
        if self._editing is not None and not self._editing.is_in(state):
            self._leave_edit(gone=self._editing.gone)
        if not is_same:
            self.retell()

    @property
    def _written(self) -> str | None:
        """What may be the draft; None while something else is edited."""
        return self.prompt.text if self._editing is None else None

    def show_connection(self, connection: Connection) -> None:
        self._connection = connection
        self.retell()

    def read_only(self, because: str) -> None:
        """Nothing can be written, and why; "" when it can."""
        self._read_only = because
        self.prompt.read_only = bool(because)
        self.retell()

    def _enter(self, state: State, left: str) -> None:
        self._editing, self._set_aside, self._notice, self._refusal = None, "", "", ""
        self._completing.forget()
        self._draft = Draft(state.draft)
        if left:
            if self.images:
                self._left_images[left] = self.images
            self._attached.hold(())
            self._load("")
        # Written before the conversation was there, perhaps while it was being opened: it came with the person, and stands
        # where it would stand had one waited.
        written, images = self.prompt.text, self.images
        self._attached.hold(self._left_images.pop(state.conversation, ()))
        self._attached.add(images)
        if state.draft or not written:
            self._load(_after(state.draft, written))

    def leave(self) -> Order | None:
        """Before another conversation is shown, or none: what keeps the words that are written, or lets go of what is held."""
        command = self._editing.cancel() if self._editing is not None else self._unsaved_draft()
        self._editing = None
        return Order(self._state.conversation, command, quiet=True) if command is not None else None

    def _load(self, text: str) -> None:
        self.prompt.load_text(prose(text))
        self.prompt.move_cursor(self.prompt.document.end)

    def retell(self) -> None:
        if not self.query(KeyLine):
            return
        busy = self._state.turn is not None
        at_rest = docks.Composer.PLACEHOLDER if self._state.conversation else docks.Composer.PLACEHOLDER_FRESH
        self.prompt.placeholder = docks.Composer.PLACEHOLDER_BUSY if busy else at_rest
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
            return docks.Composer.too_long(words.size(size)), True
        if self._refusal:
            return self._refusal, True
        if self._editing is not None:
            return self._editing.hint, False
        if not self._connection.is_open and self._connection.kind != "connecting":
            return docks.Composer.OFFLINE, False
        return self._notice, False

    def _hints(self) -> list[Key]:
        said, busy = docks.Composer, self._state.turn is not None
        if self.elsewhere is not None:
            return self._hints_of(self.elsewhere)
        if self._editing is not None:
            save = Key("Enter", self._editing.save_label, self._submit)
            return [save, Key("Esc", docks.Queue.CANCEL, self._cancel_edit)]
        if self._read_only:
            return [Key("Ctrl+K", said.COMMANDS, partial(self._act, "palette"))]
        waits = any(not item.held for item in self._state.queue)
        steer = busy and self._state.turn is not None and self._state.turn.steerable
        return [
            Key("Enter", said.QUEUE if busy else said.SEND, self._submit),
            *([Key("Ctrl+S", said.STEER, lambda: self._submit("boundary"))] if steer else []),
            *([Key("Esc", said.STOP, partial(self._act, "stop"))] if busy else []),
            *([Key("Ctrl+G", said.HOLD, partial(self._act, "hold"))] if busy and waits else []),
            *([Key("Backspace", said.REMOVE_IMAGE, self._remove_image)] if self.images else []),
            Key("Ctrl+J", said.NEWLINE, lambda: self.prompt.insert("\n")),
            Key("Ctrl+K", said.COMMANDS, partial(self._act, "palette")),
            *(
                [Key("/mode", words.Modes.NAMES[self._mode], partial(self._act, "mode"))]
                if self._state.conversation
                else []
            ),
        ]

    def _hints_of(self, elsewhere: Elsewhere) -> list[Key]:
        said, keys = docks.Composer, elsewhere.keys
        if elsewhere.is_written:
            return [Key("Ctrl+K", said.COMMANDS, partial(self._act, "palette"))]
        stops = self._state.turn is not None and not elsewhere.leaves and not self._read_only
        return [
            *keys[:2],
            *([] if self._read_only else [Key("I", said.WRITE, self.take_focus)]),
            *([Key("Esc", said.STOP, partial(self._act, "stop"))] if stops else []),
            *keys[2:],
            Key("?", said.KEYS, partial(self._act, "keys")),
        ]

    def _act(self, action: ActionName) -> None:
        self.post_message(Act(action))

    # -- writing

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        event.stop()
        if self.prompt.text != self._said_of:
            self._notice = self._refusal = ""
        if self._editing is None and not self._draft.is_saved(self.prompt.text):
            begin(self, self._save_later, "draft", newest=True)
        self._completing.suggest()
        self.retell()

    def _on_paste(self, pasted: str) -> None:
        if (size := _size(pasted)) > MESSAGE_BYTES:
            self._tell(refusal=docks.Composer.too_long(words.size(size)))
        elif self._editing is None and (images := images_in(pasted)):
            self._tell(refusal=self._attached.add(images))
        else:
            # What is pasted may hold the same tricks as what a model writes.
            text = prose(pasted.replace("\r\n", "\n").replace("\r", "\n"))
            self.prompt.replace(text, *self.prompt.selection)
            lines = text.count("\n") + 1
            if lines > LONG_PASTE_LINES:
                self._tell(docks.Composer.pasted(lines, words.size(size)))
        self.retell()

    def _tell(self, notice: str = "", refusal: str = "") -> None:
        """Said of what is written now; gone with the next change of it."""
        self._notice, self._refusal, self._said_of = notice, refusal, self.prompt.text
        self.retell()

    def _on_press(self, pressed: str) -> None:
        choosing = self._completing.display
        match pressed:
            case "backspace":
                self._remove_image()
            case "up" if not choosing:
                self.post_message(self.EditLast())
            case "up" | "down":
                self._completing.move(-1 if pressed == "up" else 1)
            case "escape":
                self._completing.close()
            case "tab":
                self._take_suggestion()
            case "enter" if choosing:
                self._take_suggestion()
            case "enter":
                self._submit()
            case _:
                self._submit("boundary")

    def _take_suggestion(self) -> None:
        if action := self._completing.take():
            self._act(action)

    def _remove_image(self) -> None:
        if self._attached.remove_last():
            self.retell()

    def _submit(self, delivery: Delivery = "turn") -> None:
        text, images = self.prompt.text, self.images
        if not (text.strip() or images) or _size(text) > MESSAGE_BYTES or self._read_only:
            return
        if self._editing is not None:
            self._save_edit(self._editing, text)
            return
        turn = self._state.turn
        steers = delivery == "boundary" and turn is not None and turn.steerable
        conversation = self._state.conversation
        refused = partial(self._not_sent, conversation, text, images)
        said = text if text.strip() else ""
        self.post_message(Send(conversation, said, "boundary" if steers else "turn", images=images, refused=refused))
        self._attached.hold(())
        self._load("")
        self._save_draft()

    def _not_sent(self, conversation: str, text: str, images: tuple[Attachment, ...], sentence: str) -> None:
        """What was written is not lost with a refusal."""
        if self._state.conversation == conversation and not self.prompt.text:
            self._load(text)
            self._attached.hold(self.images or images)
        self._tell(refusal=words.in_typographic_quotes(sentence))

    # -- the draft

    async def _save_later(self) -> None:
        await self._clock.sleep(DRAFT_PAUSE_S)
        self._save_draft()

    def _save_draft(self) -> None:
        self._order(self._unsaved_draft())

    def _unsaved_draft(self) -> SetDraft | ClearDraft | None:
        is_draft = self._state.conversation and self._editing is None
        return self._draft.save(self.prompt.text) if is_draft else None

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if defect := defect_in(event):
            self.log.error(event.worker.error)
            self.post_message(defect)

    def _order(self, command: SetDraft | ClearDraft | EditQueued | None) -> None:
        if command is not None:
            self.post_message(Order(self._state.conversation, command, quiet=True))

    # -- a message that was sent before

    def begin_edit(self, what: Edited | QueueItem) -> None:
        """Let the person change it here; one of the queue is held back on the server meanwhile."""
        edited = OfQueue(what, what.held and is_paused(self._state)) if isinstance(what, QueueItem) else what
        if self._editing is not None and self._editing.id == edited.id:
            # What was changed so far is not begun anew.
            self.take_focus()
            return
        if self._editing is not None:
            self._cancel_edit()
        self._save_draft()
        self._set_aside, self._editing = self.prompt.text, edited
        self._order(edited.begin())
        self._load(edited.text)
        self.take_focus()
        self.post_message(self.Editing())
        self.retell()

    def _save_edit(self, edited: Edited, text: str) -> None:
        conversation = self._state.conversation
        refused = partial(self._not_edited, conversation, text, edited)
        self.post_message(Order(conversation, edited.save(text), refused=refused))
        self._leave_edit()

    def _not_edited(self, conversation: str, text: str, edited: Edited, sentence: str) -> None:
        """One of the queue left before the change arrived."""
        self._not_sent(conversation, text, (), edited.gone if isinstance(edited, OfQueue) else sentence)

    def _cancel_edit(self) -> None:
        if self._editing is not None:
            self._order(self._editing.cancel())
            self._leave_edit()

    def _leave_edit(self, *, gone: str = "") -> None:
        """Back to what was being written before; `gone`: it is not there any more, and the words stay with the person."""
        self._editing, aside, self._set_aside = None, self._set_aside, ""
        if gone and not aside:
            self._tell(gone)
        else:
            self._load(aside)
        self.post_message(self.Editing())
        self.retell()

    def escape(self) -> bool:
        """Whether Esc closed something here."""
        if self._completing.display:
            self._completing.close()
        elif self._editing is not None:
            self._cancel_edit()
        else:
            return False
        return True


def _after(draft: str, written: str) -> str:
    """Words of two moments do not run together."""
    is_parted = not draft or not written or draft[-1].isspace() or written[0].isspace()
    return f"{draft}{written}" if is_parted else f"{draft} {written}"


def _told(state: State) -> tuple[object, ...]:
    """What of a view changes what the composer says."""
    turn = (state.turn.id, state.turn.steerable) if state.turn else None
    return state.conversation, state.draft, state.params.get("mode"), turn


def _size(text: str) -> int:
    """Bytes on the wire. Counting is only worth it near the bound: a character is at most four bytes."""
    return len(text) if len(text) * 4 < MESSAGE_BYTES else len(text.encode(errors="replace"))
