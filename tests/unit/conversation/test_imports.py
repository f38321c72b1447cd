"""Taking over a long session: batch by batch, beside everybody else, and once, however often it breaks off."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from palaver.clock import Ids
from palaver.conversation import imported_conversation
from palaver.conversation.creation import Wishes
from palaver.conversation.imported_conversation import BATCH_BYTES, BATCH_MESSAGES, UNFINISHED, Taken
from palaver.conversation.imports import Imports, id_of_import
from palaver.errors import Invalid
from palaver.history.lazy_sequence import LazySequence
from palaver.history.programs.foreign import ForeignConversation
from palaver.log.base import EventLog
from palaver.log.memory import MemoryLog
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.commands import SendMessage, UpdateConversation
from palaver.schema.view import Message, Progress, State, TextBlock
from tests.unit.conversation.house import WAIT_S, House, open_house

LONG = 3 * BATCH_MESSAGES + 7
CONVERSATION = id_of_import("pi", "s")
WISHES = Wishes(project="/usr", knows=lambda _: False)


def message(number: int, text: str = "", status: Progress = "done") -> Message:
    return Message(
        id=f"message-{number}",
        role="user" if number % 2 else "assistant",
        seq=number,
        updated_seq=number,
        ts=1_790_000_000_000 + number,
        blocks=(TextBlock(index=0, text=text or f"text {number}"),),
        status=status,
    )


def session(messages: Sequence[Message], title: str = "Tides") -> ForeignConversation:
    return ForeignConversation(
        program="pi", session="s", messages=messages, title=title, created_at=1_790_000_000_000, updated_at=0
    )


def whole(count: int = LONG) -> ForeignConversation:
    return session([message(number) for number in range(1, count + 1)])


class Held:
    """A session of which only the first messages can be read until it is released, each time after the first."""

    def __init__(self, count: int, until: int) -> None:
        self.released = threading.Event()
        self.reached = threading.Event()
        self._count = count
        self._until = until
        self._walks = 0

    def session(self) -> ForeignConversation:
        return session(LazySequence(self._count, self._walk))

    def _walk(self, skip: int) -> Iterator[Message]:
        self._walks += 1
        # The first walk looks at all of it; the second is the import.
        holds = self._walks > 1
        for number in range(skip + 1, self._count + 1):
            if holds and number > self._until:
                self.reached.set()
                assert self.released.wait(WAIT_S)
            yield message(number)


def imports(house: House) -> Imports:
    return Imports(house.directory, house.log, house.feed, house.clock, Ids(house.clock))


async def take_over(house: House, foreign: ForeignConversation, *, dry: bool = False) -> Taken:
    return await asyncio.wait_for(imports(house).take_over(foreign, WISHES, None, dry=dry), WAIT_S)


async def texts(house: House) -> list[str]:
    state = await house.directory.whole(CONVERSATION)
    return [block.text for message in state.messages for block in message.blocks if isinstance(block, TextBlock)]


async def title(house: House) -> str:
    return (await house.directory.state(CONVERSATION)).title


async def test_long_session_is_whole_after_its_batches() -> None:
    async with open_house() as house:
        taken = await take_over(house, whole())
        state: State = await house.directory.whole(CONVERSATION)
        claims = [event.body_hash for event in await house.events(CONVERSATION) if event.body_hash]

        assert (taken.outcome, taken.added, taken.message_count) == ("made", LONG, LONG)
        assert await texts(house) == [f"text {number}" for number in range(1, LONG + 1)]
        assert [one.ts for one in state.messages] == [one.ts for one in whole().messages]
        assert (state.title, state.title_source, state.status) == ("Tides", "auto", "idle")
        assert [int(claim.partition("-")[0]) for claim in claims] == [200, 400, 600, LONG]


async def test_session_imported_again_is_known_and_one_that_grew_gets_the_rest() -> None:
    async with open_house() as house:
        await take_over(house, whole())
        before = await house.events(CONVERSATION)

        assert (await take_over(house, whole())).outcome == "known"
        assert await house.events(CONVERSATION) == before
        grown = await take_over(house, whole(LONG + BATCH_MESSAGES + 1))

        assert (grown.outcome, grown.added) == ("grown", BATCH_MESSAGES + 1)
        assert await texts(house) == [f"text {number}" for number in range(1, LONG + BATCH_MESSAGES + 2)]
        assert await title(house) == "Tides"
        assert (await take_over(house, whole(LONG))).outcome == "changed"


def test_batches_are_bounded_in_bytes() -> None:
    foreign = session([message(number, "x" * (BATCH_BYTES // 4)) for number in range(1, 11)])

    found = list(imported_conversation.batches(foreign, 0))

    assert [len(batch.messages) for batch in found] == [4, 4, 2]
    assert [batch.is_last for batch in found] == [False, False, True]


async def test_other_conversations_are_served_while_a_long_import_is_under_way() -> None:
    held = Held(LONG, until=BATCH_MESSAGES + 1)
    async with open_house() as house, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(take_over(house, held.session()))
        try:
            assert await asyncio.to_thread(held.reached.wait, WAIT_S)
            # The reader stands in the middle of the session, and goes on only when it is released below.
            other = await house.begin()
            await house.do(other, SendMessage(content="hello", client_request_id="one"))
            answered = await house.at_rest(other)
            under_way = await house.directory.state(CONVERSATION)
            row = await house.log.listing(CONVERSATION)
        finally:
            held.released.set()
        taken = await running

        assert answered.last_turn is not None
        assert not taken.note
        assert (under_way.title, row and row.title) == (f"Tides{UNFINISHED}", f"Tides{UNFINISHED}")
        assert row is not None
        assert row.message_count == BATCH_MESSAGES
        assert (await title(house), len(await texts(house))) == ("Tides", LONG)


async def interrupt(house: House, held: Held) -> None:
    running = asyncio.create_task(take_over(house, held.session()))
    assert await asyncio.to_thread(held.reached.wait, WAIT_S)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    held.released.set()


async def test_import_that_broke_off_says_so_and_goes_on_where_it_stopped() -> None:
    log = MemoryLog()
    async with open_house(log) as house:
        await interrupt(house, Held(LONG, until=2 * BATCH_MESSAGES + 5))
        assert await title(house) == f"Tides{UNFINISHED}"
        assert len(await texts(house)) == 2 * BATCH_MESSAGES
        dry = await take_over(house, whole(), dry=True)
    async with open_house(log) as house:  # As after a restart.
        taken = await take_over(house, whole())

        assert (dry.outcome, dry.added) == (taken.outcome, taken.added) == ("grown", LONG - 2 * BATCH_MESSAGES)
        assert await title(house) == "Tides"
        assert await texts(house) == [f"text {number}" for number in range(1, LONG + 1)]
        assert (await take_over(house, whole())).outcome == "known"


async def test_broken_off_import_with_a_title_of_a_persons_own_keeps_it() -> None:
    async with open_house() as house:
        await interrupt(house, Held(LONG, until=BATCH_MESSAGES + 5))
        await house.do(CONVERSATION, UpdateConversation(title="Mine"))
        await interrupt(house, Held(LONG, until=2 * BATCH_MESSAGES + 5))
        unfinished = await title(house)
        await take_over(house, whole())

        assert (unfinished, await title(house)) == (f"Mine{UNFINISHED}", "Mine")


async def test_person_who_goes_on_during_an_import_ends_it() -> None:
    held = Held(LONG, until=BATCH_MESSAGES + 1)
    async with open_house() as house, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(take_over(house, held.session()))
        try:
            assert await asyncio.to_thread(held.reached.wait, WAIT_S)
            await house.do(CONVERSATION, SendMessage(content="and now?", client_request_id="one"))
            await house.at_rest(CONVERSATION)
        finally:
            held.released.set()
        taken = await running

        assert (taken.outcome, taken.added) == ("made", BATCH_MESSAGES)
        assert taken.note
        assert (await texts(house))[BATCH_MESSAGES:] == ["and now?", "ok"]
        assert (await take_over(house, whole())).outcome == "taken_up"


async def test_session_imported_twice_at_once_is_there_once() -> None:
    async with open_house() as house:
        taken = await asyncio.gather(*(take_over(house, whole()) for _ in range(3)))

        assert {one.outcome for one in taken} <= {"made", "grown", "known"}
        assert await texts(house) == [f"text {number}" for number in range(1, LONG + 1)]
        assert await title(house) == "Tides"


@pytest.mark.parametrize("bad", [message(LONG, status="superseded"), replace(message(LONG), ts=-1)])
async def test_bad_message_at_the_end_leaves_nothing(bad: Message) -> None:
    messages = [*whole(LONG - 1).messages, bad]
    async with open_house() as house:
        with pytest.raises(Invalid):
            await take_over(house, session(messages))

        assert await house.log.listing(CONVERSATION) is None


async def opened_again(log: EventLog) -> tuple[int, int]:
    snapshot = await log.load_snapshot(CONVERSATION, 10)
    assert snapshot is not None
    return snapshot.seq, len(snapshot.messages)


async def test_long_import_is_opened_from_a_snapshot(tmp_path: Path) -> None:
    async with open_sqlite_log(tmp_path) as log, open_house(log) as house:
        await take_over(house, whole())
        row = await log.listing(CONVERSATION)

        assert row is not None
        assert await opened_again(log) == (row.seq, 10)
        assert not (await log.verify(CONVERSATION)).damages
        assert len(await texts(house)) == LONG
