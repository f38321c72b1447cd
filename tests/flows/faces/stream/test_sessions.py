"""Sessions, uploads and agents in the words of the `stream` contract."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import anyio
import pytest

from palaver.backends.script.script import Say
from tests.flows.at_work import Work
from tests.flows.engine import FREE, engine
from tests.flows.faces.stream.client import history, rejoined, session_of, text_of, whole
from tests.flows.served import serving
from tests.flows.test_uploads import PNG

pytestmark = pytest.mark.anyio


async def sessions(work: Work) -> list[dict[str, Any]]:
    return list((await work.server.http.get("/api/chat/sessions/list")).json()["sessions"])


async def blocks(work: Work, session: str, kind: str) -> list[dict[str, Any]]:
    messages = await history(work.server, session)
    return [block for message in messages for block in message["blocks"] if block["type"] == kind]


async def test_title_comes_from_the_first_message_once_and_a_persons_own_stays(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = session_of(await whole(work.server, message="Which tide comes first?"))
        assert [one["title"] for one in await sessions(work)] == ["Which tide comes first?"]
        await whole(work.server, message="And then?", sessionId=session)
        assert [one["title"] for one in await sessions(work)] == ["Which tide comes first?"]
        renamed = {"id": session, "title": "Tides"}
        assert (await work.server.http.put("/api/chat/sessions/update", json=renamed)).json()["title"] == "Tides"
        await whole(work.server, message="And last?", sessionId=session)
        (row,) = await sessions(work)
    assert (row["title"], row["messageCount"], row["agentId"]) == ("Tides", 6, "default")
    assert row["createdAt"] < row["updatedAt"]
    assert row["createdAt"].endswith("Z")


async def test_save_makes_a_session_with_its_time_and_gives_a_known_one_its_title_and_agent(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        http = work.server.http
        scout = (await http.post("/api/agents/create", json={"name": "Scout"})).json()["agent"]["id"]
        body = {"id": "my-own-id", "title": "Mine", "createdAt": "2026-03-01T12:00:00Z", "messageCount": 99}
        first = (await http.post("/api/chat/sessions/save", json=body)).json()
        assert (first["id"], first["title"], first["messageCount"]) == ("my-own-id", "Mine", 0)
        assert first["createdAt"].startswith("2026-03-01T12:00:00")
        changed = {"id": "my-own-id", "title": "Other", "agentId": scout, "createdAt": "2020-01-01T00:00:00Z"}
        again = (await http.post("/api/chat/sessions/save", json=changed)).json()
        assert (again["title"], again["agentId"], again["createdAt"]) == ("Other", scout, first["createdAt"])
        told = await whole(work.server, message="!say Hello.", sessionId="my-own-id")
        assert (session_of(told), told[0][1]["agentId"]) == ("my-own-id", scout)
        # Saved without them, what is known stays; a title that was saved is a person's own.
        kept = (await http.post("/api/chat/sessions/save", json={"id": "my-own-id", "title": ""})).json()
        assert (kept["title"], kept["agentId"], kept["messageCount"]) == ("Other", scout, 2)
        assert kept["session"] == (await sessions(work))[0]


async def test_session_saved_after_its_first_answer_takes_the_title_that_is_saved(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = session_of(await whole(work.server, message="Which tide comes first?"))
        body = {"id": session, "title": "Tides", "createdAt": "2026-03-01T12:00:00Z", "messageCount": 2}
        saved = await work.server.http.post("/api/chat/sessions/save", json=body)
        assert (saved.status_code, saved.json()["title"]) == (200, "Tides")
        await whole(work.server, message="And then?", sessionId=session)
        assert [one["title"] for one in await sessions(work)] == ["Tides"]


async def test_update_and_delete_take_the_id_under_both_names_and_a_count(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        http = work.server.http
        session = session_of(await whole(work.server, message="One"))
        renamed = await http.put(
            "/api/chat/sessions/update", json={"sessionId": session, "title": "A", "messageCount": 7}
        )
        assert (renamed.status_code, renamed.json()["title"], renamed.json()["messageCount"]) == (200, "A", 2)
        assert (await http.put("/api/chat/sessions/update", json={"title": "B"})).status_code == 400
        assert (
            await http.put("/api/chat/sessions/update", json={"id": "nobody-knows", "title": "B"})
        ).status_code == 404
        assert (await http.post("/api/chat/sessions/delete", json={"sessionId": session})).json() == {"success": True}
        assert await sessions(work) == []


async def test_newest_session_is_first_and_a_deleted_one_is_gone(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        older = session_of(await whole(work.server, message="Older"))
        newer = session_of(await whole(work.server, message="Newer"))
        assert [one["id"] for one in await sessions(work)] == [newer, older]
        deleted = await work.server.http.post("/api/chat/sessions/delete", json={"id": newer})
        assert (deleted.status_code, deleted.json()) == (200, {"success": True})
        assert [one["id"] for one in await sessions(work)] == [older]
        gone = await work.server.http.get(f"/api/chat/sessions/history/{newer}")
        assert (gone.status_code, gone.json()["messages"]) == (200, [])
        assert "deleted" in gone.json()["warning"]
        # What was deleted does not come back under its id.
        answer = await work.server.http.post("/api/chat", json={"message": "Again", "sessionId": newer})
        assert answer.status_code == 410
        unknown = await work.server.http.post("/api/chat/sessions/delete", json={"id": "nobody-knows"})
        assert unknown.status_code == 404


async def test_history_of_a_session_in_which_nothing_was_said_is_empty_with_a_warning(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        await work.server.http.post("/api/chat/sessions/save", json={"id": "empty"})
        for session in ("empty", "nobody-knows"):
            answer = await work.server.http.get(f"/api/chat/sessions/history/{session}")
            assert (answer.status_code, answer.json()["messages"]) == (200, []), session
            assert answer.json()["warning"]


async def test_message_that_was_removed_or_cleared_elsewhere_is_gone_from_the_history(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = session_of(await whole(work.server, message="!say One."))
        await whole(work.server, message="!say Two.", sessionId=session)
        first = (await history(work.server, session))[0]["id"]
        await work.server.command(session, type="remove_message", message=first)
        said = [block["content"] for message in await history(work.server, session) for block in message["blocks"]]
        assert said == ["One.", "!say Two.", "Two."]
        await work.server.command(session, type="truncate_messages", from_index=0)
        answer = await work.server.http.get(f"/api/chat/sessions/history/{session}")
        assert answer.json()["messages"] == []
        # Nor is it told to who comes back to the last answer.
        async with rejoined(work.server, session, 0, partial=True) as again:
            told = [one async for one in again]
        assert "Two." not in str(told)
        assert [name for name, _, _ in told][-1] == "done"


async def test_thinking_keeps_its_place_and_a_result_joins_its_call(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    async with engine(tmp_path) as work:
        session = await work.begin("!think Hm.\n!say Looking.\n!shell echo found\n---\n!say Found it.", policy=FREE)
        await work.events(session)
        user, first, second = await history(work.server, session)
    assert [block["type"] for block in user["blocks"]] == ["text"]
    assert [block["type"] for block in first["blocks"]] == ["thinking", "text", "tool"]
    call = first["blocks"][2]["toolCall"]
    assert (call["state"], call["input"]) == ("output-available", {"command": "echo found"})
    assert "found" in call["output"]
    assert second["blocks"][0]["content"] == "Found it."
    assert len({block["id"] for message in (user, first, second) for block in message["blocks"]}) == 5


async def test_failed_call_is_an_output_error_with_words(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = session_of(await whole(work.server, message='!tool read {"path": "nowhere.txt"}'))
        calls = [
            block["toolCall"]
            for message in await history(work.server, session)
            for block in message["blocks"]
            if block["type"] == "tool"
        ]
    assert [call["state"] for call in calls] == ["output-error"]
    assert "nowhere.txt" in calls[0]["errorText"]


async def test_two_answers_of_one_turn_both_appear(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        told = await whole(work.server, message="!say One.\n!list .\n---\n!say Two.")
        session = session_of(told)
        said = [
            block["content"]
            for message in await history(work.server, session)
            for block in message["blocks"]
            if block["type"] == "text"
        ]
    assert text_of(told) == "One.\nTwo."
    assert said[1:] == ["One.", "Two."]


async def test_search_finds_titles_and_texts_whatever_their_case(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        titled = session_of(await whole(work.server, message="Lighthouse keepers"))
        texted = session_of(await whole(work.server, message="!say The old lighthouse by the harbour."))
        await whole(work.server, message="Something else")

        async def found(query: str) -> dict[str, dict[str, Any]]:
            answer = await work.server.http.post("/api/chat/sessions/search", json={"query": query})
            return {one["id"]: one for one in answer.json()["sessions"]}

        hits = await found("LIGHTHOUSE")
        assert set(hits) == {titled, texted}
        assert hits[titled]["titleMatch"] is True
        harbour = (await found("harbour"))[texted]
        assert await found("nothing like it") == {}
    snippet = harbour.get("matchSnippet") or {"match": "harbour"}
    assert snippet["match"].casefold() == "harbour"


# -- uploads


async def test_snippet_is_cut_around_all_of_what_was_looked_for(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        session = session_of(await whole(work.server, message="First words"))
        await whole(work.server, message="!say The old lighthouse by the harbour.", sessionId=session)

        async def snippet(query: str) -> dict[str, str]:
            answer = await work.server.http.post("/api/chat/sessions/search", json={"query": query})
            (one,) = answer.json()["sessions"]
            return dict(one["matchSnippet"])

        phrase = await snippet("LIGHTHOUSE by the")
        assert (phrase["before"][-8:], phrase["match"], phrase["after"][:9]) == (
            "The old ",
            "lighthouse by the",
            " harbour.",
        )
        # What does not stand together is found by its words.
        assert (await snippet("harbour lighthouse"))["match"] in ("lighthouse", "harbour")


async def test_image_goes_up_in_both_ways_and_comes_back_by_name(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        form = await work.server.http.post("/api/uploads", files={"file": ("../../x.html", PNG, "text/html")})
        text = await work.server.http.post(
            "/api/uploads/base64",
            json={"data": f"data:image/png;base64,{base64.b64encode(PNG).decode()}", "filename": "x.png"},
        )
        assert form.json()["success"] is True
        assert form.json()["data"]["url"] == text.json()["data"]["url"]
        assert form.json()["data"]["mimeType"] == "image/png"
        back = await work.server.http.get(form.json()["data"]["url"])
        assert (back.content, back.headers["content-type"]) == (PNG, "image/png")
        told = await whole(work.server, message="!say Seen.", images=[form.json()["data"]["url"]])
        first = (await history(work.server, session_of(told)))[0]
        assert [block["type"] for block in first["blocks"]] == ["text", "image"]
        address = first["blocks"][1]["content"]
        assert address.startswith("/api/uploads/")
        assert (await work.server.http.get(address)).content == PNG


@pytest.mark.parametrize("name", ["../token", "..%2ftoken", "%2e%2e/token", "token", "a" * 64, "x.html"])
async def test_name_of_an_upload_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    async with engine(tmp_path) as work:
        answer = await work.server.http.get(f"/api/uploads/{name}")
        assert answer.status_code in (404, 405)
        assert work.server.token not in answer.text


async def test_page_and_script_cannot_be_uploaded(tmp_path: Path) -> None:
    page = b"<html><script>alert(1)</script></html>"
    async with engine(tmp_path) as work:
        form = await work.server.http.post("/api/uploads", files={"file": ("x.png", page, "image/png")})
        text = await work.server.http.post("/api/uploads/base64", json={"data": base64.b64encode(page).decode()})
        assert (form.status_code, text.status_code) == (400, 400)
        assert (await work.server.http.post("/api/uploads/base64", json={"data": "?"})).status_code == 400


async def test_remote_image_is_refused_and_never_fetched(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        body = {"message": "Look", "images": ["http://127.0.0.1:9/x.png"], "agentId": "default"}
        assert (await work.server.http.post("/api/chat", json=body)).status_code == 400


# -- agents


async def test_agents_are_made_merged_copied_and_deleted(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        http = work.server.http
        made = {"name": "Scout", "systemPrompt": "You scout.", "model": "scripted", "allowedTools": ["read"]}
        scout = (await http.post("/api/agents/create", json=made)).json()["agent"]
        assert (scout["systemPrompt"], scout["allowedTools"], scout["mcpServers"]) == ("You scout.", ["read"], [])
        changed = (await http.put("/api/agents/update", json={"id": scout["id"], "model": "other"})).json()["agent"]
        assert changed == {**scout, "model": "other"}
        copy = (await http.post("/api/agents/duplicate", json={"id": scout["id"]})).json()["agent"]
        assert copy["id"] != scout["id"]
        assert copy["systemPrompt"] == "You scout."
        listed = (await http.get("/api/agents/list")).json()["agents"]
        assert {scout["id"], copy["id"], "default"} <= {agent["id"] for agent in listed}
        assert [agent["id"] for agent in listed if agent["isDefault"]] == ["default"]
        assert (await http.post("/api/agents/delete", json={"id": copy["id"]})).json() == {"success": True}
        assert (await http.get("/api/agents/get", params={"id": copy["id"]})).status_code == 404
        assert (await http.post("/api/agents/delete", json={"id": "default"})).status_code == 409


async def test_agents_of_one_name_and_of_any_script_have_ids_of_their_own(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        names = ["Scout", "Scout", "助手"]
        made = [await work.server.http.post("/api/agents/create", json={"name": name}) for name in names]
        assert [one.status_code for one in made] == [200] * 3
        assert [one.json()["agent"]["name"] for one in made] == names
        assert len({one.json()["agent"]["id"] for one in made}) == 3
        taken = await work.server.http.post("/api/agents/create", json={"id": "scout", "name": "Other"})
        assert taken.status_code == 409


async def test_agent_that_is_saved_as_a_whole_loses_nothing(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        http = work.server.http
        server = {"name": "files", "command": ["files-server"], "env": {"KEY": "secret"}}
        made = {"name": "Scout", "mcpServers": [server], "allowedTools": ["read"]}
        scout = (await http.post("/api/agents/create", json=made)).json()["agent"]
        assert scout["model"] == ""
        assert scout["mcpServers"] == [{"name": "files", "command": ["files-server"]}]
        saved = await http.put("/api/agents/update", json={**scout, "description": "Mine"})
        assert (saved.status_code, saved.json()) == (200, {"agent": {**scout, "description": "Mine"}})
        assert "secret" in await anyio.Path(tmp_path / "data" / "agents" / "scout.md").read_text()


async def test_concurrent_updates_of_an_agent_lose_nothing(tmp_path: Path) -> None:
    async with engine(tmp_path) as work:
        http = work.server.http
        scout = (await http.post("/api/agents/create", json={"name": "Scout"})).json()["agent"]["id"]
        changes: list[dict[str, Any]] = [
            {"description": "Mine"},
            {"model": "other"},
            {"systemPrompt": "Scout."},
            {"allowedTools": ["read"]},
        ]
        await asyncio.gather(*(http.put("/api/agents/update", json={"id": scout, **change}) for change in changes))
        agent = (await http.get("/api/agents/get", params={"id": scout})).json()["agent"]
    for change in changes:
        assert agent | change == agent


async def test_long_answer_is_whole_live_reattached_and_in_the_history(tmp_path: Path) -> None:
    long = "word " * 40_000
    async with serving(tmp_path, (Say(long, chunk=10_000),)) as server:
        told = await whole(server, message="Go on.")
        session = session_of(told)
        async with rejoined(server, session, after=0) as again:
            assert [one async for one in again] == told
        (_, answer) = await history(server, session)
    assert text_of(told) == long
    assert [block["content"] for block in answer["blocks"]] == [long]
