"""What the engine's flows share: the built-in agent in either wire format, answers that stop in mid-word, and what must
hold after every stop.

The scripted service is strict: a request that it takes has every call paired with one result and every signature whole.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from palaver.clock import Clock
from palaver.context.summary import REQUEST
from palaver.schema.commands import Accepted
from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.served import LOOK_EVERY_S
from tests.provider import Answer, Hang, ScriptedProvider
from tests.provider.server import WIRES as FORMATS
from tests.provider.server import serving as service
from tests.unit.tools.workshop import processes_with

WIRES = ("anthropic", "openai")
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}
FREE = [{"tool": "*", "decision": "allow"}]
"""A conversation in which every tool may run unasked."""


DEAD_S = 2.0
"""Within this of a stop, or of the server's own death, no process of the turn is alive."""


@asynccontextmanager
async def engine(
    folder: Path, wire: str = "openai", provider: ScriptedProvider | None = None, clock: Clock | None = None
) -> AsyncIterator[Work]:
    """An agent whose model obeys; a test adds answers `when` its own word is said."""
    async with service(provider or ScriptedProvider()) as started:
        more = {"ANTHROPIC_BASE_URL": started.url, "ANTHROPIC_API_KEY": "k"} if wire == "anthropic" else {}
        async with at_work(folder, provider=started, environment=more, clock=clock) as work:
            yield work


def held(wire: str, answer: Answer, word: str) -> Answer:
    """The same answer, silent for ever right after the piece that holds the word."""
    body = {"model": "scripted", "stream_options": {"include_usage": True}}
    sent_bytes = 0
    for frame in FORMATS[PATHS[wire]].frames(answer, body, 100):
        assert isinstance(frame, bytes)
        sent_bytes += len(frame)
        if word.encode() in frame:
            return replace(answer, fault=Hang(after_bytes=sent_bytes + 1))
    raise AssertionError(f"no piece of the answer holds {word!r}")


def nth(count: int, type: str, **fields: Any) -> Callable[[Event], bool]:
    """True at the so-manyth event of that kind with these fields."""
    left = count

    def reached(event: Event) -> bool:
        nonlocal left
        left -= event["type"] == type and all(event.get(name) == value for name, value in fields.items())
        return left <= 0

    return reached


def said(text: str, type: str = "text.delta") -> Callable[[Event], bool]:
    """True once the fragments of that kind hold the text, however they were joined on their way."""
    heard = ""

    def reached(event: Event) -> bool:
        nonlocal heard
        heard += event["text"] if event["type"] == type else ""
        return text in heard

    return reached


def bodies(work: Work, word: str) -> list[dict[str, Any]]:
    """The requests whose conversation holds the word, in order, but for those of a summary. None of them was refused."""
    found = [request for request in work.provider.requests if word in str(request.body["messages"])]
    refused = [request.refused for request in found if request.refused]
    assert refused == []
    return [request.body for request in found if REQUEST not in str(request.body["messages"])]


def words_of(body: dict[str, Any], role: str = "user") -> list[str]:
    """What somebody says in a request, text by text."""
    said: list[str] = []
    for message in body["messages"]:
        if message["role"] != role:
            continue
        parts = message["content"] if isinstance(message["content"], list) else [message["content"]]
        said += [part if isinstance(part, str) else part["text"] for part in parts if part and _is_text(part)]
    return said


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or part["type"] == "text"


async def stop(work: Work, conversation: str) -> Accepted:
    answer = await work.server.command(conversation, type="interrupt")
    assert answer.status_code == 202, answer.text
    return msgspec.convert(answer.json(), Accepted)


async def gone(tag: str) -> None:
    """Until no process has the tag in its command line. Two seconds are promised, and counted in looks: on a busy machine each
    of them takes longer, as the end of a process does."""
    for _ in range(round(DEAD_S / LOOK_EVERY_S)):
        if not processes_with(tag):
            return
        await asyncio.sleep(LOOK_EVERY_S)
    assert processes_with(tag) == []


async def goes_on_after_the_stop(work: Work, conversation: str, word: str) -> list[Event]:
    """What must hold after a stop anywhere: all is closed, nothing more comes of that turn, and the next message is answered.

    The events up to the stop.
    """
    state = await work.server.state(conversation)
    assert (state["turn"], state["status"]) == (None, "idle")
    assert [request for request in state["requests"] if request["status"] == "open"] == []
    asked = len(bodies(work, word))
    seq = (await work.server.send(conversation, "And now?"))["seq"]
    after = await work.server.settled(conversation, after=seq)
    assert (after[-1]["type"], after[-1].get("outcome")) == ("turn.finished", "completed"), after[-1]
    assert len(bodies(work, word)) == asked + 1
    log = await work.until(conversation, lambda event: event["seq"] == after[-1]["seq"])
    # What compaction left out is named by what stands in its place.
    assert [event.get("first", event["seq"]) for event in log] == [1, *(event["seq"] + 1 for event in log[:-1])]
    (stopped,) = of(log, "turn.interrupted")
    assert stopped["reason"] == "user"
    assert not [event for event in log if event.get("turn") == stopped["turn"] and event["seq"] > stopped["seq"]]
    results = Counter(event["call"] for event in of(log, "tool.finished"))
    assert {event["call"] for event in of(log, "tool.called")} <= set(results)
    assert set(results.values()) <= {1}
    return [event for event in log if event["seq"] <= stopped["seq"]]
