"""Missions on the page, against a real server: set, replaced, ended, looked back at; how agents rest in a folder.

Nobody is woken before it has rested half a minute, so how a mission looks after hours is played: the answer of one route is
written by the test, and the page does not know.
"""

import re
from collections.abc import AsyncIterator
from time import time
from typing import Any

import pytest
from playwright.async_api import Locator, Route, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.served import Palaver, Wire, free_port
from tests.browser.visitor import DESKTOP, PHONE, Visitor
from tests.provider.server import ScriptedProvider

AGENTS = {
    "builder": "name: Builder\ndescription: builds\nidle_prompt: Is the build green?\nidle_interval_s: 7200",
    "watcher": "name: Watcher\ndescription: watches the sea",
}


@pytest.fixture(scope="module")
async def palaver(
    tmp_path_factory: pytest.TempPathFactory, provider: ScriptedProvider, wire: Wire
) -> AsyncIterator[Palaver]:
    palaver = Palaver(tmp_path_factory.mktemp("missions"), provider.url, wire, free_port())
    made = palaver.data / "agents"
    made.mkdir(parents=True)
    for name, front in AGENTS.items():
        (made / f"{name}.md").write_text(f"---\n{front}\n---\nYou are {name}.\n")
    try:
        await palaver.start()
        yield palaver
    finally:
        await palaver.stop()


@pytest.fixture
async def conversation(ada: Visitor, palaver: Palaver) -> AsyncIterator[str]:
    """In the folder, which has no mission before and after."""
    answer = await ada.request.post(f"{ada.url}/api/conversations", data={"title": "Earlier"})
    assert answer.ok, await answer.text()
    yield str((await answer.json())["conversation"])
    await ada.request.delete(f"{ada.url}/api/projects/mission", params={"project": str(palaver.project)})


async def standing(visitor: Visitor, palaver: Palaver) -> dict[str, Any]:
    query: dict[str, str | float | bool] = {"project": str(palaver.project)}
    answer = await visitor.request.get(f"{visitor.url}/api/projects/mission", params=query)
    return dict(await answer.json())


def form(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("form", name=re.compile("mission", re.IGNORECASE))


def active(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("region", name="Active")


async def looks_good(visitor: Visitor, name: str) -> None:
    for scheme in SCHEMES:
        findings = await axe_findings(visitor.page, scheme)
        await picture(visitor.page, f"screens/{name}-{scheme}", scheme)
        assert not findings, f"{name}, {scheme}:\n" + "\n".join(findings)
    await visitor.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    await picture(visitor.page, f"screens/{name}-phone")
    await fits(visitor.page)
    findings = await axe_findings(visitor.page, "light")
    assert not findings, f"{name}, on a phone:\n" + "\n".join(findings)
    await visitor.page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})


async def test_mission_is_set_replaced_and_ended_and_stays_in_the_history(
    ada: Visitor, palaver: Palaver, conversation: str
) -> None:
    await ada.go("/missions")
    await ada.page.get_by_role("main").get_by_role("link", name="project", exact=True).click()
    await expect(ada.page.get_by_role("heading", name="Mission of project", level=1)).to_be_visible()
    await expect(ada.page.get_by_text("A mission is something to work towards")).to_be_visible()
    await looks_good(ada, "mission-none")

    await ada.page.get_by_role("button", name="Set a mission").click()
    await form(ada).get_by_role("button", name="Set the mission").click()
    await expect(form(ada).get_by_label("What shall be reached?")).to_be_focused()
    await expect(form(ada)).to_contain_text("Say what the mission is.")
    await form(ada).get_by_label("What shall be reached?").fill("Keep the build green.")
    await form(ada).get_by_label("Builder").check()
    await form(ada).get_by_label("Watcher").check()
    await form(ada).get_by_label("Seconds of rest of Watcher").fill("3600")
    await form(ada).get_by_label("Idle prompt of Watcher").fill("Look at the sea.")
    await form(ada).get_by_label("Budget").fill("2,50")
    await looks_good(ada, "mission-form")
    await form(ada).get_by_role("button", name="Set the mission").click()

    await expect(active(ada)).to_contain_text("Keep the build green.")
    await expect(active(ada)).to_contain_text("woken 0 of 100 times · $0 of $2.50 spent")
    builder = active(ada).get_by_role("listitem").filter(has_text="Builder")
    await expect(builder).to_contain_text(re.compile(r"woken in (2 h 00 min|1 h 59 min)"))
    await expect(builder).to_contain_text("after 2 h of rest")
    await builder.get_by_text("Idle prompt").click()
    await expect(builder).to_contain_text("Is the build green?")
    await looks_good(ada, "mission-active")

    await active(ada).get_by_role("button", name="Replace").click()
    await expect(form(ada).get_by_label("What shall be reached?")).to_have_value("Keep the build green.")
    await expect(form(ada).get_by_label("Seconds of rest of Watcher")).to_have_value("3600")
    await form(ada).get_by_label("What shall be reached?").fill("Ship it.")
    await form(ada).get_by_role("button", name="Set the mission").click()
    question = ada.page.get_by_role("dialog", name="Replace the mission?")
    await question.get_by_role("button", name="Cancel").click()
    assert (await standing(ada, palaver))["text"] == "Keep the build green."
    await form(ada).get_by_role("button", name="Set the mission").click()
    await question.get_by_role("button", name="Replace it").click()
    await expect(active(ada)).to_contain_text("Ship it.")
    await ada.page.get_by_text("Former missions (1)").click()
    await expect(ada.page.get_by_text("Keep the build green.")).to_be_visible()

    await active(ada).get_by_role("button", name="End …").click()
    question = ada.page.get_by_role("dialog", name="End this mission?")
    await looks_good(ada, "mission-ending")
    await question.get_by_role("button", name="End the mission").click()
    await expect(ada.page.get_by_role("heading", name="No mission")).to_be_visible()
    await expect(ada.page.get_by_text("Former missions (2)")).to_be_visible()
    assert not (await standing(ada, palaver))["active"]


async def test_refused_mission_says_why_at_its_field(ada: Visitor, palaver: Palaver, conversation: str) -> None:
    ada.complaints.expect("status of 400")
    await ada.go(f"/missions?project={palaver.project}")
    await ada.page.get_by_role("button", name="Set a mission").click()
    await form(ada).get_by_label("What shall be reached?").fill("Anything.")
    await form(ada).get_by_label("Builder").check()
    rest = form(ada).get_by_label("Seconds of rest of Builder")
    await rest.fill("9999999")
    await form(ada).get_by_role("button", name="Set the mission").click()
    await expect(rest).to_have_attribute("aria-invalid", "true")
    await expect(rest).to_be_focused()
    await expect(form(ada).get_by_role("alert")).to_have_text("May be 604,800 seconds, which is a week.")
    await rest.fill("")
    await form(ada).get_by_label("Budget").fill("0")
    await form(ada).get_by_role("button", name="Set the mission").click()
    await expect(form(ada).get_by_label("Budget")).to_be_focused()
    assert not (await standing(ada, palaver))["active"]


async def test_mission_under_way_says_who_is_woken_when_and_what_it_cost(
    ada: Visitor, palaver: Palaver, conversation: str
) -> None:
    now_ms = int(time() * 1000)

    def agent(name: str, status: str, **more: Any) -> dict[str, Any]:
        base = {"idle_prompt": "Go on.", "idle_interval_s": 60, "conversation": conversation, "triggered": 3}
        return {"agent": name, "status": status, "next_due_at": None, "own": {"agent": name}, **base, **more}

    mission: dict[str, Any] = {
        "active": True,
        "project": str(palaver.project),
        "stream": "project-x",
        "mission": "m",
        "text": "Keep the harbour open.\nWhatever the weather.",
        "created_at": now_ms - 3_600_000,
        "budget_usd": 5.0,
        "spent_usd": 1.234,
        "triggered": 42,
        "limit": 100,
        "status": "active",
        "agents": [
            agent("builder", "resting"),
            agent("watcher", "busy"),
            agent("default", "waiting"),
            agent("demo", "no_prompt", idle_prompt=None, conversation=None, triggered=0),
            agent("ghost", "unknown_agent", conversation=None),
        ],
    }

    async def told(route: Route) -> None:
        # From now on, not from when the test began: the page may take its time.
        mission["agents"][0]["next_due_at"] = int(time() * 1000) + 40_000
        await route.fulfill(json=mission)

    await ada.page.route("**/api/projects/mission?**", told)
    await ada.go(f"/missions?project={palaver.project}")
    await expect(active(ada)).to_contain_text("woken 42 of 100 times · $1.23 of $5.00 spent")
    await expect(active(ada)).to_contain_text(re.compile(r"since (today|yesterday), \d\d:\d\d"))
    row = active(ada).get_by_role("listitem")
    await expect(row.filter(has_text="Builder")).to_contain_text(re.compile(r"woken in [1-4]\d? s"))
    await expect(row.filter(has_text="Watcher")).to_contain_text("works")
    await expect(row.filter(has_text="waits for you")).to_have_count(1)
    await expect(row.filter(has_text="no idle prompt")).to_have_count(1)
    await expect(row.filter(has_text="ghost")).to_contain_text("is not here any more")
    await looks_good(ada, "mission-under-way")

    # It renews itself: nobody has to ask.
    mission["status"], mission["triggered"] = "limit", 100
    await expect(active(ada)).to_contain_text("Stopped: it has woken its agents as often as it may")
    await row.filter(has_text="Builder").get_by_role("link", name="Conversation of Builder").click()
    await expect(ada.page).to_have_url(re.compile(conversation))


async def test_folder_says_how_an_agent_rests_and_takes_it_back(
    ada: Visitor, palaver: Palaver, conversation: str
) -> None:
    sent: list[Any] = []
    ada.page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "PUT" else None)
    await ada.go(f"/missions?project={palaver.project}")
    await ada.page.get_by_text("How agents rest in this folder").click()
    await ada.page.get_by_label("Agent", exact=True).select_option("watcher")
    await ada.page.get_by_label("Idle prompt").fill("Watch.")
    await ada.page.get_by_label("Woken after (s)").fill("5")
    await looks_good(ada, "mission-override")
    save = ada.page.get_by_role("button", name="Save", exact=True)
    await save.click()
    await expect(ada.page.get_by_text("Saved.")).to_be_visible()
    # The server raised it to the shortest rest there is.
    await expect(ada.page.get_by_label("Woken after (s)")).to_have_value("30")
    await ada.page.get_by_label("Idle prompt").fill("")
    # What was said of the first time may still stand there.
    async with ada.page.expect_response(lambda answer: answer.request.method == "PUT"):
        await save.click()
    await expect(ada.page.get_by_text("Saved.")).to_be_visible()
    assert sent == [{"idle_prompt": "Watch.", "idle_interval_s": 5}, {"idle_prompt": None}]


async def test_mission_is_reached_from_a_conversation_of_its_folder(
    ada: Visitor, palaver: Palaver, conversation: str
) -> None:
    query: dict[str, str | float | bool] = {"project": str(palaver.project)}
    body = {"text": "Keep the build green.", "agents": [{"agent": "builder"}]}
    answer = await ada.request.put(f"{ada.url}/api/projects/mission", params=query, data=body)
    assert answer.ok, await answer.text()
    await ada.open(conversation)
    await ada.page.get_by_role("button", name="Conversation actions").click()
    await ada.page.get_by_role("menuitem", name="Mission of this folder").click()
    panel = ada.page.get_by_role("dialog", name="Mission of project")
    await expect(panel).to_contain_text("Keep the build green.")
    await expect(panel).to_contain_text("woken in")
    await looks_good(ada, "mission-dialog")
    await ada.press("Escape")
    await expect(panel).to_have_count(0)

    await ada.go("/missions")
    folder = ada.page.get_by_role("main").get_by_role("listitem").filter(has_text="Keep the build green.")
    await expect(folder).to_contain_text("server's folder")
    await looks_good(ada, "missions")
