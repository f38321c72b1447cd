"""What every log promises about the conversation list: it changes with the events, and is found without reading them."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from palaver.errors import HeadMoved, Invalid
from palaver.log.base import Append, EventLog
from palaver.schema.view import Listing
from tests.unit.log.stores import KINDS, Store, line, open_store, row

pytestmark = pytest.mark.anyio


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path / "data") as opened:
        yield opened


async def put(log: EventLog, listing: Listing | None, conversation: str | None = None) -> int:
    """One more event, and the row it leaves; answers its position."""
    name = conversation or (listing.id if listing else "")
    head = await log.head(name)
    after = head.seq if head else 0
    return (await log.append(Append(name, after, [line(name, after + 1)], listing))).pos


def ids(listings: Sequence[Listing]) -> list[str]:
    return [listing.id for listing in listings]


async def test_a_row_is_kept_as_given_with_its_position(store: Store) -> None:
    listing = row(
        "a", title="Tea", project="/p", status="generating", updated_at=7, message_count=3, turn="t", parent="z", seq=4
    )
    await put(store.log, row("z"))
    pos = await put(store.log, listing)
    log = await store.reopen()
    found = await log.listing("a")
    assert found == row("a", **{name: getattr(listing, name) for name in listing.__struct_fields__} | {"pos": pos})
    assert await log.listing("nobody") is None


async def test_an_append_without_a_row_leaves_the_row_as_it_is(store: Store) -> None:
    await put(store.log, row("a", title="Tea"))
    before = await store.log.listing("a")
    await put(store.log, None, "a")
    assert await store.log.listing("a") == before


async def test_a_refused_append_leaves_the_row_as_it_is(store: Store) -> None:
    await put(store.log, row("a", title="Tea"))
    with pytest.raises(HeadMoved):
        await store.log.append(Append("a", 0, [line("a", 1)], row("a", title="Coffee")))
    found = await store.log.listing("a")
    assert found
    assert found.title == "Tea"


async def test_a_conversation_without_a_row_is_not_listed(store: Store) -> None:
    await put(store.log, None, "a")
    assert ids((await store.log.list()).items) == []
    assert await store.log.listing("a") is None


async def test_list_is_newest_first_and_leaves_out_the_deleted_and_the_archived(store: Store) -> None:
    await put(store.log, row("old", updated_at=1))
    await put(store.log, row("new", updated_at=9))
    await put(store.log, row("middle", updated_at=5))
    await put(store.log, row("gone", updated_at=7, deleted=True))
    await put(store.log, row("put away", updated_at=8, archived=True))
    assert ids((await store.log.list()).items) == ["new", "middle", "old"]
    assert ids((await store.log.list(archived=None)).items) == ["new", "put away", "middle", "old"]
    assert ids((await store.log.list(archived=True)).items) == ["put away"]


async def test_list_of_a_project_holds_that_project_alone(store: Store) -> None:
    await put(store.log, row("a", project="/p", updated_at=1))
    await put(store.log, row("b", project="/q", updated_at=2))
    await put(store.log, row("c", updated_at=3))
    await put(store.log, row("d", project="/p", updated_at=4))
    page = await store.log.list(project="/p")
    assert (ids(page.items), page.total) == (["d", "a"], 2)


async def test_list_leaves_out_subagents_unless_asked_for(store: Store) -> None:
    await put(store.log, row("a", updated_at=1))
    await put(store.log, row("child", updated_at=2, parent="a", parent_kind="subagent", root="a"))
    await put(store.log, row("branch", updated_at=3, parent="a", parent_kind="branch", root="a"))
    page = await store.log.list()
    assert (ids(page.items), page.total) == (["branch", "a"], 2)
    everything = await store.log.list(children=True)
    assert (ids(everything.items), everything.total) == (["branch", "child", "a"], 3)


async def test_list_of_a_tree_holds_its_top_and_all_below(store: Store) -> None:
    await put(store.log, row("a", updated_at=1))
    await put(store.log, row("b", updated_at=2))
    await put(store.log, row("child", updated_at=3, parent="a", parent_kind="subagent", root="a"))
    await put(store.log, row("other", updated_at=4, parent="b", parent_kind="subagent", root="b"))
    await put(store.log, row("deep", updated_at=5, parent="child", parent_kind="subagent", root="a"))
    log = await store.reopen()
    page = await log.list(root="a", children=True)
    assert (ids(page.items), page.total) == (["deep", "child", "a"], 3)
    first = await log.list(root="a", children=True, limit=2)
    rest = await log.list(root="a", children=True, limit=2, cursor=first.next_cursor)
    assert (ids(first.items), ids(rest.items)) == (["deep", "child"], ["a"])
    assert ids((await log.list(root="nobody", children=True)).items) == []


async def test_pages_follow_each_other_without_a_hole_or_a_double(store: Store) -> None:
    # Several in one millisecond: the cursor must tell them apart.
    for number in range(23):
        await put(store.log, row(f"c{number:02}", updated_at=number // 4))
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.log.list(limit=5, cursor=cursor)
        assert page.total == 23
        seen += ids(page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"c{number:02}" for number in reversed(range(23))]


async def test_a_page_goes_on_where_the_last_ended_although_rows_moved_to_the_top(store: Store) -> None:
    for number in range(6):
        await put(store.log, row(f"c{number}", updated_at=number))
    first = await store.log.list(limit=3)
    await put(store.log, row("c0", updated_at=99))
    await put(store.log, row("c6", updated_at=100))
    second = await store.log.list(limit=3, cursor=first.next_cursor)
    assert ids(first.items) == ["c5", "c4", "c3"]
    assert ids(second.items) == ["c2", "c1"]
    assert second.next_cursor is None


@pytest.mark.parametrize("cursor", ["", "nonsense", "MTIz", "ü", "a.b", "LjE"])
async def test_a_foreign_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(Invalid):
        await store.log.list(cursor=cursor)


async def test_changed_follows_every_row_once_and_in_order(store: Store) -> None:
    for name in ("a", "b", "c"):
        await put(store.log, row(name))
    await put(store.log, row("a", title="again"))
    everything = await store.log.changed(0)
    assert ids(everything) == ["b", "c", "a"]
    assert ids(await store.log.changed(everything[0].pos)) == ["c", "a"]
    assert ids(await store.log.changed(0, limit=2)) == ["b", "c"]
    assert ids(await store.log.changed(await store.log.position())) == []
    await put(store.log, None, "b")
    assert ids(await store.log.changed(everything[-1].pos)) == []


async def test_changed_tells_of_deleted_rows(store: Store) -> None:
    await put(store.log, row("a"))
    position = await store.log.position()
    await put(store.log, row("a", deleted=True))
    (gone,) = await store.log.changed(position)
    assert gone.deleted


async def test_waiting_holds_what_has_an_open_request_oldest_first(store: Store) -> None:
    await put(store.log, row("late", updated_at=9, open_requests=1))
    await put(store.log, row("calm", updated_at=2))
    await put(store.log, row("early", updated_at=1, open_requests=2))
    await put(store.log, row("gone", updated_at=1, open_requests=2, deleted=True))
    assert ids(await store.log.waiting()) == ["early", "late"]
    await put(store.log, row("early", updated_at=10))
    assert ids(await (await store.reopen()).waiting()) == ["late"]


async def test_unfinished_holds_open_turns_and_queues(store: Store) -> None:
    await put(store.log, row("running", turn="t"))
    await put(store.log, row("queued", queue_size=1))
    await put(store.log, row("resting"))
    await put(store.log, row("deleted with a queue", queue_size=1, deleted=True))
    await put(store.log, row("deleted while running", turn="t", deleted=True))
    await put(store.log, row("settled", turn="t"))
    await put(store.log, row("settled"))
    log = await store.reopen()
    assert sorted(await log.unfinished()) == ["deleted while running", "queued", "running"]
