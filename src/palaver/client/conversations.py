"""Conversations: what is asked of them, what they hold, what is found in them, and how they come in and go out as files.

A part of `Client`. Commands carry a client request id, so one whose answer was lost is simply sent again.
"""

from collections.abc import AsyncGenerator
from typing import Literal
from urllib.parse import quote
from uuid import uuid4

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from palaver.client.connection import SILENCE_S, Connection, error_of
from palaver.client.transport import Body
from palaver.schema.commands import Accepted, Command, CreateConversation
from palaver.schema.view import Listing, Message, Request, State

PAGE = 500
"""As many rows of the list as a server gives at once."""
UPLOAD_S = 120.0
"""Ten megabytes over a slow line."""


class _Listings(Struct):
    items: list[Listing]
    next_cursor: str | None = None


class _Messages(Struct):
    items: list[Message]


class WaitingRequest(Struct):
    """`conversation` is where it is answered, `root` the one at the top of its tree."""

    conversation: str
    request: Request
    title: str = ""
    agent: str = ""
    root: str | None = None
    parent_kind: str | None = None


class _Requests(Struct):
    items: list[WaitingRequest]
    recent: list[WaitingRequest] = []


class Hit(Struct):
    conversation: str
    message: str
    seq: int
    role: str
    before: str
    match: str
    after: str
    title: str = ""


class _Hits(Struct):
    items: list[Hit]


class Uploaded(Struct):
    """An image that a message may show by its `url`."""

    id: str
    url: str
    mime: str = ""
    size: int = 0
    name: str = ""


class Imported(Struct):
    """What was made of a file, or would be."""

    format: str
    title: str
    agent: str
    message_count: int
    conversation: str | None = None
    project: str | None = None
    left_out: tuple[str, ...] = ()


class TakenOver(Struct):
    """What became of a conversation that another program kept, or would."""

    program: str
    session: str
    conversation: str
    outcome: str
    title: str = ""
    message_count: int = 0
    added: int = 0
    note: str | None = None


class _TakenOver(Struct):
    items: list[TakenOver]


class Conversations(Connection):
    # -- commands

    async def create(self, body: CreateConversation) -> Accepted:
        if body.client_request_id is None and body.id is None:
            body = replace(body, client_request_id=str(uuid4()))
        return await self._send("POST", "/api/conversations", body, Accepted)

    async def command(self, conversation: str, command: Command) -> Accepted:
        """On disk when it returns, exactly once, also when the connection broke on the way."""
        if command.client_request_id is None:
            command = replace(command, client_request_id=str(uuid4()))
        return await self._send("POST", f"/api/conversations/{conversation}/commands", command, Accepted)

    async def upload(self, content: bytes, name: str) -> Uploaded:
        """Keeps an image. Kept under the hash of its bytes, so a second time changes nothing."""
        boundary = uuid4().hex
        kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        form = _form(content, name, boundary)
        body = await self._exchange("POST", "/api/uploads", kind, None, form, UPLOAD_S)
        return msgspec.json.decode(body, type=Uploaded)

    # -- reading

    async def blob(self, blob: str) -> bytes:
        """What is kept beside the events under this id: a long output, a long text, an image."""
        return await self._body("GET", f"/api/blobs/{quote(blob, safe='')}", limit_s=UPLOAD_S)

    async def conversation(self, conversation: str) -> Listing:
        return await self._get(f"/api/conversations/{conversation}", Listing)

    async def snapshot(self, conversation: str, tail: int = 100) -> State:
        return await self._get(f"/api/conversations/{conversation}/snapshot", State, {"tail": tail})

    async def messages(self, conversation: str, before_seq: int, limit: int = 100) -> list[Message]:
        query = {"before": before_seq, "limit": limit}
        return (await self._get(f"/api/conversations/{conversation}/messages", _Messages, query)).items

    async def conversations(
        self,
        limit: int = 50,
        query: str | None = None,
        *,
        root: str | None = None,
        project: str | None = None,
        archived: Literal["false", "true", "all"] = "false",
    ) -> list[Listing]:
        """With `root` one conversation and all that began from it, subagents too; else without those."""
        wanted = {"limit": limit, "query": query, "root": root, "project": project, "archived": archived}
        return (await self._get("/api/conversations", _Listings, wanted)).items

    async def every_conversation(self) -> AsyncGenerator[Listing, None]:
        """All of them, the archived and the subagents' too, newest first."""
        cursor: str | None = None
        while True:
            query = {"limit": PAGE, "archived": "all", "children": "true", "cursor": cursor}
            page = await self._get("/api/conversations", _Listings, query)
            for listing in page.items:
                yield listing
            cursor = page.next_cursor
            if cursor is None:
                return

    async def requests(self, root: str | None = None) -> list[WaitingRequest]:
        """All that waits for a person, oldest first; with `root`, in one conversation and its subagents."""
        return (await self._get("/api/requests", _Requests, {"root": root})).items

    async def recent_requests(self, limit: int = 20, root: str | None = None) -> list[WaitingRequest]:
        """Those that were answered, expired or withdrawn last, newest first, with their `resolution`; 100 at most."""
        return (await self._get("/api/requests", _Requests, {"root": root, "recent": limit})).recent

    async def search(self, query: str, limit: int = 20, conversation: str | None = None) -> list[Hit]:
        """The newest first; with `conversation` in that one alone."""
        wanted = {"q": query, "limit": limit, "conversation": conversation}
        return (await self._get("/api/search", _Hits, wanted)).items

    # -- files

    async def export(self, conversation: str, format: str) -> AsyncGenerator[bytes, None]:
        """A conversation as a file, in pieces. Raises Unreachable when it breaks off: half a file is no file."""
        url = f"{self._base_url}/api/conversations/{conversation}/export"
        try:
            async with self._http.request(
                "GET", url, self._headers, {"format": format}, silence_s=SILENCE_S
            ) as response:
                if response.status >= 400:
                    raise error_of(response.status, await response.read())
                async for piece in response.pieces():
                    yield piece
        except OSError as failure:
            raise self._unreachable(failure) from failure

    async def bring(
        self,
        file: Body,
        *,
        format: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        dry_run: bool = False,
    ) -> Imported:
        """Make a conversation from an exported file, or only say what it would be. Made once, whatever breaks."""
        wishes = {"format": format, "title": title, "agent": agent, "project": project}
        query = {name: value for name, value in wishes.items() if value is not None}
        query |= {"dry_run": str(dry_run).lower(), "client_request_id": str(uuid4())}
        return await self._send("POST", "/api/conversations/import", file, Imported, query)

    async def take_over(
        self, conversations: Body, *, agent: str | None = None, dry_run: bool = False
    ) -> list[TakenOver]:
        """Conversations that another program kept, one JSON object a line, become ours. What is known is not made again."""
        query = {"dry_run": str(dry_run).lower(), **({"agent": agent} if agent else {})}
        return (await self._send("POST", "/api/import/conversations", conversations, _TakenOver, query)).items


def _form(content: bytes, name: str, boundary: str) -> bytes:
    """A file as browsers send one from a form."""
    for character, quoted in (('"', "%22"), ("\r", "%0D"), ("\n", "%0A")):
        name = name.replace(character, quoted)
    head = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
