"""The histories of other programs: what could be imported here, and the importing itself.

Either a client reads its own user's files and sends what they say, or the server does so itself, for the page that cannot
read files. Both may be repeated at any time: what is known is not made again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
from litestar import get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath, FromQuery, QueryParameter
from litestar.response import Stream
from msgspec.structs import replace as changed

from palaver.conversation.creation import Wishes
from palaver.conversation.folders import is_person
from palaver.conversation.imported_conversation import Taken, announce
from palaver.conversation.imports import Imports
from palaver.errors import CallerError, NotFound
from palaver.faces.http.openapi import BYTES, TEXT, operation
from palaver.faces.http.spool import spool_body
from palaver.faces.native.conversations import NativeRequest
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.history.conversation_lines import read_conversations
from palaver.history.programs.foreign import PROGRAMS, ForeignConversation, Program
from palaver.history.programs.places import (
    Places,
    SessionFile,
    Unreadable,
    batches,
    files,
    files_since,
    is_within,
    names,
    read_all,
)
from palaver.history.programs.scratch import Scratch
from palaver.schema.base import Origin, Shown

BODY_BYTES = 320 << 20
"""The longest conversation that is read from a file, in the words of this route. It is on disk, never in memory."""
AT_ONCE = 8
"""Conversations that are taken over side by side."""
FILES_COUNTED = 20_000
"""Of one program: enough for years of it, and counted in a fraction of a second."""
PROJECTS_LOOKED_INTO = 200


class Found(Shown):
    """What a program has left for an import."""

    program: Program
    count: int
    newest: int
    """When the latest one changed, in milliseconds."""
    size_bytes: int
    more: bool = False
    """There are more; nobody counted on."""


class FoundAll(Shown):
    items: tuple[Found, ...]


class TakenAll(Shown):
    items: tuple[Taken, ...]


class Advance(Shown):
    """One line of an import under way: what became of the file that was just read."""

    done: int
    of: int
    path: str | None = None
    taken: Taken | None = None
    problem: str | None = None
    skipped_lines: int = 0


@get("/api/import/found", operation_id="found_imports", tags=["history"])
async def found(server: Server) -> FoundAll:
    """What could be imported of other programs' histories on the server's machine. Only looks at names and times."""
    places = await _places(server)
    return FoundAll(items=await asyncio.to_thread(_count, places))


async def _places(server: Server) -> Places:
    """Trajectories lie in projects; those of the latest conversations are looked into."""
    page = await server.log.list(limit=PROJECTS_LOOKED_INTO, archived=None)
    projects = [server.directory.home, *(Path(row.project) for row in page.items if row.project)]
    return replace(server.places, projects=tuple(dict.fromkeys(projects)))


def _count(places: Places) -> tuple[Found, ...]:
    items: list[Found] = []
    for program in PROGRAMS:
        some = list(islice(files(program, places), FILES_COUNTED + 1))
        if counted := some[:FILES_COUNTED]:
            items.append(
                Found(
                    program=program,
                    count=len(counted),
                    newest=max(file.modified_ms for file in counted),
                    size_bytes=sum(file.size_bytes for file in counted),
                    more=len(some) > len(counted),
                )
            )
    return tuple(items)


@post(
    "/api/import/conversations",
    status_code=200,
    request_max_body_size=BODY_BYTES,
    operation_class=operation(body={"application/jsonl": TEXT, "application/octet-stream": BYTES}),
    operation_id="import_conversations",
    tags=["history"],
)
async def import_conversations(
    request: NativeRequest, server: Server, agent: FromQuery[str | None] = None, dry_run: FromQuery[bool] = False
) -> TakenAll:
    """Take over conversations of other programs, one JSON object a line. Known ones are not made again."""
    async with spool_body(request, server.directory.folders.data) as body:
        conversations = await asyncio.to_thread(read_conversations, body)
        _check_agent(server, agent)
        taken = await import_batch(server, conversations, agent, origin_of(request, "native"), dry=dry_run)
    return TakenAll(items=tuple(taken))


@post(
    "/api/import/{program:str}",
    status_code=200,
    media_type="application/jsonl",
    responses={200: ResponseSpec(str, description="A line a file", generate_examples=False)},
    operation_class=operation(answer={"application/jsonl": TEXT}),
    operation_id="import_program",
    tags=["history"],
)
async def import_program(
    request: NativeRequest,
    server: Server,
    program: FromPath[str],
    since: Annotated[int, QueryParameter(ge=0)] = 0,
    project: FromQuery[str | None] = None,
    agent: FromQuery[str | None] = None,
    dry_run: FromQuery[bool] = False,
) -> Stream:
    """Import a program's history from the server's machine. Answers a line a file as it goes; leaving stops it."""
    wanted = next((known for known in PROGRAMS if known == program), None)
    if wanted is None:
        raise NotFound(f"No history of “{program}” can be imported; there are {', '.join(PROGRAMS)}.")
    _check_agent(server, agent)
    places = await _places(server)
    picked = await asyncio.to_thread(files_since, wanted, places, since)
    folder = Path(project) if project else None
    origin = origin_of(request, "native")

    async def lines() -> AsyncIterator[bytes]:
        titles = await asyncio.to_thread(names, places)
        done = 0
        yield msgspec.json.encode(Advance(done=0, of=len(picked))) + b"\n"
        for batch in batches(picked):
            with Scratch(server.directory.folders.data) as scratch:
                read = await asyncio.to_thread(read_all, batch, titles, scratch)
                advances = await _advance(server, batch, read, folder, agent, origin, dry=dry_run)
            for advance in advances:
                done += 1
                yield msgspec.json.encode(changed(advance, done=done, of=len(picked))) + b"\n"

    return Stream(lines(), headers={"Cache-Control": "no-store"})


async def _advance(
    server: Server,
    batch: list[SessionFile],
    read: list[ForeignConversation | Unreadable],
    project: Path | None,
    agent: str | None,
    origin: Origin,
    *,
    dry: bool,
) -> list[Advance]:
    wanted = [one for one in read if isinstance(one, ForeignConversation) and is_within(one, project)]
    taken = iter(await import_batch(server, wanted, agent, origin, dry=dry))
    advances: list[Advance] = []
    for file, one in zip(batch, read, strict=True):
        advance = Advance(done=0, of=0, path=str(file.path))
        if isinstance(one, Unreadable):
            advance = changed(advance, problem=one.reason)
        elif is_within(one, project):
            advance = changed(advance, taken=next(taken), skipped_lines=one.skipped_lines)
        advances.append(advance)
    return advances


def _check_agent(server: Server, agent: str | None) -> None:
    if agent is not None and server.agents.agent(agent) is None:
        raise NotFound(f"No agent is called “{agent}”.", agent=agent)


async def import_batch(
    server: ServerParts, conversations: Iterable[ForeignConversation], agent: str | None, origin: Origin, *, dry: bool
) -> list[Taken]:
    """Side by side, so that they share commits; a few at a time, as each has a batch of messages in memory."""
    at_once = asyncio.Semaphore(AT_ONCE)
    imports = Imports(server.directory, server.log, server.feed, server.clock, server.ids)
    home = str(server.directory.home)

    async def one(foreign: ForeignConversation) -> Taken:
        folder = await _folder(server, foreign.project, origin)
        wishes = Wishes(
            project=folder or home,
            knows=lambda name: server.agents.agent(name) is not None,
            agent=agent,
        )
        try:
            async with at_once:
                return await imports.take_over(foreign, wishes, origin, dry=dry)
        except CallerError as problem:
            return changed(announce(foreign, ""), outcome="refused", added=0, note=problem.message)

    return list(await asyncio.gather(*(one(foreign) for foreign in conversations)))


async def _folder(server: ServerParts, project: str | None, origin: Origin) -> str | None:
    """The folder it was about, if it is still there and may be a project: a program goes on only where it was."""
    try:
        if project:
            await server.directory.folders.open(project, person=is_person(origin))
    except CallerError:
        return None
    return project or None


ROUTES = [found, import_conversations, import_program]
