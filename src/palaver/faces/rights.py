"""Rights: one table of what each role may do through any face, and the guard that holds every route to it.

A role (`authentication.Role`) is held by a token; `read` < `send` < `decide` < `admin`. What a route, a command, a frame of a
socket, a tool of an inbox or a confidential field needs stands here and nowhere else: the application asks `guard` before every
route, and a route without a row keeps the server from starting. `core/decide/authority.py` says what a command may do beyond
that, to what others said.

An observer (`read`) sees on every face the same: what the log says (conversations, requests, runs, missions, grants), and
which agents, programs and settings there are. It sees no file of a project and nothing of an agent's record that its owner
may want to keep: prompt, commands, servers, allowances.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from litestar import Litestar
from litestar.connection import ASGIConnection
from litestar.handlers import ASGIRouteHandler, HTTPRouteHandler
from litestar.handlers.base import BaseRouteHandler
from litestar.routes import HTTPRoute

from palaver.errors import ConfigurationError, Forbidden
from palaver.people.authentication import Kind, Principal, Role
from palaver.schema import commands
from palaver.schema.commands import Order

Need = Role | Literal["open", "signed_in"]
"""What a route needs: a role; `signed_in`: any token of ours; `open`: none at all."""

_ROUTES: Mapping[Need, tuple[str, ...]] = {
    "open": (
        "GET /api/health",
        "POST /api/session",
    ),
    "signed_in": (
        "GET /api/about",
        "GET /api/schema",
        "GET /api/schema/openapi.json",
        "GET /api/schema/reference.css",
        "GET /api/schema/{path}",
        "DELETE /api/session",
        "GET /api/session",
    ),
    "read": (
        "GET /api/agent-children",
        "GET /api/agent-context",
        "GET /api/agent-override",
        "GET /api/agent-runs",
        "GET /api/agents",
        "GET /api/agents/get",
        "GET /api/agents/list",
        "GET /api/backends",
        "GET /api/blobs/{blob}",
        "GET /api/chat/sessions/history/{session_id}",
        "GET /api/chat/sessions/list",
        "POST /api/chat/sessions/search",
        "GET /api/chat/stream",
        "GET /api/config",
        "GET /api/conversations",
        "GET /api/conversations/{conversation}",
        "POST /api/conversations/{conversation}/commands",
        "GET /api/conversations/{conversation}/events",
        "GET /api/conversations/{conversation}/export",
        "GET /api/conversations/{conversation}/messages",
        "GET /api/conversations/{conversation}/snapshot",
        "GET /api/events",
        "GET /api/grants",
        "GET /api/mission",
        "GET /api/missions",
        "GET /api/pending",
        "GET /api/plugins/sessions/operations/events",
        "POST /api/plugins/sessions/operations/events",
        "POST /api/plugins/sessions/operations/list",
        "GET /api/processes",
        "GET /api/projects",
        "GET /api/projects/mission",
        "GET /api/projects/missions",
        "GET /api/projects/override",
        "GET /api/requests",
        "GET /api/runs",
        "GET /api/runs/{run}",
        "GET /api/runs/{run}/children",
        "GET /api/runs/{run}/context",
        "GET /api/search",
        "GET /api/settings",
        "WEBSOCKET /api/socket",
        "GET /api/uploads/{name}",
        "ASGI /mcp/assistant",
        "ASGI /mcp/human",
        "GET /v1/chats/subscribe",
        "POST /v1/chats/{chat_id}/commands",
        "GET /v1/trajectories",
        "GET /v1/trajectories/subscribe",
        "GET /v1/trajectories/{trajectory}",
        "WEBSOCKET /ws",
    ),
    "send": (
        "POST /api/agent-cancel",
        "POST /api/agents/{agent}/test",
        "POST /api/chat",
        "POST /api/chat/cancel",
        "POST /api/chat/clear",
        "DELETE /api/chat/queue/{item}",
        "POST /api/chat/sessions/delete",
        "POST /api/chat/sessions/save",
        "PUT /api/chat/sessions/update",
        "POST /api/conversations",
        "POST /api/conversations/import",
        "DELETE /api/conversations/{conversation}",
        "PATCH /api/conversations/{conversation}",
        "POST /api/import/conversations",
        "POST /api/plugins/sessions/operations/clear",
        "POST /api/plugins/sessions/operations/create",
        "POST /api/plugins/sessions/operations/delete",
        "POST /api/plugins/sessions/operations/message",
        "POST /api/plugins/sessions/operations/update",
        "DELETE /api/processes/{pid}",
        "GET /api/projects/tree",
        "POST /api/runs/{run}/cancel",
        "POST /api/speech",
        "POST /api/uploads",
        "POST /api/uploads/base64",
        "GET /api/workspace/tree",
        "DELETE /v1/chats/{chat_id}/queue/{client_request_id}",
        "DELETE /v1/trajectories/{trajectory}",
        "PUT /v1/trajectories/{trajectory}",
    ),
    "decide": (
        "POST /api/agent-override",
        "GET /api/agents/{agent}",
        "POST /api/ask-user-response",
        "POST /api/chat/permission-response",
        "DELETE /api/grants/{grant}",
        "DELETE /api/mission",
        "POST /api/mission",
        "POST /api/plan/approve",
        "POST /api/plan/edit",
        "POST /api/plan/reject",
        "DELETE /api/projects/mission",
        "PUT /api/projects/mission",
        "PUT /api/projects/override",
    ),
    "admin": (
        "POST /api/agents",
        "POST /api/agents/create",
        "POST /api/agents/delete",
        "POST /api/agents/duplicate",
        "POST /api/agents/trust",
        "PUT /api/agents/update",
        "DELETE /api/agents/{agent}",
        "PATCH /api/agents/{agent}",
        "POST /api/agents/{agent}/duplicate",
        "POST /api/config",
        "GET /api/import/found",
        "POST /api/import/{program}",
        "DELETE /api/projects/trust",
        "GET /api/projects/trust",
        "GET /api/projects/trust/review",
        "GET /api/projects/trusted",
        "POST /api/projects/trust",
        "POST /api/session/code",
        "POST /api/settings",
    ),
}

ROUTES: Mapping[str, Need] = {operation: need for need, operations in _ROUTES.items() for operation in operations}
"""Every operation of every face. Where commands are sent, each command says what it needs, below."""

COMMANDS: Mapping[type[Order], Role] = {
    commands.SendMessage: "send",
    commands.EditQueued: "send",
    commands.RemoveQueued: "send",
    commands.Interrupt: "send",
    commands.ResolveRequest: "decide",
    commands.DecideTools: "decide",
    commands.StopProcess: "send",
    commands.RemoveGrant: "decide",
    commands.UpdateConversation: "send",
    commands.SetParams: "send",
    commands.DeleteConversation: "send",
    commands.EditMessage: "send",
    commands.RemoveMessage: "send",
    commands.TruncateMessages: "send",
    commands.RetryFrom: "send",
    commands.Regenerate: "send",
    commands.ReturnToolResult: "send",
    commands.RestoreMessages: "send",
    commands.SetDraft: "decide",
    commands.ClearDraft: "decide",
    commands.Fill: "send",
}
"""Every command that a client of any face can give. A bolder mode, or rules, need `decide` whatever carries them."""

FRAMES: Mapping[str, Role] = {
    "hello": "read",
    "subscribe": "read",
    "unsubscribe": "read",
    "ping": "read",
    "text_input": "send",
    "control": "send",
    "cancel_queued_message": "send",
    "set_session_model": "send",
    "tool_interaction_response": "decide",
}
"""Every frame that a client may send over `/ws`."""

FOLLOWING: Mapping[str, Role] = {
    "subscribe": "read",
    "unsubscribe": "read",
    "follow_list": "read",
    "ping": "read",
}
"""Every frame that a client may send over `/api/socket`."""

CHAT_COMMANDS: Mapping[str, Role] = {
    "user_message": "send",
    "retry_from_index": "send",
    "regenerate": "send",
    "update_message": "send",
    "remove_message": "send",
    "truncate_messages": "send",
    "set_params": "send",
    "abort": "send",
    "approve_tools": "decide",
    "reject_tools": "decide",
    "tool_decision": "decide",
    "tool_decisions": "decide",
    "ide_tool_result": "send",
    "branch_from_chat": "send",
    "restore_from_trajectory": "send",
    "restore_messages": "send",
    "set_draft": "decide",
    "clear_draft": "decide",
}
"""Every command of `/v1/chats`, in its words. What it means in ours may need more: a bolder mode does."""

Field = Literal["agents", "files", "secrets"]
"""What not everybody reads: of an agent's record the prompt, commands, servers and allowances; the files of a project; the values
of variables and headers in a record."""
CONFIDENTIAL: Mapping[Field, Role | None] = {"agents": "decide", "files": "send", "secrets": None}
"""Who reads it. None: nobody does, through any face."""

Side = Literal["human", "assistant"]
Act = Literal["read", "post", "yield"]

INBOX_MEMBERS: Mapping[Side, frozenset[Kind]] = {
    "human": frozenset({"owner", "human"}),
    "assistant": frozenset({"owner", "agent"}),
}
"""Who may speak on a side of an inbox. Observers read on both."""
INBOX_ACTS: Mapping[Act, Role] = {"read": "read", "post": "send", "yield": "send"}

CAUTIOUS_MODES = (None, "plan", "ask")
"""Modes in which a person is asked at least before anything changes; choosing a bolder one is itself a decision."""


# -- asked by routes


def require(principal: Principal, role: Role) -> None:
    if not principal.may(role):
        raise Forbidden(f"This token may not do that: it lacks the role “{role}”.", role=role)


def may_read(principal: Principal, field: Field) -> bool:
    need = CONFIDENTIAL[field]
    return need is not None and principal.may(need)


def role_for(command: Order) -> Role:
    """What one must hold to ask for this, through whichever face."""
    match command:
        case commands.SetParams():
            return role_for_params(command.patch)
        case commands.SendMessage():
            return role_for_params({"mode": command.mode})
        case _:
            return COMMANDS[type(command)]


def role_for_params(params: Mapping[str, Any]) -> Role:
    """What one must hold to give a conversation these parameters."""
    return "send" if params.get("mode") in CAUTIOUS_MODES and "policy" not in params else "decide"


def may_act(side: Side, act: Act, kind: Kind) -> bool:
    """Whether a token may use the tools of an inbox that do this."""
    return kind in INBOX_MEMBERS[side] or (act == "read" and kind == "observer")


# -- asked by the application


async def guard(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Only who holds the role that the table has for an operation comes through."""
    # Asynchronous though it waits for nothing: Litestar sends every other guard to a thread and back.
    method = str(connection.scope.get("method", "WEBSOCKET"))
    if method == "OPTIONS":
        return  # Answered from the routes' own description, behind the gate.
    if isinstance(handler, ASGIRouteHandler):
        # Mounted: Litestar 2.25 gives requests beneath it no template of their own.
        method, template = "ASGI", next(iter(handler.paths))
    else:
        template = connection.scope["path_template"]
    need = ROUTES.get(f"{method} {_plain(template)}")
    if need is None:
        raise Forbidden("No token may do that.")
    if need != "open" and need != "signed_in":
        require(connection.auth, need)


def check_rows(app: Litestar) -> None:
    """Raises ConfigurationError for an operation without a row."""
    if missing := [operation for operation in operations_of(app) if operation not in ROUTES]:
        raise ConfigurationError(f"faces/rights.py has no row for {', '.join(missing)}: say there which role it needs.")


def operations_of(app: Litestar) -> Iterator[str]:
    """Every operation of an application, as the table names it."""
    for route in app.routes:
        path = _plain(route.path_format)
        for handler in route.route_handlers if isinstance(route, HTTPRoute) else [route.route_handler]:
            if isinstance(handler, HTTPRouteHandler):
                yield from (f"{method} {path}" for method in sorted(handler.http_methods) if method != "OPTIONS")
            else:
                yield f"{'ASGI' if isinstance(handler, ASGIRouteHandler) else 'WEBSOCKET'} {path}"


@lru_cache(maxsize=1_024)
def _plain(template: str) -> str:
    """Without the types of its parameters, and without a slash at its end."""
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", template).rstrip("/") or "/"
