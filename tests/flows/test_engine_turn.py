"""A turn as clients see it over the real server: one numbered list, a view at any moment, and commands that take effect."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from palaver.core.fold.evolve import fold
from palaver.schema.events import decode_event
from palaver.schema.view import State
from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import FREE, WIRES, bodies, engine, nth, said, words_of
from tests.provider import Answer, Call, Gate, Say, ScriptedProvider, Status, Think
from tests.provider.server import serving as service

pytestmark = pytest.mark.anyio

LOOKS = Answer.of(Think(text="Let me look."), "I look.", Call(name="list", input={"path": "."}))


@pytest.fixture(scope="module", params=WIRES)
async def work(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Work]:
    async with engine(tmp_path_factory.mktemp("turn"), request.param) as started:
        yield started


async def did(work: Work, conversation: str, **command: Any) -> int:
    answer = await work.server.command(conversation, **command)
    assert answer.status_code == 202, answer.text
    return int(answer.json()["seq"])


def view_of(snapshot: Event) -> State:
    return msgspec.convert(snapshot, State)


def events_of(events: list[Event]) -> list[Any]:
    return [decode_event(msgspec.json.encode(event)) for event in events]


async def test_snapshot_at_any_moment_and_what_follows_it_make_the_same_view(work: Work) -> None:
    """In thinking, in text, in arguments, while paused and at rest: nothing is lost or doubled between the two."""
    work.provider.script.append(
        Answer(
            blocks=(
                *(
                    Think(text="Let me think. " * 4),
                    Gate(name="drafted-1"),
                    Say(text="Half of it"),
                    Gate(name="drafted-2"),
                ),
                *(Say(text=", and the rest."), Call(name="shell", input={"command": "touch drafted"})),
            ),
            when="drafted",
        )
    )
    conversation = await work.begin("drafted go")
    snapshots = [await work.server.state(conversation)]
    for number, text, kind in ((1, "think.", "thinking.delta"), (2, "Half of it", "text.delta")):
        await work.until(conversation, said(text, kind))
        snapshots.append(await work.server.state(conversation))
        work.provider.gates.open(f"drafted-{number}")
    (request,) = await work.opened(conversation)
    snapshots.append(await work.server.state(conversation))
    await work.decide(conversation, request)
    events = await work.events(conversation)
    last = view_of(await work.server.state(conversation))

    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [snapshot["status"] for snapshot in snapshots] == ["generating", "generating", "generating", "paused"]
    drafts = [snapshot["messages"][-1] for snapshot in snapshots[1:3]]
    assert [draft["status"] for draft in drafts] == ["streaming", "streaming"]
    assert "Half of it" in str(drafts[1]["blocks"])
    for snapshot in (*snapshots, msgspec.to_builtins(State())):
        rest = [event for event in events if event["seq"] > snapshot["seq"]]
        assert fold(view_of(snapshot), events_of(rest)) == last
    (work.project / "drafted").unlink()


async def test_readers_who_come_and_go_hold_the_same_bytes(work: Work) -> None:
    conversation = await work.begin("readers\n!say One\n!gate readers-1\n!say Two\n!gate readers-2\n!list .")
    heads: list[int] = []
    for gate in ("readers-1", "readers-2"):
        await work.provider.gates.reached(gate)
        heads.append((await work.server.state(conversation))["seq"])
        work.provider.gates.open(gate)
    whole = await work.events(conversation)
    for head in heads:
        async with work.server.events(conversation, after=head) as stream:
            rest = [event async for event in stream.until(lambda event: event["type"] == "turn.finished")]
        assert rest == whole[head:]


# -- commands


async def test_parameters_apply_at_once_are_clamped_cleared_and_refused_by_name(work: Work) -> None:
    conversation = await work.begin("tuned\n!list .\n!gate tuned\n---\n!say Done.", temperature=0.25)
    await work.provider.gates.reached("tuned")
    await did(work, conversation, type="set_params", patch={"temperature": 7, "max_tokens": 0, "frequency_penalty": -9})
    state = await work.server.state(conversation)
    wrong = await work.server.command(conversation, type="set_params", patch={"temperature": "hot", "max_tokens": 5})
    work.provider.gates.open("tuned")
    await work.events(conversation)
    seq = await did(work, conversation, type="set_params", patch={"temperature": None, "max_tokens": None})
    await work.server.send(conversation, "tuned again")
    await work.server.settled(conversation, after=seq)
    first, second, third = bodies(work, "tuned")
    assert [state["params"][name] for name in ("temperature", "max_tokens", "frequency_penalty")] == [2, 1, -2]
    assert (wrong.status_code, "`temperature`" in wrong.json()["message"]) == (400, True)
    limits = {"max_tokens", "max_completion_tokens"}
    assert (first["temperature"], "temperature" in third) == (0.25, False)
    assert second["temperature"] in (1, 2)
    assert [value for name, value in second.items() if name in limits] == [1]
    assert [value for name, value in third.items() if name in limits] != [1]


async def test_removed_answer_takes_its_calls_and_results_along(work: Work) -> None:
    work.provider.script.append(replace(LOOKS, when="removing"))
    conversation = await work.begin("removing go")
    await work.events(conversation)
    calling = (await work.server.state(conversation))["messages"][1]
    seq = await did(work, conversation, type="remove_message", message=calling["id"])
    gone = await work.server.command(conversation, type="remove_message", message=calling["id"])
    await work.server.send(conversation, "And now?")
    events = await work.server.settled(conversation, after=seq)
    last = str(bodies(work, "removing")[-1]["messages"])
    assert gone.status_code == 404
    assert events[-1]["outcome"] == "completed"
    assert "I look." not in last
    assert "tool_call" not in last
    assert "tool_use" not in last


def whole(events: list[Event]) -> list[Event]:
    """Without the fragments, which compaction may leave out."""
    return [event for event in events if not event["type"].endswith((".delta", ".compacted"))]


async def test_truncated_history_is_gone_for_the_model_and_stays_in_the_log(work: Work) -> None:
    work.provider.script.append(replace(LOOKS, when="truncating"))
    conversation = await work.begin("truncating go")
    before = await work.events(conversation)
    seq = await did(work, conversation, type="truncate_messages", from_index=1)
    outside = await work.server.command(conversation, type="truncate_messages", from_index=9)
    state = await work.server.state(conversation)
    await work.server.send(conversation, "And now?")
    await work.server.settled(conversation, after=seq)
    assert (outside.status_code, len(state["messages"])) == (400, 1)
    assert "I look." not in str(bodies(work, "truncating")[-1]["messages"])
    kept = await work.until(conversation, nth(1, "turn.finished"))
    assert whole(kept) == whole(before)


async def test_edited_message_is_what_the_model_reads_from_then_on(work: Work) -> None:
    conversation = await work.begin("editing and a secret")
    await work.events(conversation)
    first, answer = (await work.server.state(conversation))["messages"]
    seq = await did(work, conversation, type="edit_message", message=first["id"], content="editing without it")
    await did(work, conversation, type="edit_message", message=answer["id"], content="Another answer.")
    await work.server.send(conversation, "And now?")
    await work.server.settled(conversation, after=seq)
    last = bodies(work, "editing")[-1]
    assert words_of(last)[0].endswith("editing without it")
    assert words_of(last, "assistant") == ["Another answer."]


async def test_draft_is_in_every_view_until_it_is_cleared(work: Work) -> None:
    conversation = await work.begin("drafting\n!say Wait.\n!gate drafting")
    await work.provider.gates.reached("drafting")
    await did(work, conversation, type="set_draft", text="half a thought")
    during = await work.server.state(conversation)
    work.provider.gates.open("drafting")
    await work.events(conversation)
    after = await work.server.state(conversation)
    await did(work, conversation, type="clear_draft")
    again = await work.server.command(conversation, type="clear_draft")
    cleared = await work.server.state(conversation)
    assert (during["draft"], after["draft"], cleared.get("draft", "")) == ("half a thought", "half a thought", "")
    assert again.json()["applied"] is False


# -- what a model is shown


async def test_what_is_for_people_only_is_kept_from_the_model(work: Work) -> None:
    """A failure and its words, an attempt that was taken back, a parameter: none of it is part of what was said."""
    work.provider.script += [
        Answer(fault=Status(status=400, message="a report for people"), when="reported"),
    ]
    conversation = await work.begin("reported go")
    failed = await work.events(conversation)
    seq = (await work.server.send(conversation, "And now?"))["seq"]
    await work.server.settled(conversation, after=seq)
    last = bodies(work, "reported")[-1]
    assert (failed[-1]["outcome"], "a report for people" in failed[-1]["error"]["message"]) == ("failed", True)
    assert "report for people" not in str(last)
    assert [message["role"] for message in last["messages"] if message["role"] != "system"] == ["user"]


async def test_messages_of_a_person_that_follow_each_other_are_one_for_the_model(work: Work) -> None:
    conversation = await work.begin("neighbours\n!gate neighbours")
    await work.provider.gates.reached("neighbours")
    await did(work, conversation, type="interrupt")
    work.provider.gates.open("neighbours")
    seq = (await work.server.send(conversation, "second words"))["seq"]
    await work.server.settled(conversation, after=seq)
    roles = [message["role"] for message in bodies(work, "neighbours")[-1]["messages"] if message["role"] != "system"]
    assert roles == ["user"]
    assert [part.split("\n")[0] for part in words_of(bodies(work, "neighbours")[-1])][-1].endswith("second words")


async def test_thinking_and_its_signature_go_back_byte_for_byte_over_a_restart(tmp_path: Path) -> None:
    """The service refuses thinking that it signed and that comes back changed, or not at all."""
    thought = Think(text="Über “quotes”, \\backslashes\\ and\nlines: ünïcödé ✓", signature="scripted-" + "a+/b=" * 20)
    script = [
        Answer.of(thought, "I run it.", Call(name="shell", input={"command": "touch signed"})),
        Answer.of(Think(text="More thoughts."), Call(name="list", input={"path": "."})),
        Answer.of("Done."),
    ]
    async with service(ScriptedProvider(script, obedient=False)) as provider:
        environment = {"ANTHROPIC_BASE_URL": provider.url, "ANTHROPIC_API_KEY": "k"}
        async with at_work(tmp_path, provider=provider, environment=environment) as work:
            conversation = await work.begin("signed go", thinking_budget=2_000)
            (request,) = await work.opened(conversation)
        async with at_work(tmp_path, provider=provider, environment=environment) as work:
            seq = (await work.server.state(conversation))["seq"]
            await work.decide(conversation, request)
            events = await work.server.settled(conversation, after=seq)
            asked = bodies(work, "signed")
    assert events[-1]["outcome"] == "completed"
    assert len(asked) == 3
    for body in asked[1:]:
        assert body["thinking"]
        blocks = next(message["content"] for message in body["messages"] if message["role"] == "assistant")
        assert blocks[0] == {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


async def test_same_history_makes_the_same_request_before_and_after_a_restart(tmp_path: Path) -> None:
    async with service(ScriptedProvider([LOOKS])) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await work.begin("stable go", policy=FREE)
            await work.events(conversation)
            seq = (await work.server.send(conversation, "stable too"))["seq"]
            await work.server.settled(conversation, after=seq)
        async with at_work(tmp_path, provider=provider) as work:
            seq = (await work.server.send(conversation, "stable still"))["seq"]
            await work.server.settled(conversation, after=seq)
            asked = bodies(work, "stable")
    assert len(asked) == 4
    for before, after in pairwise(asked):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"] == before["tools"]


async def test_conversations_at_once_each_have_their_own_numbers_and_words(work: Work) -> None:
    async def talked(number: int) -> None:
        conversation = await work.begin(f"crowd-{number}-", knowledge=False)
        events = await work.events(conversation)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        text = "".join(event["text"] for event in of(events, "text.finished"))
        assert text == f"You said: crowd-{number}-"

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for number in range(20):
            tasks.create_task(talked(number))
