"""What people allowed to stand, as one turn sees it: for the conversation, its agent and its project.

Used by the calls. A conversation's own grants are in its view (`grant.added`); those that outlive it are in the file of
`approval/standing_grants.py` and in the agent's record (`allowed_tools`), which are read anew for every call. Nothing here
allows what the policy denies.
"""

from msgspec.structs import replace

from palaver.approval.policy import Grant, Rule, grants_of_record
from palaver.approval.standing_grants import StandingGrant, StandingGrants
from palaver.backends.base import Turn
from palaver.core.state import find_request
from palaver.errors import LogUnavailable
from palaver.journal import Journal
from palaver.schema.base import Scope
from palaver.schema.events import GrantAdded

logger = Journal(__name__)


class Grants:
    def __init__(self, standing: StandingGrants | None = None) -> None:
        self._standing = standing

    def of(self, turn: Turn) -> tuple[Grant, ...]:
        own = tuple(
            Rule(tool=known.tool, decision=known.decision, match=known.match, source="conversation")
            for known in turn.state.grants
            if known.scope == "conversation"
        )
        if self._standing is None:
            return (*own, *grants_of_record(turn.agent.id, turn.agent.allowed_tools))
        return (*own, *self._standing.allowed(turn.agent, turn.project))

    def scopes(self, turn: Turn) -> tuple[Scope, ...]:
        """How long a yes may hold here, the shortest first."""
        if self._standing is None:
            return ("once", "conversation")
        return ("once", "conversation", "agent", *(("project",) if turn.state.project else ()))

    async def keep(self, turn: Turn, grant: GrantAdded) -> GrantAdded:
        """The grant as it holds: one that cannot be written down lasts as long as its conversation."""
        if grant.scope not in ("agent", "project"):
            return grant
        kept = StandingGrant(
            id=turn.new_id(),
            tool=grant.tool,
            scope=grant.scope,
            match=grant.match,
            decision=grant.decision,
            agent=turn.agent.id,
            project=str(turn.project),
            ts=turn.now_ms(),
            conversation=turn.conversation,
            request=grant.request,
            by=_answered_by(turn, grant.request),
        )
        try:
            if self._standing is None:
                raise LogUnavailable("This server keeps no standing grants.")
            await self._standing.add(kept)
        except LogUnavailable as failure:
            logger.warning("a grant holds for its conversation only", tool=grant.tool, reason=failure.message)
            return replace(grant, scope="conversation")
        return grant


def _answered_by(turn: Turn, request: str | None) -> str | None:
    known = find_request(turn.state, request) if request is not None else None
    origin = known.resolution.by if known is not None and known.resolution is not None else None
    return origin.user if origin is not None else None
