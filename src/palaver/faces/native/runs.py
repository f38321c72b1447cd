"""Runs: every turn of every conversation, those that work for it, what was said in it, and stopping it."""

from typing import Annotated, Literal

from litestar import get, post
from litestar.params import FromPath, FromQuery, QueryParameter

from palaver.agents.runs import RunContext, Runs
from palaver.faces.native.conversations import NativeRequest
from palaver.faces.server import Server, ServerParts, origin_of
from palaver.log.base import Run
from palaver.schema.base import Shown

PAGE_LIMIT = 500


class RunList(Shown):
    items: tuple[Run, ...]


class Cancelled(Shown):
    """The runs that were stopped, parents first."""

    cancelled: tuple[str, ...]


@get("/api/runs", operation_id="list_runs", tags=["runs"])
async def list_runs(
    server: Server,
    conversation: FromQuery[str | None] = None,
    project: FromQuery[str | None] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=PAGE_LIMIT)] = 100,
    before: FromQuery[str | None] = None,
) -> RunList:
    """Newest first; `before` names the last run of the page before. Of a conversation only its own, not its subagents'."""
    found = await _runs(server).list(conversation=conversation, project=project, limit=limit, before=before)
    return RunList(items=tuple(found))


@get("/api/runs/{run:str}", operation_id="get_run", tags=["runs"])
async def one(run: FromPath[str], server: Server) -> Run:
    return await _runs(server).get(run)


@get("/api/runs/{run:str}/children", operation_id="list_children_of_run", tags=["runs"])
async def children(run: FromPath[str], server: Server) -> RunList:
    """The runs of the subagents that work or worked for it, oldest first."""
    return RunList(items=tuple(await _runs(server).children(run)))


@get("/api/runs/{run:str}/context", operation_id="get_run_context", tags=["runs"])
async def context(
    run: FromPath[str], server: Server, view: FromQuery[Literal["summary", "raw"]] = "summary"
) -> RunContext:
    """What was said in it, counted; with `view=raw` the messages too."""
    return await _runs(server).context(run, raw=view == "raw")


@post("/api/runs/{run:str}/cancel", status_code=200, operation_id="cancel_run", tags=["runs"])
async def cancel(run: FromPath[str], request: NativeRequest, server: Server) -> Cancelled:
    """Stop a run and everything that works for it. One that is over, or unknown, leaves the list empty."""
    return Cancelled(cancelled=tuple(await _runs(server).cancel(run, origin_of(request, "native"))))


def _runs(server: ServerParts) -> Runs:
    return Runs(server.directory, server.log)


ROUTES = [list_runs, one, children, context, cancel]
