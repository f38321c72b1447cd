"""Recalling: what earlier messages of a project have to do with a text. Held by every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.conversation.index_rows import documents_of
from palaver.log.base import Append, Document, EventLog, Recalled
from palaver.log.recall import HALF_LIFE_MS, NEWEST, WEIGHED
from palaver.log.sqlite.store import SqliteLog
from palaver.schema.content import TextPart
from palaver.schema.events import KnownEvent, MessageAdded, MessageEdited, TextFinished
from palaver.schema.view import State
from tests.unit.log.stores import KINDS, WITHOUT_RUNS, Store, line, open_store, row

pytestmark = pytest.mark.anyio

GARDEN = "/home/me/garden"


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


async def say(
    log: EventLog, conversation: str, *texts: str, project: str | None = GARDEN, ts: int = 1_000, **fields: object
) -> None:
    head = await log.head(conversation)
    after = head.seq if head else 0
    numbers = range(after + 1, after + max(1, len(texts)) + 1)
    documents = [
        Document(f"{conversation}-{seq}", seq, "user", text, ts) for seq, text in zip(numbers, texts, strict=False)
    ]
    lines = [line(conversation, seq) for seq in numbers]
    await log.append(Append(conversation, after, lines, row(conversation, project=project, **fields), documents))


async def recalled(log: EventLog, text: str, *, project: str | None = GARDEN, **how: object) -> list[str]:
    found = await log.recall(text, project=project, **how)  # type: ignore[arg-type]
    return [one.message for one in found]


async def test_any_telling_word_is_enough_and_more_of_them_come_first(store: Store) -> None:
    await say(store.log, "a", "the tomatoes need water", "water for tomatoes and basil", "something else entirely")
    assert await recalled(store.log, "What do tomatoes and basil like?") == ["a-2", "a-1"]


async def test_a_rare_word_counts_more_than_a_common_one(store: Store) -> None:
    await say(store.log, "a", *["tomatoes were planted in the garden"] * 30, "basil belongs beside the window")
    assert (await recalled(store.log, "tomatoes basil"))[0] == "a-31"


async def test_words_that_every_text_holds_recall_nothing(store: Store) -> None:
    await say(store.log, "a", "What is this and that?", "ok, thanks, please go on")
    for text in ("ok", "go on please", "what is that", "", "??", "1"):
        assert await recalled(store.log, text) == []


async def test_words_are_compared_without_case_and_accents(store: Store) -> None:
    await say(store.log, "a", "Ein schönes Café an der Straße", "東京タワー")
    assert await recalled(store.log, "SCHONES CAFE") == ["a-1"]
    assert await recalled(store.log, "東京タワー?") == ["a-2"]


async def test_other_projects_deleted_ones_and_the_one_that_asks_are_left_out(store: Store) -> None:
    await say(store.log, "a", "tomatoes in the garden")
    await say(store.log, "b", "tomatoes in the kitchen", project="/home/me/kitchen")
    await say(store.log, "c", "tomatoes nowhere", project=None)
    await say(store.log, "d", "tomatoes gone", deleted=True)
    await say(store.log, "e", "tomatoes here")
    assert await recalled(store.log, "tomatoes", but="e") == ["a-1"]
    assert await recalled(store.log, "tomatoes", project=None) == ["c-1"]
    assert await recalled(store.log, "tomatoes", project="/elsewhere") == []


async def test_what_stands_below_the_one_that_asks_is_left_out_too(store: Store) -> None:
    await say(store.log, "top", "tomatoes of mine")
    await say(store.log, "below", "tomatoes of a subagent", root="top", parent="top", parent_kind="subagent")
    await say(store.log, "elsewhere", "tomatoes of another", root="other", parent="other", parent_kind="subagent")
    assert await recalled(store.log, "tomatoes", but="top") == ["elsewhere-1"]
    assert len(await recalled(store.log, "tomatoes")) == 3


async def test_removed_messages_are_not_recalled(store: Store) -> None:
    await say(store.log, "a", "tomatoes")
    await store.log.append(Append("a", 1, [line("a", 2)], None, [], ["a-1"]))
    assert await recalled(store.log, "tomatoes") == []


async def test_of_equals_the_newer_comes_first_and_age_weighs(store: Store) -> None:
    await say(store.log, "a", "tomatoes like water", ts=10 * HALF_LIFE_MS)
    await say(store.log, "b", "tomatoes like water", ts=10 * HALF_LIFE_MS)
    await say(store.log, "c", "tomatoes like water", ts=1)
    assert await recalled(store.log, "tomatoes water") == ["b-1", "a-1", "c-1"]


async def test_a_message_says_where_when_and_by_whom_it_was_said(store: Store) -> None:
    await say(store.log, "a", "tomatoes like water", ts=77, title="Beds")
    assert list(await store.log.recall("tomatoes", project=GARDEN)) == [
        Recalled("a", "a-1", 1, 77, "user", "tomatoes like water", "Beds")
    ]


async def test_a_text_without_a_time_has_that_of_its_conversation(store: Store) -> None:
    await say(store.log, "a", "tomatoes", ts=0, updated_at=55)
    (found,) = await store.log.recall("tomatoes", project=GARDEN)
    assert found.ts == 55


async def test_no_more_are_recalled_than_asked_for(store: Store) -> None:
    await say(store.log, "a", *["tomatoes"] * (WEIGHED + 10))
    assert len(await recalled(store.log, "tomatoes", limit=3)) == 3
    assert await recalled(store.log, "tomatoes", limit=0) == []


async def test_only_the_newest_holders_of_a_common_word_are_looked_at(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path / "data") as store:
        await say(store.log, "a", "tomatoes long ago")
        await say(store.log, "b", *["tomatoes today"] * NEWEST, project="/elsewhere")
        assert await recalled(store.log, "tomatoes") == []
        assert await recalled(store.log, "tomatoes long ago") == ["a-1"]
        await say(store.log, "c", "courgettes long ago")
        assert await recalled(store.log, "tomatoes courgettes") == ["c-1"]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
async def test_no_text_makes_recalling_fail(store: Store, text: str) -> None:
    await store.log.recall(text, project=None)
    await store.log.recall(f'tomatoes " {text}', project=GARDEN, but="a")


async def test_a_log_of_the_first_layout_is_brought_up_to_date(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path / "data") as store:
        await say(store.log, "a", "tomatoes like water", updated_at=55)
    connection = apsw.Connection(str(tmp_path / "data" / "palaver.db"))
    connection.execute(f"{WITHOUT_RUNS}; ALTER TABLE documents DROP COLUMN ts; PRAGMA user_version = 1")
    connection.close()
    log = await SqliteLog.open(tmp_path / "data")
    try:
        (found,) = await log.recall("tomatoes", project=GARDEN)
        assert found.ts == 55
        await say(log, "a", "tomatoes like sun", ts=99, updated_at=55)
        assert sorted(one.ts for one in await log.recall("tomatoes", project=GARDEN)) == [55, 99]
    finally:
        await log.close()


def test_documents_know_when_they_were_said() -> None:
    tea = (TextPart(text="tea"),)
    events: list[KnownEvent] = [
        MessageAdded(seq=1, ts=5, message="m", content=tea),
        MessageEdited(seq=2, ts=6, message="m", content=tea),
        TextFinished(seq=3, ts=7, message="n", block=0, text="tea"),
    ]
    assert [document.ts for document in documents_of(State(), events)] == [5, 6, 7]
