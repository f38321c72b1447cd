"""Where each program keeps its conversations, and how one file is read.

Called by the command line and by the import routes, beside the loop. Only looks: it changes nothing in another program's
folders. What it is told of the environment decides where it looks; a file is read line by line, however long it is.
"""

import importlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from palaver.errors import Invalid, PalaverError, TooLarge
from palaver.history.documents import open_document
from palaver.history.parts import Json
from palaver.history.programs import claude, codex, pi, refact
from palaver.history.programs.foreign import ForeignConversation, Program, milliseconds
from palaver.history.programs.scratch import Scratch
from palaver.history.sessions import CHATS_NAME, SessionNote, read_chat_sessions
from palaver.regular_file import open_regular

BATCH_FILES = 64
BATCH_BYTES = 8 << 20
"""Of files; what is taken of them is a fraction, and a request may carry several times as much."""
SUBAGENT_FILE = "agent-"
"""How Claude Code names the files of its subagents, beside the others or in a folder below them."""
COMPRESSED = ".jsonl.zst"
"""Codex compresses what is old."""
SESSION_BYTES = 256 << 20
"""Of one conversation, decompressed: what is longer is no conversation, or a trap for the disk."""
LINE_BYTES = 32 << 20
"""Of one line: a message with its pictures. A longer one is passed over and counted."""
NOTES_BYTES = 16 << 20
"""A list of sessions is a line a session; a larger file is something else."""
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
DECODERS = ("compression.zstd", "zstandard")
"""Python has one of its own from 3.14 on; before, the package does."""


@dataclass(frozen=True, slots=True)
class Places:
    """Folders that hold sessions. None: the program is not of this user."""

    claude: Path | None = None
    codex: Path | None = None
    pi: Path | None = None
    projects: tuple[Path, ...] = ()
    """Folders in which Refact may have left its trajectories."""


@dataclass(frozen=True, slots=True)
class SessionFile:
    program: Program
    path: Path
    size_bytes: int
    modified_ms: int
    project: str | None = None
    """Known where the file lies in its project."""


def places_of(environment: Mapping[str, str], projects: Iterable[Path] = ()) -> Places:
    home = Path(environment["HOME"]) if environment.get("HOME") else None

    def place(variable: str, *default: str) -> Path | None:
        if named := environment.get(variable):
            return Path(named)
        return home.joinpath(*default) if home else None

    return Places(
        claude=place("CLAUDE_CONFIG_DIR", ".claude"),
        codex=place("CODEX_HOME", ".codex"),
        pi=place("PI_CODING_AGENT_DIR", ".pi", "agent"),
        projects=tuple(dict.fromkeys(projects)),
    )


def files(program: Program, places: Places) -> Iterator[SessionFile]:
    """Every session of a program, in no order. What cannot be looked into is passed over."""
    match program:
        case "claude":
            for folder in _folders(places.claude and places.claude / "projects"):
                for path in _children(folder, ".jsonl"):
                    if not path.name.startswith(SUBAGENT_FILE):
                        yield from _stat_files(program, path)
        case "codex":
            for top in ("sessions", "archived_sessions"):
                yield from _rollouts(places.codex and places.codex / top)
        case "pi":
            for folder in _folders(places.pi and places.pi / "sessions"):
                for path in _children(folder, ".jsonl"):
                    yield from _stat_files(program, path)
        case "refact":
            for project in places.projects:
                for path in _children(project / refact.FOLDER, ".json"):
                    yield from _stat_files(program, path, str(project))
        case _:
            assert_never(program)


def claude_session(places: Places, session: str) -> SessionFile | None:
    """The file of one session of Claude Code, by its id; None for anything that is no id or leads out of its folder."""
    top = places.claude and places.claude / "projects"
    if top is None or not _SESSION.fullmatch(session) or session.startswith(SUBAGENT_FILE):
        return None
    for folder in _folders(top):
        path = folder / f"{session}.jsonl"
        if path.resolve().is_relative_to(top.resolve()):
            for file in _stat_files("claude", path):
                return file
    return None


def _rollouts(top: Path | None) -> Iterator[SessionFile]:
    if top is None:
        return
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in names:
            if name.startswith("rollout-") and name.endswith((".jsonl", COMPRESSED)):
                yield from _stat_files("codex", Path(folder, name))


def _folders(top: Path | None) -> list[Path]:
    try:
        return sorted(one for one in top.iterdir() if one.is_dir()) if top else []
    except OSError:
        return []


def _children(folder: Path, ending: str) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if one.name.endswith(ending))
    except OSError:
        return []


def _stat_files(program: Program, path: Path, project: str | None = None) -> Iterator[SessionFile]:
    try:
        found = path.stat()
    except OSError:
        return
    if path.is_file() and found.st_size:
        yield SessionFile(program, path, found.st_size, int(found.st_mtime * 1000), project)


def files_since(program: Program, places: Places, since_ms: int = 0) -> list[SessionFile]:
    """Those that changed since, the oldest first: what is imported later is newer everywhere."""
    found = [file for file in files(program, places) if file.modified_ms >= since_ms]
    return sorted(found, key=lambda file: (file.modified_ms, file.path))


def batches(chosen: Iterable[SessionFile]) -> Iterator[list[SessionFile]]:
    """Enough files to share a commit, few enough bytes to be held at once."""
    batch: list[SessionFile] = []
    size = 0
    for file in chosen:
        if batch and (len(batch) >= BATCH_FILES or size + file.size_bytes > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size_bytes
    if batch:
        yield batch


# -- reading one


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that is no conversation, and why, in words."""

    file: SessionFile
    reason: str


def read_all(
    files: Iterable[SessionFile], names: Mapping[str, str], scratch: Scratch
) -> list[ForeignConversation | Unreadable]:
    """Each file for itself: one that cannot be read keeps no other from being read."""
    found: list[ForeignConversation | Unreadable] = []
    notes: dict[str, dict[str, SessionNote]] = {}
    for file in files:
        try:
            conversation = read(file, scratch)
        except OSError as problem:
            found.append(Unreadable(file, problem.strerror or str(problem)))
        except PalaverError as problem:
            found.append(Unreadable(file, problem.message))
        else:
            titled = replace(conversation, title=names.get(conversation.session) or conversation.title)
            found.append(_as_noted(titled, notes))
    return found


def _as_noted(conversation: ForeignConversation, notes: dict[str, dict[str, SessionNote]]) -> ForeignConversation:
    """With the title and the times that the folder's own list of sessions has for it, where there is one."""
    if conversation.program != "claude" or not conversation.project:
        return conversation
    if conversation.project not in notes:
        notes[conversation.project] = _notes_in(Path(conversation.project))
    note = notes[conversation.project].get(conversation.session)
    if note is None:
        return conversation
    return replace(
        conversation,
        title=note.title.strip() or conversation.title,
        created_at=milliseconds(note.created_at) or conversation.created_at,
        updated_at=milliseconds(note.updated_at) or conversation.updated_at,
    )


def _notes_in(project: Path) -> dict[str, SessionNote]:
    path = project / CHATS_NAME
    try:
        with open_regular(path) as file:
            listed = file.read(NOTES_BYTES + 1)
    except (OSError, ValueError):
        return {}
    return read_chat_sessions(listed) if project.is_absolute() and len(listed) <= NOTES_BYTES else {}


def is_within(conversation: ForeignConversation, project: Path | None) -> bool:
    """Whether it is about this folder or one in it."""
    return project is None or (conversation.project is not None and Path(conversation.project).is_relative_to(project))


def read(file: SessionFile, scratch: Scratch) -> ForeignConversation:
    """Its messages stay on disk, in the scratch database or in the file itself. Raises OSError, Invalid or TooLarge."""
    found = _read(file, scratch)
    if not found.session or file.program == "claude":  # A fork's lines may still say where they come from.
        found = replace(found, session=_session_of(file.path))
    # A file without times, or of a program that tells none.
    return replace(
        found, created_at=found.created_at or file.modified_ms, updated_at=found.updated_at or file.modified_ms
    )


def _read(file: SessionFile, scratch: Scratch) -> ForeignConversation:
    match file.program:
        case "refact":
            return refact.read(_open_document(file.path, scratch), file.project)
        case "claude":
            return claude.read(SessionLines(file.path), scratch)
        case "codex":
            return codex.read(SessionLines(file.path), scratch)
        case "pi":
            return pi.read(SessionLines(file.path), scratch)
        case _:
            assert_never(file.program)


def _open_document(path: Path, scratch: Scratch) -> Json:
    """Its messages are read when they are wanted, as they are now: a program puts a new file in its place."""
    file = open_regular(path)
    scratch.keep_open(file)
    if os.fstat(file.fileno()).st_size > SESSION_BYTES:
        raise _too_large()
    return open_document(file)


def _session_of(path: Path) -> str:
    """The session's id is in the name of its file too: at its end."""
    name = path.name.removesuffix(".zst").removesuffix(".jsonl").removesuffix(".json")
    return name[-36:] if name.startswith("rollout-") else name.rpartition("_")[2]


class SessionLines:
    """Bounded lines of a session file, which may be walked more than once and are the same each time.

    A program that is at work writes on: what comes after the first look belongs to the next import.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size_bytes: int | None = None

    def __iter__(self) -> Iterator[bytes]:
        with open_regular(self._path) as file:
            if self._size_bytes is None:
                self._size_bytes = os.fstat(file.fileno()).st_size
            if self._path.name.endswith(COMPRESSED):
                yield from _decompress(file)
            else:
                yield from _read_lines(file, self._size_bytes)


def _read_lines(file: BufferedReader, size_bytes: int | None = None) -> Iterator[bytes]:
    """Each line; in place of one that is too long, something that is no line of these files. Raises TooLarge."""
    left_bytes = SESSION_BYTES
    is_rest = False
    while line := file.readline(LINE_BYTES if size_bytes is None else min(LINE_BYTES, size_bytes)):
        left_bytes -= len(line)
        if size_bytes is not None:
            size_bytes -= len(line)
        if left_bytes < 0:
            raise _too_large()
        is_whole = line.endswith(b"\n") or len(line) < LINE_BYTES
        if is_whole and not is_rest:
            yield line
        elif not is_rest:
            yield b"[too long]\n"
        is_rest = not is_whole


def _too_large() -> TooLarge:
    return TooLarge(f"The conversation has more than {SESSION_BYTES:,} bytes.", limit_bytes=SESSION_BYTES)


def _decompress(file: BufferedReader) -> Iterable[bytes]:
    for name in DECODERS:
        try:
            decoder: Any = importlib.import_module(name)
        except ImportError:
            continue
        return _lines(decoder, file)
    raise Invalid("The file is compressed, which needs the package `zstandard`: install it beside Palaver.")


def _lines(decoder: Any, packed: BufferedReader) -> Iterator[bytes]:
    """What is cut off at its end is as long as it is."""
    try:
        with decoder.open(packed, "rb") as stream, BufferedReader(stream) as file:
            yield from _read_lines(file)
    except (decoder.ZstdError, EOFError) as problem:
        raise Invalid(f"The file cannot be decompressed: {problem}.") from None


# -- names that Codex keeps apart


class _Named(msgspec.Struct):
    id: str
    thread_name: str = ""


def names(places: Places) -> dict[str, str]:
    """Titles that people gave to sessions of Codex, which its session files do not hold."""
    found: dict[str, str] = {}
    try:
        if places.codex is None:
            return found
        with open_regular(places.codex / "session_index.jsonl") as file:
            lines = file.read(NOTES_BYTES).split(b"\n")
    except OSError:
        return found
    decoder = msgspec.json.Decoder(_Named)
    for line in lines:
        try:
            entry = decoder.decode(line)
        except msgspec.MsgspecError:
            continue
        found[entry.id] = entry.thread_name
    return found
