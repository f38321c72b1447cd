"""Takes a command: once for each request id, answered in the contract's words, and told to all who follow the chat.

Called by the route of commands. The log remembers every request id; what an id was used for is told from another body by
saying it again as the chat was then. A refused command leaves nothing behind, so its id can be used.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, assert_never

from litestar import Request
from msgspec import structs

from palaver.conversation.project_files.trajectories import FOREIGN_PLACE, PLACE, ForeignFile, read_trajectory
from palaver.conversation.rewrite import Filling
from palaver.core.decide.decide import body_hash
from palaver.core.fold.evolve import fold
from palaver.core.openai_index import owner_of
from palaver.core.state import NOTICE
from palaver.errors import Busy, CallerError, Conflict, Forbidden, Gone, Invalid, NotFound
from palaver.faces.chats.commands import (
    AskBranchFromChat,
    Asked,
    AskRestoreFromTrajectory,
    AskRestoreMessages,
    Filled,
    OfMessages,
    Read,
    Translated,
    digest_of,
    fill_of,
    meant_by,
    status_for,
)
from palaver.faces.chats.messages import Json
from palaver.faces.chats.rooms import Rooms
from palaver.faces.rights import CHAT_COMMANDS, require, role_for
from palaver.faces.server import ServerParts, origin_of
from palaver.history.trajectory import Trajectory, messages_of, trajectory_of
from palaver.log.base import Used
from palaver.people.authentication import Principal
from palaver.schema.base import ID_PATTERN, Origin
from palaver.schema.commands import CreateConversation, Fill
from palaver.schema.events import decode_event
from palaver.schema.view import Message, State, TextBlock

ID = re.compile(ID_PATTERN)

ChatsRequest = Request[Principal, Principal, Any]

STATUSES: Mapping[str, int] = {
    "accepted": 202,
    "applied": 200,
    "aborted": 200,
    "duplicate": 200,
    "invalid_content": 400,
    "queue_full": 429,
}
REPEATED = "This client_request_id was used for another command. Use a fresh id for a new command."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a command. `seq` of the log moved if it changed anything."""

    status: str
    error: str | None = None
    made_id: str | None = None
    """The request id that the server made, where the client gave none."""

    @property
    def body(self) -> Json:
        said = self.result if self.status == "invalid_content" else {"status": self.status}
        return said if self.made_id is None else {**said, "client_request_id": self.made_id}

    @property
    def result(self) -> Json:
        """The same for the ack, with words to each refusal."""
        return {"status": self.status} if self.error is None else {"status": self.status, "error": self.error}

    @property
    def accepted(self) -> bool:
        return STATUSES[self.status] < 300


async def take(chat: str, read: Read, request: ChatsRequest, server: ServerParts, rooms: Rooms) -> Outcome:
    """Raises Forbidden and Gone, which are acked too, or a failure of the log; all else is an outcome."""
    request_id = read.client_request_id or server.ids.new()
    made_id = None if read.client_request_id else request_id
    if isinstance(read.asked, Invalid):
        outcome = Outcome("invalid_content", read.asked.message, made_id)
        rooms.tell_ack(chat, request_id, False, outcome.result, takes_number=False)
        return outcome
    asked = structs.replace(read.asked, client_request_id=request_id)
    async with rooms.one_at_a_time(chat, request_id):
        try:
            outcome = await _outcome(chat, asked, request_id, request, server)
        except (Forbidden, Gone) as refused:
            result = {"status": refused.code, "error": refused.message}
            rooms.tell_ack(chat, request_id, False, result, takes_number=False)
            raise
        rooms.tell_ack(
            chat,
            request_id,
            outcome.accepted,
            outcome.result,
            takes_number=outcome.accepted and outcome.status != "duplicate",
        )
    return replace(outcome, made_id=made_id)


async def _outcome(chat: str, asked: Asked, request_id: str, request: ChatsRequest, server: ServerParts) -> Outcome:
    # Also to be told that an id was used.
    require(request.auth, CHAT_COMMANDS[str(asked.__struct_config__.tag)])
    try:
        await make(chat, server, request)
        taking = _Taking(chat, asked, request, server)
        used = await server.log.used(chat, request_id)
        if used is not None:
            return Outcome("duplicate") if await taking.is_same(used) else Outcome("invalid_content", REPEATED)
        await taking.do()
    except (Forbidden, Gone):
        raise
    except Busy as full:
        return Outcome("queue_full", full.message)
    except CallerError as refused:
        return Outcome("invalid_content", refused.message)
    return Outcome(status_for(asked))


async def make(chat: str, server: ServerParts, request: ChatsRequest) -> None:
    """A chat is made if there is none; what a trajectory of that id says is in it. Raises Gone for a deleted one."""
    if await server.log.head(chat) is not None:
        await server.directory.state(chat, tail=0)
        return
    require(request.auth, "send")
    origin = origin_of(request, "chats")
    with suppress(Conflict):  # Somebody else made it a moment ago, with other words.
        await server.directory.create(CreateConversation(id=chat), origin)
    messages, title = await _beginning(chat, server)
    if messages:
        digest = blake2b(chat.encode(), digest_size=16).hexdigest()
        kept = Fill(client_request_id=f"kept-{chat}"[:128], messages=(), digest=digest)
        with suppress(Conflict):
            await filling(server).restore(chat, messages, title, kept, origin)


async def _beginning(chat: str, server: ServerParts) -> tuple[Sequence[Message], str]:
    """Messages and title of the trajectory file of a new chat. A file that cannot be used is named in a notice."""
    try:
        found = await asyncio.to_thread(read_from, server.directory.home, chat)
        trajectory = None if found is None else trajectory_of(found)
    except (ForeignFile, Invalid) as unusable:
        text = f"The trajectory file of this chat was not loaded: {unusable}"
        block = TextBlock(index=0, text=text)
        return (Message(id="", role="event", seq=1, updated_seq=1, ts=0, blocks=(block,), event_kind=NOTICE),), ""
    return ((), "") if trajectory is None else (trajectory.messages, trajectory.title)


def filling(server: ServerParts) -> Filling:
    return Filling(server.directory, server.log, server.feed, server.clock, server.ids)


def find_document(project: Path, trajectory: str) -> Json | None:
    """The document beside a project: ours, or another program's."""
    with suppress(ForeignFile):
        return read_from(project, trajectory)
    return None


def read_from(project: Path, trajectory: str) -> Json | None:
    """As `find_document`, but raises ForeignFile where a file of that name is neither."""
    if not ID.fullmatch(trajectory):
        return None
    unusable: ForeignFile | None = None
    for place in (PLACE, FOREIGN_PLACE):
        try:
            document = read_trajectory(project, trajectory, place)
        except ForeignFile as foreign:
            unusable = unusable or foreign
            continue
        if document is not None:
            return document
    if unusable is not None:
        raise unusable
    return None


class _Taking:
    """One command to one chat."""

    def __init__(self, chat: str, asked: Asked, request: ChatsRequest, server: ServerParts) -> None:
        self._chat = chat
        self._asked = asked
        self._request = request
        self._server = server

    @property
    def _origin(self) -> Origin:
        return origin_of(self._request, "chats")

    async def do(self) -> None:
        match self._asked:
            case AskBranchFromChat() | AskRestoreFromTrajectory() | AskRestoreMessages():
                require(self._request.auth, "send")
                await self._fill(self._asked)
            case _:
                meant = meant_by(self._asked, await self._state(), decides=self._request.auth.may("decide"))
                for command in (meant.command, meant.then):
                    if command is not None:
                        require(self._request.auth, role_for(command))
                for command in (meant.command, meant.then):
                    if command is not None:
                        await self._server.directory.command(self._chat, command, self._origin, remembers=True)

    async def _state(self) -> State:
        """What names a message or a place needs all of them."""
        directory = self._server.directory
        return await (directory.whole if isinstance(self._asked, OfMessages) else directory.state)(self._chat)

    async def is_same(self, used: Used) -> bool:
        """Whether the id was used for this very command."""
        match self._asked:
            case AskBranchFromChat() | AskRestoreFromTrajectory() | AskRestoreMessages():
                return used.body_hash == digest_of(self._asked)
            case _:
                # The same words may mean another place by now, so they are read as they were then.
                if await self._means(self._asked, await self._state()) == used.body_hash:
                    return True
                then = await _state_at(self._server, self._chat, used.first - 1)
                return await self._means(self._asked, then) == used.body_hash

    async def _means(self, asked: Translated, state: State) -> str | None:
        try:
            meant = meant_by(asked, state, decides=self._request.auth.may("decide"))
            return body_hash(await self._server.directory.fit(meant.command))
        except CallerError:
            return None

    async def _fill(self, asked: Filled) -> None:
        wanted, fill = fill_of(asked), filling(self._server)
        match asked:
            case AskBranchFromChat():
                last = asked.up_to_message_id
                if last is not None:
                    source = await self._server.directory.whole(asked.source_chat_id)
                    last = owner_of(last, source) or last
                await fill.branch(self._chat, asked.source_chat_id, last, wanted, self._origin)
            case AskRestoreFromTrajectory() | AskRestoreMessages():
                messages, title, is_own = await self._read_messages(asked.trajectory_id, asked.messages)
                await fill.restore(self._chat, messages, title, structs.replace(wanted, own=is_own), self._origin)
            case _:
                assert_never(asked)

    async def _read_messages(
        self, trajectory: str | None, messages: Sequence[Any] | None
    ) -> tuple[Sequence[Message], str, bool]:
        """The messages, a title, and whether they are of a conversation of this server."""
        if messages is not None:
            return messages_of(messages), "", False
        if trajectory is None:
            raise Invalid("Say what to restore: a `trajectory_id`, or `messages`.")
        if trajectory != self._chat:
            try:
                source = await self._server.directory.whole(trajectory)
            except (NotFound, Gone):
                pass
            else:
                return source.messages, source.title, True
        kept = await self._read(trajectory)
        return kept.messages, kept.title, False

    async def _read(self, trajectory: str) -> Trajectory:
        project = (await self._server.directory.state(self._chat, tail=0)).project
        try:
            document = await asyncio.to_thread(read_from, Path(project or self._server.directory.home), trajectory)
        except ForeignFile as foreign:
            raise Invalid(f"There is no such trajectory: {foreign}") from None
        if document is None:
            raise NotFound("There is no such trajectory.")
        return trajectory_of(document)


async def _state_at(server: ServerParts, chat: str, seq: int) -> State:
    """The view as it was: all of its log up to a number."""
    state = State()
    while state.seq < seq and (segments := await server.log.read(chat, state.seq)):
        for segment in segments:
            events = (decode_event(line) for line in segment.body.splitlines())
            state = fold(state, (event for event in events if state.seq < event.seq <= seq))
    return state
