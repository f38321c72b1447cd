"""What of a conversation the pages for people show: who spoke, when, and which messages are theirs to see.

Shared by markdown and HTML, so that both tell the same story. Pure.
"""

from datetime import UTC, datetime

from palaver.core.text import special_blocks
from palaver.schema.view import Block, Message, State, TextBlock, ToolBlock

MODEL_SEPARATOR = " · "


def visible_messages(state: State) -> list[Message]:
    """What a person saw: neither what only the agent was told, nor attempts that were taken back."""
    return [message for message in state.messages if not message.hidden and message.status != "superseded"]


def speaker(message: Message, agent: str) -> str:
    match message.role:
        case "user":
            return "You"
        case "assistant":
            return message.agent or agent
        case "event":
            return (message.event_kind or "event").replace("_", " ").capitalize()
        case "system" | "plan" | "summary":
            return message.role.capitalize()


def when(ts_ms: int) -> str:
    """In UTC: a file is read elsewhere, and later."""
    return datetime.fromtimestamp(ts_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def outcome(tool: ToolBlock) -> str:
    """How a call ended, in a word or two."""
    match tool.status:
        case "ok":
            return "done" if tool.exit_code in (None, 0) else f"exit {tool.exit_code}"
        case "error":
            return f"failed, exit {tool.exit_code}" if tool.exit_code else "failed"
        case "denied":
            return "denied"
        case "interrupted":
            return "interrupted"
        case _:
            return "under way"


def special_of(message: Message, block: Block) -> special_blocks.SpecialBlock | None:
    """The structured answer a block holds: only an agent's finished text is one."""
    if message.role != "assistant" or not isinstance(block, TextBlock) or block.status != "done":
        return None
    return special_blocks.parse(block.text)


def result(tool: ToolBlock) -> str:
    parts = [tool.error.message if tool.error else "", tool.output]
    return "\n".join(part for part in parts if part)
