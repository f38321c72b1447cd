"""Memory of an import: as much for a long history as for a short one.

Each import runs in a process of its own, once with a small history and once with a large one; what the large one takes beyond the
small one is compared to its size. Where nothing says how much memory a process had (no /proc) there is nothing to compare.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.history.conversation_lines import write_conversation
from palaver.history.programs.foreign import ForeignConversation
from palaver.schema.view import Message, TextBlock
from tests.flows import import_child

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system keeps no peak of memory")

ROOT = Path(__file__).parents[2]
SMALL_BYTES = 1 << 20
LARGE_BYTES = 64 << 20
READ_BYTES = 24 << 20
"""Of each program's history, for its reader alone."""
READER_BYTES = 12 << 20
"""What a reader may take: its lines and answers under way, and the cache of its scratch database."""
SERVER_BYTES = 64 << 20
"""What a server may take: the log's caches (40 MiB, which any traffic fills), and batches on their way."""
TEXT = "word " * 1_600
WAIT_S = 115.0
SESSION = "8d2f3c1e-6a0b-4c57-9b1d-2f6f0a7c1e11"


def claude_lines(size_bytes: int) -> Iterator[bytes]:
    parent: str | None = None
    number = 0
    while size_bytes > 0:
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "ls"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} {TEXT}"}
        said: tuple[tuple[str, Any], ...] = (
            ("user", f"Question {number}: {TEXT}"),
            ("assistant", [{"type": "text", "text": f"Answer {number}: {TEXT}"}, call]),
            ("user", [result]),
        )
        for kind, content in said:
            number += 1
            message = {"role": kind, "content": content, "id": f"m{number}", "model": "m"}
            uuid = f"{number:036d}"
            fields = {"type": kind, "uuid": uuid, "parentUuid": parent, "timestamp": "2026-05-01T10:00:00.000Z"}
            line = msgspec.json.encode({**fields, "sessionId": SESSION, "message": message}) + b"\n"
            parent = uuid
            size_bytes -= len(line)
            yield line


def codex_lines(size_bytes: int) -> Iterator[bytes]:
    number = 0
    while size_bytes > 0:
        number += 1
        call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": f"c{number}"}
        result = {"type": "function_call_output", "call_id": f"c{number}", "output": f"{number} {TEXT}"}
        asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{number} {TEXT}"}]}
        for payload in (asked, call, result):
            line = msgspec.json.encode({"type": "response_item", "payload": payload}) + b"\n"
            size_bytes -= len(line)
            yield line


def pi_lines(size_bytes: int) -> Iterator[bytes]:
    parent: str | None = None
    number = 0
    while size_bytes > 0:
        number += 1
        message = {"role": "user", "content": [{"type": "text", "text": f"{number} {TEXT}"}]}
        entry = {"type": "message", "id": f"e{number}", "parentId": parent, "message": message}
        line = msgspec.json.encode(entry) + b"\n"
        parent = f"e{number}"
        size_bytes -= len(line)
        yield line


WRITERS = {
    f".claude/projects/-net/{SESSION}.jsonl": claude_lines,
    f".codex/sessions/2026/05/01/rollout-2026-05-01T10-00-00-{SESSION}.jsonl": codex_lines,
    f".pi/agent/sessions/--net--/2026_{SESSION}.jsonl": pi_lines,
}


def write_history(home: Path, size_bytes: int, programs: tuple[str, ...]) -> None:
    for name, lines in WRITERS.items():
        if name.startswith(programs):
            path = home / name
            path.parent.mkdir(parents=True)
            with path.open("wb") as file:
                file.writelines(lines(size_bytes))


def write_body(home: Path, size_bytes: int) -> None:
    home.mkdir(parents=True)
    messages = [
        Message(id=f"m{seq}", role="user", seq=seq, updated_seq=seq, ts=1, blocks=(TextBlock(index=0, text=TEXT),))
        for seq in range(1, size_bytes // len(TEXT))
    ]
    with (home / "lines.jsonl").open("wb") as file:
        file.writelines(write_conversation(ForeignConversation(program="pi", session="s", messages=messages)))


def peak_of(way: str, home: Path) -> int:
    command = (sys.executable, "-m", import_child.__name__, way, str(home))
    child = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=WAIT_S, check=False)
    assert child.returncode == 0, child.stderr
    told = child.stdout.splitlines()
    assert '"problem":"' not in child.stdout
    assert "refused" not in child.stdout
    return int(told[-1])


def test_readers_hold_no_session_in_memory(tmp_path: Path) -> None:
    for name, size_bytes in (("small", SMALL_BYTES), ("large", READ_BYTES)):
        write_history(tmp_path / name, size_bytes, (".claude", ".codex", ".pi"))

    small, large = (peak_of("read", tmp_path / name) for name in ("small", "large"))

    assert large - small < READER_BYTES


@pytest.mark.long
def test_server_holds_no_session_that_it_reads_in_memory(tmp_path: Path) -> None:
    for name, size_bytes in (("small", SMALL_BYTES), ("large", LARGE_BYTES)):
        write_history(tmp_path / name, size_bytes, (".claude",))

    small, large = (peak_of("serve", tmp_path / name) for name in ("small", "large"))

    assert large - small < SERVER_BYTES


def test_neither_client_nor_server_holds_a_conversation_that_is_sent_in_memory(tmp_path: Path) -> None:
    for name, size_bytes in (("small", SMALL_BYTES), ("large", LARGE_BYTES)):
        write_body(tmp_path / name, size_bytes)

    small, large = (peak_of("receive", tmp_path / name) for name in ("small", "large"))

    assert large - small < SERVER_BYTES
