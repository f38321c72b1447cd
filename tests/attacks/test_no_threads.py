"""A machine without room for another thread or process: a turn ends in words, and its conversation goes on afterwards."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.at_work import Event, at_work
from tests.flows.served import ended_turn

pytestmark = pytest.mark.anyio


def refuse_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def refuse_process(*_: object, **__: object) -> int:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def at_rest(turns: int) -> Callable[[Event], bool]:
    """Whether so many turns have ended, or a person is asked."""
    left = turns

    def is_last(event: Event) -> bool:
        nonlocal left
        left -= ended_turn(event)
        return left == 0 or event["type"] == "request.opened"

    return is_last


@pytest.mark.parametrize("missing", ["threads", "processes", "both"])
@pytest.mark.parametrize(
    "said", ["!list .", "!read a.txt", "!grep a", "!shell echo a > b", "!write b.txt b", "!edit a.txt a => b"]
)
async def test_conversation_goes_on_after_a_turn_without_threads_or_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, said: str
) -> None:
    async with at_work(tmp_path) as work:
        (work.project / "a.txt").write_text("a\n")
        conversation = await work.server.create(project=str(work.project), params={"mode": "accept_edits"})
        await work.server.send(conversation, "hello")
        await work.until(conversation, at_rest(1))
        with monkeypatch.context() as patched:
            if missing != "processes":
                patched.setattr(threading.Thread, "start", refuse_thread)
            if missing != "threads":
                patched.setattr("subprocess._fork_exec", refuse_process)
            await work.server.send(conversation, said)
            await work.until(conversation, at_rest(2))
        await work.server.command(conversation, type="interrupt")
        await work.server.send(conversation, "and now?")
        events = await work.until(conversation, lambda event: "and now?" in str(event) and is_answer(event))
        assert sum(map(ended_turn, events)) == 2


def is_answer(event: Event) -> bool:
    return bool(event["type"] == "text.finished")
