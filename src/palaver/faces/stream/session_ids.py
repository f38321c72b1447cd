"""Which conversation a `sessionId` of this contract names: ours, or the Claude program's own id of the same session.

A client that read the program's files knows sessions by the program's ids. Such an id leads to the conversation that was
imported from it, or to the one in which our Claude backend runs it. One that is in the program's folder and not here yet is
imported when an owner first asks for it: reading another program's files is an owner's to allow, as in the import routes.
"""

import asyncio
import re
from typing import Any

from palaver.conversation.imports import id_of_import
from palaver.errors import CallerError
from palaver.faces.native.imports import import_batch
from palaver.faces.server import ServerParts
from palaver.history.programs.foreign import ForeignConversation
from palaver.history.programs.places import claude_session, read_all
from palaver.history.programs.scratch import Scratch
from palaver.people.authentication import Principal
from palaver.schema.base import ID_PATTERN, Origin

RUNS_A_LOOK = 500
RUN_LOOKS = 20
"""Of the latest runs, in which a session of the program is looked for that was driven from here."""
SLACK_MS = 60_000
"""Between the times in the program's file and those of our runs."""


async def conversation_of(session: str, caller: Principal, server: ServerParts, origin: Origin) -> str | None:
    """The id of the conversation, which may be deleted; None: nobody knows such a session."""
    if not re.fullmatch(ID_PATTERN, session, re.ASCII):
        return None
    for known in (session, id_of_import("claude", session)):
        if await server.log.listing(known) is not None:
            return known
    with Scratch(server.directory.folders.data) as scratch:
        foreign = await asyncio.to_thread(_read, server, session, scratch)
        if foreign is None:
            return None
        if foreign.of_another is not None:
            return await _find_driven(foreign, server)
        if not caller.may("admin"):
            return None
        (taken,) = await import_batch(server, [foreign], None, origin, dry=False)
    return taken.conversation if await server.log.listing(taken.conversation) is not None else None


def _read(server: ServerParts, session: str, scratch: Scratch) -> ForeignConversation | None:
    file = claude_session(server.places, session)
    found = read_all([file], {}, scratch)[0] if file is not None else None
    return found if isinstance(found, ForeignConversation) else None


async def _find_driven(foreign: ForeignConversation, server: ServerParts) -> str | None:
    """Its answers say which session of the program wrote them; only runs of the session's own time are looked into."""
    looked_into: set[str] = set()
    before: str | None = None
    for _ in range(RUN_LOOKS):
        runs = await server.log.runs(limit=RUNS_A_LOOK, before=before)
        for run in runs:
            if run.ended_at is not None and run.ended_at < foreign.created_at - SLACK_MS:
                return None
            if run.started_at > foreign.updated_at + SLACK_MS or run.conversation in looked_into:
                continue
            looked_into.add(run.conversation)
            if await _has_answer_of(foreign.session, run.conversation, server):
                return run.conversation
        if len(runs) < RUNS_A_LOOK:
            return None
        before = runs[-1].run
    return None


async def _has_answer_of(session: str, conversation: str, server: ServerParts) -> bool:
    try:
        state = await server.directory.whole(conversation)
    except CallerError:  # Deleted.
        return False
    return any(_is_of(message.data, session) for message in state.messages)


def _is_of(data: Any, session: str) -> bool:
    return isinstance(data, dict) and data.get("by") == "claude" and data.get("session") == session
