"""An agent that may speak through its tool alone: its posts are on screen and in the inbox, its plain text is an error."""

from pathlib import Path
from typing import Any

from tests.flows.at_work import Work, at_work, of
from tests.flows.faces.inbox.client import inbox
from tests.provider import Answer, Call

POST, YIELD = "chat_assistant_post", "loop_yield_turn"


def post(content: str, **more: str) -> Call:
    return Call(name=POST, input={"content": content, **more})


async def strict(work: Work, text: str) -> tuple[str, list[dict[str, Any]]]:
    made = await work.server.http.post("/api/agents", json={"id": "quiet", "name": "Quiet", "strict_inbox": True})
    assert made.status_code == 201, made.text
    conversation = await work.server.create(project=str(work.project), agent="quiet")
    await work.server.send(conversation, text)
    return conversation, await work.events(conversation)


async def test_posts_appear_on_screen_and_in_the_inbox_in_order_and_end_with_a_yield(tmp_path: Path) -> None:
    script = [Answer.of(post("On it.")), Answer.of(post("Done.", mime="text/plain"), Call(name=YIELD, input={}))]
    async with at_work(tmp_path, *script) as work:
        conversation, events = await strict(work, "Deploy")
        assert events[-1]["outcome"] == "yielded"
        async with inbox(work.server, "human", conversation) as human:
            page = (await human.read())["messages"]
        assert [(one["author"], one["mime"], one["content"]) for one in page] == [
            ("user", "text/markdown", "Deploy"),
            ("assistant", "text/markdown", "On it."),
            ("assistant", "text/plain", "Done."),
        ]
        view = await work.server.state(conversation)
        shown = [
            block["text"] for message in view["messages"] for block in message["blocks"] if block["type"] == "text"
        ]
        assert shown == ["Deploy", "On it.", "Done."]
        offered = {tool["function"]["name"] for tool in work.provider.bodies[0]["tools"]}
        assert {POST, YIELD} <= offered
        # The model knows its post from the call; it is not told of it a second time.
        said = [message for message in work.provider.bodies[1]["messages"] if message["role"] == "assistant"]
        assert len(said) == 1


async def test_plain_text_is_an_error_that_tells_the_model_to_use_the_tool(tmp_path: Path) -> None:
    script = [Answer.of("Hello, I am here."), Answer.of(post("Hello.")), Answer.of(Call(name=YIELD, input={}))]
    async with at_work(tmp_path, *script) as work:
        conversation, events = await strict(work, "Hi")
        assert events[-1]["outcome"] == "yielded"
        assert [event["unposted"] for event in of(events, "text.finished")] == [True]
        assert POST in str(work.provider.bodies[1]["messages"][-1])
        async with inbox(work.server, "human", conversation) as human:
            assert [one["content"] for one in (await human.read())["messages"]] == ["Hi", "Hello."]


async def test_model_that_never_uses_the_tool_fails_with_words(tmp_path: Path) -> None:
    async with at_work(tmp_path, *[Answer.of("Still plain.")] * 4) as work:
        conversation, events = await strict(work, "Hi")
        assert events[-1]["outcome"] == "failed"
        assert POST in events[-1]["error"]["message"]
        assert len(work.provider.bodies) == 4
        async with inbox(work.server, "human", conversation) as human:
            assert [one["content"] for one in (await human.read())["messages"]] == ["Hi"]


async def test_yield_beside_a_failed_post_does_not_end_the_turn(tmp_path: Path) -> None:
    end = Call(name=YIELD, input={})
    script = [Answer.of(post(" "), end), Answer.of(post("Done."), end)]
    async with at_work(tmp_path, *script) as work:
        conversation, events = await strict(work, "Deploy")
        assert events[-1]["outcome"] == "yielded"
        assert len(work.provider.bodies) == 2
        told = str(work.provider.bodies[1]["messages"])
        assert "`content` says nothing." in told
        assert "has not ended" in told
        async with inbox(work.server, "human", conversation) as human:
            assert [one["content"] for one in (await human.read())["messages"]] == ["Deploy", "Done."]


async def test_model_whose_posts_keep_failing_fails_with_words(tmp_path: Path) -> None:
    async with at_work(tmp_path, *[Answer.of(post(""), Call(name=YIELD, input={}))] * 4) as work:
        _, events = await strict(work, "Hi")
        assert events[-1]["outcome"] == "failed"
        assert POST in events[-1]["error"]["message"]
        assert len(work.provider.bodies) == 4


async def test_other_agents_are_not_offered_the_tool_and_speak_plainly(tmp_path: Path) -> None:
    async with at_work(tmp_path, Answer.of("Hello.")) as work:
        conversation = await work.begin("Hi")
        await work.events(conversation)
        assert POST not in {tool["function"]["name"] for tool in work.provider.bodies[0]["tools"]}
        async with inbox(work.server, "human", conversation) as human:
            assert [one["content"] for one in (await human.read())["messages"]] == ["Hi", "Hello."]


async def test_agent_of_a_program_that_cannot_be_held_to_it_is_refused_in_words(tmp_path: Path) -> None:
    async with at_work(tmp_path, Answer.of("Hello.")) as work:
        record = {"id": "quiet", "name": "Quiet", "backend": "claude", "strict_inbox": True}
        made = await work.server.http.post("/api/agents", json=record)
        by_hand = tmp_path / "data" / "agents" / "loud.md"
        by_hand.parent.mkdir(exist_ok=True)
        by_hand.write_text("---\nbackend: codex\nstrict_inbox: true\n---\nBe brief.\n")
        agents = (await work.server.http.get("/api/agents/list")).json()["agents"]
        refused = await work.server.http.post("/api/conversations", json={"agent": "loud"})
    assert made.status_code == 400
    assert "strict_inbox" in made.json()["message"]
    assert "claude" in made.json()["message"]
    assert next("strict_inbox" in agent["problem"] for agent in agents if agent["id"] == "loud")
    assert refused.status_code == 404
    assert "strict_inbox" in refused.json()["message"]
