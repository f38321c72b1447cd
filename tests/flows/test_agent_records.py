"""Agent records over the real server: made, changed, edited by hand, trusted, removed; each counts from the next turn."""

import asyncio
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from palaver.people.authentication import KeyRecord, Kind, token_hash
from tests.flows.at_work import Work, at_work, of
from tests.flows.served import Served
from tests.provider import Answer, Call

pytestmark = pytest.mark.anyio


def run(command: str) -> Call:
    return Call(name="shell", input={"command": command})


async def made(server: Served, **fields: Any) -> dict[str, Any]:
    answer = await server.http.post("/api/agents", json=fields)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def changed(server: Served, agent: str, **fields: Any) -> dict[str, Any]:
    answer = await server.http.patch(f"/api/agents/{agent}", json=fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def listed(server: Served, **query: str) -> dict[str, dict[str, Any]]:
    answer = await server.http.get("/api/agents", params=query)
    assert answer.status_code == 200, answer.text
    return {agent["id"]: agent for agent in answer.json()["items"]}


async def talk(work: Work, text: str, **fields: Any) -> tuple[str, list[dict[str, Any]]]:
    conversation = await work.server.create(project=str(work.project), **fields)
    return conversation, await say(work, conversation, text)


async def say(work: Work, conversation: str, text: str, **fields: Any) -> list[dict[str, Any]]:
    seq = (await work.server.send(conversation, text, **fields))["seq"]
    return await work.server.settled(conversation, after=seq - 1)


def prompts(work: Work) -> list[str]:
    return [str(body["messages"][0]["content"]) for body in work.provider.bodies]


def refusal(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json()["message"])


# -- a life


async def test_agent_is_made_talked_to_and_edited_by_hand(tmp_path: Path) -> None:
    async with at_work(tmp_path, *(Answer.of("Yes.") for _ in range(3))) as work:
        agent = await made(work.server, name="Gardener", system_prompt="You dig.", model="small")
        conversation, _ = await talk(work, "hello", agent="gardener")
        path = tmp_path / "data/agents/gardener.md"
        path.write_text(path.read_text().replace("You dig.", "You sow.").replace("small", "large"))
        await say(work, conversation, "and now?")
        await changed(work.server, "gardener", model=None, system_prompt="You reap.", description="In autumn")
        await say(work, conversation, "and then?")
        last = (await work.server.http.get("/api/agents/gardener")).json()

    assert (agent["id"], agent["source"], agent["editable"], agent["trusted"]) == ("gardener", "data", True, True)
    assert [body["model"] for body in work.provider.bodies][:2] == ["small", "large"]
    assert work.provider.bodies[2]["model"] not in ("small", "large")
    assert ["dig" in prompts(work)[0], "sow" in prompts(work)[1], "reap" in prompts(work)[2]] == [True] * 3
    assert (last["name"], last["description"], last["model"]) == ("Gardener", "In autumn", None)


async def test_broken_file_is_said_in_the_list_and_in_its_conversations_alone(tmp_path: Path) -> None:
    async with at_work(tmp_path, Answer.of("Yes."), Answer.of("Yes, too.")) as work:
        await made(work.server, name="Gardener")
        conversation, _ = await talk(work, "hello", agent="gardener")
        path = tmp_path / "data/agents/gardener.md"
        path.write_text("---\nmode: berserk\n---\n")
        (failed,) = of(await say(work, conversation, "and now?"), "turn.finished")
        entry = (await listed(work.server))["gardener"]
        _, others = await talk(work, "hello")

    assert (entry["ready"], "gardener.md" in entry["problem"], "`mode` is one of" in entry["problem"]) == (
        False,
        True,
        True,
    )
    assert (failed["outcome"], "`mode` is one of" in failed["error"]["message"]) == ("failed", True)
    assert others[-1]["outcome"] == "completed"


async def test_conversations_of_a_deleted_agent_say_that_it_is_gone_and_go_on_with_another(tmp_path: Path) -> None:
    async with at_work(tmp_path, Answer.of("Yes."), Answer.of("I took over.")) as work:
        await made(work.server, name="Gardener")
        conversation, _ = await talk(work, "hello", agent="gardener")
        assert (await work.server.http.delete("/api/agents/gardener")).status_code == 204
        (failed,) = of(await say(work, conversation, "still there?"), "turn.finished")
        chosen = await work.server.http.post("/api/conversations", json={"agent": "gardener"})
        switched = await work.server.http.patch(f"/api/conversations/{conversation}", json={"agent": "default"})
        events = await say(work, conversation, "and now?")

    assert (failed["outcome"], "deleted" in failed["error"]["message"]) == ("failed", True)
    assert "deleted" in refusal(chosen, 404)
    assert (switched.status_code, of(events, "turn.started")[0]["agent"]) == (200, "default")
    assert events[-1]["outcome"] == "completed"


async def test_deleted_agent_leaves_nothing_allowed_to_the_next_of_its_name(tmp_path: Path) -> None:
    script = (Answer.of(run("touch a")), Answer.of("Done."), Answer.of(run("touch a")))
    async with at_work(tmp_path, *script) as work:
        await made(work.server, name="Gardener")
        conversation = await work.server.create(project=str(work.project), agent="gardener")
        await work.server.send(conversation, "go")
        (request,) = await work.opened(conversation)
        await work.decide(conversation, request, scope="agent")
        await work.events(conversation)
        await work.server.http.delete("/api/agents/gardener")
        await made(work.server, name="Gardener")
        again = await work.server.create(project=str(work.project), agent="gardener")
        await work.server.send(again, "go")
        assert len(await work.opened(again)) == 1
        await work.server.command(again, type="interrupt")


@pytest.mark.parametrize("agent", ["default", "claude", "codex", "pi", "demo"])
async def test_built_in_agent_is_changed_but_not_deleted(tmp_path: Path, agent: str) -> None:
    async with at_work(tmp_path) as work:
        before = (await listed(work.server))[agent]
        refused = await work.server.http.delete(f"/api/agents/{agent}")
        after = await changed(work.server, agent, description="Mine.", idle_prompt="Go on.")

    assert "only changed" in refusal(refused, 409)
    assert (before["source"], after["source"], after["description"]) == ("built-in", "built-in", "Mine.")
    assert (after["name"], after["backend"], after["given"]) == (
        before["name"],
        before["backend"],
        ["description", "idle_prompt"],
    )


async def test_copy_is_an_agent_of_its_own(tmp_path: Path) -> None:
    async with at_work(tmp_path, Answer.of("Yes.")) as work:
        await made(work.server, name="Gardener", system_prompt="You dig.", environment={"KEY": "secret"})
        copy = await work.server.http.post("/api/agents/gardener/duplicate", json={"name": "Digger"})
        plain = await work.server.http.post("/api/agents/demo/duplicate")
        await work.server.http.delete("/api/agents/gardener")
        await talk(work, "hello", agent=copy.json()["id"])

    assert (copy.status_code, copy.json()["id"], copy.json()["name"]) == (201, "gardener-copy", "Digger")
    assert (plain.json()["id"], plain.json()["backend"], plain.json()["source"]) == ("demo-copy", "demo", "data")
    assert "You dig." in prompts(work)[0]
    assert "secret" in (tmp_path / "data/agents/gardener-copy.md").read_text()


# -- changes


async def test_changes_at_the_same_time_are_all_kept_with_comments_and_unknown_keys(tmp_path: Path) -> None:
    async with at_work(tmp_path) as work:
        path = tmp_path / "data/agents/gardener.md"
        path.parent.mkdir()
        path.write_text("---\n# By Ada.\nname: Gardener\nx-bed: 7  # the sunny one\n---\n\nYou dig.\n")
        patches: list[dict[str, Any]] = [
            {"model": "m"},
            {"description": "d"},
            {"mode": "plan"},
            {"allowed_tools": ["read"]},
            {"params": {"temperature": 0.5}},
            {"params": {"top_p": 0.5}},
            {"environment": {"A": "1"}},
            {"environment": {"B": "2"}},
        ]
        await asyncio.gather(*(changed(work.server, "gardener", **patch) for patch in patches))
        found = (await work.server.http.get("/api/agents/gardener")).json()

    assert (found["model"], found["description"], found["mode"]) == ("m", "d", "plan")
    assert (found["allowed_tools"], found["params"]) == (["read"], {"temperature": 0.5, "top_p": 0.5})
    assert found["environment"] == {"A": True, "B": True}
    text = path.read_text()
    assert text.startswith("---\n# By Ada.\nname: Gardener\nx-bed: 7  # the sunny one\n")
    assert text.endswith("---\n\nYou dig.\n")


async def test_what_is_wrong_is_refused_by_field(tmp_path: Path) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"name": "X", "mode": "wild"}, "`mode` is one of plan, ask, accept_edits, auto, full, not “wild”."),
        ({"name": "X", "budget": "much"}, "`spend_limit_usd` is an amount of US dollars, such as 2.5"),
        ({"name": "X", "backend": "gpt"}, "`backend` is one of best, api, "),
        ({"name": "X", "idle_intervall_s": 3}, "Did you mean `idle_interval_s`?"),
        ({"name": "X", "policy": [{"tool": "shell", "decision": "never"}]}, "`policy` is a list of rules"),
        ({"name": "X", "params": {"temperature": "hot"}}, "`temperature` must be a number between 0 and 2"),
        ({"name": "X\u0000"}, "U+0000"),
        ({}, "`name` is missing"),
    ]
    async with at_work(tmp_path) as work:
        answers = [await work.server.http.post("/api/agents", json=body) for body, _ in wrong]
        await made(work.server, name="X")
        taken = await work.server.http.post("/api/agents", json={"name": "x"})
        unknown = await work.server.http.patch("/api/agents/nobody", json={"model": "m"})
        agents = await listed(work.server)

    for answer, (_, said) in zip(answers, wrong, strict=True):
        assert said in refusal(answer, 400)
    assert "exists already" in refusal(taken, 409)
    assert "nobody" in refusal(unknown, 404)
    assert [agent for agent in agents if agents[agent]["source"] == "data"] == ["x"]


async def test_secrets_go_in_and_never_come_out(tmp_path: Path) -> None:
    servers = [{"name": "shed", "url": "https://shed.example", "headers": {"Authorization": "sk-header"}}]
    async with at_work(tmp_path) as work:
        created = await made(work.server, name="X", environment={"KEY": "sk-env", "NONE": ""}, mcp_servers=servers)
        kept = [{**servers[0], "headers": {"Authorization": True}, "trusted": True}]
        await changed(work.server, "x", mcp_servers=kept, environment={"KEY": True})
        found = await work.server.http.get("/api/agents/x")
        everything = (await work.server.http.get("/api/agents")).text + found.text

    assert created["environment"] == {"KEY": True, "NONE": False}
    (server,) = found.json()["mcp_servers"]
    assert (server["headers"], server["trusted"]) == ({"Authorization": True}, True)
    assert "sk-" not in everything
    assert ["sk-env" in (text := (tmp_path / "data/agents/x.md").read_text()), "sk-header" in text] == [True, True]


async def test_only_the_owner_changes_agents(tmp_path: Path) -> None:
    kinds: tuple[Kind, ...] = ("human", "agent", "observer")
    keys = [KeyRecord(name=kind, kind=kind, hash=token_hash(f"{kind}-token")) for kind in kinds]
    (tmp_path / "data").mkdir()
    (tmp_path / "data/tokens.json").write_bytes(msgspec.json.encode(keys))
    async with at_work(tmp_path) as work:
        http = work.server.http
        tried: dict[str, list[int]] = {}
        for kind in kinds:
            headers = {"Authorization": f"Bearer {kind}-token"}
            answers = [
                await http.get("/api/agents", headers=headers),
                await http.get("/api/agents/default", headers=headers),
                await http.post("/api/agents", json={"name": "X"}, headers=headers),
                await http.patch("/api/agents/default", json={"model": "m"}, headers=headers),
                await http.post("/api/agents/default/duplicate", json={}, headers=headers),
                await http.delete("/api/agents/default", headers=headers),
                await http.post("/api/agents/trust", json={"project": "/", "agent": "x", "hash": "0"}, headers=headers),
            ]
            tried[kind] = [answer.status_code for answer in answers]
        code = work.server.app.keys.new_code()
        async with work.server.browser() as page:
            await work.server.sign_in(page, code=code)
            own = await page.post("/api/agents", json={"name": "Mine"}, headers={"Origin": work.server.url})

    assert tried == {"human": [200, 200, *[403] * 5], "agent": [200, *[403] * 6], "observer": [200, *[403] * 6]}
    assert own.status_code == 201, own.text


# -- projects


async def test_project_agent_works_only_there_and_only_as_it_was_trusted(tmp_path: Path) -> None:
    async with at_work(tmp_path, *(Answer.of("Yes.") for _ in range(3))) as work:
        folder = work.project / ".palaver/agents"
        folder.mkdir(parents=True)
        path = folder / "local.md"
        path.write_text("---\nname: Local\ncommand: [no-such-program]\n---\nYou belong here.")
        project = str(work.project)
        digest = sha256(path.read_bytes()).hexdigest()
        entry = (await listed(work.server, project=project))["local"]
        untrusted = await work.server.http.post("/api/conversations", json={"agent": "local", "project": project})
        trust = {"project": project, "agent": "local", "hash": digest}
        stale = await work.server.http.post("/api/agents/trust", json={**trust, "hash": "0" * 64})
        given = await work.server.http.post("/api/agents/trust", json=trust)
        elsewhere = await work.server.http.post(
            "/api/conversations", json={"agent": "local", "project": str(tmp_path / "home")}
        )
        conversation, first = await talk(work, "hello", agent="local")
        path.write_text(path.read_text().replace("belong here", "obey me"))
        (failed,) = of(await say(work, conversation, "and now?"), "turn.finished")
        again = (await listed(work.server, project=project))["local"]
        everywhere = await listed(work.server)

    assert (entry["source"], entry["trusted"], entry["hash"], entry["editable"]) == ("project", False, digest, False)
    assert (entry["ready"], "not trusted" in entry["problem"]) == (False, True)
    assert "not trusted" in refusal(untrusted, 404)
    assert "changed" in refusal(stale, 409)
    assert (given.status_code, given.json()["trusted"], given.json()["problem"]) == (200, True, None)
    assert "No agent is called “local”" in refusal(elsewhere, 404)
    assert first[-1]["outcome"] == "completed"
    assert (failed["outcome"], "has changed since" in failed["error"]["message"]) == ("failed", True)
    assert (again["trusted"], "local" in everywhere) == (False, False)
    assert len(work.provider.bodies) == 1
    assert "You belong here." in prompts(work)[0]


# -- what runs without asking


async def test_allowed_tool_runs_unasked_in_the_name_of_its_agent_and_a_denial_beats_it(tmp_path: Path) -> None:
    script = (
        Answer.of(run("touch a"), Call(name="write", input={"path": "b", "content": "x"})),
        Answer.of(run("rm a")),
        Answer.of("Done."),
    )
    async with at_work(tmp_path, *script) as work:
        rule = {"tool": "shell", "match": "rm *", "decision": "deny_continue"}
        await made(work.server, name="Gardener", allowedTools=["Bash"], policy=[rule])
        conversation = await work.server.create(project=str(work.project), agent="gardener")
        await work.server.send(conversation, "go")
        (request,) = await work.opened(conversation)
        await work.decide(conversation, request)
        events = await work.events(conversation)

    assert request["tool"] == "write"
    assert sorted(event["grant"] for event in of(events, "tool.started")) == [
        "agent:gardener",
        f"request:{request['id']}",
    ]
    assert [result["error"]["code"] for result in of(events, "tool.finished") if not result["ok"]] == ["tool_denied"]
    assert (work.project / "a").exists()


async def test_tool_allowed_during_a_turn_runs_unasked_at_its_next_call_and_in_other_turns(tmp_path: Path) -> None:
    script = [Answer.of(run(f"touch {name}")) for name in ("a", "x", "b")]
    script += [Answer.of("Done."), Answer.of(run("touch y")), Answer.of("Done.")]
    async with at_work(tmp_path, *script) as work:
        one = await work.begin("first")
        (waiting,) = await work.opened(one)
        two = await work.begin("second")
        (other,) = await work.opened(two)
        await work.server.app.roster.book.allow_tool("default", "shell")
        await work.decide(one, waiting)
        first = await work.events(one)
        await work.decide(two, other)
        second = await work.events(two)

    for events, request in ((first, waiting), (second, other)):
        grants = [event["grant"] for event in of(events, "tool.started")]
        assert grants == [f"request:{request['id']}", "agent:default"]
    assert sorted(path.name for path in work.project.glob("?")) == ["a", "b", "x", "y"]
    assert (tmp_path / "data/agents/default.md").read_text() == "---\nallowed_tools: [shell]\n---\n"


# -- which agent


async def test_message_conversation_and_last_choice_say_who_answers(tmp_path: Path) -> None:
    async with at_work(tmp_path, *(Answer.of("Yes.") for _ in range(4))) as work:
        for name in ("Ada", "Bea"):
            await made(work.server, name=name)
        none_yet = (await work.server.http.get("/api/agents")).json()["last_used"]
        conversation, _ = await talk(work, "hello", agent="ada")
        created = (await work.server.http.get("/api/agents")).json()["last_used"]
        once = of(await say(work, conversation, "only this one", agent="bea"), "turn.started")[0]["agent"]
        chosen = (await work.server.http.get("/api/agents")).json()["last_used"]
        back = of(await say(work, conversation, "who now?"), "turn.started")[0]["agent"]
        await work.server.http.patch(f"/api/conversations/{conversation}", json={"agent": "bea"})
        switched = of(await say(work, conversation, "and now?"), "turn.started")[0]["agent"]
        bare = await work.server.create()
        scripted = (await work.server.state(bare))["agent"]
    async with at_work(tmp_path) as work:
        kept = (await work.server.state(conversation))["agent"]
        await work.server.http.patch(f"/api/conversations/{conversation}", json={"agent": "ada"})
    async with at_work(tmp_path) as work:
        survived = (await work.server.http.get("/api/agents")).json()["last_used"]
        await work.server.http.delete("/api/agents/ada")
        gone = (await work.server.http.get("/api/agents")).json()["last_used"]

    assert (none_yet, created, chosen) == (None, "ada", "bea")
    assert (once, back, switched, kept) == ("bea", "ada", "bea", "bea")
    assert (scripted, survived, gone) == ("default", "ada", None)
