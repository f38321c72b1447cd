"""What Codex asks, put to a person, and the person's answer in Codex's words. Pure.

Used by `requests` for every request of the program. Commands and patches are approvals, bound by a hash to what was shown;
its questions are questions. What this release does not know is refused, never waited for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from palaver.backends.codex.events import ToolCall
from palaver.backends.codex.items import COMMAND, PATCH, file_changes, tool_of
from palaver.core.text.approval_text import is_cut
from palaver.schema.events import RequestOpened, RequestResolved
from palaver.schema.view import Offer, Question, QuestionOption
from palaver.tools.proposal import fingerprint, name_in_diff, shorten, visible

TITLE_CHARS = 120

GIVEN_BESIDE = ("grantRoot", "additionalPermissions", "networkApprovalContext")
"""Parts of the program's question that ask for more than the call."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it is put to a person. `match` is what a lasting yes would cover."""

    opened: RequestOpened
    answer: Callable[[RequestResolved], dict[str, Any]]
    accepted: dict[str, Any]
    """The answer that a standing yes gives."""
    call: ToolCall | None = None
    match: str | None = None
    paths: tuple[str, ...] = ()
    """Of a patch: the files it changes, and where it moves them."""

    def with_(self, opened: RequestOpened) -> "Asked":
        return replace(self, opened=opened)


def request_of(
    method: str,
    params: Mapping[str, Any],
    call: ToolCall | None,
    *,
    request: str,
    agent: str,
    project: Path,
    sandbox: str,
) -> Asked | None:
    """None: nothing that a person could be asked."""
    basis = RequestOpened(
        request=request, kind="approval", agent=agent, call=call.call if call else None, sandbox=sandbox
    )
    match method:
        case "item/commandExecution/requestApproval":
            return _command(params, call, basis, project)
        case "item/fileChange/requestApproval":
            return _patch(params, call, basis, project)
        case "item/permissions/requestApproval":
            return _permissions(params, basis)
        case "item/tool/requestUserInput":
            return _questions(params, basis)
        case "mcpServer/elicitation/request":
            return _elicitation(params, basis)
        case _:
            return None


def is_allowed(resolved: RequestResolved) -> bool:
    return resolved.status == "answered" and resolved.verdict == "allow"


def _with(opened: RequestOpened, **fields: Any) -> RequestOpened:
    return msgspec.structs.replace(opened, **fields)


def _decision(resolved: RequestResolved) -> dict[str, Any]:
    if is_allowed(resolved):
        # Never for the session: a lasting yes is kept in our own log, where it can be taken back.
        return {"decision": "accept"}
    return {"decision": "cancel" if resolved.then == "stop" else "decline"}


def _command(params: Mapping[str, Any], call: ToolCall | None, opened: RequestOpened, project: Path) -> Asked:
    tool = tool_of({"type": "commandExecution", **params}, project)
    arguments = dict(call.input) if call else tool.input if tool else {}
    command = str(arguments.get("command", ""))
    opened = _with(
        opened,
        tool=COMMAND,
        input={**arguments, **_beside(params)},
        hash=fingerprint(COMMAND, arguments, project, {}),
        title=f"Run {_line(command)}",
        preview=shorten(visible(command)),
        risk=_word(params.get("reason")),
    )
    return Asked(opened, _decision, {"decision": "accept"}, call, match=command)


def _patch(params: Mapping[str, Any], call: ToolCall | None, opened: RequestOpened, project: Path) -> Asked:
    changes = file_changes(call.item, project) if call else ()
    paths = [change.path for change in changes]
    diff = "\n".join(change.diff or name_in_diff(change.path) for change in changes)
    preview = shorten(visible(diff))
    # The calls of this program have no change among their arguments.
    whole = {"changes": call.item.get("changes")} if call and is_cut(preview) else {}
    opened = _with(
        opened,
        tool=PATCH,
        input={**(call.input if call else {}), **whole, **_beside(params)},
        hash=fingerprint(PATCH, {"diff": diff}, project, {}),
        title=f"Change {_line(', '.join(paths)) or 'files'}",
        preview=preview,
        risk=_word(params.get("reason")),
    )
    return Asked(opened, _decision, {"decision": "accept"}, call, match="\n".join(paths), paths=_touched_paths(call))


def _beside(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a yes gives beside the call itself, to be shown with it."""
    return {name: params[name] for name in GIVEN_BESIDE if params.get(name) is not None}


def _touched_paths(call: ToolCall | None) -> tuple[str, ...]:
    changes = call.item.get("changes") if call else None
    found: list[str] = []
    for change in changes if isinstance(changes, list) else ():
        match change:
            case {"path": str(path), "kind": {"move_path": str(target)}}:
                found += [path, target]
            case {"path": str(path)}:
                found.append(path)
            case _:
                return ()
    return tuple(found)


def _permissions(params: Mapping[str, Any], opened: RequestOpened) -> Asked:
    wanted = params.get("permissions")
    wanted = wanted if isinstance(wanted, dict) else {}
    text = msgspec.json.format(msgspec.json.encode(wanted), indent=2).decode()
    opened = _with(
        opened,
        tool="permissions",
        input=wanted,
        title="Give Codex more room",
        preview=shorten(visible(text)),
        risk=_word(params.get("reason")),
        scopes=("once", "conversation"),
        offers=(Offer(label="these permissions"),),
    )

    def answer(resolved: RequestResolved) -> dict[str, Any]:
        if not is_allowed(resolved):
            return {"permissions": {}, "scope": "turn"}
        return {"permissions": wanted, "scope": "turn" if resolved.scope == "once" else "session"}

    return Asked(opened, answer, {"permissions": wanted, "scope": "turn"})


def _questions(params: Mapping[str, Any], opened: RequestOpened) -> Asked | None:
    questions = [one for one in params.get("questions") or () if isinstance(one, dict)]
    if not questions:
        return None
    shown = tuple(
        Question(
            question=str(one.get("question")),
            header=str(one.get("header") or ""),
            options=tuple(
                QuestionOption(label=str(option.get("label")), description=_word(option.get("description")))
                for option in one.get("options") or ()
                if isinstance(option, dict)
            ),
        )
        for one in questions
    )
    opened = _with(opened, kind="question", sandbox=None, title=shown[0].question, questions=shown)

    def answer(resolved: RequestResolved) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for one in resolved.answers if resolved.status == "answered" else ():
            if 0 <= one.question_index < len(questions):
                words = [*one.selected, *([one.custom_text] if one.custom_text else [])]
                given[str(questions[one.question_index].get("id"))] = {"answers": words}
        if not given and resolved.status == "answered" and resolved.text:
            given[str(questions[0].get("id"))] = {"answers": [resolved.text]}
        return {"answers": given}

    return Asked(opened, answer, {"answers": {}})


def _elicitation(params: Mapping[str, Any], opened: RequestOpened) -> Asked | None:
    """A server of tools wants a yes. One that wants a form filled in is declined: nobody here could."""
    schema = params.get("requestedSchema")
    if isinstance(schema, dict) and schema.get("properties"):
        return None
    message, server = str(params.get("message") or params.get("description") or ""), str(params.get("serverName"))
    opened = _with(
        opened,
        tool=f"mcp__{server}",
        input={"message": message},
        title=_line(message) or f"{server} asks",
        preview=shorten(visible("\n".join(filter(None, (message, _word(params.get("url"))))))),
    )

    def answer(resolved: RequestResolved) -> dict[str, Any]:
        return {"action": "accept", "content": {}} if is_allowed(resolved) else {"action": "decline"}

    return Asked(opened, answer, {"action": "accept", "content": {}})


def _line(text: str) -> str:
    first = visible(text.strip().partition("\n")[0])
    return first if len(first) <= TITLE_CHARS else first[: TITLE_CHARS - 1] + "…"


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
