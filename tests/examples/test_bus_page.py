"""The bus example in a browser: phases of an answer, approvals, questions, a plan, the queue and a stop."""

import pytest
from playwright.async_api import Locator, expect

from tests.browser.served import Palaver
from tests.browser.visitor import Visitor, Visitors
from tests.examples.scripts import WRITTEN, script_held
from tests.provider import Answer, Call, Gate, ScriptedProvider, Think

pytestmark = pytest.mark.browser
PAGE = "bus_page"


@pytest.fixture
async def ada(visitors: Visitors, page_url: str, request: pytest.FixtureRequest) -> Visitor:
    """Somebody who has opened the page with a session of the test's own."""
    visitor = await visitors.stranger(page_url)
    # It listens, and has read what was said before: nothing of what follows is missed or read twice.
    heard = visitor.page.expect_response("**/api/events*")
    async with heard, visitor.page.expect_response("**/api/agent-runs*"):
        await visitor.go(f"/#{request.node.name}")
    return visitor


def texts(visitor: Visitor) -> Locator:
    """What was said, by people and agents, in order."""
    return visitor.page.locator("#log .text")


def queue(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("list", name="Queued messages").get_by_role("listitem")


def stop_button(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("button", name="Stop")


async def test_answer_goes_from_thinking_to_working_to_done_and_a_reload_shows_the_same(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    call = Call(name="write", input={"path": "bustide.txt", "content": WRITTEN})
    thought = Think(text="The tide table is wanted.")
    provider.script += [
        Answer.of(thought, Gate(name="busthought"), "I will write it down.", call, when="bustide"),
        Answer.of("Half of it", Gate(name="bustext"), " is all of it.", when="bustide"),
    ]
    await ada.send("Note the bustide")
    answer = ada.page.locator("article.agent")
    await expect(answer).to_have_class("agent thinking")
    await expect(answer).to_have_text("Thinking…")
    provider.gates.open("busthought")
    await expect(answer).to_have_class("agent working")
    await expect(answer.locator(".text")).to_have_text("I will write it down.")
    await ada.page.get_by_role("region", name="Question").get_by_role("button", name="Allow once").click()
    await expect(answer).to_have_class("agent streaming")
    await expect(answer.locator(".activity").last).to_have_text("Writing bustide.txt")
    await expect(answer.locator(".text")).to_have_text("I will write it down.\n\nHalf of it")
    assert (palaver.project / "bustide.txt").read_text() == WRITTEN
    await expect(ada.page.get_by_role("button", name="Allow once")).to_have_count(0)
    provider.gates.open("bustext")
    said = ["Note the bustide", "I will write it down.", "Half of it is all of it."]
    await expect(stop_button(ada)).to_be_hidden()
    await expect(texts(ada)).to_have_text(said)
    await ada.page.reload()
    await expect(texts(ada)).to_have_text(said)


async def test_page_without_a_session_begins_its_own(ada: Visitor, visitors: Visitors, page_url: str) -> None:
    bob = await visitors.stranger(page_url)
    await bob.go()
    await bob.send("Good morning")
    said = ["Good morning", "You said: Good morning"]
    await expect(texts(bob)).to_have_text(said)
    await expect(stop_button(bob)).to_be_hidden()
    await expect(texts(ada)).to_have_count(0)
    await bob.page.reload()
    await expect(texts(bob)).to_have_text(said)


async def test_question_with_two_parts_is_answered_by_two_choices(ada: Visitor, provider: ScriptedProvider) -> None:
    questions = [
        {"question": "Which tide?", "header": "Tide", "options": [{"label": "Ebb"}, {"label": "Flow"}]},
        {"question": "When?", "header": "Time", "options": [{"label": "Now"}, {"label": "Later"}]},
    ]
    provider.script.append(Answer.of(Call(name="ask_user", input={"questions": questions}), when="busasks"))
    await ada.send("It busasks")
    card = ada.page.get_by_role("region", name="Question")
    await expect(card).to_contain_text("Which tide?")
    await card.get_by_role("button", name="Flow").click()
    await card.get_by_role("button", name="Later").click()
    await expect(texts(ada).last).to_contain_text("Flow")
    await expect(texts(ada).last).to_contain_text("Later")
    await expect(card.get_by_role("button")).to_have_count(0)


async def test_plan_is_shown_with_the_state_of_its_items(ada: Visitor, provider: ScriptedProvider) -> None:
    items = [{"title": "Dig", "status": "done"}, {"title": "Sow", "status": "in_progress"}]
    provider.script.append(Answer.of(Call(name="plan", input={"summary": "A garden", "items": items}), when="busplan"))
    await ada.send("Make a busplan")
    await expect(ada.page.get_by_role("list", name="Plan").get_by_role("listitem")).to_have_text(["Dig", "Sow"])


async def test_stop_keeps_what_was_said_and_the_queued_message_is_answered(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    script_held(provider, "busheld")
    await ada.send("Tell the busheld")
    await expect(texts(ada).last).to_have_text("Half of the answer")
    await ada.send("And the next?")
    await expect(queue(ada)).to_have_text(["And the next?"])
    await stop_button(ada).click()
    await expect(queue(ada)).to_have_count(0)
    said = ["Tell the busheld", "Half of the answer", "And the next?", "You said: And the next?"]
    await expect(texts(ada)).to_have_text(said)
    await expect(stop_button(ada)).to_be_hidden()
    await ada.page.reload()
    await expect(texts(ada)).to_have_text(said)


async def test_queued_message_leaves_the_running_answer_in_its_place(ada: Visitor, provider: ScriptedProvider) -> None:
    script_held(provider, "busfirst")
    script_held(provider, "bussecond")
    await ada.send("Tell the busfirst")
    await expect(texts(ada).last).to_have_text("Half of the answer")
    await ada.send("Tell the bussecond")
    await expect(queue(ada)).to_have_text(["Tell the bussecond"])
    provider.gates.open("busfirst")
    await provider.gates.reached("bussecond")
    first = "Half of the answer and the rest."
    await expect(texts(ada)).to_have_text(["Tell the busfirst", first, "Tell the bussecond", "Half of the answer"])
    provider.gates.open("bussecond")
    await expect(texts(ada)).to_have_text(["Tell the busfirst", first, "Tell the bussecond", first])


async def test_page_opened_in_the_middle_of_an_answer_shows_all_of_it_once(
    ada: Visitor, visitors: Visitors, page_url: str, provider: ScriptedProvider
) -> None:
    script_held(provider, "busmiddle")
    await ada.send("Tell the busmiddle")
    await expect(texts(ada).last).to_have_text("Half of the answer")
    bob = await visitors.stranger(page_url)
    await bob.page.goto(ada.page.url)
    await expect(texts(bob)).to_have_text(["Tell the busmiddle", "Half of the answer"])
    provider.gates.open("busmiddle")
    for visitor in (ada, bob):
        said = ["Tell the busmiddle", "Half of the answer and the rest."]
        await expect(texts(visitor)).to_have_text(said)
        await expect(stop_button(visitor)).to_be_hidden()
