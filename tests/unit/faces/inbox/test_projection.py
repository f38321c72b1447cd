"""What an inbox says of an event, and of every golden log: each word once, ids that only grow, the same on every read."""

from itertools import pairwise
from pathlib import Path

import pytest

from palaver.errors import Invalid
from palaver.faces.http.timestamps import iso
from palaver.faces.inbox.default import generation_of
from palaver.faces.inbox.pages import Page, Pages
from palaver.faces.inbox.projection import (
    InboxMessage,
    is_by_a_person,
    is_of_earlier_generation,
    message_id,
    posts_of,
    seq_of,
)
from palaver.log.base import Append
from palaver.log.memory import MemoryLog
from palaver.schema.content import ImagePart, ImageUrl, TextPart, as_content
from palaver.schema.events import (
    AnswerStarted,
    KnownEvent,
    MessageAdded,
    QueueAdded,
    TextFinished,
    decode_event,
    encode_event,
)
from palaver.schema.view import TextBlock, ThinkingBlock
from tests.golden.record import Record

pytestmark = pytest.mark.anyio

GOLDEN = Path(__file__).parents[3] / "golden"


def is_whole(log: bytes) -> bool:
    """It begins with the first event, and holds them all: so it can be written anew."""
    return decode_event(log.splitlines()[0]).seq == 1 and b'"log.compacted"' not in log


NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl") if is_whole(path.read_bytes()))


def said(event: KnownEvent) -> list[tuple[str, str, str]]:
    return [(one.message.author, one.message.mime, one.message.content) for one in posts_of(event)]


async def stored(name: str, lines: list[bytes]) -> Pages:
    log = MemoryLog()
    await log.append(Append(conversation=name, after=0, lines=lines))
    return Pages(log)


async def whole(pages: Pages, name: str, after: str | None = None, limit: int = 200) -> list[InboxMessage]:
    messages: list[InboxMessage] = []
    while (page := await pages.since(name, after, limit)).messages:
        messages += page.messages
        after = page.last_id
    return messages


# -- one event


def test_person_is_posted_when_the_message_is_accepted_and_not_again_when_it_is_delivered() -> None:
    content = as_content("Hello")
    assert said(MessageAdded(seq=7, message="m", content=content)) == [("user", "text/markdown", "Hello")]
    assert said(QueueAdded(seq=7, item="i", content=content)) == [("user", "text/markdown", "Hello")]
    assert said(MessageAdded(seq=8, message="i", item="i", content=content)) == []


def test_what_nobody_said_is_not_posted() -> None:
    content = as_content("Anything to do?")
    for event in (
        QueueAdded(item="i", content=content, trigger="idle"),
        QueueAdded(item="i", content=content, trigger="callback"),
        MessageAdded(message="m", content=content, event_kind="idle_prompt"),
        MessageAdded(message="m", role="event", content=content, event_kind="agent_callback"),
        MessageAdded(message="m", content=content, hidden=True),
        TextFinished(message="m", block=0, text="Half", interrupted=True),
        TextFinished(message="m", block=0, text="Plain", unposted=True),
        TextFinished(message="m", block=0, text=" \n"),
    ):
        assert said(event) == []
        assert not is_by_a_person(event)


def test_only_people_are_told_of() -> None:
    assert is_by_a_person(QueueAdded(item="i", content=as_content("Hello")))
    assert not is_by_a_person(TextFinished(message="m", block=0, text="Hello"))
    assert not is_by_a_person(MessageAdded(message="m", role="assistant", content=as_content("Hello")))


def test_message_from_elsewhere_has_one_entry_a_text() -> None:
    blocks = (TextBlock(index=0, text="One"), ThinkingBlock(index=1, text="hm"), TextBlock(index=2, text="Two"))
    event = MessageAdded(seq=3, message="m", role="assistant", blocks=blocks)
    assert [one.message.content for one in posts_of(event)] == ["One", "Two"]
    assert [one.message.id for one in posts_of(event)] == [message_id(3, 0), message_id(3, 1)]


def test_kind_of_text_is_kept_and_pictures_are_linked() -> None:
    plain = MessageAdded(message="m", content=(TextPart(text="a < b", mime="text/plain"),))
    assert said(plain) == [("user", "text/plain", "a < b")]
    picture = ImagePart(image_url=ImageUrl(url="/api/blobs/1"))
    both = MessageAdded(message="m", content=(TextPart(text="Look"), picture))
    assert said(both) == [("user", "text/markdown", "Look\n\n![image](/api/blobs/1)")]


def test_ids_sort_as_text_and_as_numbers() -> None:
    ids = [message_id(seq, place) for seq, place in ((1, 0), (9, 0), (10, 0), (10, 1), (10, 12), (123_456, 0))]
    assert ids == sorted(ids)
    assert [int(one) for one in ids] == sorted(int(one) for one in ids)
    assert [seq_of(one) for one in ids] == [1, 9, 10, 10, 10, 123_456]
    for strange in ("", "1", "x" * 16, "1" * 17, "\u0661" * 16):
        with pytest.raises(Invalid):
            seq_of(strange)


def test_ids_of_default_inboxes_rise_from_one_to_the_next_in_the_same_width() -> None:
    names = ["default-inbox", "default-inbox-2", "default-inbox-3", "default-inbox-10", "default-inbox-9999"]
    generations = [generation_of(name) for name in names]
    assert generations == [0, 1, 2, 9, 9998]
    ids = [message_id(seq, 0, generation) for generation in generations for seq in (1, 99_999_999)]
    assert ids == sorted(set(ids))
    assert {len(one) for one in ids} == {16}
    assert [seq_of(ids[0], 1), seq_of(ids[1], 1), seq_of(ids[2], 1), seq_of(ids[3], 1)] == [0, 0, 1, 99_999_999]
    assert [is_of_earlier_generation(one, 1) for one in ids[:3]] == [True, True, False]
    for other in ("garden", "default-inbox-", "default-inbox-02", "default-inbox-10000", "my-default-inbox-2"):
        assert generation_of(other) == 0


def test_time_is_universal_and_says_so() -> None:
    assert iso(1_760_000_000_123) == "2025-10-09T08:53:20.123Z"


# -- whole logs


@pytest.mark.parametrize("name", NAMES)
async def test_every_page_of_a_golden_log_is_a_stretch_of_the_same_inbox(name: str) -> None:
    lines = (GOLDEN / f"{name}.jsonl").read_bytes().splitlines()
    pages = await stored(name, lines)
    messages = await whole(pages, name)
    assert all(before.id < after.id for before, after in pairwise(messages))
    newest = await pages.newest(name)
    assert newest.messages == messages[-1_000:]
    assert newest.last_id == (messages[-1].id if messages else None)
    assert await whole(pages, name, limit=1) == messages
    # From whatever cursor, also one within an answer.
    for seq in range(len(lines) + 1)[:400]:
        cursor = message_id(seq, 9999)
        assert await whole(pages, name, cursor) == [one for one in messages if one.id > cursor]


async def test_compaction_changes_no_inbox() -> None:
    log = MemoryLog()
    lines = (GOLDEN / "long.jsonl").read_bytes().splitlines()
    await log.append(Append(conversation="long", after=0, lines=lines))
    pages = Pages(log)
    messages = await whole(pages, "long")
    assert await log.compact("long", len(lines)) > 0
    assert messages
    assert await whole(pages, "long") == messages
    assert await whole(pages, "long", messages[0].id) == messages[1:]


async def test_attempt_that_takes_the_place_of_another_says_nothing_twice() -> None:
    log = Record("again")
    log.created()
    log.asked("m1", "Sow", "t1")
    log.add(
        AnswerStarted(message="m2"),
        TextFinished(message="m2", block=0, text="First I look."),
        AnswerStarted(message="m3", replaces="m2"),
        TextFinished(message="m3", block=0, text="First I look."),
        AnswerStarted(message="m4", replaces="m3"),
        TextFinished(message="m4", block=0, text="First I look."),
        TextFinished(message="m4", block=1, text="Then I sow."),
        AnswerStarted(message="m5"),
        # Another answer may say the same in all honesty.
        TextFinished(message="m5", block=0, text="First I look."),
    )
    pages = await stored("again", log.lines)
    messages = await whole(pages, "again")
    assert [one.content for one in messages] == ["Sow", "First I look.", "Then I sow.", "First I look."]
    for seq in range(len(log.lines) + 1):
        cursor = message_id(seq, 9999)
        assert await whole(pages, "again", cursor) == [one for one in messages if one.id > cursor]


async def test_beginning_of_an_answer_is_found_however_far_back_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.faces.inbox.pages.LOOK_BACK", 2)
    log = Record("far")
    log.created()
    log.asked("m1", "Sow", "t1")
    log.add(AnswerStarted(message="m2"), TextFinished(message="m2", block=0, text="Hm."))
    log.add(AnswerStarted(message="m3", replaces="m2"))
    for _ in range(40):
        log.add(MessageAdded(message="e", role="event", content=as_content("tick"), hidden=True))
    log.add(TextFinished(message="m3", block=0, text="Hm."), TextFinished(message="m3", block=1, text="Yes."))
    pages = await stored("far", log.lines)
    assert [one.content for one in await whole(pages, "far")] == ["Sow", "Hm.", "Yes."]
    page: Page = await pages.since("far", message_id(40, 0), None)
    assert [one.content for one in page.messages] == ["Yes."]
    assert [one.content for one in (await pages.newest("far")).messages] == ["Sow", "Hm.", "Yes."]


async def test_page_ends_where_it_would_grow_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.faces.inbox.pages.PAGE_BYTES", 10)
    events = [MessageAdded(seq=seq, message=f"m{seq}", content=as_content("12345678")) for seq in range(1, 4)]
    pages = await stored("c", [encode_event(event) for event in events])
    page = await pages.since("c", None, 50)
    assert (len(page.messages), page.last_id) == (1, message_id(1))
    assert len(await whole(pages, "c")) == 3
    newest = await pages.newest("c")
    assert [one.id for one in newest.messages] == [message_id(3)]
