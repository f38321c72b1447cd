"""Trajectories: listed page by page, read, written, deleted and followed."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.flows.at_work import Work
from tests.flows.engine import engine
from tests.flows.faces.chats.chat import did, following, fresh
from tests.flows.served import Served, Sse

pytestmark = pytest.mark.anyio


@pytest.fixture
async def work(tmp_path: Path) -> AsyncIterator[Work]:
    async with engine(tmp_path) as started:
        yield started


def document(name: str, **more: Any) -> dict[str, Any]:
    messages = [
        {"message_id": "m1", "role": "user", "content": "Hi", "checkpoints": [1]},
        {"message_id": "m2", "role": "assistant", "content": "Ho"},
    ]
    return {"id": name, "title": "Told", "model": "m", "messages": messages, **more}


def plain(read: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of a document, without what is for Palaver alone."""
    return [{name: value for name, value in one.items() if name != "palaver"} for one in read["messages"]]


async def put(server: Served, name: str, body: dict[str, Any]) -> httpx.Response:
    return await server.http.put(f"/v1/trajectories/{name}", json=body)


async def test_list_goes_page_by_page_newest_first(server: Served) -> None:
    names = [await server.create(title=f"Chat {number}") for number in range(5)]
    found: list[str] = []
    cursor: str | None = None
    while True:
        query: dict[str, Any] = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await server.http.get("/v1/trajectories", params=query)).json()
        assert page.keys() == {"items", "next_cursor", "has_more", "total_count"}
        assert page["total_count"] == 5
        assert page["has_more"] == (page["next_cursor"] is not None)
        found += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == names[::-1]
    assert page["items"][0].keys() >= {"id", "title", "created_at", "updated_at", "message_count"}
    assert (await server.http.get("/v1/trajectories", params={"cursor": "elsewhere"})).status_code == 400
    assert (await server.http.get("/v1/trajectories", params={"limit": 0})).status_code == 400


async def test_chat_is_read_as_its_document(server: Served) -> None:
    async with following(server, "told") as chat:
        await chat.say("Hello")
    read = (await server.http.get("/v1/trajectories/told")).json()
    assert (read["id"], read["title"]) == ("told", "Hello")
    assert [message["content"] for message in read["messages"]] == ["Hello", "Hello there, how are you?"]
    assert (await server.http.get("/v1/trajectories/nobody")).status_code == 404


async def test_written_document_is_the_chat_and_comes_back_with_its_unknown_keys(work: Work) -> None:
    server = work.server
    name = await server.create(project=str(work.project))
    answer = await put(server, name, document(name, boost_reasoning=True, colour={"of": ["the", "sky"]}))
    assert answer.status_code == 200, answer.text
    read = (await server.http.get(f"/v1/trajectories/{name}")).json()
    assert (read["title"], read["boost_reasoning"], read["colour"]) == ("Told", True, {"of": ["the", "sky"]})
    assert plain(read) == document(name)["messages"]
    file = msgspec.json.decode((work.project / ".palaver" / "trajectories" / f"{name}.json").read_bytes())
    assert file == read
    async with following(server, name) as chat:
        assert chat.texts == [("user", "Hi"), ("assistant", "Ho")]
        await chat.say("And now?")
        assert chat.texts[-1] == ("assistant", "You said: And now?")


async def test_written_document_makes_a_chat_that_was_not_there(server: Served) -> None:
    assert (await put(server, "anew", document("anew"))).status_code == 200
    async with following(server, "anew") as chat:
        assert chat.texts == [("user", "Hi"), ("assistant", "Ho")]
        assert chat.client.thread["title"] == "Told"


async def test_document_is_written_over_and_its_calls_keep_their_ids(server: Served) -> None:
    called = {"id": "call-7", "type": "function", "function": {"name": "list", "arguments": "{}"}}
    longer = document("over")
    longer["messages"] += [
        {"message_id": "m3", "role": "assistant", "content": "", "tool_calls": [called]},
        {"message_id": "m3-0", "role": "tool", "content": "a.txt", "tool_call_id": "call-7", "tool_failed": False},
    ]
    for _ in range(2):
        for body in (document("over"), longer):
            assert (await put(server, "over", body)).status_code == 200
            assert plain((await server.http.get("/v1/trajectories/over")).json()) == body["messages"]
    hits = (await server.http.get("/api/search", params={"q": "Ho"})).json()["items"]
    assert len(hits) == 1


async def test_document_that_was_read_changes_nothing_when_it_is_written_back(server: Served) -> None:
    async with following(server, "same") as chat:
        await chat.say("Hello")
        read = (await server.http.get("/v1/trajectories/same")).json()
        before = (await server.state("same"))["seq"]
        assert (await put(server, "same", read)).status_code == 200
        assert (await server.state("same"))["seq"] == before
        read["messages"] = read["messages"][:1]
        assert (await put(server, "same", read)).status_code == 200
        await chat.until(lambda frame: len(chat.client.messages) == 1 and frame["type"] == "message_added")
        assert chat.texts == [("user", "Hello")]
        assert (await chat.snapshot())["messages"] == chat.client.messages


async def test_document_of_another_id_is_400_and_no_document_too(server: Served) -> None:
    assert (await put(server, "mine", document("yours"))).status_code == 400
    for body in (b"", b"{", b"[]", b'{"id": "mine"}', b'{"id": "mine", "messages": [1]}'):
        answer = await server.http.put("/v1/trajectories/mine", content=body)
        assert answer.status_code == 400, body
    assert (await server.http.get("/v1/trajectories/mine")).status_code == 404


async def test_file_of_another_chat_is_409_and_left_alone(work: Work) -> None:
    name = await work.server.create(project=str(work.project))
    folder = work.project / ".palaver" / "trajectories"
    folder.mkdir(parents=True)
    theirs = msgspec.json.encode({"id": "somebody-elses", "messages": []})
    (folder / f"{name}.json").write_bytes(theirs)
    answer = await put(work.server, name, document(name))
    assert answer.status_code == 409
    assert (folder / f"{name}.json").read_bytes() == theirs
    assert (await work.server.state(name))["messages"] == []


async def test_working_chat_is_not_written_over(work: Work) -> None:
    name = fresh("busy")
    await did(work.server, name, "user_message", content="at it\n!say Wait.\n!gate at-it")
    await work.provider.gates.reached("at-it")
    assert (await put(work.server, name, document(name))).status_code == 409
    work.provider.gates.open("at-it")


async def test_deleted_trajectory_is_gone_with_its_chat(work: Work) -> None:
    server, name = work.server, await work.server.create(project=str(work.project))
    await put(server, name, document(name))
    file = work.project / ".palaver" / "trajectories" / f"{name}.json"
    assert file.exists()
    deleted = await server.http.delete(f"/v1/trajectories/{name}")
    assert deleted.status_code == 200
    assert (await server.http.get(f"/v1/trajectories/{name}")).status_code == 410
    assert not file.exists()
    assert (await server.http.delete("/v1/trajectories/nobody")).status_code == 404
    assert (await server.http.get("/v1/trajectories")).json()["total_count"] == 0


@pytest.mark.parametrize("name", ["%00", "%2e%2e", "..%2f..%2fetc%2fpasswd", "x" * 300, "%ff", "a%20b"])
async def test_name_that_is_none_leads_nowhere(shared: Served, name: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        answer = await shared.http.request(method, f"/v1/trajectories/{name}", content=b'{"messages": []}')
        assert answer.status_code in (400, 404), (method, answer.text)


async def test_list_is_followed_as_it_changes(server: Served) -> None:
    old = await server.create(title="Old")
    async with server.http.stream("GET", "/v1/trajectories/subscribe") as response:
        stream = Sse(response)
        assert "" in await stream.next()  # A comment: the headers and it are out before anything happens.
        new = await server.create(title="New")
        name, made = await stream.data()
        # Without a name of its own: `EventSource.onmessage` hears it.
        assert (name, made["type"], made["id"], made["title"]) == ("message", "created", new, "New")
        await server.http.patch(f"/api/conversations/{old}", json={"title": "Older"})
        _, changed = await stream.data()
        assert (changed["type"], changed["id"], changed["title"]) == ("updated", old, "Older")
        await server.http.delete(f"/v1/trajectories/{new}")
        _, gone = await stream.data()
        assert (gone["type"], gone["id"]) == ("deleted", new)


async def test_list_is_followed_on_from_what_was_seen_last(server: Served) -> None:
    async with server.http.stream("GET", "/v1/trajectories/subscribe") as response:
        stream = Sse(response)
        await stream.next()
        seen = await server.create(title="Seen")
        frame = await stream.next()
        assert (sorted(frame), msgspec.json.decode(frame["data"])["type"]) == (["data", "id"], "created")
    changed = await server.http.patch(f"/api/conversations/{seen}", json={"title": "Changed"})
    assert changed.status_code == 200
    missed = await server.create(title="Missed")
    short = await server.create(title="Short")
    await server.http.delete(f"/v1/trajectories/{short}")
    headers = {"Last-Event-ID": frame["id"]}
    async with server.http.stream("GET", "/v1/trajectories/subscribe", headers=headers) as response:
        stream = Sse(response)
        await stream.next()
        told = [await stream.data() for _ in range(4)]
    assert [(row["type"], row["id"]) for _, row in told] == [
        ("updated", seen),
        ("created", missed),
        ("created", short),
        ("deleted", short),
    ]
    headers = {"Last-Event-ID": "999999999"}
    async with server.http.stream("GET", "/v1/trajectories/subscribe", headers=headers) as response:
        assert "reset" in (await Sse(response).next())[""]
