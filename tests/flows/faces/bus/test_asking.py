"""Questions and permissions: announced, answered once, seen to end by everybody."""

from pathlib import Path

import msgspec
import pytest

from tests.flows.engine import engine
from tests.flows.faces.bus.listening import Event, chat, get, is_a, listening, of, post
from tests.flows.served import Served

OUTCOME = is_a("run", "outcome")
ASKED = is_a("ask_user")
RESOLVED = is_a("ask_user", "resolved")
OPTIONS = [{"label": "SQLite", "description": "One file."}, {"label": "PostgreSQL"}]
QUESTION = {"question": "Which store?", "header": "Store", "options": OPTIONS, "multi_select": False}
ASK = f"!tool ask_user {msgspec.json.encode({'questions': [QUESTION]}).decode()}"
LABELS = ["Allow once", "Allow for this session", "Always allow", "Deny"]


async def answer(server: Served, question: Event, *selected: str, **more: str) -> int:
    body = {
        "question_id": question["data"]["question_id"],
        "answers": [{"question_index": 0, "selected": list(selected), **more}],
    }
    return (await server.http.post("/api/ask-user-response", json=body)).status_code


async def test_question_is_answered_the_moment_it_is_announced(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await chat(work.server, ASK)
        asked = (await bus.until(ASKED))[-1]
        status = await answer(work.server, asked, "SQLite", custom_text="The small one.")
        told = await bus.until(OUTCOME)
    assert status == 200
    assert asked["data"]["questions"] == [QUESTION]
    assert of(told, "ask_user", "resolved")[0]["data"] == {
        "question_id": asked["data"]["question_id"],
        "status": "answered",
    }
    assert of(told, "ask_user", "resolved")[0]["id"] == asked["id"]
    assert "SQLite" in of(told, "text_segment")[-1]["text"]


async def test_question_is_left_unanswered_by_no_answers_and_the_agent_goes_on(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await chat(work.server, ASK)
        question = (await bus.until(ASKED))[-1]["data"]["question_id"]
        silent = await work.server.http.post("/api/ask-user-response", json={"question_id": question})
        declined = await post(work.server, "/api/ask-user-response", question_id=question, answers=[])
        told = await bus.until(OUTCOME)
    assert (silent.status_code, "`answers`" in silent.json()["message"]) == (400, True)
    assert declined == {"status": "ok"}
    assert of(told, "ask_user", "resolved")[0]["data"] == {"question_id": question, "status": "answered"}
    assert "no answer" in of(told, "text_segment")[-1]["text"]


TWO = [{**QUESTION, "multi_select": True}, {**QUESTION, "question": "And where?", "header": "Place"}]
MALFORMED: list[object] = [
    "SQLite",
    ["SQLite"],
    {"0": "SQLite"},
    [{"answer": "SQLite"}],
    [{"question_index": 0}],
    [{"selected": ["SQLite"]}],
    [{"question_index": 0, "selected": "SQLite"}],
    [{"question_index": 0, "selected": [1]}],
    [{"question_index": "0", "selected": ["SQLite"]}],
    [{"question_index": 0, "selected": ["Oracle"]}],
    [{"question_index": 0, "selected": ["sqlite"]}],
    [{"question_index": 0, "selected": ["SQLite", "Oracle"]}],
    [{"question_index": 1, "selected": ["SQLite", "PostgreSQL"]}],
    [{"question_index": 2, "selected": ["SQLite"]}],
    [{"question_index": -1, "selected": ["SQLite"]}],
    [{"question_index": 0, "selected": ["SQLite"]}, {"question_index": 0, "selected": ["PostgreSQL"]}],
    [{"question_index": 0, "custom_text": 7}],
]


async def test_malformed_answer_is_refused_and_decides_nothing(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await chat(work.server, f"!tool ask_user {msgspec.json.encode({'questions': TWO}).decode()}")
        question = (await bus.until(ASKED))[-1]["data"]["question_id"]
        refused = [
            await work.server.http.post("/api/ask-user-response", json={"question_id": question, "answers": answers})
            for answers in MALFORMED
        ]
        still = [item["id"] for item in (await get(work.server, "/api/pending"))["items"]]
        answers = [
            {"question_index": 0, "selected": ["SQLite", "PostgreSQL"]},
            {"question_index": 1, "selected": [], "custom_text": "Here."},
        ]
        taken = await post(work.server, "/api/ask-user-response", question_id=question, answers=answers)
        told = await bus.until(OUTCOME)
    assert [answer.status_code for answer in refused] == [400] * len(MALFORMED)
    assert all("`" in answer.json()["message"] for answer in refused)
    assert (still, taken) == ([question], {"status": "ok"})
    assert [event["data"]["status"] for event in of(told, "ask_user", "resolved")] == ["answered"]
    answered = of(told, "text_segment")[-1]["text"]
    assert all(word in answered for word in ("SQLite", "PostgreSQL", "Here."))


async def test_second_answer_is_gone_and_every_other_client_sees_it_resolved(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus, listening(work.server) as other:
        await chat(work.server, ASK)
        asked = (await bus.until(ASKED))[-1]
        first, second = await answer(work.server, asked, "SQLite"), await answer(work.server, asked, "PostgreSQL")
        seen = (await other.until(RESOLVED))[-1]
        await bus.until(OUTCOME)
        after = await answer(work.server, asked, "PostgreSQL")
        unknown = {"question_id": "01a1e2e2-601c-73c6-a329-6c1f7ab6d75c", "answers": []}
        never = await work.server.http.post("/api/ask-user-response", json=unknown)
        odd = await work.server.http.post("/api/ask-user-response", json={"question_id": "odd", "answers": []})
    assert (first, second, after) == (200, 410, 410)
    assert seen["data"]["status"] == "answered"
    assert (never.status_code, odd.status_code) == (404, 404)


async def test_cancelling_the_run_resolves_its_question_everywhere(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus, listening(work.server) as other:
        began = await chat(work.server, ASK)
        asked = (await bus.until(ASKED))[-1]
        await post(work.server, "/api/agent-cancel", run_id=began["run_id"])
        ended = [(await one.until(RESOLVED))[-1]["data"]["status"] for one in (bus, other)]
        late = await answer(work.server, asked, "SQLite")
        pending = await get(work.server, "/api/pending")
    assert ended == ["cancelled", "cancelled"]
    assert late == 410
    assert pending == {"items": []}


@pytest.mark.parametrize("timeout_s", [None, 60])
async def test_client_that_connects_later_still_finds_the_question(tmp_path: Path, timeout_s: int | None) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await post(work.server, "/api/settings", request_timeout_s=timeout_s)
        began = await chat(work.server, ASK, project_root=str(work.project))
        asked = (await bus.until(ASKED))[-1]
        found = await get(work.server, "/api/pending", session_id=began["session_id"])
        here = await get(work.server, "/api/pending", project_root=str(work.project))
        elsewhere = await get(work.server, "/api/pending", project_root=str(tmp_path))
    (item,) = found["items"]
    assert (item["id"], item["kind"]) == (asked["data"]["question_id"], "question")
    assert (item["session_id"], item["run_id"]) == (began["session_id"], began["run_id"])
    assert (item["agent_id"], item["questions"]) == ("default", [QUESTION])
    assert item["created_at"] > 0
    # It waits until somebody answers, unless a time was set for it.
    if timeout_s is None:
        assert "expires_at" not in item
    else:
        assert item["created_at"] < item["expires_at"] <= item["created_at"] + 1_000 * timeout_s
    assert (here, elsewhere) == (found, {"items": []})


async def test_permission_comes_as_a_question_with_its_four_options(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await chat(work.server, "!shell touch a.txt", project_root=str(work.project))
        asked = (await bus.until(ASKED))[-1]
        (item,) = (await get(work.server, "/api/pending"))["items"]
        await answer(work.server, asked, "Allow once")
        told = await bus.until(OUTCOME)
    (question,) = asked["data"]["questions"]
    assert (question["header"], question["multi_select"]) == ("Permission", False)
    assert [option["label"] for option in question["options"]] == LABELS
    assert asked["data"]["permission"] == {"tool": "shell", "input": {"command": "touch a.txt"}}
    assert (item["kind"], item["permission"]) == ("permission", asked["data"]["permission"])
    assert (work.project / "a.txt").exists()
    assert told[-1]["data"]["outcome"] in ("none", "patch")


async def test_permission_that_is_denied_or_answered_with_something_unknown_runs_nothing(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        session = await work.server.create(project=str(work.project))
        for selected in (["Deny"], ["Certainly"], [], ["Allow once", "Deny"]):
            await chat(work.server, "!shell touch a.txt", session_id=session)
            asked = (await bus.until(ASKED))[-1]
            shapeless = {"question_id": asked["id"], "answers": [{"answer": "Allow once"}]}
            assert (await work.server.http.post("/api/ask-user-response", json=shapeless)).status_code == 400
            assert await answer(work.server, asked, *selected) == 200
            told = await bus.until(OUTCOME)
            assert of(told, "ask_user", "resolved")[0]["data"]["status"] == "answered"
            # A denial does not stop the agent.
            assert "declined" in of(told, "text_segment")[-1]["text"]
    assert not (work.project / "a.txt").exists()


async def test_permission_that_times_out_is_a_denial(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        await post(work.server, "/api/settings", request_timeout_s=0.2)
        await chat(work.server, "!shell touch a.txt", project_root=str(work.project))
        asked = (await bus.until(ASKED))[-1]
        expired = (await bus.until(RESOLVED))[-1]
        told = await bus.until(OUTCOME)
        late = await answer(work.server, asked, "Allow once")
    assert expired["data"] == {"question_id": asked["data"]["question_id"], "status": "expired"}
    assert (late, told[-1]["data"]["outcome"]) == (410, "none")
    assert not (work.project / "a.txt").exists()


async def test_permission_for_the_session_or_for_ever_is_not_asked_again(tmp_path: Path) -> None:
    async with engine(tmp_path) as work, listening(work.server) as bus:
        one = await work.server.create(project=str(work.project))
        other = await work.server.create(project=str(work.project))
        asked_in: list[str] = []
        for session, file, label in (
            (one, "a", "Allow for this session"),
            (one, "b", ""),
            (other, "c", "Always allow"),
            (other, "d", ""),
            (await work.server.create(project=str(work.project)), "e", ""),
        ):
            await chat(work.server, f"!write {file}.txt words", session_id=session)
            told = await bus.until(lambda event: ASKED(event) or OUTCOME(event))
            if ASKED(told[-1]):
                asked_in.append(file)
                await answer(work.server, told[-1], label)
                told = await bus.until(OUTCOME)
            assert told[-1]["data"] == {"outcome": "patch"}
    assert asked_in == ["a", "c"]
    assert sorted(path.name for path in work.project.glob("*.txt")) == [f"{name}.txt" for name in "abcde"]
