"""Permissions of ACP agents: an agent's options by their kind, a person's answer by its scope, and what our policy says.

Pure but for the ids of a turn. Options are picked by kind, never by name: each agent names them differently. "Always" is a
grant of ours and never the agent's own, which would let it run what no rule of ours has seen.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from palaver.approval.policy import Mode, Verdict, offers
from palaver.approval.program_calls import Judged, inside, may_edit, proposal_of
from palaver.backends.acp.content import preview_of
from palaver.backends.acp.events import Call, input_text
from palaver.backends.acp.process import CANCELLED, Permission
from palaver.backends.acp.tools import OwnCall
from palaver.backends.base import Turn
from palaver.core.text.approval_text import is_cut
from palaver.schema.base import Scope
from palaver.schema.events import GrantAdded, RequestOpened, RequestResolved
from palaver.tools.base import Proposal, ToolSpec
from palaver.tools.files.file_names import file_names
from palaver.tools.proposal import shorten, visible

MODES: dict[Mode, tuple[str, ...]] = {
    "plan": ("plan", "read-only"),
    "ask": ("default", "ask", "workspace-write", "build"),
    "accept_edits": ("acceptEdits", "autoEdit", "accept_edits", "workspace-write"),
    "auto": ("acceptEdits", "autoEdit", "accept_edits", "workspace-write"),
    "full": ("bypassPermissions", "yolo", "agent-full-access", "full-access"),
}
"""What agents call our modes, the best first. Modes in which a model decides are none of ours."""

TITLE_CHARS = 200
PATHS = ("path", "file_path", "filePath", "filepath", "abs_path")
OURS = {"execute": "shell", "edit": "edit", "delete": "edit", "read": "read", "search": "grep", "fetch": "fetch"}
"""By its kind, the tool of ours that does the same: rules and grants mean the same everywhere."""
OWN_OPTIONS = [{"kind": "allow_once"}, {"kind": "reject_once"}]
"""Of a tool of ours, about which no agent asks."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A permission that waits: what the agent offers, and what a person is asked."""

    call: Call
    request: RequestOpened
    options: tuple[Mapping[str, Any], ...]
    answer: "asyncio.Future[Mapping[str, Any]] | OwnCall"
    """Who is told: the agent that asked, or a call of a tool of ours that waits here."""
    judged: Judged

    @property
    def verdict(self) -> Verdict:
        return self.judged.verdict

    def of_kind(self, kind: str) -> list[Mapping[str, Any]]:
        return [option for option in self.options if option.get("kind") == kind]


@dataclass(frozen=True, slots=True)
class Answered:
    choice: Choice
    resolved: RequestResolved | None
    """None: the policy itself decided."""


def by_mode(mode: Mode, known: Sequence[str]) -> str | None:
    return next((name for name in MODES[mode] if name in known), None)


def choice_of(
    heard: Permission | OwnCall, call: Call, turn: Turn, judged: Judged, scopes: tuple[Scope, ...] = ("once",)
) -> Choice:
    """`scopes` is how long a grant of ours may hold."""
    told = heard.told.get("options") if isinstance(heard, Permission) else OWN_OPTIONS
    options = tuple(option for option in (told if isinstance(told, list) else ()) if isinstance(option, Mapping))
    lasting = offers(judged.spec, judged.proposal) if len(scopes) > 1 else ()
    preview = shorten(preview_of(call.content) or visible(input_text(call)))
    given = call.input or {"title": call.title}
    request = RequestOpened(
        request=turn.new_id(),
        kind="approval",
        call=call.id,
        agent=turn.agent.id,
        tool=call.name,
        # What the preview leaves out must be among the arguments; the change itself often is not.
        input={**given, "content": call.content} if is_cut(preview) else given,
        hash=judged.proposal.hash,
        title=judged.proposal.title,
        preview=preview,
        risk=judged.verdict.why,
        scopes=scopes if lasting else ("once",),
        offers=lasting,
    )
    answer = heard.answer if isinstance(heard, Permission) else heard
    return Choice(call, request, options, answer, judged)


def grant_of(choice: Choice, resolved: RequestResolved | None) -> GrantAdded | None:
    """What a lasting yes covers."""
    offered = choice.request.offers
    if resolved is None or resolved.scope == "once" or not 0 <= resolved.offer < len(offered):
        return None
    return GrantAdded(
        tool=choice.judged.spec.name,
        scope=resolved.scope,
        match=offered[resolved.offer].match,
        agent=choice.request.agent,
        request=resolved.request,
    )


def answer_of(choice: Choice, resolved: RequestResolved | None) -> tuple[Mapping[str, Any], str | None]:
    """What the agent is told, and why the call does not run; None when it may."""
    refusal = _refusal(choice, resolved)
    lasts = resolved is not None and resolved.scope != "once"
    if refusal is None:
        once = [*choice.of_kind("allow_once"), *choice.of_kind("allow_always")]
        return (_select_option(once[0]), None) if once else (CANCELLED, "The agent offered no way to allow this.")
    never = choice.of_kind("reject_always") if lasts else []
    rejecting = [*never, *choice.of_kind("reject_once"), *choice.of_kind("reject_always")]
    return (_select_option(rejecting[0]) if rejecting else CANCELLED), refusal


def _refusal(choice: Choice, resolved: RequestResolved | None) -> str | None:
    if resolved is None:
        return None if choice.verdict.decision == "allow" else choice.verdict.why
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


def _select_option(option: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}


def describe(call: Call, project: Path) -> tuple[ToolSpec, Proposal]:
    """What a call would do, in the terms of our policy. What an agent calls harmless must also lie in the project."""
    paths = [value for name in PATHS if isinstance(value := call.input.get(name), str)] or list(call.paths)
    path = paths[0] if paths else None
    here = bool(paths) and all(inside(project, one) for one in paths)
    reads = call.kind in ("read", "search") and here
    edits = call.kind == "edit" and here and all(may_edit(project, one) for one in paths)
    name = OURS.get(call.kind, call.name)
    given = call.input or {"command" if call.kind == "execute" else "title": call.title}
    # No sandbox of ours holds the agent: what mode `auto` lets run inside one is asked for here.
    outside = not (reads or edits)
    spec = ToolSpec(name=name, description="", parameters={}, reads_only=reads, edits_only=edits, outside=outside)
    proposal = proposal_of("acp", call.name, given, project, path=path, edits=call.kind == "edit", reads=reads)
    return spec, replace(
        proposal,
        title=(call.title or call.name)[:TITLE_CHARS],
        writes=tuple(paths) if call.kind == "edit" and paths else proposal.writes,
        paths=file_names(project, paths),
    )
