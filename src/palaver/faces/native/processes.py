"""What runs on this machine for the agents: programs that serve conversations, and commands left in the background."""

from typing import Literal

from litestar import delete, get
from litestar.params import FromPath

from palaver.agents.backends import RunningProgram
from palaver.errors import CallerError, Conflict, NotFound
from palaver.faces.native.conversations import NativeRequest
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.schema.base import Shown
from palaver.schema.commands import StopProcess
from palaver.tools.shell.background import Running


class ProcessEntry(Shown):
    """A `program` without a conversation serves all of its backend's. `idle_s` counts since its last turn; a background
    process is busy for as long as it runs."""

    kind: Literal["program", "background"]
    conversation: str | None
    title: str
    agent: str | None
    backend: str | None
    pid: int | None
    command: str
    started_at: int | None
    busy: bool
    idle_s: float


class ProcessList(Shown):
    items: tuple[ProcessEntry, ...]


@get("/api/processes", operation_id="list_processes", tags=["agents"])
async def processes(server: Server) -> ProcessList:
    """Every live program of an agent, and every background process of a conversation."""
    programs = [await _program(server, one) for one in server.backends.programs()]
    background = [await _background(server, one) for one in server.processes.running()]
    return ProcessList(items=(*programs, *background))


@delete("/api/processes/{pid:int}", operation_id="end_process", tags=["agents"])
async def end(pid: FromPath[int], request: NativeRequest, server: Server) -> None:
    """Let an idle program go (its next turn starts it again), or end a background process. A busy program is refused."""
    match await server.backends.let_go(pid):
        case "ended":
            return
        case "busy":
            raise Conflict("This program is at work: stop its turn first.", pid=pid)
        case "unknown":
            pass
    one = next((known for known in server.processes.running() if known.pid == pid), None)
    if one is None:
        raise NotFound("No such process runs here: it may have ended.", pid=pid)
    if not one.conversation:
        server.processes.stop(one.id)
        return
    await server.directory.command(one.conversation, StopProcess(process=one.id), origin_of(request, "native"))


async def _program(server: ServerParts, one: RunningProgram) -> ProcessEntry:
    row = one.row
    # One that any agent may use is no conversation's own.
    listing = await server.log.listing(row.conversation) if row.agent else None
    return ProcessEntry(
        kind="program",
        conversation=row.conversation if row.agent else None,
        title=listing.title if listing else "",
        agent=row.agent,
        backend=one.backend,
        pid=row.pid,
        command=row.command,
        started_at=row.started_ms,
        busy=row.busy,
        idle_s=row.idle_s,
    )


async def _background(server: ServerParts, one: Running) -> ProcessEntry:
    listing = await server.log.listing(one.conversation)
    agent = server.agents.agent(listing.agent) if listing else None
    return ProcessEntry(
        kind="background",
        conversation=one.conversation or None,
        title=listing.title if listing else "",
        agent=listing.agent if listing else None,
        backend=agent.backend if agent else None,
        pid=one.pid,
        command=one.command,
        started_at=await _start_time(server, one),
        busy=True,
        idle_s=0.0,
    )


async def _start_time(server: ServerParts, one: Running) -> int | None:
    try:
        state = await server.directory.state(one.conversation, tail=0)
    except CallerError:
        return None  # Its conversation was deleted, and it is about to end.
    return next((known.started_at for known in state.processes if known.id == one.id), None)


ROUTES = [processes, end]
