"""What a person allowed for the rest of a conversation.

Kept by the backend in memory, by conversation, and rebuilt from the view's resolved requests when a turn begins: after a
restart the latest of them still hold, and an older one is asked for again. Nothing here allows what the policy denies.
"""

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palaver.schema.view import Request, State
from palaver.tools.base import Proposal
from palaver.tools.policy import Grant, standing_grant
from palaver.tools.toolbox import Toolbox

KEEP_CONVERSATIONS = 1_000
"""Those with grants that ran last. A forgotten one asks again."""


class Grants:
    def __init__(self) -> None:
        self._known: OrderedDict[str, set[Grant]] = OrderedDict()

    def of(self, conversation: str) -> frozenset[Grant]:
        return frozenset(self._known.get(conversation, ()))

    def add(self, conversation: str, grant: Grant) -> None:
        self._known.setdefault(conversation, set()).add(grant)
        self._known.move_to_end(conversation)
        while len(self._known) > KEEP_CONVERSATIONS:
            self._known.popitem(last=False)

    async def rebuild(self, state: State, toolbox: Toolbox, root: Path) -> None:
        for request in state.requests:
            if _stands(request) and (grant := await _grant_of(request, toolbox, root)):
                self.add(state.conversation, grant)


def _stands(request: Request) -> bool:
    resolution = request.resolution
    return (
        request.kind == "approval"
        and resolution is not None
        and resolution.status == "answered"
        and resolution.verdict == "allow"
        and resolution.scope == "conversation"
    )


async def _grant_of(request: Request, toolbox: Toolbox, root: Path) -> Grant | None:
    tool = toolbox.tools.get(request.tool or "")
    if tool is None or request.tool is None:
        return None
    if tool.spec.edits_only:
        return Grant(tool=request.tool, decision="allow")
    arguments: Mapping[str, Any] = request.input if isinstance(request.input, dict) else {}
    proposal = await toolbox.propose(request.tool, arguments, root)
    return standing_grant(tool.spec, proposal) if isinstance(proposal, Proposal) else None
