"""The program's permission questions as requests to a person, and a person's answers in the program's words.

Used by `requests`; the question of our own tool is put by `tools` and `conduct`. A permission is an approval;
`AskUserQuestion` is a question; leaving plan mode is an approval that shows the plan. "Always" for a command is a grant of
ours, as for every other program: the program's own rules match text. For the rest it takes what the program itself suggests
and holds for the conversation only: a lasting yes never ends up in a settings file that a person did not open.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from palaver.approval import policy
from palaver.approval.policy import COMMAND_TOOL, OUR_TOOLS
from palaver.backends.claude.process import Ask, Signal
from palaver.backends.claude.proposals import describe
from palaver.schema.base import Scope
from palaver.schema.commands import Answer
from palaver.schema.events import GrantAdded, RequestOpened, RequestResolved
from palaver.schema.view import Offer, Question, QuestionOption
from palaver.tools.proposal import Change, fingerprint, shorten, visible

if TYPE_CHECKING:
    from claude_agent_sdk import PermissionResult, PermissionUpdate

    from palaver.backends.claude.process import ClaudeProgram

QUESTION, PLAN = "AskUserQuestion", "ExitPlanMode"
TITLE_CHARS = 200
READ_BYTES = 1 << 20
"""Of a file that would be overwritten, for the preview; a larger one is shown as new text only."""


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """Our own tool asks the person, through the turn that runs."""

    request: RequestOpened
    answer: "asyncio.Future[RequestResolved]"

    @staticmethod
    async def put(program: "ClaudeProgram", request: RequestOpened) -> RequestResolved:
        asked = OwnQuestion(request, asyncio.get_running_loop().create_future())
        program.inbox.put_nowait(Signal(asked))
        return await asked.answer


def request_of(
    ask: Ask,
    *,
    request: str,
    call: str | None,
    agent: str,
    root: Path,
    nested: bool,
    scopes: tuple[Scope, ...] = ("once", "conversation"),
) -> RequestOpened:
    """`call` is the call of the answer it belongs to; `nested`: a subagent's own call, within that one. `scopes` is how long
    a grant of ours may hold."""
    if ask.tool == QUESTION:
        questions = questions_of(ask.input)
        title = questions[0].question if questions else "A question"
        return RequestOpened(
            request=request,
            kind="question",
            call=call,
            agent=agent,
            tool=ask.tool,
            input=ask.input,
            title=_line(title),
            questions=questions,
        )
    offered = offers(ask, root)
    title = title_of(ask, root)
    lasting = scopes if is_command(ask) else ("once", "conversation")
    return RequestOpened(
        request=request,
        kind="approval",
        call=call,
        agent=agent,
        tool=ask.tool,
        input=ask.input,
        hash=fingerprint(f"claude {ask.tool}", ask.input, root, {}),
        title=f"Subagent: {title}" if nested else title,
        preview=preview_of(ask.tool, ask.input, root),
        risk=ask.context.decision_reason,
        scopes=lasting if offered else ("once",),
        offers=offered,
    )


def questions_of(given: Mapping[str, Any]) -> tuple[Question, ...]:
    return tuple(
        Question(
            question=str(one.get("question") or ""),
            header=str(one.get("header") or ""),
            options=tuple(
                QuestionOption(
                    label=str(option.get("label") or ""),
                    description=option.get("description"),
                    preview=option.get("preview"),
                )
                for option in _dicts(one.get("options"))
            ),
            multi_select=bool(one.get("multiSelect")),
        )
        for one in _dicts(given.get("questions"))
    )


def permission_result(ask: Ask, resolved: RequestResolved) -> "PermissionResult":
    """A person's answer, as the program takes it."""
    from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

    if resolved.status != "answered" or resolved.verdict == "deny":
        return PermissionResultDeny(message=_refusal(ask, resolved), interrupt=resolved.then == "stop")
    if ask.tool == QUESTION:
        return PermissionResultAllow(updated_input={**ask.input, "answers": _answers(ask.input, resolved)})
    changed = resolved.input if isinstance(resolved.input, dict) else ask.input
    updates = [chosen] if (chosen := _choose(ask, resolved)) is not None else None
    return PermissionResultAllow(updated_input=changed, updated_permissions=updates)


def is_command(ask: Ask) -> bool:
    return OUR_TOOLS.get(ask.tool) == COMMAND_TOOL


def command_grant(resolved: RequestResolved, request: RequestOpened) -> GrantAdded | None:
    """What a lasting yes to a command covers."""
    offered = request.offers
    lasts = resolved.scope != "once" and resolved.verdict == "allow" and 0 <= resolved.offer < len(offered)
    if not lasts or (isinstance(resolved.input, dict) and resolved.input != request.input):
        return None
    return GrantAdded(
        tool=COMMAND_TOOL,
        scope=resolved.scope,
        match=offered[resolved.offer].match,
        agent=request.agent,
        request=resolved.request,
    )


def grants_of(ask: Ask, resolved: RequestResolved, agent: str) -> list[GrantAdded]:
    """The rules of the program that a lasting yes adds, for the record."""
    chosen = _choose(ask, resolved)
    if chosen is None or chosen.type != "addRules":
        return []
    return [
        GrantAdded(
            tool=rule.tool_name,
            scope="conversation",
            match=rule.rule_content,
            agent=agent,
            request=resolved.request,
        )
        for rule in chosen.rules or ()
    ]


def find_covering(ask: Ask, granted: set[tuple[str, str | None]]) -> int | None:
    """Which of the suggestions is made of rules that a person has given already."""
    for place, update in enumerate(_lasting(ask)):
        rules = {(rule.tool_name, rule.rule_content) for rule in update.rules or ()}
        if update.type == "addRules" and rules and rules <= granted:
            return place
    return None


def mode_taken(ask: Ask, resolved: RequestResolved) -> str | None:
    """The mode that a lasting yes lets the program take."""
    chosen = _choose(ask, resolved)
    return chosen.mode if chosen is not None and chosen.type == "setMode" else None


def offers(ask: Ask, root: Path) -> tuple[Offer, ...]:
    if is_command(ask):
        return policy.offers(*describe(ask.tool, ask.input, root))
    return tuple(
        Offer(label=_label(one), match=one.rules[0].rule_content if one.rules else None) for one in _lasting(ask)
    )


def title_of(ask: Ask, root: Path) -> str:
    given = ask.input
    match ask.tool:
        case "Bash":
            return _line(f"Run {given.get('command')}")
        case "Edit" | "MultiEdit" | "NotebookEdit":
            return _line(f"Edit {_beneath(given.get('file_path') or given.get('notebook_path'), root)}")
        case "Write":
            return _line(f"Write {_beneath(given.get('file_path'), root)}")
        case "ExitPlanMode":
            return "Carry out this plan"
        case _:
            return _line(ask.context.title or ask.context.description or f"Use {ask.tool}")


def preview_of(tool: str, given: Mapping[str, Any], root: Path) -> str | None:
    """What will happen, for the eye. Reads the file that a write would replace."""
    path = _beneath(given.get("file_path"), root)
    match tool:
        case "Bash":
            return shorten(visible(str(given.get("command"))))
        case "Edit":
            before, after = str(given.get("old_string") or ""), str(given.get("new_string") or "")
            return Change(path, before.encode(), after.encode()).preview()
        case "Write":
            return Change(path, _present(root / path), str(given.get("content") or "").encode()).preview()
        case "ExitPlanMode":
            # Written to a file of its own, which the program reads in; a plan only spoken stands above.
            return shorten(visible(str(given.get("plan") or ""))) or None
        case _:
            return shorten(visible(msgspec.json.format(msgspec.json.encode(given)).decode()))


def _choose(ask: Ask, resolved: RequestResolved) -> "PermissionUpdate | None":
    lasting = _lasting(ask)
    if resolved.scope == "once" or resolved.verdict == "deny" or not 0 <= resolved.offer < len(lasting):
        return None
    if isinstance(resolved.input, dict) and resolved.input != ask.input:
        # The suggestion was made for what the program wanted, not for what the person made of it.
        return None
    return lasting[resolved.offer]


def _lasting(ask: Ask) -> "list[PermissionUpdate]":
    """The program's suggestions, each for this session only; of a command none."""
    if is_command(ask):
        return []
    return [
        replace(one, destination="session")
        for one in ask.context.suggestions
        if one.type in ("setMode", "addDirectories") or (one.type == "addRules" and one.behavior == "allow")
    ]


def _label(update: "PermissionUpdate") -> str:
    match update.type:
        case "setMode":
            return "edits of files" if update.mode == "acceptEdits" else f"everything that mode {update.mode} allows"
        case "addDirectories":
            return "work in " + ", ".join(update.directories or ())
        case _:
            rules = update.rules or []
            return ", ".join(f"{rule.tool_name} {rule.rule_content or '(any)'}" for rule in rules)


def _answers(given: Mapping[str, Any], resolved: RequestResolved) -> dict[str, str]:
    # From a snapshot they come as plain data.
    told = msgspec.convert(resolved.answers, tuple[Answer, ...], from_attributes=True)
    asked = questions_of(given)
    return {
        asked[answer.question_index].question: ", ".join(filter(None, (*answer.selected, answer.custom_text)))
        for answer in told
        if 0 <= answer.question_index < len(asked)
    }


def _refusal(ask: Ask, resolved: RequestResolved) -> str:
    if not resolved.request and resolved.text:
        return resolved.text  # A rule's word: nobody was asked.
    said = f" They said: {resolved.text}" if resolved.text else ""
    if ask.tool == QUESTION:
        return f"The person gave no answer. Assume none.{said}"
    match resolved.status:
        case "expired":
            return "Nobody answered in time; it was not run."
        case "answered":
            return f"The person declined this call; it was not run.{said}"
        case _:
            return "The question was withdrawn; it was not run."


def _present(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.stat().st_size <= READ_BYTES else None
    except OSError:
        return None


def _beneath(path: Any, root: Path) -> str:
    try:
        return str(Path(str(path)).relative_to(root))
    except ValueError:
        return str(path)


def _line(text: str) -> str:
    first = visible(text.strip().split("\n")[0])
    return first if len(first) <= TITLE_CHARS else f"{first[:TITLE_CHARS]}…"


def _dicts(value: Any) -> Sequence[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
