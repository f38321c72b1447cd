"""What the tools of an inbox do, whatever carries the call: read, post, let the turn end.

Called by the MCP servers with the caller already known. Every act is a command of the core or a read of the log.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from palaver.errors import Forbidden, Invalid
from palaver.faces.inbox.caller import Visit
from palaver.faces.inbox.default import begin, generation_of
from palaver.faces.inbox.pages import EMPTY, Page, Pages
from palaver.faces.inbox.projection import is_of_earlier_generation
from palaver.faces.inbox.tools import (
    InboxTool,
    PostArguments,
    ReadArguments,
    YieldArguments,
    check_mime,
    decode_arguments,
)
from palaver.faces.rights import Side
from palaver.faces.server import ServerParts, origin_for
from palaver.schema.base import Origin
from palaver.schema.commands import PostAnswer, SendMessage, YieldTurn
from palaver.schema.content import TextPart

FACE = "inbox"


class Acts:
    """On one conversation, by one caller."""

    def __init__(self, server: ServerParts, side: Side, visit: Visit) -> None:
        self._server = server
        self._side = side
        self._begun = visit.begun
        self._conversation = visit.conversation
        self._caller = visit.caller
        self._client = visit.client
        self._pages = Pages(server.log)

    async def newest(self) -> Page:
        return await self._pages.newest(self._conversation) if self._begun else EMPTY

    async def call(self, tool: InboxTool, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        match tool.act:
            case "read":
                asked = decode_arguments(arguments, ReadArguments)
                self._subscriber(asked.subscriber)
                return dict(msgspec.to_builtins(await self._since(asked)))
            case "post":
                return await self._post(decode_arguments(arguments, PostArguments))
            case "yield":
                wanted = decode_arguments(arguments, YieldArguments)
                origin = self._origin(wanted.subscriber)
                if self._begun:
                    await self._server.directory.command(self._conversation, YieldTurn(), origin)
                return {"ok": True}

    async def _since(self, asked: ReadArguments) -> Page:
        if self._begun:
            return await self._pages.since(self._conversation, asked.after_id, asked.limit)
        if asked.after_id is None:
            return EMPTY
        # One that was deleted had ids too: a mark of it is before all that will be posted here.
        if is_of_earlier_generation(asked.after_id, generation_of(self._conversation)):
            return Page(last_id=asked.after_id, messages=[])
        raise Invalid("`after_id` is of another inbox: nobody has posted to this one yet.")

    async def _post(self, asked: PostArguments) -> dict[str, Any]:
        if not asked.content.strip():
            raise Invalid("`content` says nothing.")
        content = (TextPart(text=asked.content, mime=check_mime(asked.mime)),)
        origin = self._origin(asked.subscriber)
        command = (
            SendMessage(content=content, delivery="boundary")
            if self._side == "human"
            else PostAnswer(content=content, agent=origin.agent)
        )
        if not self._begun:
            await begin(self._server.directory, self._conversation, origin)
        accepted = await self._server.directory.command(self._conversation, command, origin)
        message = await self._pages.message_of_command(accepted)
        return {"id": message.id, "ts": message.ts}

    def _subscriber(self, named: str | None) -> str:
        if named is None or named == self._caller.name:
            return self._caller.name
        if self._caller.kind != "owner":
            raise Forbidden("Only an owner's token may act for another subscriber.")
        return named

    def _origin(self, subscriber: str | None) -> Origin:
        name = self._subscriber(subscriber)
        # The owner itself is no agent: what it posts without naming one is said by the conversation's own.
        speaks = self._side == "assistant" and (self._caller.kind == "agent" or subscriber is not None)
        origin = origin_for(self._caller, FACE, self._client, name if speaks else None)
        return replace(origin, user=name)
