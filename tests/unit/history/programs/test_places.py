"""Where the programs keep their sessions, and which files there are none."""

import os
from pathlib import Path

import pytest

from palaver.history.programs import places
from palaver.history.programs.foreign import ForeignConversation
from palaver.history.programs.places import Places, SessionFile, Unreadable, places_of
from palaver.history.programs.scratch import Scratch
from tests.unit.history.programs.lines import SAMPLES

SESSION = "8d2f3c1e-6a0b-4c57-9b1d-2f6f0a7c1e11"


def laid(path: Path, body: bytes = b"{}\n", modified_s: int = 1_790_000_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    os.utime(path, (modified_s, modified_s))
    return path


def test_places_follow_the_programs_own_variables(tmp_path: Path) -> None:
    assert places_of({}) == Places()
    assert places_of({"HOME": "/home/ada"}).pi == Path("/home/ada/.pi/agent")
    moved = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "PI_CODING_AGENT_DIR": "/p", "HOME": "/home/ada"}
    assert places_of(moved) == Places(Path("/c"), Path("/x"), Path("/p"))


def test_sessions_of_each_program_are_found_and_nothing_else(tmp_path: Path) -> None:
    found = places_of({"HOME": str(tmp_path)}, [tmp_path / "net"])
    session = laid(tmp_path / ".claude/projects/-net" / f"{SESSION}.jsonl")
    laid(tmp_path / ".claude/projects/-net/agent-1.jsonl")
    laid(tmp_path / ".claude/projects/-net" / SESSION / "subagents/agent-2.jsonl")
    laid(tmp_path / ".claude/projects/-net/empty.jsonl", b"")
    laid(tmp_path / ".claude/projects/-net/memory.md")
    rollout = laid(tmp_path / f".codex/sessions/2026/05/01/rollout-2026-05-01T10-00-00-{SESSION}.jsonl")
    archived = laid(tmp_path / f".codex/archived_sessions/rollout-2026-05-01T10-00-00-{SESSION}.jsonl.zst")
    laid(tmp_path / ".codex/history.jsonl")
    pi = laid(tmp_path / f".pi/agent/sessions/--net--/2026_{SESSION}.jsonl")
    trajectory = laid(tmp_path / "net/.refact/trajectories/r1.json")

    assert [file.path for file in places.files("claude", found)] == [session]
    assert [file.path for file in places.files("codex", found)] == [rollout, archived]
    assert [file.path for file in places.files("pi", found)] == [pi]
    assert [(file.path, file.project) for file in places.files("refact", found)] == [
        (trajectory, str(tmp_path / "net"))
    ]
    for program in ("claude", "codex", "pi", "refact"):
        assert list(places.files(program, Places())) == []


def test_files_are_chosen_by_day_and_come_the_oldest_first(tmp_path: Path) -> None:
    folder = tmp_path / "projects/-net"
    names = {name: laid(folder / f"{name}.jsonl", modified_s=1_790_000_000 + age) for name, age in (("b", 2), ("a", 9))}
    laid(folder / "old.jsonl", modified_s=1_700_000_000)

    found = places.files_since("claude", Places(claude=tmp_path), since_ms=1_790_000_000_000)

    assert [file.path for file in found] == [names["b"], names["a"]]


def test_session_is_named_by_its_file(tmp_path: Path) -> None:
    path = laid(tmp_path / f"{SESSION}.jsonl", (SAMPLES / "claude-subagent.jsonl").read_bytes())

    found = places.read(SessionFile("claude", path, 1, 5), Scratch())

    assert found.session == SESSION


@pytest.mark.parametrize("name", [f"rollout-2026-05-01T10-00-00-{SESSION}.jsonl", f"2026_{SESSION}.jsonl"])
def test_session_without_a_first_line_is_named_by_its_file_too(tmp_path: Path, name: str) -> None:
    path = laid(tmp_path / name)

    found = places.read(SessionFile("codex" if "rollout" in name else "pi", path, 1, 7), Scratch())

    assert (found.session, found.created_at) == (SESSION, 7)


def test_file_that_cannot_be_read_keeps_no_other_from_being_read(tmp_path: Path) -> None:
    whole = laid(tmp_path / "s.jsonl", (SAMPLES / "pi.jsonl").read_bytes())
    broken = laid(tmp_path / "r.json", b"{")
    files = [
        SessionFile("pi", tmp_path / "gone.jsonl", 1, 1),
        SessionFile("refact", broken, 1, 1),
        SessionFile("pi", whole, 1, 1),
    ]

    with Scratch() as scratch:
        gone, torn, read = places.read_all(files, {"01a1e23a-d673-71f6-b9ee-d9d117220bd0": "Named"}, scratch)

    assert isinstance(gone, Unreadable)
    assert "No such file" in gone.reason
    assert isinstance(torn, Unreadable)
    assert "JSON" in torn.reason
    assert isinstance(read, ForeignConversation)
    assert read.title == "Named"


def test_compressed_file_is_read_or_refused_in_words(tmp_path: Path) -> None:
    path = laid(tmp_path / f"rollout-{SESSION}.jsonl.zst", b"not compressed at all")

    (found,) = places.read_all([SessionFile("codex", path, 1, 1)], {}, Scratch())

    assert isinstance(found, Unreadable)
    assert "compressed" in found.reason or "decompressed" in found.reason


def test_batches_are_bounded_in_files_and_bytes() -> None:
    small = [SessionFile("pi", Path(str(number)), 10, 1) for number in range(places.BATCH_FILES + 1)]
    large = [SessionFile("pi", Path("x"), places.BATCH_BYTES, 1) for _ in range(2)]

    assert [len(batch) for batch in places.batches([*small, *large])] == [places.BATCH_FILES, 1, 1, 1]


def test_names_that_codex_keeps_apart_are_read_past_broken_lines(tmp_path: Path) -> None:
    laid(tmp_path / "session_index.jsonl", b'{"id": "1", "thread_name": "One", "updated_at": "x"}\n{\n[]\n')

    assert places.names(Places(codex=tmp_path)) == {"1": "One"}
    assert places.names(Places(codex=tmp_path / "nowhere")) == {}
