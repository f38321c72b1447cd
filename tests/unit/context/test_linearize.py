"""From the view of a conversation to what a model is shown."""

import asyncio
import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.backends.api import anthropic, openai
from palaver.backends.api.provider import ModelRequest
from palaver.context.linearize import BEGINNING, GO_ON, INTERRUPTED_MARK, LOST, NO_OUTPUT, WAITING, linearize
from palaver.context.prompt import AssistantMessage, Call, Image, Outcome, PromptMessage, Text, Thought, UserMessage
from palaver.schema.base import BlobRef
from palaver.schema.view import (
    Block,
    ImageBlock,
    Message,
    Progress,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
    ToolStatus,
)
from tests.provider.anthropic import AnthropicWire
from tests.provider.openai import OpenAiWire
from tests.provider.quotes import QUOTING, read_prompt
from tests.provider.script import signature_of

PROVIDER = "anthropic@host"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
BLOBS = {"picture": PNG, "long": b"the whole text", "noise": b"\0\1\2"}


async def load(blob: str) -> bytes | None:
    return BLOBS.get(blob)


def message(role: Role, *blocks: Block, **fields: Any) -> Message:
    return Message(**{"id": "m", "role": role, "seq": 1, "updated_seq": 1, "ts": 1, "blocks": blocks, **fields})


def user(text: str, **fields: Any) -> Message:
    return message("user", TextBlock(index=0, text=text), **fields)


def agent(*blocks: Block, **fields: Any) -> Message:
    return message("assistant", *blocks, **fields)


def said(text: str, status: Progress = "done", index: int = 0) -> TextBlock:
    return TextBlock(index=index, text=text, status=status)


def tool(status: ToolStatus = "ok", call: str = "c1", **fields: Any) -> ToolBlock:
    return ToolBlock(
        **{
            "index": 5,
            "call": call,
            "name": "read",
            "status": status,
            "input": {"path": "a"},
            "output": "seen",
            **fields,
        }
    )


def thought(by: str = PROVIDER, **fields: Any) -> ThinkingBlock:
    return ThinkingBlock(**{"index": 0, "text": "hm", "signature": "sig", "provider": {"by": by}, **fields})


async def shown(*history: Message) -> tuple[PromptMessage, ...]:
    return await linearize(history, provider=PROVIDER, load=load, quoting=QUOTING)


HI = UserMessage((Text("hi"),))


async def test_neighbouring_user_messages_become_one() -> None:
    assert await shown(user("a"), user("b"), agent(said("c")), user("d")) == (
        UserMessage((Text("a"), Text("b"))),
        AssistantMessage((Text("c"),)),
        UserMessage((Text("d"),)),
    )


async def test_superseded_attempts_and_notes_for_people_are_left_out() -> None:
    assert await shown(
        user("hi"),
        agent(said("half"), tool("interrupted"), status="superseded"),
        message("event", said("It failed."), event_kind="error"),
        message("event", said("Freed 4,000 tokens."), event_kind="compression_report"),
        message("event", said("Summed up 12 messages."), event_kind="summarization"),
    ) == (HI,)


async def test_hidden_events_reach_the_agent() -> None:
    event = message("event", said("make ended with 0"), event_kind="process_completed", hidden=True)
    (prompt,) = await shown(user("hi"), event)
    words, told = [part.text for part in prompt.parts if isinstance(part, Text)]
    assert words == "hi"
    assert read_prompt(told).quotes == (("event process_completed", "make ended with 0"),)


async def test_interrupted_text_stays_with_a_mark() -> None:
    _, answer, _ = await shown(user("hi"), agent(said("half", "interrupted"), status="interrupted"), user("go on"))
    assert answer == AssistantMessage((Text(f"half\n\n{INTERRUPTED_MARK}"),))


@pytest.mark.parametrize(
    ("block", "outcome"),
    [
        (tool(), Outcome("c1", "seen")),
        (tool(output=" "), Outcome("c1", NO_OUTPUT)),
        (
            tool("error", error=ToolError(code="x", message="exit 1")),
            Outcome("c1", "exit 1\nseen", failed=True),
        ),
        (tool("denied", output="", error=ToolError(code="x", message="no")), Outcome("c1", "no", failed=True)),
        (tool("interrupted", output=""), Outcome("c1", LOST, failed=True)),
        (tool("running"), Outcome("c1", LOST, failed=True)),
        (tool("called"), Outcome("c1", LOST, failed=True)),
        (tool("waiting"), Outcome("c1", WAITING, failed=True)),
    ],
)
async def test_every_call_has_exactly_one_outcome(block: ToolBlock, outcome: Outcome) -> None:
    _, answer, results = await shown(user("hi"), agent(said("look"), block), user("and?"))
    assert answer == AssistantMessage((Text("look"), Call("c1", "read", {"path": "a"})))
    assert results == UserMessage((outcome, Text("and?")))


async def test_call_cut_while_it_was_written_was_never_made() -> None:
    cut = tool("interrupted", input=None)
    assert await shown(user("hi"), agent(said("look"), cut), user("and?")) == (
        HI,
        AssistantMessage((Text("look"),)),
        UserMessage((Text("and?"),)),
    )


async def test_arguments_and_names_become_what_services_take() -> None:
    _, answer, _ = await shown(user("hi"), agent(tool(name="my tool.v2", input="{bad")))
    assert answer == AssistantMessage((Call("c1", "my_tool_v2", {}),))


async def test_call_ids_are_the_providers_while_they_are_unique() -> None:
    theirs = {"by": PROVIDER, "id": "call_1", "opaque": {"s": 1}}
    foreign = {"by": "openai@host", "id": "call_9", "opaque": {"s": 2}}
    answer = agent(
        tool(call="a", provider=theirs, index=1),
        tool(call="b", provider=theirs, index=2),
        tool(call="c", provider=foreign, index=3),
        tool(call="c", index=4),
    )
    _, calls, results = await shown(user("hi"), answer)
    assert isinstance(calls, AssistantMessage)
    assert [(part.id, part.opaque) for part in calls.parts if isinstance(part, Call)] == [
        ("call_1", {"s": 1}),
        ("b", {"s": 1}),
        ("c", None),
        ("c-2", None),
    ]
    assert [part.call for part in results.parts if isinstance(part, Outcome)] == ["call_1", "b", "c", "c-2"]


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        (thought(), (Thought("hm", "sig"),)),
        (thought(text="", signature="s"), (Thought("", "s"),)),
        (
            thought(redacted=True, text="", signature=None, provider={"by": PROVIDER, "data": "x"}),
            (Thought("", None, "x"),),
        ),
        (thought(by="anthropic@elsewhere"), ()),
        (thought(provider=None), ()),
        (thought(status="interrupted"), ()),
    ],
)
async def test_thoughts_go_back_whole_and_to_their_own_provider_only(
    block: ThinkingBlock, kept: tuple[Thought, ...]
) -> None:
    _, answer, _ = await shown(user("hi"), agent(block, said("so", index=1)))
    assert answer == AssistantMessage((*kept, Text("so")))


async def test_thought_that_led_to_nothing_is_left_out() -> None:
    assert await shown(user("hi"), agent(thought()), user("and?")) == (UserMessage((Text("hi"), Text("and?"))),)


async def test_history_begins_and_ends_with_the_user() -> None:
    assert await shown(agent(said("hello"))) == (
        UserMessage((Text(BEGINNING),)),
        AssistantMessage((Text("hello"),)),
        UserMessage((Text(GO_ON),)),
    )
    assert await shown() == (UserMessage((Text(GO_ON),)),)


async def test_text_in_a_blob_is_loaded_whole() -> None:
    long = TextBlock(index=0, text="the wh", blob=BlobRef(id="long", size=14))
    lost = TextBlock(index=0, text="the wh", blob=BlobRef(id="lost", size=14))
    assert await shown(message("user", long)) == (UserMessage((Text("the whole text"),)),)
    assert "no longer stored" in str(await shown(message("user", lost)))


async def test_images_come_from_data_urls_and_our_own_blobs_only() -> None:
    data = base64.b64encode(PNG).decode()
    urls = [
        f"data:image/png;base64,{data}",
        "/api/blobs/picture",
        "/api/uploads/picture",
        "/api/blobs/gone",
        "/api/blobs/noise",
        "https://example.invalid/a.png",
        "https://example.invalid/api/blobs/picture",
        "data:text/html;base64,PGI+",
    ]
    (prompt,) = await shown(message("user", *(ImageBlock(index=at, url=url) for at, url in enumerate(urls))))
    assert isinstance(prompt, UserMessage)
    assert list(prompt.parts[:3]) == [Image("image/png", data)] * 3
    assert all(isinstance(part, Text) for part in prompt.parts[3:])


# -- whatever happened to a conversation, the services take it

texts = st.sampled_from(["", " ", "words", "more\nwords"])
progress: st.SearchStrategy[Progress] = st.sampled_from(["streaming", "done", "interrupted", "superseded"])
calls = st.builds(
    ToolBlock,
    index=st.just(0),
    call=st.sampled_from(["c1", "c2", "c3"]),
    name=st.sampled_from(["read", "bad name!", "", "x" * 100]),
    status=st.sampled_from(["input", "called", "waiting", "running", "ok", "error", "denied", "interrupted"]),
    input=st.sampled_from([None, {}, {"a": 1}, "{bad", [1]]),
    output=texts,
    error=st.none() | st.just(ToolError(code="x", message="it failed")),
    provider=st.sampled_from([None, {"by": PROVIDER, "id": "p1"}, {"by": PROVIDER, "id": "p2"}, {"by": "other"}, 3]),
)
thoughts = st.builds(
    ThinkingBlock,
    index=st.just(0),
    text=st.just("hm"),
    status=progress,
    signature=st.just(signature_of("hm")),
    provider=st.sampled_from(
        [None, {"by": PROVIDER}, {"by": PROVIDER, "data": '{"type":"reasoning.encrypted"}'}, {"by": "other"}]
    ),
)
prose = st.builds(TextBlock, index=st.just(0), text=texts, status=progress)
images = st.builds(ImageBlock, index=st.just(0), url=st.sampled_from(["/api/blobs/picture", "/api/blobs/gone", "x"]))
histories = st.lists(
    st.builds(
        Message,
        id=st.just("m"),
        role=st.sampled_from(["user", "assistant", "assistant", "system", "event", "plan", "summary"]),
        seq=st.just(1),
        updated_seq=st.just(1),
        ts=st.just(1),
        status=progress,
        hidden=st.booleans(),
        event_kind=st.sampled_from([None, "error", "process_completed"]),
        blocks=st.lists(prose | thoughts | calls | images, max_size=5).map(tuple),
    ),
    max_size=6,
)


@given(histories, st.sampled_from([None, 2048]))
@settings(deadline=None)
def test_any_history_becomes_a_request_that_both_services_take(history: list[Message], budget: int | None) -> None:
    messages = asyncio.run(linearize(history, provider=PROVIDER, load=load, quoting=QUOTING))
    request = ModelRequest(model="m", system="s", messages=messages, thinking_budget_tokens=budget)
    AnthropicWire().check(anthropic.request_body(request))
    OpenAiWire().check(openai.request_body(request))
    assert messages == asyncio.run(linearize(history, provider=PROVIDER, load=load, quoting=QUOTING))
