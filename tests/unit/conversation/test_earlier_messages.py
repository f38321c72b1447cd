"""Messages before those in memory: read once, and never wrong."""

from collections.abc import Sequence

import msgspec
import pytest

from palaver.conversation import earlier_messages as module
from palaver.conversation.earlier_messages import Older
from palaver.log.base import StoredMessage
from palaver.log.memory import MemoryLog
from palaver.schema.view import Message, State, TextBlock

pytestmark = pytest.mark.anyio


class Counting(MemoryLog):
    """A log that says how many messages were read."""

    def __init__(self, messages: Sequence[Message]) -> None:
        super().__init__()
        self.messages = list(messages)
        self.read_count = 0

    async def messages_before(self, conversation: str, before_seq: int, limit: int) -> Sequence[StoredMessage]:
        found = [message for message in self.messages if message.seq < before_seq][-limit:]
        self.read_count += len(found)
        return [StoredMessage(message.seq, msgspec.json.encode(message)) for message in found]


def message(seq: int, text: str = "hi") -> Message:
    return Message(id=f"m{seq}", role="user", seq=seq, updated_seq=seq, ts=seq, blocks=(TextBlock(index=0, text=text),))


ALL = [message(seq * 10) for seq in range(1, 11)]


def tail(count: int, messages: Sequence[Message] = ALL) -> State:
    return State(conversation="c", seq=1_000, messages=tuple(messages[-count:]), offset=len(messages) - count)


async def test_what_is_in_memory_already_is_not_looked_for() -> None:
    log = Counting(ALL)
    assert await Older(log, "c").before(tail(10)) == ()
    assert log.read_count == 0


async def test_the_same_messages_are_read_once() -> None:
    log = Counting(ALL)
    older = Older(log, "c")
    assert list(await older.before(tail(3))) == ALL[:7]
    assert list(await older.before(tail(3))) == ALL[:7]
    assert log.read_count == 7


async def test_what_left_memory_since_is_read_and_nothing_else() -> None:
    log = Counting(ALL)
    older = Older(log, "c")
    await older.before(tail(6))
    assert list(await older.before(tail(2))) == ALL[:8]
    assert log.read_count == 8


async def test_a_shorter_or_rewritten_history_is_read_anew() -> None:
    log = Counting(ALL)
    older = Older(log, "c")
    await older.before(tail(2))
    assert list(await older.before(tail(5))) == ALL[:5]
    log.messages = [message(one.seq, "rewritten") for one in ALL]
    older.forget()
    assert list(await older.before(tail(2, log.messages))) == log.messages[:8]
    log.messages = [message(seq) for seq in (1, 2, 3, 4, 5, 6, 7, 8, 79, 100)]
    assert list(await older.before(tail(1, log.messages))) == log.messages[:9]


async def test_a_huge_history_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT_BYTES", 10)
    log = Counting(ALL)
    older = Older(log, "c")
    for _ in range(2):
        assert list(await older.before(tail(3))) == ALL[:7]
    assert log.read_count == 14
