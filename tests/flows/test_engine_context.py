"""A conversation that outgrows its window goes on over the real server: what a person said and planned stays, word for word."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from palaver.context.summary import REQUEST
from tests.flows.at_work import Event, Work, at_work, of
from tests.flows.engine import engine, goes_on_after_the_stop, nth, stop, words_of
from tests.provider import Answer, Call, Gate, Say, ScriptedProvider
from tests.provider.server import serving as service

pytestmark = pytest.mark.anyio

FIRST = "Never touch the file called treasure.txt, whatever happens."
RULE = "House rule: indent with exactly three spaces."
PLAN = Call(
    name="plan",
    input={"summary": "Look at every file", "items": [{"title": "Read them all"}, {"title": "Tell what they say"}]},
)
NOTES = Answer(blocks=(Say(text="Notes on what came before."),), when=REQUEST, repeat=True)
"""The answer to whoever asks for a summary."""
FILES = 14
CAP = 9_000
"""A window for the tools, the prompt and about six of the files."""


def furnish(project: Path) -> None:
    project.mkdir(exist_ok=True)
    (project / "AGENTS.md").write_text(RULE)
    for number in range(FILES):
        (project / f"f{number}.txt").write_text(text_of(number))


def is_summary(body: dict[str, Any]) -> bool:
    return REQUEST in str(body["messages"])


async def asked_and_answered(work: Work, conversation: str, text: str) -> list[Event]:
    seq = (await work.server.send(conversation, text))["seq"]
    return await work.server.settled(conversation, after=seq)


async def test_long_conversation_goes_on_with_its_plan_and_first_instructions_intact(tmp_path: Path) -> None:
    """The plan is carried out in one turn that outgrows the window by itself; then many turns follow, over a restart."""
    furnish(tmp_path / "project")
    steps = [Answer.of(*looking(number)) for number in range(FILES // 2)]
    script = [NOTES, Answer.of("My plan:", PLAN), *steps, Answer.of("The first half is done.")]
    async with service(ScriptedProvider(script)) as provider:
        async with at_work(tmp_path, provider=provider) as work:
            conversation = await work.begin(FIRST, mode="plan", context_tokens_cap=CAP, knowledge=False)
            await work.events(conversation)
            (request,) = await work.waiting(conversation)
            await work.decide(conversation, request)
            events = await work.until(conversation, nth(2, "turn.finished"))
            in_the_plan = len(of(events, "context.compressed"))
            for number in range(FILES // 2, FILES):
                events += await looked_at(work, conversation, number)
        # The prompt is made from the log alone, so a restart in the middle of it changes nothing.
        async with at_work(tmp_path, provider=provider) as work:
            events += await looked_at(work, conversation, 0)
            state = await work.server.state(conversation)
        asked = [body["messages"] for body in provider.bodies if not is_summary(body)]
        refused = [known.refused for known in provider.requests if known.refused]

    assert refused == []
    assert [event["outcome"] for event in of(events, "turn.finished")] == ["plan"] + ["completed"] * (2 + FILES // 2)
    compressed = of(events, "context.compressed")
    assert in_the_plan
    assert {"shorten", "limit"} <= {event["stage"] for event in compressed}
    assert all(event["after_tokens"] < event["before_tokens"] for event in compressed)
    # Said by people, by the system and in the plan: in every request from then on, whole.
    people = [FIRST, *(f"Now look at {number}!" for number in range(FILES // 2, FILES))]
    for at, messages in enumerate(asked):
        assert RULE in messages[0]["content"]
        known = [text for text in people if any(text in str(earlier) for earlier in asked[: at + 1])]
        assert [text for text in known if text not in "\n".join(words_of({"messages": messages}))] == []
        if at:
            assert all(word in str(messages) for word in ("Look at every file", "Read them all", "Tell what they say"))
    # What was shown stays as it was, byte for byte, until the next pass: a second one changes nothing. A plan that is over
    # is no longer called to mind beside the history that still has it.
    changes = sum(now[: len(before)] != before for before, now in pairwise(asked))
    passes = len({event["seq"] for event in compressed if event["seq"] - 1 not in {one["seq"] for one in compressed}})
    assert 0 < changes <= passes + 1 < len(asked) // 2
    # It fits, and it is said how well.
    measured = of(events, "context.measured")
    assert {event["window_tokens"] for event in measured} == {CAP}
    assert max(event["used_tokens"] for event in measured) <= CAP
    # The originals are all there to be opened.
    reads = [block for message in state["messages"] for block in message["blocks"] if block["type"] == "tool"]
    outputs = [block["output"] for block in reads if block["name"] == "read"]
    assert [text_of(number) in output for number, output in zip((*range(FILES), 0), outputs, strict=True)] == [True] * (
        FILES + 1
    )


async def test_stop_during_a_summary_leaves_a_conversation_to_go_on_with(tmp_path: Path) -> None:
    furnish(tmp_path / "project")
    held = Answer(blocks=(Say(text="Notes"), Gate(name="summing-up")), when=REQUEST)
    async with engine(tmp_path) as work:
        conversation = await work.begin(FIRST, knowledge=False)
        await work.events(conversation)
        for _ in range(30):
            await asked_and_answered(work, conversation, "!long 400")
        await work.server.command(conversation, type="set_params", patch={"context_tokens_cap": CAP})
        work.provider.script.append(held)
        sent = await work.server.send(conversation, "And then?")
        await work.provider.gates.reached("summing-up")
        status = (await work.server.state(conversation))["status"]
        await stop(work, conversation)
        await work.provider.requests[-1].end()
        closed = work.provider.requests[-1].closed_by_client
        stopped = await work.server.settled(conversation, after=sent["seq"])
        work.provider.script[:] = [NOTES]
        log = await goes_on_after_the_stop(work, conversation, FIRST)
        after = await work.until(conversation, nth(1, "context.compressed", stage="summarize"))
        asked = work.provider.bodies[-1]
    assert status == "generating"
    assert closed
    assert of(stopped, "context.compressed") == of(log, "context.compressed") == []
    assert of(after, "context.compressed")[-1]["summary"].startswith("Notes on")
    assert FIRST in words_of(asked)[0]
    assert "Notes on what came before." in str(asked["messages"])
    assert words_of(asked)[-1] == "And now?"


async def test_message_that_is_larger_than_the_window_is_said_and_can_be_taken_back(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        conversation = await work.begin("too much " * 8_000, context_tokens_cap=4_000)
        events = await work.events(conversation)
        asked = len(work.provider.requests)
        again = await work.server.command(conversation, type="retry_from", index=0, content="Just this.")
        after = await work.server.settled(conversation, after=again.json()["seq"])
        answered = [request.refused for request in work.provider.requests]
    assert (events[-1]["outcome"], events[-1]["error"]["details"]["reason"]) == ("failed", "context_exceeded")
    assert asked == 0
    assert after[-1]["outcome"] == "completed"
    assert answered == [None]


def text_of(number: int) -> str:
    return "\n".join(f"file {number} line {line}: lorem ipsum dolor sit amet" for line in range(60))


def looking(number: int) -> tuple[Say, Call]:
    return Say(text=f"I look at {number}."), Call(name="read", input={"path": f"f{number}.txt"})


async def looked_at(work: Work, conversation: str, number: int) -> list[Event]:
    """A turn that reads a file whole and tells of it at length."""
    work.provider.script += [
        Answer(blocks=looking(number), when=f"at {number}!"),
        Answer(blocks=(Say(text=f"File {number} says lorem. " * 40),), when=f"at {number}!"),
    ]
    return await asked_and_answered(work, conversation, f"Now look at {number}!")
