"""An approval: what exactly would run, what could go wrong, and the choices with their keys. And its sister: a limit of
spending is reached, and goes on or not.

Shown by the request dock and by the inbox, each in its own place.
"""

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from palaver.clock import Clock
from palaver.core.text.approval_text import Reading, Shown, approval_lines, offer_text
from palaver.schema.base import Scope
from palaver.schema.commands import DecideTools, ResolveRequest, ToolDecision
from palaver.tui.docks.card import RequestCard, digit_key
from palaver.tui.docks.choices import Choice, Choices
from palaver.tui.docks.keyline import Key
from palaver.tui.docks.reader import Reader
from palaver.tui.docks.request_choice import Asked, as_json, line_of, wider_scopes
from palaver.tui.keys import Digit
from palaver.tui.text import docks
from palaver.tui.text.safe import visible
from palaver.tui.transcript.calls import kind_of


class ApprovalCard(RequestCard):
    DEFAULT_CSS = """
    ApprovalCard {
        #together { height: auto; max-height: 38vh; scrollbar-size-vertical: 1; }
        #edited { height: auto; max-height: 8; }
        .label { height: auto; color: $ink-soft; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "note", show=False),
        Binding("s", "stop", show=False),
        Binding("e", "edit", show=False),
        Binding("a", "together", show=False),
        Binding("left", "turn(-1)", show=False),
        Binding("right", "turn(1)", show=False),
        Binding("ctrl+s,ctrl+enter", "run_edited", show=False, priority=True),
    ]

    def __init__(self, asked: Asked, clock: Clock) -> None:
        super().__init__(asked, clock)
        self._stage = ""

    def lines(self) -> list[Shown]:
        return approval_lines(self.asked.request.preview, self.asked.request.input)

    @property
    def wider(self) -> list[Scope]:
        return wider_scopes(self.asked.request)

    @property
    def is_plain(self) -> bool:
        """One place to allow it, and nothing to say of what that covers, need no further question."""
        return len(self.wider) == 1 and not self.asked.request.offers

    def choices(self) -> list[Key]:
        said = docks.Approval
        always = said.SCOPE[self.wider[0]] if self.wider and self.is_plain else said.ALWAYS
        return [
            digit_key(self, 1, said.ONCE, allows=True),
            *([digit_key(self, 2, always, allows=True)] if self.wider else []),
            digit_key(self, 3, said.DENY),
        ]

    def more_choices(self) -> list[Key]:
        said, heard = docks.Approval, self.is_heard
        return [
            Key("N", said.DENY_NOTE, self.action_note, heard),
            Key("S", said.DENY_STOP, self.action_stop, heard),
            *([Key("E", said.EDIT, self.action_edit, heard)] if self.asked.is_editable else []),
            *([Key("A", f"{said.ALL_YES} …", self.action_together, heard)] if len(self.together) > 1 else []),
            *self.turning(),
        ]

    def answer(self, digit: Digit) -> None:
        if self._stage == "together" and self.has_stage:
            if digit != 2:
                self._decide_all(accepted=digit == 1)
        elif digit == 1:
            self._allow("once")
        elif digit == 3:
            self.reply(ResolveRequest(request=self.asked.request.id, verdict="deny"))
        elif self.wider and self.is_plain:
            self._allow(self.wider[0])
        elif self.wider and self.is_heard:
            self.call_next(self._ask_how_long)

    def _allow(self, scope: Scope, offer: int = 0, given: Any = None) -> None:
        request = self.asked.request.id
        self.reply(ResolveRequest(request=request, verdict="allow", scope=scope, offer=offer, input=given))

    # -- a lasting yes: to what, and where

    async def _ask_how_long(self) -> None:
        said, offers = docks.Approval, self.asked.request.offers
        self._stage = "always"
        where = Choices([Choice(said.WHERE[scope]) for scope in self.wider], chosen=[0], id="where")
        asked = [Static(Content(said.ALWAYS_WHERE), classes="label"), where]
        if not offers:
            await self.open_stage(*asked, focus=where)
            return
        covered = [Choice(offer_text(offer.label, offer.match)) for offer in offers]
        what = Choices(covered, chosen=[0], id="what")
        await self.open_stage(Static(Content(said.ALWAYS_WHAT), classes="label"), what, *asked, focus=what)

    def on_choices_ready(self, event: Choices.Ready) -> None:
        event.stop()
        what = self.query("#what").results(Choices)
        offer = next((one.chosen[0] for one in what), 0)
        self._allow(self.wider[self.query_one("#where", Choices).chosen[0]], offer)

    # -- a no with words

    async def action_note(self) -> None:
        if self.is_heard:
            self._stage = "note"
            note = Input(placeholder=docks.Approval.NOTE_LABEL, id="note")
            await self.open_stage(note, focus=note)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if said := event.value.strip():
            self.reply(ResolveRequest(request=self.asked.request.id, verdict="deny", text=said))

    def action_stop(self) -> None:
        self.reply(ResolveRequest(request=self.asked.request.id, verdict="deny", then="stop"))

    # -- other arguments than those that were asked for

    async def action_edit(self) -> None:
        if not (self.asked.is_editable and self.is_heard):
            return
        self._stage = "edit"
        area = TextArea(self._command() or as_json(self.asked.request.input), id="edited", soft_wrap=True, compact=True)
        await self.open_stage(Static(Content(docks.Approval.EDIT_LABEL), classes="label"), area, focus=area)

    def action_run_edited(self) -> None:
        if self._stage != "edit" or not self.has_stage:
            return
        text, given = self.query_one("#edited", TextArea).text, self.asked.request.input
        if self._command() is not None:
            self._allow("once", given={**given, "command": text})
            return
        try:
            changed: Any = json.loads(text)
        except ValueError as broken:
            self._complain(f"{docks.Approval.EDIT_BROKEN} {broken}")
            return
        if isinstance(changed, dict):
            self._allow("once", given=changed)
        else:
            self._complain(docks.Approval.EDIT_KIND)

    def _complain(self, sentence: str) -> None:
        self.failed = sentence
        self.retell()

    def _command(self) -> str | None:
        """A command is edited as it is typed, everything else as JSON."""
        request = self.asked.request
        command = request.input.get("command") if isinstance(request.input, dict) else None
        return command if request.tool and kind_of(request.tool) == "shell" and isinstance(command, str) else None

    # -- several calls at once: each is named, and an answer covers exactly those that were shown

    async def action_together(self) -> None:
        if len(self.together) < 2 or not self.is_heard:
            return
        self._stage = "together"
        await self.open_stage(Reader(lines_of_all(self.together), id="together"), focus=self)

    @property
    def scrolled(self) -> Reader:
        return next(iter(self.query("#together").results(Reader)), super().scrolled)

    @property
    def reading(self) -> Reading:
        """Of all of them while one answer covers them all."""
        return self.scrolled.reading if self.has_stage and self._stage == "together" else super().reading

    def _decide_all(self, *, accepted: bool) -> None:
        calls = [one.request.call for one in self.together if one.request.call]
        decisions = tuple(ToolDecision(call=call, accepted=accepted) for call in calls)
        self.order(DecideTools(decisions=decisions, accepted=accepted))

    def stage_keys(self) -> list[Key]:
        said, back = docks.Approval, super().stage_keys()
        match self._stage:
            case "always":
                return [Key("Enter", said.ALWAYS_YES), Key("Tab", said.ALWAYS_WHERE), *back]
            case "note":
                return [Key("Enter", said.NOTE_SEND), *back]
            case "edit":
                return [Key("Ctrl+S", said.EDIT_SEND, self.action_run_edited), *back]
            case "together":
                many = f"{said.ALL_YES} {len(self.together)}"
                return [digit_key(self, 1, many, allows=True), digit_key(self, 3, said.ALL_NO), *back]
            case _:
                return back


def lines_of_all(asked: Sequence[Asked]) -> list[Shown]:
    """Several approvals, each whole under its number."""
    lines: list[Shown] = []
    for at, one in enumerate(asked, 1):
        lines.append(Shown("head", (f"{at}  {line_of(one.request, one.agent)}",)))
        lines += approval_lines(one.request.preview, one.request.input)
    return lines


class MoneyCard(RequestCard):
    """How much it was, how far a yes goes, and the two answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", show=False),
        Binding("right", "turn(1)", show=False),
    ]

    def compose_body(self) -> ComposeResult:
        if preview := self.asked.request.preview:
            yield Static(Content(visible(preview)))

    def choices(self) -> list[Key]:
        return [
            digit_key(self, 1, docks.Approval.SPEND_YES, allows=True),
            digit_key(self, 3, docks.Approval.SPEND_NO),
        ]

    def more_choices(self) -> list[Key]:
        return self.turning()

    def answer(self, digit: Digit) -> None:
        if digit != 2:
            self.reply(ResolveRequest(request=self.asked.request.id, verdict="allow" if digit == 1 else "deny"))
