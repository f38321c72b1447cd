"""Talking over the socket: what each frame of the contract brings about, and what everybody else sees of it."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from palaver.people.authentication import KeyRecord, token_hash
from tests.flows.engine import FREE, bodies, engine
from tests.flows.faces.socket.client import Client, Frame, client, events, of, operation, subscribed, types

pytestmark = pytest.mark.anyio


def about_turn(frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if not frame["type"].startswith("session_")]


async def ask(one: Client, session: str, text: str, **fields: object) -> None:
    await one.say("text_input", sessionId=session, text=text, **fields)


# -- text


async def test_message_is_answered_in_deltas_and_one_done_a_run(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = (await operation(work.server, "create", 201, title="Talk"))["sessionId"]
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!say Hello there, how are you?", clientMessageId="c-1")
            heard = await one.until("text_done")
    assert "".join(frame["delta"] for frame in of(heard, "text_delta")) == "Hello there, how are you?"
    assert heard[-1]["text"] == "Hello there, how are you?"
    assert "interrupted" not in heard[-1]
    assert types(of(heard, "text_block_done", "text_done")) == ["text_block_done", "text_done"]
    assert {frame["block"] for frame in of(heard, "text_delta", "text_block_done")} == {0}
    assert len({frame["responseId"] for frame in of(heard, "text_delta", "text_block_done", "text_done")}) == 1
    assert {frame["sessionId"] for frame in heard} == {session}
    assert all(later["sequence"] > earlier["sequence"] for earlier, later in pairwise(heard))
    assert len({frame["id"] for frame in heard}) == len(heard)


async def test_sender_never_sees_its_own_message_and_everybody_else_sees_it_once(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create()
        async with subscribed(work.server, session) as one, subscribed(work.server, session) as other:
            await ask(one, session, "!gate go\n!say First.", clientMessageId="c-1")
            await work.provider.received(1)
            await ask(one, session, "!say Second.", clientMessageId="c-2")
            mine = await one.until("message_queued")
            work.provider.gates.open("go")
            mine += await one.until(lambda frame: frame.get("text") == "Second.")
            theirs = await other.until(lambda frame: frame.get("text") == "Second." and frame["type"] == "text_done")
            await one.say("subscribe", sessionId=session, after=0)
            mine += await one.until(lambda frame: frame.get("text") == "Second." and frame["type"] == "text_done")
        replayed = await events(work.server, session)
    assert of(mine, "user_message") == []
    seen = [(frame["text"], frame["clientMessageId"]) for frame in of(theirs, "user_message")]
    assert seen == [("!gate go\n!say First.", "c-1"), ("!say Second.", "c-2")]
    assert len(of(replayed, "user_message")) == 2


async def test_same_client_message_id_has_one_effect_and_another_body_is_refused(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create()
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!say Once.", clientMessageId="c-1")
            await one.until("text_done")
            await ask(one, session, "!say Once.", clientMessageId="c-1")
            assert about_turn(await one.flush()) == []
            await ask(one, session, "!say Twice.", clientMessageId="c-1")
            error = (await one.until("error"))[-1]
        replayed = await events(work.server, session)
    assert (error["code"], error["sessionId"]) == ("conflict", session)
    assert len(of(replayed, "user_message")) == 1


async def test_thinking_starts_grows_and_is_done_before_the_text(tmp_path: Path) -> None:
    async with engine(tmp_path, "anthropic") as work:
        session = await work.server.create()
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!think What a question this is.\n!say Yes.")
            heard = about_turn(await one.until("text_done"))
    order = types(heard)
    assert (order[0], order.count("thinking_start"), order.count("thinking_done")) == ("thinking_start", 1, 1)
    assert order.index("thinking_done") < order.index("text_delta")
    assert "".join(frame["delta"] for frame in of(heard, "thinking_delta")) == "What a question this is."
    assert of(heard, "thinking_done")[0]["text"] == "What a question this is."
    assert len({frame["responseId"] for frame in heard}) == 1


async def test_error_of_the_model_is_told_and_the_next_message_is_answered(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create()
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!status 401")
            failed = await one.until("text_done")
            await ask(one, session, "!say Fine now.")
            assert (await one.until("text_done"))[-1]["text"] == "Fine now."
    error = failed[-2]
    assert (error["type"], error["sessionId"], bool(error["message"])) == ("error", session, True)
    assert (failed[-1]["text"], failed[-1]["sequence"] > error["sequence"]) == ("", True)


# -- tools


async def test_calls_of_a_batch_are_all_announced_before_any_of_them_runs(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!shell echo first\n!shell echo second; false\n!tool nonsense {}")
            heard = about_turn(await one.until("text_done"))
    starts, results = of(heard, "tool_call_start"), of(heard, "tool_result")
    assert [frame["toolName"] for frame in starts] == ["shell", "shell", "nonsense"]
    assert msgspec.json.decode(starts[0]["arguments"]) == {"command": "echo first"}
    assert types(heard).index("tool_result") > max(
        place for place, kind in enumerate(types(heard)) if kind == "tool_call_start"
    )
    assert sorted(frame["callId"] for frame in results) == sorted(frame["callId"] for frame in starts)
    by_call = {frame["callId"]: frame for frame in results}
    first, second, third = (by_call[frame["callId"]] for frame in starts)
    assert (first["ok"], first["result"].strip()) == (True, "first")
    assert (second["ok"], second["error"]["code"]) == (False, "tool_error")
    assert (third["ok"], third["toolName"], third["error"]["code"]) == (False, "nonsense", "tool_error")
    assert "error" not in first


async def test_output_of_a_tool_streams_with_its_offset_and_a_long_one_says_what_is_left_out(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!shell printf 'grün\\n'; seq 1 30000")
            heard = await one.until("tool_result")
    told = 0
    for frame in of(heard, "tool_output_delta"):
        assert frame["offset"] == told
        told += len(frame["delta"])
    result = heard[-1]
    assert (result["truncated"], result["totalLines"]) == (True, 30_001)
    assert result["totalBytes"] > 100_000


async def test_arguments_that_make_no_sense_are_a_result_with_that_code(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as one:
            await ask(one, session, '!tool read {"way": 1}')
            result = (await one.until("tool_result"))[-1]
    assert (result["ok"], result["error"]["code"]) == (False, "invalid_arguments")


async def test_tool_that_gives_its_output_as_a_whole_yields_start_delta_and_result(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        (work.project / "notes.txt").write_text("one\ntwo\n")
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!read notes.txt")
            heard = about_turn(await one.until("text_done"))
    start, delta, result = of(heard, "tool_call_start", "tool_output_delta", "tool_result")
    assert (start["type"], delta["type"], result["type"]) == ("tool_call_start", "tool_output_delta", "tool_result")
    assert (delta["delta"], delta["offset"], result["ok"]) == (result["result"], 0, True)


async def test_run_that_calls_tools_has_one_id_and_one_text_at_its_end(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!say First.\n!list .\n---\n!say Second.\n!list .\n---\n!say Third.")
            heard = about_turn(await one.until("text_done"))
            await ask(one, session, "!say Fourth.")
            later = about_turn(await one.until("text_done"))
        replayed = await events(work.server, session)
    assert len({frame["responseId"] for frame in heard if "responseId" in frame}) == 1
    assert later[-1]["responseId"] != heard[-1]["responseId"]
    assert [(frame["block"], frame["text"]) for frame in of(heard, "text_block_done")] == [
        (0, "First."),
        (1, "Second."),
        (2, "Third."),
    ]
    assert {frame["block"] for frame in of(heard, "text_delta")} == {0, 1, 2}
    assert (heard[-1]["text"], len(of(heard, "text_done"))) == ("First.\n\nSecond.\n\nThird.", 1)
    assert len(of(replayed, "text_done")) == 2


@pytest.mark.parametrize(
    ("orders", "text"),
    [
        ('!say I am done.\n!tool finish_task {"summary": "It works."}', "I am done."),
        ('!tool finish_task {"summary": "It works."}', ""),
    ],
)
async def test_run_that_ends_by_a_call_says_its_text_after_the_result(tmp_path: Path, orders: str, text: str) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one:
            await ask(one, session, orders)
            heard = about_turn(await one.until("text_done"))
    assert (types(heard)[-2:], heard[-1]["text"]) == (["tool_result", "text_done"], text)


async def test_agent_that_yields_its_turn_ends_it_with_what_it_posted(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        made = {"id": "strict", "name": "Strict", "strict_inbox": True}
        assert (await work.server.http.post("/api/agents", json=made)).status_code == 201
        session = await work.server.create(agent="strict", project=str(work.project))
        post = '!tool chat_assistant_post {"content": "Here it is."}'
        async with subscribed(work.server, session) as one:
            await ask(one, session, f"{post}\n---\n!tool loop_yield_turn {{}}")
            heard = about_turn(await one.until("text_done"))
    assert (types(heard)[-2:], heard[-1]["text"]) == (["tool_result", "text_done"], "Here it is.")


async def test_calls_beyond_the_limit_of_a_minute_have_their_result_and_the_agent_goes_on(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        limited = {"policy": FREE, "tool_calls_per_minute": 2}
        session = await work.server.create(project=str(work.project), params=limited)
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!list .\n!list .\n!list .\n---\n!list .\n---\n!say On I go.")
            heard = about_turn(await one.until("text_done"))
        free = await work.server.create(project=str(work.project), params={"policy": FREE})
        async with subscribed(work.server, free) as one:
            await ask(one, free, "!list .\n!list .\n!list .")
            unlimited = await one.until("text_done")
    results = {frame["callId"]: frame for frame in of(heard, "tool_result")}
    in_order = [results[frame["callId"]] for frame in of(heard, "tool_call_start")]
    assert len(of(heard, "tool_result")) == len(in_order) == 4
    assert [frame["ok"] for frame in in_order] == [True, True, False, False]
    assert {frame["error"]["code"] for frame in in_order[2:]} == {"rate_limit_tools"}
    assert heard[-1]["text"] == "On I go."
    assert [frame["ok"] for frame in of(unlimited, "tool_result")] == [True] * 3


async def test_limit_of_the_settings_counts_at_once_where_nothing_else_is_said(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        said = await work.server.create(project=str(work.project), params={"tool_calls_per_minute": 5})
        unsaid = await work.server.create(project=str(work.project))
        wrong = await work.server.http.post("/api/settings", json={"tool_calls_per_minute": "few"})
        await work.server.http.post("/api/settings", json={"tool_calls_per_minute": 1})
        kept = (await work.server.http.get("/api/settings")).json()
        codes: dict[str, list[Any]] = {}
        for session in (said, unsaid):
            async with subscribed(work.server, session) as one:
                await ask(one, session, "!list .\n!list .")
                results = of(await one.until("text_done"), "tool_result")
                codes[session] = [frame.get("error", {}).get("code") for frame in results]
    assert (wrong.status_code, kept["tool_calls_per_minute"]) == (400, 1)
    assert codes[said] == [None, None]
    assert sorted(codes[unsaid], key=str) == [None, "rate_limit_tools"]


# -- interactions


async def answer(one: Client, session: str, asked: Frame, **fields: Any) -> None:
    interaction = {"callId": asked["callId"], "interactionId": asked["interactionId"]}
    await one.say("tool_interaction_response", sessionId=session, **interaction, **fields)


async def test_approval_is_asked_with_its_scopes_and_resolved_once(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one, subscribed(work.server, session) as other:
            await ask(one, session, "!write a.txt hello")
            asked = (await one.until("interaction_request"))[-1]
            call = of(await other.until("interaction_request"), "tool_call_start")[0]
            await answer(other, session, asked, action="approve")
            heard = await one.until("tool_result")
            await other.say(
                "tool_interaction_response", sessionId=session, interactionId=asked["interactionId"], action="deny"
            )
            (late,) = of(await other.flush(), "error")
        replayed = await events(work.server, session)
        written = (work.project / "a.txt").read_text()
    assert (asked["interactionType"], asked["approvalScopes"][0]) == ("approval", "once")
    assert {"session", "always"} <= set(asked["approvalScopes"])
    assert asked["prompt"]
    assert asked["callId"] == call["callId"]
    (resolved,) = of(heard, "interaction_resolved")
    assert (resolved["interactionId"], resolved["action"], resolved["approvalScope"]) == (
        asked["interactionId"],
        "approve",
        "once",
    )
    assert (heard[-1]["ok"], written) == (True, "hello")
    assert len(of(replayed, "interaction_resolved")) == 1
    assert (late["code"], late["sessionId"]) == ("gone", session)
    assert "that answer stands" in late["message"]


async def test_approval_may_say_null_for_what_it_may_leave_out(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!write a.txt hello")
            asked = (await one.until("interaction_request"))[-1]
            await answer(one, session, asked, action="approve", approvalScope=None, input=None, reason=None)
            heard = await one.until("tool_result")
    assert of(heard, "error") == []
    assert (of(heard, "interaction_resolved")[0]["approvalScope"], heard[-1]["ok"]) == ("once", True)


async def test_answer_said_again_is_no_error_and_that_of_another_client_is(tmp_path: Path) -> None:
    order = f"!tool ask_user {msgspec.json.encode({'questions': QUESTIONS[:1]}).decode()}"
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one, subscribed(work.server, session) as other:
            await ask(one, session, order)
            asked = (await one.until("interaction_request"))[-1]
            for _ in range(2):
                await answer(one, session, asked, action="submit", input="SQLite")
            heard = await one.until("tool_result")
            await answer(one, session, asked, action="submit", input="SQLite")
            repeated = of([*heard, *await one.flush()], "error")
            await other.until("interaction_resolved")
            await answer(other, session, asked, action="submit", input="SQLite")
            (from_another,) = of(await other.flush(), "error")
            await answer(one, session, asked, action="submit", input="Postgres")
            (changed,) = of(await one.flush(), "error")
        replayed = await events(work.server, session)
    assert repeated == []
    assert (from_another["code"], changed["code"]) == ("gone", "gone")
    assert '"chosen": ["SQLite"]' in of(heard, "tool_result")[0]["result"]
    assert len(of(replayed, "interaction_resolved")) == 1


async def test_answer_to_an_interaction_that_was_called_off_is_an_error(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!write a.txt hello")
            asked = (await one.until("interaction_request"))[-1]
            await one.say("control", sessionId=session, action="cancel", target="output")
            await one.until("output_cancelled")
            await answer(one, session, asked, action="approve")
            (late,) = of(await one.flush(), "error")
    assert late["code"] == "gone"
    assert "called off" in late["message"]
    assert not (work.project / "a.txt").exists()


async def test_denied_call_is_an_error_with_the_reason_and_the_agent_goes_on(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!write a.txt hello")
            asked = (await one.until("interaction_request"))[-1]
            await answer(one, session, asked, action="deny", reason="Not there.")
            heard = await one.until("text_done")
    (resolved,) = of(heard, "interaction_resolved")
    (result,) = of(heard, "tool_result")
    assert (resolved["action"], resolved["reason"]) == ("deny", "Not there.")
    assert (result["ok"], result["error"]["code"]) == (False, "tool_error")
    assert "Not there." in result["error"]["message"]
    assert not (work.project / "a.txt").exists()


async def test_approval_for_the_session_covers_more_than_the_call_and_no_other_session(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        elsewhere = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session, elsewhere) as one:
            await ask(one, session, "!write a.txt hello\n---\n!write b.txt hello\n---\n!say Both.")
            asked = (await one.until("interaction_request"))[-1]
            await answer(one, session, asked, action="approve", approvalScope="session")
            heard = await one.until("text_done")
            await ask(one, elsewhere, "!write c.txt hello")
            again = (await one.until("interaction_request"))[-1]
    assert of(heard, "interaction_request") == []
    assert of(heard, "interaction_resolved")[0]["approvalScope"] == "session"
    assert [frame["ok"] for frame in of(heard, "tool_result")] == [True, True]
    assert again["sessionId"] == elsewhere


async def test_approval_is_given_by_that_word_alone(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!write a.txt hello")
            asked = (await one.until("interaction_request"))[-1]
            await answer(one, session, asked, action="submit", input={"path": "b.txt", "content": "hello"})
            refused = (await one.until("error"))[-1]
            await answer(one, session, asked, action="deny")
            resolved = (await one.until("interaction_resolved"))[-1]
    assert (refused["code"], resolved["action"]) == ("invalid", "deny")
    assert not (work.project / "b.txt").exists()


QUESTIONS = [
    {"question": "Which store?", "options": [{"label": "SQLite"}, {"label": "Postgres"}]},
    {"question": "Why?", "options": []},
]


async def test_question_is_an_input_with_a_schema_and_the_answer_reaches_the_agent(tmp_path: Path) -> None:
    order = f"!tool ask_user {msgspec.json.encode({'questions': QUESTIONS}).decode()}"
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one:
            await ask(one, session, order)
            asked = (await one.until("interaction_request"))[-1]
            await answer(one, session, asked, action="submit", input={"answer_1": "SQLite", "answer_2": "It is small."})
            heard = await one.until("tool_result")
    assert (asked["interactionType"], asked["prompt"]) == ("input", "Which store?\nWhy?")
    assert set(asked["inputSchema"]["properties"]) == {"answer_1", "answer_2"}
    assert asked["inputSchema"]["properties"]["answer_1"]["examples"] == ["SQLite", "Postgres"]
    assert of(heard, "interaction_resolved")[0]["action"] == "submit"
    assert '"chosen": ["SQLite"]' in heard[-1]["result"]
    assert '"own_words": "It is small."' in heard[-1]["result"]


@pytest.mark.parametrize("given", [{}, {"input": None}, {"input": {}}, {"input": {"answer": None}}])
async def test_question_is_not_answered_by_nothing(tmp_path: Path, given: Frame) -> None:
    order = f"!tool ask_user {msgspec.json.encode({'questions': QUESTIONS[:1]}).decode()}"
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one:
            await ask(one, session, order)
            asked = (await one.until("interaction_request"))[-1]
            await answer(one, session, asked, action="submit", **given)
            refused = (await one.until("error"))[-1]
            await answer(one, session, asked, action="submit", input="SQLite")
            heard = await one.until("tool_result")
    assert refused["code"] == "invalid"
    assert '"chosen": ["SQLite"]' in heard[-1]["result"]


async def test_question_that_is_cancelled_is_a_failed_call(tmp_path: Path) -> None:
    order = f"!tool ask_user {msgspec.json.encode({'questions': QUESTIONS[:1]}).decode()}"
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project))
        async with subscribed(work.server, session) as one:
            await ask(one, session, order)
            asked = (await one.until("interaction_request"))[-1]
            await answer(one, session, asked, action="cancel")
            heard = await one.until("tool_result")
    assert of(heard, "interaction_resolved")[0]["action"] == "cancel"
    assert (heard[-1]["ok"], heard[-1]["error"]["code"]) == (False, "interaction_unavailable")


# -- the queue


async def test_message_to_a_busy_session_waits_in_its_place_and_can_be_cancelled(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create()
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!gate go\n!say First.")
            await work.provider.received(1)
            await ask(one, session, "!say Second.", clientMessageId="c-2")
            second = (await one.until("message_queued"))[-1]
            await ask(one, session, "!say Third.")
            third = (await one.until("message_queued"))[-1]
            await one.say("cancel_queued_message", messageId=second["messageId"])
            gone = (await one.until("message_dequeued"))[-1]
            work.provider.gates.open("go")
            heard = await one.until(lambda frame: frame.get("text") == "Third." and frame["type"] == "text_done")
    assert (second["text"], second["position"], second["source"]) == ("!say Second.", 1, "user")
    assert (second["clientMessageId"], third["position"]) == ("c-2", 2)
    assert gone["messageId"] == second["messageId"]
    assert [frame["messageId"] for frame in of(heard, "message_dequeued")] == [third["messageId"]]
    assert [frame["text"] for frame in of(heard, "text_done")] == ["First.", "Third."]


# -- the model


async def test_model_that_is_set_counts_from_the_next_turn(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create()
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!list .\n!gate go\n---\n!say First, marmalade.")
            await work.provider.gates.reached("go")
            await one.say("set_session_model", sessionId=session, model="scripted-2")
            changed = (await one.until(lambda frame: "model" in frame))[-1]
            work.provider.gates.open("go")
            assert (await one.until("text_done"))[-1]["text"] == "First, marmalade."
            await ask(one, session, "!say Second.")
            await one.until(lambda frame: frame.get("text") == "Second." and frame["type"] == "text_done")
        models = [body["model"] for body in bodies(work, "marmalade")]
    assert (changed["type"], changed["model"]) == ("session_updated", "scripted-2")
    assert models == ["scripted", "scripted", "scripted-2"]


# -- who may


@pytest.mark.parametrize("frame", [{"type": "text_input", "text": "hi"}, {"type": "control", "action": "cancel"}])
async def test_observer_may_follow_and_not_talk(tmp_path: Path, frame: Frame) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create()
        records = [KeyRecord(name="eye", kind="observer", hash=token_hash("observing"))]
        work.server.app.keys.replace(work.server.token, records)
        async with client(work.server, Authorization="Bearer observing") as one:
            await one.hello(session)
            await one.connection.send(msgspec.json.encode({**frame, "sessionId": session}).decode())
            error = (await one.until("error"))[-1]
        assert (error["code"], of(await events(work.server, session), "user_message")) == ("forbidden", [])


async def test_interaction_that_nobody_answers_ends_with_that_code(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = await work.server.create(project=str(work.project), params={"request_timeout_s": 0.05})
        async with subscribed(work.server, session) as one:
            await ask(one, session, "!write a.txt hello")
            heard = await one.until("text_done")
    (resolved,) = of(heard, "interaction_resolved")
    (result,) = of(heard, "tool_result")
    assert (resolved["status"], result["error"]["code"]) == ("expired", "interaction_timeout")
