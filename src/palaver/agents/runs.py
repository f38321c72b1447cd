"""Runs as a person or another program looks at them: listed, read, and stopped with all that work for them.

A run is a turn; its children are the turns of the subagents it gave tasks to. Called by faces, which only translate. Reads
the log's index, and stops runs as anybody would: through the owners of their conversations.
"""

from collections import deque
from collections.abc import Sequence

from palaver.conversation.directory import Directory
from palaver.errors import CallerError, NotFound
from palaver.log.base import EventLog, Run
from palaver.schema.base import Origin, Shown
from palaver.schema.commands import Interrupt, StopTurn
from palaver.schema.view import Message

PAGE_MESSAGES = 200
"""Read at once when a turn's messages are looked for, from the end of its conversation."""
_END = (1 << 63) - 1


class ContextSummary(Shown):
    message_count: int
    user_messages: int
    agent_messages: int
    system_messages: int
    """What neither a person nor the agent said: events, plans, summaries."""
    started_at: int
    ended_at: int | None


class RunContext(Shown):
    """What was said in a run. `messages` only in the raw view."""

    run: Run
    summary: ContextSummary
    messages: tuple[Message, ...] | None = None


class Runs:
    def __init__(self, directory: Directory, log: EventLog) -> None:
        self._directory = directory
        self._log = log

    async def list(
        self,
        *,
        conversation: str | None = None,
        project: str | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> Sequence[Run]:
        """Newest first."""
        return await self._log.runs(conversation=conversation, project=project, limit=limit, before=before)

    async def get(self, run: str) -> Run:
        known = await self._log.run(run)
        if known is None:
            raise NotFound("No such run. Its conversation may have been deleted.", run=run)
        return known

    async def children(self, run: str) -> Sequence[Run]:
        await self.get(run)
        return await self._log.children_of_run(run)

    async def context(self, run: str, *, raw: bool = False) -> RunContext:
        known = await self.get(run)
        messages = await self._messages(known)
        users = sum(message.role == "user" for message in messages)
        agents = sum(message.role == "assistant" for message in messages)
        summary = ContextSummary(
            message_count=len(messages),
            user_messages=users,
            agent_messages=agents,
            system_messages=len(messages) - users - agents,
            started_at=known.started_at,
            ended_at=known.ended_at,
        )
        return RunContext(run=known, summary=summary, messages=tuple(messages) if raw else None)

    async def _messages(self, run: Run) -> Sequence[Message]:
        """A turn's messages stand together, so the walk ends where they begin. Attempts that were replaced do not count."""
        found: list[Message] = []
        before = _END
        while page := await self._directory.messages(run.conversation, before, PAGE_MESSAGES):
            before = page[0].seq
            for message in reversed(page):
                if message.turn == run.run:
                    found.append(message)
                elif found and message.role in ("user", "assistant"):
                    return _visible_messages(found)
        return _visible_messages(found)

    async def cancel(self, run: str, origin: Origin | None) -> Sequence[str]:
        """Stops a run and whatever works for it, parents first; answers which were stopped. Queues stay as they are."""
        top = await self._log.run(run)
        stopped: dict[str, Run] = {}
        # Looked at again after a stop: what was about to begin when its parent was stopped.
        while top is not None and (fresh := await self._running(top, stopped)):
            for known in fresh:
                stopped[known.run] = known
                await self._stop(known, origin, of_its_own=known.run == run)
            top = await self._log.run(run)
        ended = [await self._log.run(known) for known in stopped]
        return [known.run for known in ended if known is not None and known.status == "cancelled"]

    async def _running(self, top: Run, stopped: dict[str, Run]) -> Sequence[Run]:
        """Those of its tree that still run, parents first."""
        found: list[Run] = []
        waiting = deque([top])
        while waiting:
            known = waiting.popleft()
            if known.run not in stopped:
                if known.status != "running":
                    continue
                found.append(known)
            waiting.extend(await self._log.children_of_run(known.run))
        return found

    async def _stop(self, run: Run, origin: Origin | None, *, of_its_own: bool) -> None:
        command = Interrupt(turn=run.run) if of_its_own else StopTurn(reason="parent", turn=run.run)
        try:
            await self._directory.command(run.conversation, command, origin)
        except CallerError:
            return  # Its conversation was deleted meanwhile, and the run ended with it.


def _visible_messages(newest_first: Sequence[Message]) -> list[Message]:
    return [message for message in reversed(newest_first) if message.status != "superseded"]
