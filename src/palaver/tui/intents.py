"""What a person wants, as Textual messages: posted by the docks and the screens, carried out by the app.

Docks and screens never call the client for anything that changes something; they post one of these and the app wires it:

- `Send`            a message; the app keeps it while there is no connection ("will send when connected")
- `Order`           any other command of `palaver.schema.commands` for one conversation
- `Begin`           a new conversation; the app creates it and opens it
- `OpenConversation`, `JumpTo`, `ViewAt`    where to look
- `Act`             one of the named actions, from a key or from the palette; the list of them is `ActionName`
- `Read`            a text in full, on a screen of its own
- `TrustSettings`, `KeepSettingsOff`        what was decided about the settings of a folder
- `Copy`            text for the clipboard of the person's terminal
- `Notice`          the title of the window, and whether the bell rings
- `Say`             one line for the person, never a storm of them

An intent that may be refused carries `refused`: the app calls it with a sentence for a person, and the one who posted it
shows that where the answer was given. Without one the app says it itself, unless the intent is `quiet`. `accepted` is called
with the server's answer.

Orders for one conversation are carried out one after the other, as they were posted: a message of the queue is held, changed
and let go, a draft is set and cleared, and the last word must be the last to arrive.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from textual.message import Message

from palaver.schema.base import Delivery
from palaver.schema.commands import Accepted, Command, CreateConversation
from palaver.schema.content import Content, as_content, plain_text
from palaver.tui.docks.attachments import Attachment
from palaver.tui.transcript.full_text import Whole

Refused = Callable[[str], None]
"""Takes what the server said, or why it was not reached, as a sentence for a person."""

Heard = Callable[[Accepted], None]
"""Takes the server's answer to a command that is on disk. `applied` is false where somebody was faster."""

ActionName = Literal[
    "new",
    "list",
    "stop",
    "hold",
    "release",
    "continue",
    "regenerate",
    "edit",
    "find",
    "search",
    "end",
    "start",
    "plan",
    "processes",
    "trust",
    "queue",
    "files",
    "inspector",
    "export",
    "rename",
    "branch",
    "archive",
    "unarchive",
    "delete",
    "mode",
    "agent",
    "waiting",
    "agents",
    "backends",
    "palette",
    "keys",
    "theme",
    "copy_id",
    "copy_answer",
    "next_region",
    "previous_region",
    "quit",
]
"""Everything that has a name in the palette. Which of them make sense now: `palaver.tui.screens.actions`."""


class Intent(Message):
    """The common kind, so that an app may log or refuse all of them in one place."""

    def __init__(self) -> None:
        super().__init__()
        # Textual stops a message at the widget whose handler made it; an intent goes on to the app, wherever it began.
        self._sender = None


class Send(Intent):
    """A message for a conversation: `turn` sends or queues it, `boundary` steers the running turn."""

    def __init__(
        self,
        conversation: str,
        content: str | Content,
        delivery: Delivery = "turn",
        *,
        priority: bool = False,
        merge: bool = False,
        held: bool = False,
        agent: str | None = None,
        mode: str | None = None,
        images: Sequence[Attachment] = (),
        refused: Refused | None = None,
    ) -> None:
        """`merge`: it shares a turn with others that wait. `held`: it waits in the queue until it is let go. `agent`, `mode`:
        its own, where they are not the conversation's. `images`: of this machine, to be uploaded before it goes."""
        super().__init__()
        self.conversation = conversation
        self.images = tuple(images)
        self.content = content
        self.delivery = delivery
        self.priority = priority
        self.merge = merge
        self.held = held
        self.agent = agent
        self.mode = mode
        self.refused = refused

    @property
    def text(self) -> str:
        """What it says, for a row that shows it on its way."""
        return plain_text(as_content(self.content))


class Order(Intent):
    """A command: an answer to a request, a change of the queue, a draft, a title, an interruption.

    `quiet` ones are not worth a word when they fail: a draft, or letting go of what is gone.
    """

    def __init__(
        self,
        conversation: str,
        command: Command,
        *,
        accepted: Heard | None = None,
        refused: Refused | None = None,
        quiet: bool = False,
    ) -> None:
        super().__init__()
        self.conversation = conversation
        self.command = command
        self.accepted = accepted
        self.refused = refused
        self.quiet = quiet


class Begin(Intent):
    """Make a conversation and open it."""

    def __init__(self, body: CreateConversation, *, refused: Refused | None = None) -> None:
        super().__init__()
        self.body = body
        self.refused = refused


class OpenConversation(Intent):
    """Show this conversation; with `message` (and its seq, for paging) at that message, `words` marked."""

    def __init__(
        self, conversation: str, *, message: str | None = None, seq: int | None = None, words: str = ""
    ) -> None:
        super().__init__()
        self.conversation = conversation
        self.message = message
        self.seq = seq
        self.words = words


class JumpTo(Intent):
    """Show a message of the open conversation. `words` are what was looked for, to be marked."""

    def __init__(self, message: str, seq: int, *, words: str = "") -> None:
        super().__init__()
        self.message = message
        self.seq = seq
        self.words = words


class ViewAt(Intent):
    """Show the open conversation as it was after `seq`; None: as it is."""

    def __init__(self, seq: int | None) -> None:
        super().__init__()
        self.seq = seq


class Act(Intent):
    """Do what this name says, with the conversation that is shown."""

    def __init__(self, action: ActionName) -> None:
        super().__init__()
        self.action = action


class Read(Intent):
    """Show a text in full, of which a row shows a part."""

    def __init__(self, whole: Whole) -> None:
        super().__init__()
        self.whole = whole


class TrustSettings(Intent):
    """Let a program read these settings of a folder; without a hash, no longer."""

    def __init__(
        self, project: str, program: str, hash: str | None, *, accepted: Callable[[], None], refused: Refused
    ) -> None:
        super().__init__()
        self.project = project
        self.program = program
        self.hash = hash
        self.accepted = accepted
        self.refused = refused


class KeepSettingsOff(Intent):
    """Say no more of the folder's settings that are off, for as long as they are what they are."""


class Copy(Intent):
    """To the clipboard. Only what a person chose to copy, never what a model asks to be copied."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class Notice(Intent):
    """How the conversation stands, for someone who looks elsewhere."""

    def __init__(self, title: str, *, rings: bool = False) -> None:
        super().__init__()
        self.title = title
        self.rings = rings


class Say(Intent):
    """One line for the person: that something was done, or was not and what to do."""

    def __init__(self, words: str, *, is_trouble: bool = False) -> None:
        super().__init__()
        self.words = words
        self.is_trouble = is_trouble
