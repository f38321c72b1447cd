"""Lists and search: changed in the append's own commit, so that neither can disagree with the events."""

import pytest

from palaver.errors import HeadMoved
from palaver.log.base import Append, Document, EventLog
from tests.contract.log.lines import deltas, row, write


async def titles(log: EventLog, **asked: object) -> list[str]:
    return [listing.title for listing in (await log.list(**asked)).items]  # type: ignore[arg-type]


async def test_list_is_newest_first_and_pages_without_a_hole(log: EventLog) -> None:
    for number in range(25):
        await write(log, f"c{number}", listing=row(f"c{number}", updated_at=1000 + number // 2))
    seen: list[str] = []
    cursor = None
    while True:
        page = await log.list(limit=10, cursor=cursor)
        seen.extend(listing.title for listing in page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 25
    assert {seen[0], seen[-1]} & {"c24", "c0", "c1"}
    assert seen[0] == "c24"


async def test_list_leaves_out_deleted_and_archived_ones(log: EventLog) -> None:
    await write(log, "plain", listing=row("plain", project="/p"))
    await write(log, "old", listing=row("old", archived=True))
    await write(log, "gone", listing=row("gone", deleted=True))
    assert await titles(log) == ["plain"]
    assert await titles(log, archived=True) == ["old"]
    assert sorted(await titles(log, archived=None)) == ["old", "plain"]
    assert await titles(log, project="/p") == ["plain"]
    assert await titles(log, project="/q") == []


async def test_refused_append_changes_no_list(log: EventLog) -> None:
    await write(log, "c", listing=row("c"))
    with pytest.raises(HeadMoved):
        await write(log, "c", 0, listing=row("c", title="changed"))
    assert await titles(log) == ["c"]


async def test_changes_follow_a_position_and_include_what_was_deleted(log: EventLog) -> None:
    await write(log, "a", listing=row("a"))
    await write(log, "b", listing=row("b"))
    position = await log.position()
    assert await log.changed(position) == []
    await write(log, "a", 1, listing=row("a", deleted=True))
    changed = await log.changed(position)
    assert [(listing.id, listing.deleted, listing.pos) for listing in changed] == [("a", True, position + 1)]
    assert [listing.id for listing in await log.changed(0)] == ["b", "a"]


async def test_append_without_a_row_leaves_the_row_as_it_was(log: EventLog) -> None:
    await write(log, "c", listing=row("c"))
    before = await log.listing("c")
    await write(log, "c", 1)
    assert await log.listing("c") == before
    assert await log.listing("nobody") is None


async def test_recovery_and_attention_see_only_what_concerns_them(log: EventLog) -> None:
    await write(log, "resting", listing=row("resting"))
    await write(log, "running", listing=row("running", turn="t1"))
    await write(log, "queued", listing=row("queued", queue_size=1))
    await write(log, "asking", listing=row("asking", open_requests=1))
    await write(log, "gone", listing=row("gone", turn="t2", open_requests=1, deleted=True))
    assert sorted(await log.unfinished()) in (["queued", "running"], ["gone", "queued", "running"])
    assert [listing.id for listing in await log.waiting()] == ["asking"]
    await write(log, "running", 1, listing=row("running"))
    assert "running" not in await log.unfinished()


# -- search


async def say(log: EventLog, conversation: str, *texts: str, title: str | None = None) -> None:
    documents = [Document(f"{conversation}-{n}", n, "user", text) for n, text in enumerate(texts, 1)]
    await write(log, conversation, 0, len(texts), row(conversation, title=title or conversation), documents)


async def found(log: EventLog, query: str, **asked: object) -> list[str]:
    return [hit.message for hit in await log.search(query, **asked)]  # type: ignore[arg-type]


async def test_search_finds_words_whatever_their_case_and_shows_the_place(log: EventLog) -> None:
    await say(log, "c", "The quick brown Fox jumps over the lazy dog", title="Animals")
    hit = (await log.search("fox"))[0]
    assert (hit.conversation, hit.message, hit.seq, hit.title) == ("c", "c-1", 1, "Animals")
    assert hit.match.lower() == "fox"
    assert hit.before.endswith("brown ")
    assert hit.after.startswith(" jumps")


async def test_search_matches_the_beginning_of_the_last_word(log: EventLog) -> None:
    await say(log, "c", "conversation about lighthouses")
    assert await found(log, "about light") == ["c-1"]
    assert await found(log, "light about") == []


@pytest.mark.parametrize("query", ['"', "*", "AND", "a OR", "NEAR(", "col:x", "-", "()", "'; --", "", "   ", "\x00"])
async def test_any_text_is_a_query_and_none_is_an_error(log: EventLog, query: str) -> None:
    await say(log, "c", "a and b")
    await log.search(query)


async def test_search_stays_within_a_conversation_when_asked(log: EventLog) -> None:
    await say(log, "a", "needle")
    await say(log, "b", "needle")
    assert sorted(await found(log, "needle")) == ["a-1", "b-1"]
    assert await found(log, "needle", conversation="b") == ["b-1"]
    assert len(await found(log, "needle", limit=1)) == 1


async def test_removed_texts_and_deleted_conversations_are_not_found(log: EventLog) -> None:
    await say(log, "c", "needle one", "needle two")
    await log.append(Append("c", 2, deltas(3, 1), row("c"), (), ["c-1"]))
    assert await found(log, "needle") == ["c-2"]
    await log.append(Append("c", 3, deltas(4, 1), row("c", deleted=True)))
    assert await found(log, "needle") == []
