"""Which conversations work for another: its subagents, theirs, and so on.

Asked by the directory when a conversation is deleted. Reads the list; knows nothing of owners.
"""

from palaver.log.base import EventLog
from palaver.schema.view import Listing

PAGE_ROWS = 500


async def subagents_below(log: EventLog, conversation: str) -> list[str]:
    """Those that are deleted already are left out."""
    top = await log.listing(conversation)
    if top is None:
        return []
    root = top.root if top.parent_kind == "subagent" and top.root else conversation
    # A branch has the same root, and is a conversation in its own right.
    family = [row for row in await _tree(log, root) if row.parent_kind == "subagent"]
    if root == conversation:
        return [row.id for row in family]
    found, above = list[str](), [conversation]
    while above:
        above = [row.id for row in family if row.parent in above]
        found += above
    return found


async def _tree(log: EventLog, root: str) -> list[Listing]:
    rows, cursor = list[Listing](), None
    while True:
        page = await log.list(limit=PAGE_ROWS, cursor=cursor, archived=None, children=True, root=root)
        rows += page.items
        cursor = page.next_cursor
        if cursor is None:
            return rows
