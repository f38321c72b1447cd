"""What every log promises about search: any string is a query, and what is found is what may be seen."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.log.base import Append, Document, EventLog, Found
from palaver.log.search import AROUND_CHARS, CANDIDATES
from tests.unit.log.stores import KINDS, WAIT_S, Store, line, open_store, row

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


async def say(log: EventLog, conversation: str, *texts: str, removed: tuple[str, ...] = (), **fields: object) -> None:
    """Messages named by their seq, one event each."""
    head = await log.head(conversation)
    after = head.seq if head else 0
    count = max(1, len(texts))
    await log.append(
        Append(
            conversation,
            after,
            [line(conversation, after + number) for number in range(1, count + 1)],
            row(conversation, **fields),
            [Document(f"m{after + number}", after + number, "user", text) for number, text in enumerate(texts, 1)],
            removed,
        )
    )


async def hits(log: EventLog, query: str, **where: str) -> list[tuple[str, int]]:
    return [(found.conversation, found.seq) for found in await log.search(query, **where)]  # type: ignore[arg-type]


async def test_search_finds_words_whatever_their_case(store: Store) -> None:
    await say(store.log, "a", "The Quick brown fox", "a lazy dog")
    for query in ("quick", "QUICK", "Brown quick", "fox"):
        assert await hits(store.log, query) == [("a", 1)]
    assert await hits(store.log, "quick dog") == []
    assert await hits(store.log, "wolf") == []


async def test_search_finds_accented_words_with_and_without_accents(store: Store) -> None:
    await say(store.log, "a", "Ein schönes Café", "東京タワー", "Привет мир")
    assert await hits(store.log, "schones") == [("a", 1)]
    assert await hits(store.log, "SCHÖNES café") == [("a", 1)]
    assert await hits(store.log, "привет") == [("a", 3)]
    assert await hits(store.log, "東京タワー") == [("a", 2)]


async def test_the_last_word_may_be_a_beginning_and_only_the_last(store: Store) -> None:
    await say(store.log, "a", "durable before visible")
    assert await hits(store.log, "dura") == [("a", 1)]
    assert await hits(store.log, "durable vis") == [("a", 1)]
    assert await hits(store.log, "dura visible") == []
    assert await hits(store.log, "visibles") == []


async def test_a_single_letter_is_a_word_not_a_beginning(store: Store) -> None:
    await say(store.log, "a", "plan b is ready", "nothing but beginnings")
    assert await hits(store.log, "b") == [("a", 1)]


async def test_a_term_with_marks_inside_is_a_phrase(store: Store) -> None:
    await say(store.log, "a", "call user.name first", "the name of the user")
    assert await hits(store.log, "user.name") == [("a", 1)]
    assert await hits(store.log, "user-na") == [("a", 1)]
    assert sorted(await hits(store.log, "user name")) == [("a", 1), ("a", 2)]


async def test_operators_are_words_like_any_other(store: Store) -> None:
    await say(store.log, "a", "salt AND pepper", "salt", "NOT near")
    assert await hits(store.log, "salt AND pepper") == [("a", 1)]
    assert await hits(store.log, "NOT") == [("a", 3)]
    assert await hits(store.log, "salt NOT pepper") == []


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        '"',
        '""',
        "*",
        "'",
        "(",
        ")",
        "^",
        ":",
        "text:",
        "a:b",
        "{",
        "-",
        "+",
        "NEAR(",
        "a AND",
        "\0",
        "\ud800",
        "🦊",
    ],
)
async def test_any_string_is_a_query(store: Store, query: str) -> None:
    await say(store.log, "a", "ordinary words")
    assert await hits(store.log, query) == []
    assert await hits(store.log, f"{query} ordinary") in ([], [("a", 1)])


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=40))
async def test_no_string_makes_a_search_fail(store: Store, query: str) -> None:
    await store.log.search(query)
    await store.log.search(query, conversation="a")


async def test_a_very_long_query_is_answered(store: Store) -> None:
    await say(store.log, "a", "word")
    assert await hits(store.log, "word " * 10_000) == [("a", 1)]


async def test_a_hit_says_where_it_stands_and_what_is_around_it(store: Store) -> None:
    await say(store.log, "other", "nothing")
    await say(store.log, "a", "first", "Tea is what I would like, please.\nWith milk.", title="At noon")
    assert list(await store.log.search("would")) == [
        Found("a", "m2", 2, "user", "Tea is what I ", "would", " like, please. With milk.", "At noon")
    ]


async def test_the_text_around_a_hit_is_short(store: Store) -> None:
    await say(store.log, "a", f"{'before ' * 500}needle{' after' * 500}")
    (found,) = await store.log.search("needle")
    assert found.match == "needle"
    assert 0 < len(found.before) <= AROUND_CHARS
    assert 0 < len(found.after) <= AROUND_CHARS
    assert ("before " * 500).endswith(found.before)
    assert (" after" * 500).startswith(found.after)


async def test_the_most_fitting_comes_first_and_among_equals_the_newest(store: Store) -> None:
    await say(
        store.log, "a", "tea tea tea", "tea and many other words that have nothing to do with it at all", "tea tea tea"
    )
    assert await hits(store.log, "tea") == [("a", 3), ("a", 1), ("a", 2)]
    assert len(await store.log.search("tea", limit=2)) == 2
    assert len(await store.log.search("tea", limit=0)) == 0


async def test_only_the_newest_hits_are_ranked(store: Store) -> None:
    await say(store.log, "a", "tea tea tea", *["tea among other words"] * CANDIDATES)
    assert ("a", 1) not in await hits(store.log, "tea")


async def test_search_in_one_conversation_leaves_the_others_out(store: Store) -> None:
    await say(store.log, "a", "tea one")
    await say(store.log, "b", *["tea"] * (CANDIDATES + 1))
    assert await hits(store.log, "tea", conversation="a") == [("a", 1)]
    assert await hits(store.log, "tea", conversation="nobody") == []
    # The numbers that a store gives to conversations are nothing to search for.
    assert await hits(store.log, "1") == []
    assert await hits(store.log, "2", conversation="b") == []


async def test_removed_messages_are_not_found_and_edited_ones_only_as_they_are(store: Store) -> None:
    await say(store.log, "a", "tea with milk", "coffee")
    await store.log.append(
        Append("a", 2, [line("a", 3)], None, [Document("m1", 3, "user", "tea with lemon")], ["m1", "m2", "stranger"])
    )
    assert await hits(store.log, "milk") == []
    assert await hits(store.log, "coffee") == []
    assert await hits(store.log, "lemon") == [("a", 3)]
    assert await hits(await store.reopen(), "tea") == [("a", 3)]


async def test_a_text_added_and_removed_in_one_moment_is_not_found(store: Store) -> None:
    added = store.log.append(Append("a", 0, [line("a", 1)], row("a"), [Document("m", 1, "user", "tea")]))
    removed = store.log.append(Append("a", 1, [line("a", 2)], row("a"), [], ["m"]))
    await asyncio.wait_for(asyncio.gather(added, removed), WAIT_S)
    assert await hits(store.log, "tea") == []


async def test_several_texts_of_one_message_are_found_and_removed_together(store: Store) -> None:
    texts = [Document("m", 1, "assistant", "before the tool"), Document("m", 2, "assistant", "after the tool")]
    await store.log.append(Append("a", 0, [line("a", 1), line("a", 2)], row("a"), texts))
    assert sorted(await hits(store.log, "tool")) == [("a", 1), ("a", 2)]
    await say(store.log, "a", removed=("m",))
    assert await hits(store.log, "tool") == []


async def test_a_deleted_conversation_is_not_found(store: Store) -> None:
    await say(store.log, "a", "secret tea")
    await say(store.log, "b", "public tea")
    await say(store.log, "a", deleted=True)
    assert await hits(store.log, "tea") == [("b", 1)]
    assert await hits(store.log, "tea", conversation="a") == []


async def test_a_refused_append_is_not_found(store: Store) -> None:
    await say(store.log, "a", "tea")
    with pytest.raises(Exception, match="another writer"):
        await store.log.append(Append("a", 0, [line("a", 1)], None, [Document("m", 1, "user", "coffee")]))
    assert await hits(store.log, "coffee") == []
