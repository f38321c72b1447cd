"""What waits for a person, answered from the command line: in a pipe, in a terminal, afterwards."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from palaver.backends.script.script import Ask, Say, ShowPlan, Step, Tool
from palaver.cli.support.json_output import PRINTED
from palaver.schema.view import Offer, Plan, PlanItem, Question, QuestionOption
from tests.flows.served import LOOK_EVERY_S, WAIT_S, Served, serving
from tests.flows.terminal import in_terminal, palaver
from tests.flows.test_delegation import crew, task

BUILD: list[Step] = [
    Tool(
        "shell",
        {"command": "make"},
        output="built",
        asks=True,
        title="Run make",
        scopes=("once", "conversation"),
        offers=(Offer(label="make"),),
    ),
    Say("Done."),
]
COLOURS = Question(
    question="Which colour?", options=(QuestionOption(label="Red"), QuestionOption(label="Green")), multi_select=False
)


async def resolved(server: Served, conversation: str) -> dict[str, Any]:
    """The last request, once its turn is over."""
    async with asyncio.timeout(WAIT_S):
        while (state := await server.state(conversation))["turn"] is not None:  # noqa: ASYNC110 - as a person looks again
            await asyncio.sleep(LOOK_EVERY_S)
    return dict(state["requests"][-1])


async def test_send_in_a_pipe_says_how_to_answer_and_leaves_with_its_own_code(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, BUILD) as server:
        where = ("--url", server.url)
        code, out, err = await palaver(data, "send", "build it", *where)
        assert (code, out) == (9, "")
        (command,) = [line.partition("palaver ")[2] for line in err.splitlines() if line.startswith("answer with:")]
        conversation = err.split()[-1]
        assert f"palaver tail -f {conversation}" in err

        code, out, _ = await palaver(data, "requests", *where)
        assert (code, "Run make" in out, command.split()[2] in out) == (0, True, True)
        answer = command.partition(" allow")[0].split()
        code, out, _ = await palaver(data, *answer, "always", *where)
        assert (code, out) == (0, "Always allowed: Run make\n")
        request = await resolved(server, conversation)
        assert (request["resolution"]["verdict"], request["resolution"]["scope"]) == ("allow", "conversation")
        code, _, err = await palaver(data, *answer, "deny", *where)
        assert (code, "Nothing waits" in err) == (6, True)
        code, out, _ = await palaver(data, "tail", "-n", "1", *where)
        assert (code, "Done." in out) == (0, True)


async def test_requests_that_are_over_are_listed_with_what_became_of_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, BUILD) as server:
        where = ("--url", server.url)
        missed = await server.create(title="Slept", message="go", params={"request_timeout_s": 0.05})
        await server.settled(missed)
        code, _, err = await palaver(data, "send", "build it", *where)
        assert code == 9
        code, _, _ = await palaver(data, "requests", "answer", "last", "deny", *where)
        assert code == 0
        await resolved(server, err.split()[-1])
        code, out, _ = await palaver(data, "requests", *where)
        assert (code, out) == (0, "")
        code, out, err = await palaver(data, "requests", "--recent", *where)
        assert (code, "Nothing waits for you." in err) == (0, True)
        denied, expired = out.strip().removeprefix("recent:\n").splitlines()
        assert "Run make · denied by owner · " in denied
        assert "Run make · missed: it expired without an answer · “Slept”" in expired


async def test_approval_is_asked_for_in_the_terminal_and_what_was_typed_before_does_not_count(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, BUILD) as server:
        async with in_terminal(data, "send", "build it", "--url", server.url) as terminal:
            terminal.type("n\n")
            await terminal.until("Allow? y yes, a always")
            terminal.type("y\n")
            await terminal.until("Done.")
            await terminal.until("conversation ")
            assert await terminal.ended() == 0
        conversation = terminal.shown.split("conversation ")[-1].split()[0].removesuffix("\x1b[0m")
        assert (await resolved(server, conversation))["resolution"]["verdict"] == "allow"


async def test_end_of_input_leaves_the_request_open_and_says_how_to_answer(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, BUILD) as server:
        async with in_terminal(data, "send", "build it", "--url", server.url) as terminal:
            await terminal.until("Allow? y yes, a always")
            terminal.type("\x04")
            await terminal.until("palaver requests answer ")
            assert await terminal.ended() == 9
        assert len((await server.http.get("/api/requests")).json()["items"]) == 1


async def test_question_in_the_terminal_goes_away_when_somebody_else_answers(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, BUILD) as server, in_terminal(data, "send", "build it", "--url", server.url) as terminal:
        await terminal.until("Allow? y yes, a always")
        waiting = (await server.http.get("/api/requests")).json()["items"][0]
        answer = {"request": waiting["request"]["id"], "verdict": "allow"}
        await server.command(waiting["conversation"], type="resolve_request", **answer)
        await terminal.until("Done.")
        assert await terminal.ended() == 0


async def test_question_is_answered_by_option_or_words_and_a_wrong_option_by_what_there_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script: list[Step] = [Ask((COLOURS,)), Say("Thanks.")]
    async with serving(data, script) as server:
        where = ("--url", server.url)
        for words, answered in (
            (("--option", "2"), {"question_index": 0, "selected": ["Green"], "custom_text": None}),
            (("--note", "Blue."), {"question_index": 0, "selected": [], "custom_text": "Blue."}),
        ):
            assert (await palaver(data, "send", "paint", *where))[0] == 9
            code, _, err = await palaver(data, "requests", "answer", "last", "--option", "Blue", *where)
            assert (code, "1) Red, 2) Green" in err) == (1, True)
            code, out, _ = await palaver(data, "requests", "answer", "last", *words, "--json", *where)
            taken = msgspec.json.decode(out)
            assert (code, set(taken) <= set(PRINTED["requests answer"].names)) == (0, True)
            request = await resolved(server, taken["conversation"])
            got = request["resolution"]["answers"][0]
            assert {"question_index": 0, "selected": [], "custom_text": None} | got == answered


async def test_plan_is_sent_back_with_a_note(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script: list[Step] = [
        ShowPlan(Plan(summary="Paint it", items=(PlanItem(title="Buy paint"),)), asks=True),
        Say("Ok."),
    ]
    async with serving(data, script) as server:
        where = ("--url", server.url)
        code, _, err = await palaver(data, "send", "plan", *where)
        assert (code, "Buy paint" in err) == (9, True)
        code, out, _ = await palaver(data, "requests", "answer", "-", "deny", "--note", "Green, please.", *where)
        assert (code, out.startswith("Denied: ")) == (0, True)
        request = await resolved(server, err.split()[-1])
        assert (request["resolution"]["verdict"], request["resolution"]["text"]) == ("deny", "Green, please.")


async def test_waiting_is_told_as_json_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with serving(data, BUILD) as server:
        code, out, err = await palaver(data, "send", "--json", "build it", "--url", server.url)
        events = [msgspec.json.decode(line) for line in out.splitlines()]
        assert (code, events[-1]["type"], "waiting for you" in err) == (9, "request.opened", True)
        (waiting,) = (await palaver(data, "requests", "list", "--json", "--url", server.url))[1].splitlines()
        one = msgspec.json.decode(waiting)
        assert set(one) == set(PRINTED["requests list"].names)
        assert one["request"]["id"] == events[-1]["request"]


async def test_request_of_a_subagent_is_told_where_its_parent_was_sent_to_work(tmp_path: Path) -> None:
    async with crew(tmp_path) as work:
        wishes = ("--agent", "coordinator", "--folder", str(work.project), "--url", work.server.url)
        order = task("!write notes.txt from below", "careful")
        code, _, err = await palaver(tmp_path / "data", "send", order, *wishes)
        assert (code, "notes.txt" in err, "palaver requests answer " in err) == (9, True, True)
        (waiting,) = (await work.server.http.get("/api/requests")).json()["items"]
        assert (waiting["root"], waiting["agent"]) == (err.split()[-1], "careful")
