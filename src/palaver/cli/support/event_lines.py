"""Events told as they come: the answer as text, everything beside it in one line each.

Called by `send`, which tells of one turn, and by `tail`, which tells of all. The words of others are made harmless, in
whatever pieces they come; only the answer of `send` in a pipe is exactly as it is.
"""

import sys
from collections.abc import Callable, Iterable

from palaver.cli.support.conversation_text import readable_text, tool_line
from palaver.cli.support.output import note
from palaver.client.safe_text import Scrubber, one_line, prose
from palaver.schema.events import (
    Event,
    FilesChanged,
    ModelSwitched,
    PlanUpdated,
    ProcessFinished,
    ProcessStarted,
    RequestResolved,
    SubagentFinished,
    SubagentStarted,
    TextDelta,
    TextFinished,
    ToolCalled,
    ToolFinished,
    TurnStatus,
)

SETTLED = {"expired": "expired", "cancelled": "cancelled", "superseded": "no longer asked"}


class Teller:
    """`say` takes a line about what happens; text goes to standard output, scrubbed or exactly as it is."""

    def __init__(self, say: Callable[[str], None] = note, *, scrubs: bool = True) -> None:
        self._say = say
        self._streamed: dict[tuple[str, int], list[str]] = {}
        self._names: dict[str, str] = {}
        self._scrubber = Scrubber()
        self._held = ""
        self._scrubs = scrubs
        self._mid_line = False

    def tell(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._stream(event)
            case TextFinished():
                self._finish(event)
            case ToolCalled():
                self._names[event.call] = event.name
                self.aside(tool_line(event.name, event.input))
            case ToolFinished() if not event.ok:
                reason = one_line(event.error.message) if event.error is not None else "no reason given"
                self.aside(f"✗ {one_line(self._names.get(event.call, 'tool'), 60)} failed: {reason}")
            case TurnStatus() if event.retry is not None:
                retry = event.retry
                reason = one_line(retry.reason)
                self.aside(f"retrying in {retry.after_s:.0f} s ({retry.attempt} of {retry.of}): {reason}")
            case _:
                self._tell_of_work(event)

    def _tell_of_work(self, event: Event) -> None:
        match event:
            case SubagentStarted():
                self.aside(f"▸ subagent {one_line(event.agent, 60)}: {one_line(event.task, 100)}")
            case SubagentFinished() if event.outcome != "completed":
                self.aside(f"✗ subagent {event.outcome}")
            case FilesChanged():
                paths = ", ".join(one_line(file.path, 80) for file in event.files[:5])
                self.aside(f"▸ changed {paths}{' …' if len(event.files) > 5 else ''}")
            case PlanUpdated() if event.plan is not None:
                done = sum(item.status == "done" for item in event.plan.items)
                self.aside(f"▸ plan: {one_line(event.plan.summary, 80)} ({done} of {len(event.plan.items)} done)")
            case ProcessStarted():
                self.aside(f"▸ in the background: {one_line(event.command, 100)}")
            case ProcessFinished():
                self.aside(f"▸ background process ended ({event.end})")
            case ModelSwitched():
                self.aside(f"▸ now {one_line(event.to_model, 60)}: {one_line(event.reason, 100)}")
            case RequestResolved():
                self.aside(f"▸ {SETTLED.get(event.status) or answer_line(event)}")
            case _:
                pass

    def _stream(self, event: TextDelta) -> None:
        pieces = self._streamed.setdefault((event.message, event.block), [])
        begins = not pieces
        pieces.append(event.text)
        # For a reader a text that may be a structured answer is held back until it is known whether it is one.
        if self._scrubs and (begins or self._held):
            self._held += event.text
            if not self._held.strip() or self._held.lstrip().startswith("{"):
                return
            text, self._held = self._held, ""
        else:
            text = event.text
        self._write(self._scrubber.feed(text) if self._scrubs else text)

    def aside(self, line: str) -> None:
        """A line of its own: not in the middle of the answer."""
        if self._mid_line and sys.stdout.isatty():
            self._write("\n")
        self._say(line)

    def rest(self) -> None:
        """Nothing more comes for now: a line that was begun is ended."""
        held, self._held = self._held, ""
        self._write(prose(held))
        if self._mid_line:
            self._write("\n")

    def missed(self, texts: Iterable[str]) -> None:
        """Words that came as a whole, with a snapshot."""
        self._write("\n".join(readable_text(text) if self._scrubs else text for text in texts) + "\n")

    def _finish(self, event: TextFinished) -> None:
        # A compacted replay has only the whole text, or with it the first of its deltas.
        pieces = self._streamed.pop((event.message, event.block), None)
        is_untold, self._held = pieces is None or bool(self._held), ""
        if is_untold:
            self._write(readable_text(event.text) if self._scrubs else event.text)
        else:
            streamed = "".join(pieces or ())
            rest = event.text[len(streamed) :] if event.text.startswith(streamed) else ""
            self._write(self._scrubber.feed(rest) + self._scrubber.finish() if self._scrubs else rest)
        if self._mid_line:
            self._write("\n")
        self._scrubber = Scrubber()

    def _write(self, text: str) -> None:
        if not text:
            return
        sys.stdout.write(text)
        sys.stdout.flush()
        self._mid_line = not text.endswith("\n")


def answer_line(event: RequestResolved) -> str:
    who = event.origin.user if event.origin and event.origin.user else "somebody"
    words = {"allow": "allowed", "deny": "denied"}.get(event.verdict or "", "answered")
    return f"{words} by {one_line(who, 60)}"
