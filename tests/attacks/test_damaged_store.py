"""Damage to a store's file: `verify` names what is hit, `salvage` saves all the rest, and neither ever ends in a traceback.

A real database is damaged at every page: bytes flipped, ranges zeroed, the file cut, the write-ahead log hit. What a page
holds of which conversation is read from the whole file: each event line names its conversation, and long texts repeat it.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from palaver.conversation.index_rows import claims_of, documents_of, listing_of
from palaver.conversation.recovery.salvage import UNATTACHED, Salvaged, salvage
from palaver.core.fold.evolve import fold
from palaver.errors import ConfigurationError, Invalid, PalaverError
from palaver.log.base import Append
from palaver.log.sqlite.inspect import verify_directory
from palaver.log.sqlite.page_carver import PAGE_BYTES
from palaver.log.sqlite.store import SqliteLog, open_sqlite_log
from palaver.schema.content import as_content
from palaver.schema.events import (
    AnswerFinished,
    AnswerStarted,
    ConversationCreated,
    KnownEvent,
    MessageAdded,
    TextDelta,
    TextFinished,
    TurnFinished,
    TurnStarted,
    encode_event,
)
from palaver.schema.view import State, Trigger
from tests.flows.terminal import palaver

pytestmark = pytest.mark.anyio

NAMES = tuple(f"talk-{letter * 6}" for letter in "abcdef")
STREAM = "project-0123456789"
LONG = {"talk-cccccc": 9_000, "talk-dddddd": 3_000}
"""Texts that need pages of their own, and such that fill most of one."""


def quiet(done: int, total: int) -> None:
    pass


def events_of(name: str, turns: int = 4, chars: int | None = None) -> list[KnownEvent]:
    events: list[KnownEvent] = [ConversationCreated(agent="default", client_request_id=f"made-{name}", body_hash="h")]
    for number in range(turns):
        turn, asked, answer = (f"{name}-{kind}{number}" for kind in ("turn", "asked", "answer"))
        text = " ".join([name] * ((chars or LONG.get(name, 200)) // len(name)))
        events += [
            MessageAdded(turn=turn, message=asked, content=as_content(f"{name}: question {number}?")),
            TurnStarted(turn=turn, agent="default", backend="api", model="m", trigger=Trigger(messages=(asked,))),
            AnswerStarted(turn=turn, message=answer),
            TextDelta(turn=turn, message=answer, block=0, text=f"{name} "),
            TextDelta(turn=turn, message=answer, block=0, text=text),
            TextFinished(turn=turn, message=answer, block=0, text=f"{name} {text}"),
            AnswerFinished(turn=turn, message=answer, finish_reason="stop"),
            TurnFinished(turn=turn, outcome="completed"),
        ]
    return [
        type(event)(**{field: getattr(event, field) for field in event.__struct_fields__} | at)
        for seq, event in enumerate(events, 1)
        for at in [{"seq": seq, "id": f"{name}-{seq}", "ts": 1_760_000_000_000 + seq, "conversation": name}]
    ]


async def append(log: SqliteLog, name: str, state: State, events: Sequence[KnownEvent]) -> State:
    after = fold(state, events)
    lines = [encode_event(event) for event in events]
    documents, claims = documents_of(after, events), claims_of(events)
    await log.append(Append(name, state.seq, lines, listing_of(after), documents, claims=claims))
    return after


async def fill(log: SqliteLog) -> None:
    """Conversations that grow by turns, so that their segments lie between each other's."""
    states = {name: State() for name in NAMES}
    talks = {name: events_of(name) for name in NAMES}
    for first in range(0, 33, 4):
        for name in NAMES:
            if part := talks[name][first : first + 4]:
                states[name] = await append(log, name, states[name], part)
    stream = b'{"type":"mission.set","seq":1,"id":"s","ts":1,"conversation":"%s","folder":"/x"}' % STREAM.encode()
    await log.append(Append(STREAM, 0, [stream]))
    await log.blobs.put(b"a picture", "image/png")


@pytest.fixture
async def whole(tmp_path: Path) -> Path:
    directory = tmp_path / "data"
    async with open_sqlite_log(directory) as log:
        await fill(log)
        assert await log.compact("talk-bbbbbb", 30)
    (directory / "agents").mkdir()
    (directory / "agents" / "ada.md").write_text("---\nname: Ada\n---\nHello.\n")
    (directory / "palaver.toml").write_text("port = 9000\n")
    (directory / "token").write_text("secret\n")
    return directory


async def contents(directory: Path) -> dict[str, list[bytes]]:
    async with open_sqlite_log(directory) as log:
        return {name: await lines_of(log, name) for name in (*NAMES, STREAM) if await log.head(name)}


async def lines_of(log: SqliteLog, name: str) -> list[bytes]:
    lines: list[bytes] = []
    after = 0
    while segments := await log.read(name, after):
        lines += [line for segment in segments for line in segment.body.splitlines()]
        after = segments[-1].last
    return lines


def pages_of(database: Path) -> Iterator[tuple[int, set[str]]]:
    """Each page and the conversations that it names."""
    data = database.read_bytes()
    for number in range(len(data) // PAGE_BYTES):
        page = data[number * PAGE_BYTES : (number + 1) * PAGE_BYTES]
        # A piece of a name may stand at a page's edge.
        yield number, {name for name in (*NAMES, STREAM) if name[5:11].encode() in page}


async def salvaged(source: Path, target: Path, original: dict[str, list[bytes]]) -> tuple[Salvaged, set[str]]:
    """What was saved is proven against the original. Answers whom it cost something."""
    shutil.rmtree(target, ignore_errors=True)
    found = await salvage(source, target, quiet)
    verified = verify_directory(target, quiet)
    assert verified.damages in ((), []), verified
    saved = await contents(target)
    cut = {one.conversation for one in found.damaged}
    for name, lines in original.items():
        if name in cut or name not in saved:
            kept = saved.get(name, [])
            if name == STREAM or not kept:
                continue
            assert b"salvaged from a damaged store" in kept[-1]
            assert kept[:-1] == lines[: len(kept) - 1]
        else:
            assert saved[name] == lines
    return found, {*cut, *(set(original) - set(saved))}


def zeroed(size: int) -> Callable[[bytearray, int], None]:
    def harm(data: bytearray, at: int) -> None:
        data[at : at + size] = bytes(len(data[at : at + size]))

    return harm


def flipped(data: bytearray, at: int) -> None:
    data[at] ^= 0x5A


async def campaign(
    whole: Path, target: Path, places: Sequence[int], harm: Callable[[bytearray, int], None], reach: int
) -> None:
    original = await contents(whole)
    database = whole / "palaver.db"
    pristine = database.read_bytes()
    named = dict(pages_of(database))
    for at in places:
        data = bytearray(pristine)
        harm(data, at)
        database.write_bytes(data)
        touched = {
            name for page in range(at // PAGE_BYTES, (at + reach) // PAGE_BYTES + 1) for name in named.get(page, ())
        }
        _, lost = await salvaged(whole, target, original)
        assert lost <= touched, f"byte {at}: {lost - touched} lost, though only {touched} were hit"
        found = verify_directory(whole, quiet)
        assert not lost or found.damages, f"byte {at}: {lost} lost and nothing found"
        assert lost - {STREAM} <= {damage.conversation for damage in found.damages}, f"byte {at}: {found}"
    database.write_bytes(pristine)
    assert verify_directory(whole, quiet).damages in ((), [])


async def test_every_page_in_turn_zeroed_costs_only_whom_it_holds(whole: Path, tmp_path: Path) -> None:
    pages = (whole / "palaver.db").stat().st_size // PAGE_BYTES
    await campaign(whole, tmp_path / "new", [n * PAGE_BYTES for n in range(pages)], zeroed(PAGE_BYTES), PAGE_BYTES - 1)


async def test_a_flipped_byte_in_every_page_costs_only_whom_it_holds(whole: Path, tmp_path: Path) -> None:
    pages = (whole / "palaver.db").stat().st_size // PAGE_BYTES
    # Another place in each: headers, pointers, rows.
    places = [number * PAGE_BYTES + number * 512 % PAGE_BYTES + number % 9 for number in range(pages)]
    await campaign(whole, tmp_path / "new", places, flipped, 0)


@pytest.mark.long
@pytest.mark.parametrize("phase", range(8))
async def test_bytes_flipped_all_over_the_file_cost_only_whom_they_hit(whole: Path, tmp_path: Path, phase: int) -> None:
    size = (whole / "palaver.db").stat().st_size
    await campaign(whole, tmp_path / "new", range(phase * 613, size, 4_904), flipped, 0)


@pytest.mark.long
@pytest.mark.parametrize("size", [16, 512, 3 * PAGE_BYTES])
async def test_zeroed_ranges_all_over_the_file_cost_only_whom_they_hit(whole: Path, tmp_path: Path, size: int) -> None:
    length = (whole / "palaver.db").stat().st_size
    await campaign(whole, tmp_path / "new", range(0, length, 4_608), zeroed(size), size - 1)


@pytest.mark.parametrize("kept", [0, 1, 99, 100, 4_000, PAGE_BYTES, 5 * PAGE_BYTES + 17])
async def test_cut_file_is_saved_up_to_the_cut(whole: Path, tmp_path: Path, kept: int) -> None:
    original = await contents(whole)
    database = whole / "palaver.db"
    database.write_bytes(database.read_bytes()[:kept])
    assert verify_directory(whole, quiet).damages or kept == 0
    found, lost = await salvaged(whole, tmp_path / "new", original)
    assert lost
    assert found.blobs == 1


@pytest.mark.parametrize("at", ["header", "frame header", "page", "cut", "zeroed"])
async def test_damaged_write_ahead_log_costs_no_more_than_what_was_hit(tmp_path: Path, at: str) -> None:
    """The server was killed: what it committed last is in the write-ahead log alone."""
    live, directory = tmp_path / "live", tmp_path / "data"
    async with open_sqlite_log(live) as log:
        await fill(log)
        shutil.copytree(live, directory)
    original = {name: [encode_event(event) for event in events_of(name)] for name in NAMES}
    wal = directory / "palaver.db-wal"
    data = bytearray(wal.read_bytes())
    assert len(data) > 20 * PAGE_BYTES
    match at:
        case "header":
            data[:32] = bytes(32)
        case "frame header":
            data[32 : 32 + 24] = b"\xff" * 24
        case "page":
            middle = 32 + 24 + 10 * (PAGE_BYTES + 24)
            data[middle : middle + PAGE_BYTES] = bytes(PAGE_BYTES)
        case "cut":
            del data[len(data) - PAGE_BYTES // 2 :]
        case _:
            data[:] = bytes(len(data))
    wal.write_bytes(data)
    _, lost = await salvaged(directory, tmp_path / "new", original)
    # Most pages stand there in several versions, so that one of them is hardly missed.
    assert at == "zeroed" or len(lost) <= 1
    verify_directory(directory, quiet)


async def test_server_goes_on_with_the_conversations_that_are_whole(whole: Path) -> None:
    database = whole / "palaver.db"
    data = bytearray(database.read_bytes())
    at = data.index(b"talk-dddddd talk-dddddd talk-dddddd")
    page = at // PAGE_BYTES
    data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES] = bytes(PAGE_BYTES)
    hit = dict(pages_of(database))[page]
    database.write_bytes(data)
    async with open_sqlite_log(whole) as log:
        for name in set(NAMES) - hit:
            assert await lines_of(log, name)
            await append(
                log,
                name,
                fold(State(), events_of(name)),
                [MessageAdded(seq=34, id="x", ts=1, conversation=name, message="more", content=as_content("More."))],
            )


async def test_readable_events_behind_the_damage_are_kept_for_a_person(whole: Path, tmp_path: Path) -> None:
    original = await contents(whole)
    database = whole / "palaver.db"
    data = bytearray(database.read_bytes())
    at = data.index(b'"text":"talk-cccccc: question 1?"')
    data[at + 21 : at + 29] = b"QUESTION"
    database.write_bytes(data)
    found, lost = await salvaged(whole, tmp_path / "new", original)
    assert lost == {"talk-cccccc"}
    (cut,) = found.damaged
    assert 0 < cut.kept_events < cut.lost_from <= cut.expected_events == 33
    file = tmp_path / "new" / UNATTACHED / "talk-cccccc.jsonl"
    assert b"question 3?" in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600


async def test_salvage_takes_settings_and_blobs_and_no_token(whole: Path, tmp_path: Path) -> None:
    blob = next((whole / "blobs").glob("*/*"))
    (blob.parent / ("0" * 64)).write_bytes(b"not what its name says")
    found = await salvage(whole, tmp_path / "new", quiet)
    assert (found.whole, found.damaged, found.blobs) == (len(NAMES) + 1, (), 1)
    assert found.damaged_blobs == ("0" * 64,)
    assert found.settings == ("palaver.toml", "agents/ada.md")
    assert not (tmp_path / "new" / "token").exists()
    assert (tmp_path / "new" / "palaver.db").stat().st_mode & 0o777 == 0o600
    async with open_sqlite_log(tmp_path / "new") as log:
        assert await log.blobs.get(blob.name) == (b"a picture", "image/png")
        assert [row.id for row in (await log.list()).items] == sorted(NAMES, reverse=True)
        assert await log.search("question", conversation=NAMES[0])
        assert await log.used(NAMES[0], f"made-{NAMES[0]}")


async def test_salvage_refuses_what_it_must_not_touch(whole: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").touch()
    for target in (full, whole, whole / "new", tmp_path):
        with pytest.raises(Invalid):
            await salvage(whole, target, quiet)
    with pytest.raises(ConfigurationError, match="no log"):
        await salvage(full, tmp_path / "new", quiet)
    async with open_sqlite_log(whole):
        with pytest.raises(ConfigurationError, match="in use by process"):
            await salvage(whole, tmp_path / "new", quiet)
    assert not (tmp_path / "new").exists()


HARMS: dict[str, Callable[[bytearray], None]] = {
    "header": lambda data: zeroed(100)(data, 0),
    "schema": lambda data: zeroed(PAGE_BYTES)(data, 0),
    "page size": lambda data: zeroed(2)(data, 16),
    "layout": lambda data: zeroed(4)(data, 60),
    "middle": lambda data: zeroed(3 * PAGE_BYTES)(data, len(data) // 2 // PAGE_BYTES * PAGE_BYTES),
    "cut": lambda data: data.__delitem__(slice(len(data) // 2, None)),
    "noise": lambda data: data.__setitem__(slice(0, None, 3), bytes(len(range(0, len(data), 3)))),
    "text": lambda data: data.__setitem__(slice(0, None), b"This is a letter, not a database.\n" * 200),
}


@pytest.mark.parametrize("harm", HARMS)
async def test_commands_say_what_is_damaged_and_never_end_in_a_traceback(
    whole: Path, tmp_path: Path, harm: str
) -> None:
    database = whole / "palaver.db"
    data = bytearray(database.read_bytes())
    HARMS[harm](data)
    database.write_bytes(data)
    code, out, err = await palaver(whole, "verify")
    assert code == 1, err
    assert "damaged: " in out
    assert "palaver salvage" in err
    assert "Traceback" not in out + err
    code, out, err = await palaver(whole, "salvage", "--to", str(tmp_path / "new"))
    assert code == (1 if "lost: " in out or "No conversation" in err else 0), err
    assert "saved: " in out
    assert "Traceback" not in out + err
    code, out, err = await palaver(tmp_path / "new", "verify")
    assert code == 0, out + err


async def test_server_says_what_to_do_about_a_file_that_it_cannot_open(whole: Path) -> None:
    database = whole / "palaver.db"
    data = bytearray(database.read_bytes())
    zeroed(PAGE_BYTES)(data, 0)
    database.write_bytes(data)
    with pytest.raises(PalaverError, match="palaver salvage"):
        await SqliteLog.open(whole)
