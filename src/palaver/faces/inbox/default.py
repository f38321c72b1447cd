"""The server's default inbox: one conversation for all who name none, made by the first post to it.

Asked by the door when an address names no conversation. One that was deleted stays so: the next post begins another.
"""

import re

from palaver.conversation.directory import Directory
from palaver.log.base import EventLog
from palaver.schema.base import Origin
from palaver.schema.commands import CreateConversation

NAME = "default-inbox"
TITLE = "Inbox"

_SUCCESSOR = re.compile(rf"{NAME}-([1-9]\d{{0,3}})", re.ASCII)
"""Four digits at most: the generation must fit into the ids of messages, which have a fixed width."""


def generation_of(conversation: str) -> int:
    """How many default inboxes came before this one; 0 for the first and for every other conversation."""
    match = _SUCCESSOR.fullmatch(conversation)
    return int(match[1]) - 1 if match else 0


async def default_inbox(log: EventLog) -> tuple[str, bool]:
    """Its id, and whether it has begun."""
    number = 1
    while True:
        conversation = NAME if number == 1 else f"{NAME}-{number}"
        listing = await log.listing(conversation)
        if listing is None or not listing.deleted:
            return conversation, listing is not None
        number += 1


async def begin(directory: Directory, conversation: str, origin: Origin) -> None:
    """Once, however many post at the same moment."""
    await directory.create(CreateConversation(id=conversation, title=TITLE), origin)
