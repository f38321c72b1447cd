"""Salvage of a damaged data directory: what is readable of it becomes a new one.

Called by `palaver salvage`. Conversations whose hash chain holds are taken over whole, byte for byte; a damaged one up to
the damage, with a notice in it that says so. What stands behind the damage, readable but proven by nothing, goes to files that
a person can read. Never changes the damaged directory, and refuses one that a server uses.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

import apsw
from msgspec.structs import replace

from palaver.clock import Ids, SystemClock
from palaver.conversation.index_rows import listing_of
from palaver.conversation.recovery.reconstruction import fold_longest
from palaver.core.fold.evolve import fold
from palaver.core.state import NOTICE
from palaver.errors import ConfigurationError, Invalid, LogUnavailable
from palaver.log.base import Append
from palaver.log.directory import LOCK_FILE, hold, sync_directory
from palaver.log.refusals import refuse_occupied
from palaver.log.sqlite.salvage import Remains, Remnants, open_remnants
from palaver.log.sqlite.salvage_store import Kept, open_new_store
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.base import BlobRef, Shown
from palaver.schema.content import as_content
from palaver.schema.events import MessageAdded, encode_event
from palaver.schema.view import State
from palaver.tools.files.atomic_file import replace_file
from palaver.tools.files.paths import DATA_MARK

SETTINGS = ("palaver.toml", "agents", "settings.json")
"""What a person wrote. Tokens, standing permissions and trust are given anew: of a damaged file nobody knows whom they let in."""
UNATTACHED = "unattached"
"""The folder of events that were found behind a damage."""
PARTIAL = ".partial"

_NOT_IN_A_FILE_NAME = re.compile(r"[^A-Za-z0-9_-]")
_BLOB = re.compile("[0-9a-f]{64}")

Progress = Callable[[int, int], None]
"""Told how many conversations are done, of how many."""


class Cut(Shown):
    """A conversation of which something is lost."""

    conversation: str
    title: str
    kept_events: int
    lost_from: int
    expected_events: int
    unattached_events: int
    """Readable behind the damage."""


class Salvaged(Shown):
    target: str
    whole: int
    events: int
    damaged: tuple[Cut, ...]
    blobs: int
    damaged_blobs: tuple[str, ...]
    settings: tuple[str, ...]
    unreadable_settings: tuple[str, ...]


async def salvage(source: Path, target: Path, progress: Progress) -> Salvaged:
    """Raises ConfigurationError, Invalid or LogUnavailable, and then leaves nothing at `target`."""
    _check(source, target)
    partial = target.with_name(target.name + PARTIAL)
    try:
        with _hold_directory(source):
            shutil.rmtree(partial, ignore_errors=True)
            found = await _build(source, partial, progress)
        await asyncio.to_thread(_put_in_place, partial, target)
    except (OSError, apsw.Error) as failure:
        raise LogUnavailable(f"The salvage to {target} failed: {failure}. Nothing is left of it.") from failure
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return replace(found, target=str(target))


def _put_in_place(partial: Path, target: Path) -> None:
    if target.exists():
        target.rmdir()
    partial.replace(target)
    sync_directory(target.parent)


def _check(source: Path, target: Path) -> None:
    if not (source / "palaver.db").exists():
        raise ConfigurationError(f"There is no log in {source}. Name the data directory with --data.")
    if refuse_occupied(target):
        raise Invalid(f"{target} exists and is not empty. Name a new directory.")
    inner, outer = target.resolve(), source.resolve()
    if inner == outer or outer in inner.parents or inner in outer.parents:
        raise Invalid(f"{target} and {source} lie in each other. Name a directory elsewhere.")


@contextmanager
def _hold_directory(source: Path) -> Iterator[None]:
    """No server uses the directory meanwhile. Raises ConfigurationError when one does."""
    try:
        lock = hold(source / LOCK_FILE)
    except OSError:
        # Read-only, as a disk that is about to die should be: then nobody writes there either.
        yield
        return
    try:
        yield
    finally:
        os.close(lock)


async def _build(source: Path, directory: Path, progress: Progress) -> Salvaged:
    with open_remnants(source / "palaver.db") as remnants:
        salvaged, cuts = await asyncio.to_thread(_copy_conversations, remnants, directory, progress)
        types = remnants.blob_types
    async with open_sqlite_log(directory) as log:
        ids = Ids(SystemClock())
        for state, cut in cuts:
            notice = _notice(state, cut, ids)
            after = fold(state, [notice])
            line = encode_event(notice)
            await log.append(Append(state.conversation, state.seq, [line], listing_of(after)))
        blobs = 0
        damaged_blobs: list[str] = []
        for path in await asyncio.to_thread(lambda: sorted(_blob_files(source / "blobs"))):
            data = await asyncio.to_thread(_read, path)
            if data is None or sha256(data).hexdigest() != path.name:
                damaged_blobs.append(path.name)
                continue
            await log.blobs.put(data, types.get(path.name, BlobRef(id=path.name, size=0).mime))
            blobs += 1
    kept, unreadable = await asyncio.to_thread(_copy_settings, source, directory)
    (directory / DATA_MARK).touch(mode=0o600)
    return replace(
        salvaged,
        blobs=blobs,
        damaged_blobs=tuple(damaged_blobs),
        settings=kept,
        unreadable_settings=unreadable,
    )


# -- conversations


def _copy_conversations(
    remnants: Remnants, directory: Path, progress: Progress
) -> tuple[Salvaged, list[tuple[State, Cut]]]:
    names = remnants.conversations
    whole, events = 0, 0
    damaged: list[Cut] = []
    notices: list[tuple[State, Cut]] = []
    with open_new_store(directory) as store:
        for done, name in enumerate(names, 1):
            remains = remnants.of(name)
            kept, state = fold_longest(name, remains.segments)
            if kept is not None:
                store.add(kept)
                events += kept.segments[-1].last
            if kept is not None and remains.is_whole:
                whole += 1
            else:
                cut = _cut(remains, kept, state)
                damaged.append(cut)
                if state is not None:
                    notices.append((state, cut))
                _keep_unattached(directory, remains, kept)
            progress(done, len(names))
    return Salvaged("", whole, events, tuple(damaged), 0, (), (), ()), notices


def _cut(remains: Remains, kept: Kept | None, state: State | None) -> Cut:
    last = kept.segments[-1].last if kept else 0
    return Cut(
        conversation=remains.conversation,
        title=state.title if state else "",
        kept_events=last,
        lost_from=last + 1,
        expected_events=remains.expected,
        unattached_events=len(remains.loose),
    )


def _notice(state: State, cut: Cut, ids: Ids) -> MessageAdded:
    text = (
        f"This conversation was salvaged from a damaged store. Its events {cut.lost_from:,} to {cut.expected_events:,} are lost; "
        "what came before them is as it was written."
    )
    return MessageAdded(
        seq=state.seq + 1,
        id=ids.new(),
        ts=SystemClock().now_ms(),
        conversation=state.conversation,
        message=ids.new(),
        role="event",
        event_kind=NOTICE,
        content=as_content(text),
    )


def _keep_unattached(directory: Path, remains: Remains, kept: Kept | None) -> None:
    lines = list(remains.loose)
    if kept is None:
        lines = [line for one in remains.segments for line in one.body.split(b"\n") if line] + lines
    if lines:
        folder = directory / UNATTACHED
        folder.mkdir(mode=0o700, exist_ok=True)
        name = _NOT_IN_A_FILE_NAME.sub("_", remains.conversation)[:128]
        replace_file(folder / f"{name}.jsonl", b"\n".join([*lines, b""]))


# -- files


def _blob_files(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        for inner in folder.iterdir():
            with suppress(OSError):
                yield from (path for path in inner.iterdir() if _BLOB.fullmatch(path.name))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _copy_settings(source: Path, target: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    kept: list[str] = []
    unreadable: list[str] = []
    for path in (path for name in SETTINGS for path in _files(source / name)):
        name = path.relative_to(source)
        data = _read(path)
        if data is None:
            unreadable.append(str(name))
            continue
        (target / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(target / name, data)
        kept.append(str(name))
    return tuple(kept), tuple(unreadable)


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(one for one in path.rglob("*") if one.is_file() and not one.is_symlink())
    elif path.is_file():
        yield path
