"""The projects of a server: owns the stream of each, in the same log as the conversations but in no list of them.

A project is a folder. Its stream holds missions and overrides; what they mean is `core/project.py`. Called by faces and by
`missions.py`; calls log and feed. Like the owner of a conversation it decides, appends, and only then moves its view on and
publishes; one at a time for each project.
"""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec
from msgspec.structs import replace

from palaver.clock import Clock, Ids
from palaver.conversation.folders import ProjectFolders
from palaver.core import project
from palaver.core.decide.decision import Already, Refusal
from palaver.core.project import Decided, ProjectEvent, ProjectState
from palaver.errors import REFUSALS, Conflict, HeadMoved, LogUnavailable
from palaver.feed.feed import Feed
from palaver.log.base import Append, Claim, EventLog, lines_after
from palaver.schema.base import Origin
from palaver.schema.events import ConversationCreated, MissionAgent, decode_event, encode_event

PREFIX = "project-"
READ_BYTES = 256 << 10


def stream_of(folder: Path) -> str:
    """The stream of a resolved folder."""
    return PREFIX + blake2b(str(folder).encode(errors="surrogateescape"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class By:
    """Who asks for a change. The same client request id again changes nothing."""

    origin: Origin | None = None
    client_request_id: str | None = None


NOBODY = By()


class Projects:
    def __init__(self, log: EventLog, feed: Feed, clock: Clock, ids: Ids, folders: ProjectFolders) -> None:
        self._folders = folders
        self._log = log
        self._feed = feed
        self._clock = clock
        self._ids = ids
        self._known: dict[str, ProjectState] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._moved = asyncio.Event()

    # -- reading

    async def folder(self, name: str, *, person: bool) -> Path:
        """The folder a project is known by, for a person or for a token that may not choose one. Raises as `ProjectFolders`.

        What the log says of a project can be read, and a mission cleared, also when its folder is gone.
        """
        real = await asyncio.to_thread(_resolve, name)
        if real is not None and await self._log.head(stream_of(real)) is not None:
            return real
        return await self._folders.open(name, person=person)

    async def choose(self, name: str, origin: Origin) -> Path:
        """The folder that a person wants something said of, as `ProjectFolders` has it."""
        await self._folders.choose(name, origin)
        return await self.folder(name, person=True)

    async def state(self, folder: Path) -> ProjectState:
        """Of a resolved folder; one that nobody has said anything of has an empty one."""
        async with self._lock(stream_of(folder)):
            return await self._state(folder)

    async def all(self) -> Sequence[ProjectState]:
        """Every project that has a stream."""
        found: list[ProjectState] = []
        for stream in await self._log.streams(PREFIX):
            async with self._lock(stream):
                state = self._known.get(stream) or await self._load(stream)
            # A conversation may have been given a name that begins so.
            if state is not None and state.folder and stream_of(Path(state.folder)) == stream:
                self._known[stream] = state
                found.append(state)
        return found

    async def wait_for_change(self) -> None:
        """Returns after the next change of any project."""
        await self._moved.wait()

    # -- changing

    async def set_mission(
        self,
        folder: Path,
        text: str,
        agents: Sequence[MissionAgent],
        budget_usd: float | None = None,
        by: By = NOBODY,
    ) -> ProjectState:
        new = self._ids.new()
        asked = ("set", text, agents, budget_usd)
        return await self._change(
            folder, lambda _: project.set_mission(new, text, agents, budget_usd), by, _digest(asked)
        )

    async def clear_mission(self, folder: Path, by: By = NOBODY) -> ProjectState:
        return await self._change(folder, project.clear_mission, by, _digest("clear"))

    async def override(
        self, folder: Path, agent: str, changes: Mapping[str, str | int | None], by: By = NOBODY
    ) -> ProjectState:
        return await self._change(
            folder,
            lambda state: project.override_agent(state, agent, changes),
            by,
            _digest(("override", agent, dict(changes))),
        )

    async def trigger(
        self, folder: Path, mission: str, agent: str, prompt: str, target: str, spent_usd: float
    ) -> ProjectState:
        """Raises Conflict when the mission is over or has no wakings left."""
        return await self._change(
            folder, lambda state: project.trigger(state, mission, agent, prompt, target, spent_usd), NOBODY, ""
        )

    async def _change(
        self, folder: Path, decide: Callable[[ProjectState], Decided], by: By, digest: str
    ) -> ProjectState:
        stream = stream_of(folder)
        async with self._lock(stream):
            if by.client_request_id and await self._was_used(stream, by.client_request_id, digest):
                return await self._state(folder)
            state = await self._state(folder)
            decision = decide(state)
            match decision:
                case Refusal():
                    raise REFUSALS[decision.code](decision.message, **decision.details)
                case Already():
                    return state
                case _:
                    return await self._append(folder, state, decision, by, digest)

    async def _append(
        self, folder: Path, state: ProjectState, events: Sequence[ProjectEvent], by: By, digest: str
    ) -> ProjectState:
        stream, request = stream_of(folder), by.client_request_id
        numbered: list[ProjectEvent] = [
            replace(
                event,
                seq=seq,
                id=self._ids.new(),
                ts=self._clock.now_ms(),
                conversation=stream,
                project=str(folder),
                origin=by.origin,
                client_request_id=request,
                body_hash=digest if request else None,
            )
            for seq, event in enumerate(events, state.seq + 1)
        ]
        lines = [encode_event(event) for event in numbered]
        claims = [Claim(request, digest)] if request else []
        # Forgotten until it is certain: whoever is cut off here does not know what was written.
        self._known.pop(stream, None)
        try:
            await self._log.append(Append(stream, state.seq, lines, claims=claims))
        except HeadMoved as moved:
            raise LogUnavailable("This project was changed elsewhere at the same moment; try again.") from moved
        for event in numbered:
            state = project.evolve_project(state, event)
        self._known[stream] = state
        self._feed.publish(stream, numbered[0].seq, numbered[-1].seq, b"\n".join(lines) + b"\n")
        self._moved.set()
        self._moved.clear()
        return state

    async def _was_used(self, stream: str, client_request_id: str, digest: str) -> bool:
        used = await self._log.used(stream, client_request_id)
        if used is not None and used.body_hash != digest:
            raise Conflict("This client_request_id was used for another request.", client_request_id=client_request_id)
        return used is not None

    # -- folding

    async def _state(self, folder: Path) -> ProjectState:
        stream = stream_of(folder)
        known = self._known.get(stream) or await self._load(stream)
        if known is None:
            raise Conflict(
                f"A conversation was given the id {stream}, which belongs to this project.", project=str(folder)
            )
        if known.seq:
            self._known[stream] = known
        return known if known.folder else dataclasses.replace(known, folder=str(folder))

    async def _load(self, stream: str) -> ProjectState | None:
        """None: it is a conversation."""
        state = ProjectState()
        while segments := await self._log.read(stream, state.seq, READ_BYTES):
            for segment in segments:
                for line in lines_after(segment, state.seq):
                    event = decode_event(line)
                    if isinstance(event, ConversationCreated):
                        return None
                    state = project.evolve_project(state, event)
        return state

    def _lock(self, stream: str) -> asyncio.Lock:
        lock = self._locks.get(stream)
        if lock is None:
            lock = self._locks[stream] = asyncio.Lock()
        return lock


def _resolve(name: str) -> Path | None:
    try:
        return Path(name).resolve() if Path(name).is_absolute() else None
    except (OSError, RuntimeError, ValueError):
        return None  # A name that no file can have, or links in a circle.


def _digest(asked: object) -> str:
    return blake2b(msgspec.json.encode(asked, order="deterministic"), digest_size=16).hexdigest()
