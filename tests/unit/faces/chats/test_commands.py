"""Commands as a client may write them: the names of the seed and those of the contract."""

from typing import Any

import msgspec
import pytest

from palaver.errors import Invalid
from palaver.faces.chats.commands import read_command

SPELLINGS: list[tuple[str, dict[str, Any]]] = [
    ("UserMessage", {"content": "x"}),
    ("SetParams", {"patch": {"temperature": 1}}),
    ("UpdateMessage", {"message_id": "m", "content": "x"}),
    ("RemoveMessage", {"message_id": "m"}),
    ("TruncateMessages", {"from_index": 0}),
    ("RetryFromIndex", {"index": 0, "content": "x"}),
    ("Abort", {}),
    ("ApproveTools", {}),
    ("RejectTools", {}),
    ("BranchFromChat", {"source_chat_id": "c"}),
    ("RestoreFromTrajectory", {"trajectory_id": "t"}),
    ("ClearDraft", {}),
    ("SetDraft", {"text": "x"}),
    ("Regenerate", {}),
    ("IdeToolResult", {"tool_call_id": "c", "content": "x"}),
]


@pytest.mark.parametrize(("word", "fields"), SPELLINGS, ids=[word for word, _ in SPELLINGS])
def test_both_spellings_of_a_type_are_one_command(word: str, fields: dict[str, Any]) -> None:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in word).removeprefix("_")
    pascal, plain = (read_command(msgspec.json.encode({"type": type, **fields})) for type in (word, snake))
    assert pascal == plain
    assert not isinstance(pascal.asked, Invalid)
