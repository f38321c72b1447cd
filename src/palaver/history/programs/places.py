"""Where each program keeps its conversations, and how one file is read.

Called by the command line and by the import routes, beside the loop. Only looks: it changes nothing in another program's
folders. What it is told of the environment decides where it looks; a file is read line by line, however long it is.
"""

import importlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, assert_never

import msgspec
from msgspec.structs import replace

from palaver.errors import Invalid, TooLarge
from palaver.history.programs import claude, codex, pi, refact
from palaver.history.programs.foreign import ForeignConversation, Program

SUBAGENT_FILE = "agent-"
"""How Claude Code names the files of its subagents, beside the others or in a folder below them."""
COMPRESSED = ".jsonl.zst"
"""Codex compresses what is old."""
DOCUMENT_BYTES = 256 << 20
"""A trajectory is one document, and in memory while it is read."""
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
                        yield from _stated(program, path)
        case "codex":
            for top in ("sessions", "archived_sessions"):
                yield from _rollouts(places.codex and places.codex / top)
        case "pi":
            for folder in _folders(places.pi and places.pi / "sessions"):
                for path in _children(folder, ".jsonl"):
                    yield from _stated(program, path)
        case "refact":
            for project in places.projects:
                for path in _children(project / refact.FOLDER, ".json"):
                    yield from _stated(program, path, str(project))
        case _:
            assert_never(program)


def _rollouts(top: Path | None) -> Iterator[SessionFile]:
    if top is None:
        return
    for folder, folders, names in os.walk(top):
        folders.sort()
        for name in names:
            if name.startswith("rollout-") and name.endswith((".jsonl", COMPRESSED)):
                yield from _stated("codex", Path(folder, name))


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


def _stated(program: Program, path: Path, project: str | None = None) -> Iterator[SessionFile]:
    try:
        found = path.stat()
    except OSError:
        return
    if path.is_file() and found.st_size:
        yield SessionFile(program, path, found.st_size, int(found.st_mtime * 1000), project)


# -- reading one


def read(file: SessionFile) -> ForeignConversation:
    """Raises OSError, Invalid or TooLarge."""
    found = _read(file)
    if not found.session:
        found = replace(found, session=_named(file.path))
    # A file without times, or of a program that tells none.
    return replace(
        found, created_at=found.created_at or file.modified_ms, updated_at=found.updated_at or file.modified_ms
    )


def _read(file: SessionFile) -> ForeignConversation:
    match file.program:
        case "refact":
            if file.size_bytes > DOCUMENT_BYTES:
                raise TooLarge(f"The trajectory has {file.size_bytes:,} bytes.", limit_bytes=DOCUMENT_BYTES)
            return refact.read(file.path.read_bytes(), file.project)
        case "claude":
            with _opened(file.path) as lines:
                return claude.read(lines)
        case "codex":
            with _opened(file.path) as lines:
                return codex.read(lines)
        case "pi":
            with _opened(file.path) as lines:
                return pi.read(lines)
        case _:
            assert_never(file.program)


def _named(path: Path) -> str:
    """The session's id is in the name of its file too: at its end."""
    name = path.name.removesuffix(".zst").removesuffix(".jsonl").removesuffix(".json")
    return name[-36:] if name.startswith("rollout-") else name.rpartition("_")[2]


@contextmanager
def _opened(path: Path) -> Iterator[Iterable[bytes]]:
    if not path.name.endswith(COMPRESSED):
        with path.open("rb") as file:
            yield file
        return
    with _decompressed(path) as file:
        yield file


def _decompressed(path: Path) -> IO[bytes]:
    for name in DECODERS:
        try:
            decoder: Any = importlib.import_module(name)
        except ImportError:
            continue
        opened: IO[bytes] = decoder.open(path, "rb")
        return opened
    raise Invalid("The file is compressed, which needs the package `zstandard`: install it beside Palaver.")


# -- names that Codex keeps apart


class _Named(msgspec.Struct):
    id: str
    thread_name: str = ""


def names(places: Places) -> dict[str, str]:
    """Titles that people gave to sessions of Codex, which its session files do not hold."""
    found: dict[str, str] = {}
    try:
        lines = (places.codex / "session_index.jsonl").read_bytes().split(b"\n") if places.codex else []
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
