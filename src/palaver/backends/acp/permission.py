"""Permissions of ACP agents: an agent's options by their kind, a person's answer by its scope, and what a mode answers.

Pure but for the ids of a turn. Options are picked by kind, never by name: each agent names them differently.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from palaver.backends.acp.content import preview_of
from palaver.backends.acp.link import CANCELLED, Permission
from palaver.backends.acp.translate import Call, shown_input
from palaver.backends.base import Turn
from palaver.schema.base import Scope
from palaver.schema.events import RequestOpened, RequestResolved
from palaver.schema.view import Offer
from palaver.tools.policy import Mode, as_mode
from palaver.tools.proposal import shortened, visible

MODES: dict[Mode, tuple[str, ...]] = {
    "plan": ("plan", "read-only"),
    "ask": ("default", "ask", "workspace-write", "build"),
    "accept_edits": ("acceptEdits", "autoEdit", "accept_edits", "workspace-write"),
    "auto": ("acceptEdits", "autoEdit", "accept_edits", "workspace-write"),
    "full": ("bypassPermissions", "yolo", "agent-full-access", "full-access"),
}
"""What agents call our modes, the best first. Modes in which a model decides are none of ours."""

TITLE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """A permission that waits: what the agent offers, and what a person is asked."""

    call: Call
    request: RequestOpened
    options: tuple[Mapping[str, Any], ...]
    answer: "asyncio.Future[Mapping[str, Any]]"
    granted: str | None = None
    """What allows it without a person."""

    def of_kind(self, kind: str) -> list[Mapping[str, Any]]:
        return [option for option in self.options if option.get("kind") == kind]


@dataclass(frozen=True, slots=True)
class Answered:
    choice: Choice
    resolved: RequestResolved


def mode_of(turn: Turn, full_enabled: bool) -> Mode:
    """The message's own mode first, then the conversation's, then the agent's."""
    active = turn.state.turn
    given = turn.params.get("mode")
    mode = as_mode((active.mode if active else None) or (given if isinstance(given, str) else None) or turn.agent.mode)
    return "ask" if mode == "full" and not full_enabled else mode


def by_mode(mode: Mode, known: Sequence[str]) -> str | None:
    return next((name for name in MODES[mode] if name in known), None)


def request_of(heard: Permission, call: Call, turn: Turn, mode: Mode) -> Choice:
    told = heard.told.get("options")
    options = tuple(option for option in (told if isinstance(told, list) else ()) if isinstance(option, Mapping))
    lasting = [option for option in options if option.get("kind") == "allow_always"]
    scopes: tuple[Scope, ...] = ("once", "conversation") if lasting else ("once",)
    preview = preview_of(call.content) or visible(shown_input(call))
    request = RequestOpened(
        request=turn.new_id(),
        kind="approval",
        call=call.id,
        agent=turn.agent.id,
        tool=call.name,
        input=call.input or {"title": call.title},
        title=(call.title or call.name)[:TITLE_CHARS],
        preview=shortened(preview),
        scopes=scopes,
        offers=tuple(Offer(label=str(option.get("name") or "Always allow")) for option in lasting),
    )
    return Choice(call, request, options, heard.answer, _granted(mode, call.kind))


def answer_of(choice: Choice, resolved: RequestResolved) -> tuple[Mapping[str, Any], str | None]:
    """What the agent is told, and why the call does not run; None when it may."""
    refusal = _refusal(choice, resolved)
    lasts = resolved.scope != "once"
    if refusal is None:
        always = choice.of_kind("allow_always")
        if lasts and always:
            return _selected(always[resolved.offer] if 0 <= resolved.offer < len(always) else always[0]), None
        once = [*choice.of_kind("allow_once"), *always]
        return (_selected(once[0]), None) if once else (CANCELLED, "The agent offered no way to allow this.")
    never = choice.of_kind("reject_always") if lasts else []
    rejecting = [*never, *choice.of_kind("reject_once"), *choice.of_kind("reject_always")]
    return (_selected(rejecting[0]) if rejecting else CANCELLED), refusal


def _refusal(choice: Choice, resolved: RequestResolved) -> str | None:
    said = f" They said: {resolved.text}" if resolved.text else ""
    if resolved.status == "expired":
        return "Nobody answered in time; it was not run."
    if resolved.status != "answered":
        return "The question was withdrawn; it was not run."
    if resolved.verdict != "allow":
        return f"The person declined this call; it was not run.{said}"
    if resolved.input is not None and resolved.input != choice.request.input:
        return "The person changed the arguments, which this agent cannot take over; it was not run."
    return None


def _selected(option: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}


def _granted(mode: Mode, kind: str) -> str | None:
    """Where an agent has no such mode of its own and asks all the same."""
    if mode == "full":
        return "mode:full"
    if mode in ("accept_edits", "auto") and kind == "edit":
        return f"mode:{mode}"
    return "mode:read" if kind in ("read", "search") and mode != "plan" and mode != "ask" else None
