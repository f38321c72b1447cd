"""Google through the extra `[providers]`, over its own wire format: the library between us and it loses nothing."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from palaver.backends.api.longtail import longtail_provider
from palaver.backends.api.loop import ApiBackend, Conduct
from palaver.backends.api.route import only
from palaver.schema.events import AnswerFinished, TextDelta, ThinkingFinished, ToolCalled
from palaver.schema.view import TextBlock
from palaver.tools.toolbox import Toolbox
from tests.contract.backend_api.rig import serve
from tests.provider import Answer, Call, Cut, Hang, Say, ScriptedProvider, Status, Think
from tests.provider.server import GOOGLE
from tests.provider.tools import CountingTool, toolbox
from tests.provider.turn import MemoryTurn, drive

# The library warns of its own and its dependencies' plans.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

MODEL = {"model": "gemini-3.5-flash"}


@asynccontextmanager
async def google(
    service: ScriptedProvider,
    tools: Toolbox | None = None,
    conduct: Conduct | None = None,
    *,
    key: str = "key-of-google",
    read_timeout_s: float = 20.0,
) -> AsyncIterator[ApiBackend]:
    provider = longtail_provider("google", service.url, key, read_timeout_s=read_timeout_s)
    backend = ApiBackend(only(provider), tools or toolbox(), conduct or Conduct(chance=lambda: 1.0))
    try:
        yield backend
    finally:
        await backend.close()


async def test_google_answer_streams_with_usage() -> None:
    answer = Answer(blocks=(Think(text="Let me see."), Say(text="Hello there.")), chunk_chars=5, cached_tokens=4)
    async with serve(answer) as service, google(service) as backend:
        turn = await drive(backend, MemoryTurn("hi", params={**MODEL, "temperature": 0.5, "max_tokens": 99}))
        body = service.bodies[0]
    assert turn.error is None
    assert "".join(delta.text for delta in turn.of(TextDelta)) == "Hello there."
    assert [thought.text for thought in turn.of(ThinkingFinished)] == ["Let me see."]
    finished = turn.of(AnswerFinished)[0]
    assert finished.usage is not None
    assert (finished.usage.input_tokens, finished.usage.cached_tokens, finished.usage.output_tokens) == (10, 4, 5)
    assert (finished.finish_reason, finished.model) == ("stop", "gemini-3.5-flash")
    assert body["generationConfig"]["temperature"] == 0.5
    assert body["generationConfig"]["maxOutputTokens"] == 99


async def test_google_calls_go_round_with_their_signatures() -> None:
    read = CountingTool("read", reads_only=True)
    script = (
        Answer.of(Think(text="hm"), Call(name="read", input={"path": "a"}), Call(name="read", input={"path": "b"})),
        Answer.of("Both read."),
    )
    async with serve(*script) as service, google(service, toolbox(read)) as backend:
        turn = await drive(backend, MemoryTurn("look", params=MODEL))
        assert [request.refused for request in service.requests] == [None, None]
        again = service.bodies[1]["contents"]
    assert turn.error is None
    assert [call.input for call in turn.of(ToolCalled)] == [{"path": "a"}, {"path": "b"}]
    assert read.runs == [{"path": "a"}, {"path": "b"}]
    results = [part["functionResponse"] for part in again[-1]["parts"]]
    assert ["read done" in str(result["response"]) for result in results] == [True, True]


@pytest.mark.parametrize("fault", [Status(status=503), Status(status=429), Cut(after_bytes=300), Hang(after_bytes=300)])
async def test_google_failure_is_tried_again(fault: Status | Cut | Hang) -> None:
    script = (Answer.of("Hello there", chunk_chars=2, fault=fault), Answer.of("Hello there"))
    read_timeout_s = 1.0 if isinstance(fault, Hang) else 20.0
    async with serve(*script) as service, google(service, read_timeout_s=read_timeout_s) as backend:
        turn = await drive(backend, MemoryTurn("hi", params=MODEL))
        assert len(service.requests) == 2
    assert turn.error is None
    assert len(turn.pauses_s) == 1
    visible = [message for message in turn.history if message.status == "done"]
    assert len(visible) == 2


async def test_google_wrong_key_is_said_and_never_shown() -> None:
    async with serve(api_key="right") as service, google(service, key="wrong-secret") as backend:
        turn = await drive(backend, MemoryTurn("hi", params=MODEL))
        assert len(service.requests) == 1
    assert turn.error is not None
    assert turn.error.code == "not_logged_in"
    assert "wrong-secret" not in str(turn.error.wire())


async def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.direct", None)
    async with serve() as service, google(service) as backend:
        turn = await drive(backend, MemoryTurn("hi", params=MODEL))
        assert service.requests == []
    assert turn.error is not None
    assert turn.error.code == "not_installed"
    assert "palaver[providers]" in turn.error.message


async def test_google_answer_cut_anywhere_ends_whole_exactly_once() -> None:
    read = CountingTool("read", reads_only=True)
    whole = Answer(blocks=(Think(text="hm"), Say(text="Hi."), Call(name="read", id="c1")), chunk_chars=2, burst=True)
    size = sum(len(frame) for frame in GOOGLE.frames(whole, dict(MODEL), 1) if isinstance(frame, bytes))
    async with serve() as service, google(service, toolbox(read), Conduct(step_limit=1)) as backend:
        # Wherever a frame may be cut: in its name, in its JSON, in the text, between frames, before the last.
        for after_bytes in range(0, size, 61):
            read.runs.clear()
            service.script[:] = [replace(whole, fault=Cut(after_bytes=after_bytes, clean=after_bytes % 2 == 0)), whole]
            turn = await drive(backend, MemoryTurn("hi", params=MODEL))
            where = f"cut after {after_bytes} bytes"
            assert turn.error is None, where
            shown = [message for message in turn.history if message.status != "superseded"]
            texts = [block.text for message in shown for block in message.blocks if isinstance(block, TextBlock)]
            assert texts == ["hi", "Hi."], where
            assert len(read.runs) == 1, where
