"""Agents that work together, on a real server: what waits for a person anywhere, subagents in place, messages between agents."""

import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from playwright.async_api import Locator, expect

from palaver.schema.content import as_content
from palaver.schema.events import MessageAdded
from tests.browser.looks import SCHEMES, axe_findings, fits, picture, stands_still
from tests.browser.player import Player
from tests.browser.served import Palaver, Wire, free_port
from tests.browser.visitor import PHONE, Visitor, Visitors
from tests.golden.record import Record
from tests.provider.server import ScriptedProvider

AGENTS = {
    "coordinator": "name: Coordinator\ndescription: gives the others their work",
    "builder": "name: Builder\ndescription: builds\npolicy: [{tool: shell, decision: allow}]",
    "careful": "name: Careful\ndescription: asks first",
    "reviewer": "name: Reviewer\ndescription: reads what others wrote",
}

KEYS = 20
"""More than any way by keys should take."""


@pytest.fixture(scope="module")
async def palaver(
    tmp_path_factory: pytest.TempPathFactory, provider: ScriptedProvider, wire: Wire
) -> AsyncIterator[Palaver]:
    palaver = Palaver(tmp_path_factory.mktemp("together"), provider.url, wire, free_port())
    made = palaver.data / "agents"
    made.mkdir(parents=True)
    for name, front in AGENTS.items():
        (made / f"{name}.md").write_text(f"---\n{front}\n---\nYou are {name}.\n")
    try:
        await palaver.start()
        yield palaver
    finally:
        await palaver.stop()


def task(prompt: str, agent: str) -> str:
    return f"!tool task {msgspec.json.encode({'prompt': prompt, 'agent': agent}).decode()}"


def letter(agent: str, content: str, **more: Any) -> str:
    return f"!tool agents_message {msgspec.json.encode({'agentId': agent, 'content': content, **more}).decode()}"


async def begin(visitor: Visitor, title: str, *orders: str, agent: str = "coordinator") -> str:
    """A conversation with an agent, on the page."""
    body = {"agent": agent, "title": title}
    answer = await visitor.request.post(f"{visitor.url}/api/conversations", data=body)
    assert answer.ok, await answer.text()
    conversation = str((await answer.json())["conversation"])
    await visitor.open(conversation)
    if orders:
        await visitor.send("\n".join(orders))
    return conversation


def subagent(visitor: Visitor, name: str) -> Locator:
    """The block of a subagent in the transcript."""
    return visitor.log.locator(".work").filter(has=visitor.page.locator(".tool-verb", has_text=name)).first


async def open_block(block: Locator) -> None:
    """By key: a line that moves while the pointer is on it, as what stands above it grows, may miss a click."""
    line = block.locator(".tool-line").first
    if await line.get_attribute("aria-expanded") == "false":
        await line.press("Enter")


DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


async def press_until(visitor: Visitor, key: str, found: Locator) -> None:
    """What a key leads to is looked at once it is drawn: one key more would lead past it."""
    for _ in range(KEYS):
        if await found.count():
            return
        await visitor.press(key)
        await visitor.page.evaluate(DRAWN)
    raise AssertionError(f"{KEYS} times {key} did not lead to {found}")


# -- subagents


async def test_subagents_work_in_their_blocks_and_what_one_asks_is_answered_at_the_root(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    await begin(
        ada,
        "Harbour",
        task("!say Looking at the tides.\n!gate tides", "builder"),
        task("!write asked.txt high water\n---\n!say It is written.", "careful"),
    )
    await provider.gates.reached("tides")
    await expect(ada.approval).to_contain_text(
        "Careful, working for this conversation, wants to write a file: asked.txt"
    )
    strip = ada.page.get_by_role("region", name="Subagents")
    await expect(strip).to_contain_text("2 subagents at work · 1 waits for you")
    await expect(subagent(ada, "Careful")).to_contain_text("waits for you")
    await expect(subagent(ada, "Builder")).to_contain_text("working")
    await expect(ada.page.get_by_role("group", name="Activity")).to_contain_text("Waiting for you")
    await expect(ada.page).to_have_title(re.compile(r"^\(1\) Harbour"))

    await open_block(subagent(ada, "Builder"))
    peek = ada.page.get_by_role("region", name="What Builder does")
    await expect(peek).to_contain_text("Looking at the tides.")
    await ada.box.click()
    await ada.page.keyboard.type("1 2 3 yes")
    await expect(ada.approval).to_be_visible()
    assert not (palaver.project / "asked.txt").exists()

    await ada.asked()
    await ada.approval.get_by_role("button", name="Allow once").click()
    await expect(ada.approval).to_have_count(0)
    await expect(subagent(ada, "Careful")).to_contain_text("done")
    assert (palaver.project / "asked.txt").read_text() == "high water"
    await expect(strip).to_have_count(0)
    await expect(ada.page).to_have_title(re.compile(r"^Harbour"))
    provider.gates.open("tides")
    await ada.rests()
    for _ in ("as it happened", "after a reload"):
        await expect(subagent(ada, "Builder")).to_contain_text(re.compile(r"done · [\d.]+ s"))
        await open_block(subagent(ada, "Careful"))
        await expect(ada.page.get_by_role("region", name="What Careful does")).to_contain_text("It is written.")
        await ada.page.reload()


async def test_what_a_subagent_of_a_subagent_asks_marks_the_block_between_also_after_a_reload(
    ada: Visitor, palaver: Palaver
) -> None:
    below = task("!write deep.txt ebb\n---\n!say Written below.", "careful")
    await begin(ada, "Estuary", task(f"{below}\n---\n!say All done.", "coordinator"))
    for _ in ("as it happened", "after a reload"):
        await expect(ada.approval).to_contain_text("write a file: deep.txt")
        await expect(subagent(ada, "Coordinator")).to_contain_text("waits for you")
        await ada.page.reload()
    await ada.asked()
    await ada.approval.get_by_role("button", name="Deny").click()
    await expect(ada.approval).to_have_count(0)
    await ada.rests()
    assert not (palaver.project / "deep.txt").exists()


async def test_subagents_of_subagents_stand_in_a_tree_with_their_states(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    lowest = task("!gate lowest\n!say The pearl.", "builder")
    below = task(f"{lowest}\n---\n!say Found.", "reviewer")
    await begin(ada, "Reef", task(f"{below}\n---\n!say Done.", "coordinator"))
    await provider.gates.reached("lowest")
    block = subagent(ada, "Coordinator")
    children = block.get_by_role("list", name="Subagents of Coordinator")
    grandchildren = children.get_by_role("list", name="Subagents of Reviewer")
    for _ in ("as it happened", "after a reload"):
        await expect(children.get_by_role("link", name="Reviewer")).to_be_visible()
        await expect(grandchildren.get_by_role("listitem")).to_contain_text(re.compile("Builder.*working"))
        await ada.page.reload()
    await expect(grandchildren).to_be_visible()
    for scheme in SCHEMES:
        await picture(ada.page, f"turns/tree-{scheme}", scheme)
        assert await axe_findings(ada.page, scheme) == []
    provider.gates.open("lowest")
    await ada.rests()
    for _ in ("as it happened", "after a reload"):
        await expect(grandchildren.get_by_role("listitem")).to_contain_text(re.compile("Builder.*done"))
        await ada.page.reload()
    await grandchildren.get_by_role("link", name="Builder").click()
    await expect(ada.log).to_contain_text("The pearl.")


async def test_subagent_opens_as_a_conversation_of_its_own_with_the_way_back(ada: Visitor) -> None:
    root = await begin(ada, "Lighthouse", task(f"!say Above.\n{task('!say The lamp is lit.', 'builder')}", "builder"))
    await ada.rests()
    await open_block(subagent(ada, "Builder"))
    peek = ada.page.get_by_role("region", name="What Builder does")
    await expect(peek.first).to_contain_text("Above.")
    # Inside it, the one that works for it.
    await open_block(peek.locator(".work").first)
    await expect(peek.nth(1)).to_contain_text("The lamp is lit.")
    await peek.first.locator("xpath=..").get_by_role("link", name="Open its conversation").last.click()
    back = ada.page.get_by_role("link", name="Works for Lighthouse")
    await expect(back).to_be_visible()
    child = ada.conversation
    assert child != root
    await expect(ada.log.get_by_role("link", name="Coordinator")).to_have_attribute("href", f"/c/{root}")
    await expect(ada.list.locator(f'a[href="/c/{child}"]')).to_have_count(0)
    await back.click()
    await expect(ada.page).to_have_url(re.compile(f"/c/{root}"))


async def test_one_subagent_is_stopped_and_the_others_go_on(ada: Visitor, provider: ScriptedProvider) -> None:
    await begin(
        ada, "Two boats", task("!say One.\n!gate boat-1", "builder"), task("!say Two.\n!gate boat-2", "careful")
    )
    for gate in ("boat-1", "boat-2"):
        await provider.gates.reached(gate)
    strip = ada.page.get_by_role("region", name="Subagents")
    await strip.get_by_role("button", name="2 subagents at work").click()
    await strip.get_by_role("button", name="Stop Careful").click()
    await expect(subagent(ada, "Careful")).to_contain_text("stopped")
    await expect(subagent(ada, "Builder")).to_contain_text("working")
    await subagent(ada, "Builder").get_by_role("button", name="Stop Builder").click()
    await expect(subagent(ada, "Builder")).to_contain_text("stopped")
    await ada.rests()


async def test_subagents_and_the_inbox_are_reached_by_keys_alone(ada: Visitor) -> None:
    await begin(ada, "Rudder", task("!say It holds.", "builder"), "---", "!write rudder.txt left")
    await ada.asked()
    await stands_still(ada.page)
    await ada.log.focus()
    await press_until(ada, "j", ada.log.locator(".selected .work"))
    await ada.press("o")
    await expect(ada.page.get_by_role("region", name="What Builder does")).to_contain_text("It holds.")
    await ada.command("waiting for")
    card = ada.page.get_by_role("main").get_by_role("region", name="Approval needed")
    await expect(card).to_contain_text("rudder.txt")
    await expect(card.locator("[aria-disabled=true]")).to_have_count(0)
    await press_until(ada, "Tab", card.locator("button:focus", has_text="Deny"))
    await ada.press("Enter")
    await expect(ada.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    # Whoever answered is not thrown back to the top of the page.
    await expect(ada.page.get_by_role("main")).to_be_focused()


# -- the inbox


async def test_inbox_holds_what_waits_anywhere_and_is_answered_by_keys(
    ada: Visitor, palaver: Palaver, visitors: Visitors
) -> None:
    first = await begin(ada, "Kites", task("!write kite.txt red", "careful"))
    await expect(ada.approval).to_be_visible()
    second = await begin(ada, "Sails", "!write sail.txt blue", agent="careful")
    await expect(ada.approval).to_contain_text("sail.txt")
    third = await begin(ada, "Ropes", "!write rope.txt long", agent="careful")
    await expect(ada.approval).to_contain_text("rope.txt")

    await ada.list.get_by_role("link", name="Waiting for you: 3").click()
    await expect(ada.page).to_have_title("(3) Waiting for you · Palaver")
    cards = ada.page.get_by_role("main").get_by_role("region", name="Approval needed")
    await expect(cards).to_contain_text(["kite.txt", "sail.txt", "rope.txt"])
    await expect(cards.first).to_contain_text("Careful wants to write a file")
    await expect(cards.first.get_by_role("link", name="Kites")).to_be_visible()
    await expect(cards.first.get_by_role("button", name=re.compile("Allow once Alt"))).to_be_enabled()
    await expect(cards.nth(1).locator("kbd")).to_have_count(0)

    # Elsewhere the third is answered, here the first.
    other = await visitors.owner(palaver.url, palaver.token)
    await other.open(third)
    await other.asked()
    await other.press("Alt+3")
    await expect(cards).to_have_count(2)
    await expect(ada.page.get_by_role("main")).to_contain_text("Denied · answered elsewhere")
    await expect(cards.first.locator("[aria-disabled=true]")).to_have_count(0)
    await ada.press("Alt+1")
    await expect(cards).to_contain_text(["sail.txt"])
    await expect(ada.page.get_by_role("main")).to_contain_text("Allowed once · by you")
    await expect(ada.page).to_have_title("(1) Waiting for you · Palaver")
    # What was the second is deaf at first: it has become the one that keys are meant for.
    await expect(cards.first.locator("[aria-disabled=true]")).to_have_count(0)
    await ada.press("Alt+1")
    await expect(ada.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    await expect(ada.page).to_have_title("Waiting for you · Palaver")
    for answered in (first, second):
        await ada.open(answered)
        await ada.rests()
    texts = [(palaver.project / f"{name}.txt") for name in ("kite", "sail", "rope")]
    assert [path.read_text() if path.exists() else None for path in texts] == ["red", "blue", None]


async def test_inbox_says_what_became_of_the_latest_requests(
    ada: Visitor, palaver: Palaver, visitors: Visitors
) -> None:
    conversation = await begin(ada, "Anchor", "!write anchor.txt iron", agent="careful")
    other = await visitors.owner(palaver.url, palaver.token)
    await other.open(conversation)
    await other.asked()
    await other.press("Alt+3")
    await ada.rests()
    await ada.go("/waiting")
    recent = ada.page.get_by_role("region", name="Recent")
    entry = recent.get_by_role("listitem").filter(has_text="anchor.txt")
    await expect(entry).to_contain_text("Denied · answered elsewhere")
    await expect(entry.get_by_role("link", name="Anchor")).to_be_visible()
    for scheme in SCHEMES:
        await picture(ada.page, f"turns/recent-{scheme}", scheme)
        assert await axe_findings(ada.page, scheme) == []
    await ada.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    await fits(ada.page)
    await picture(ada.page, "turns/recent-phone")


async def test_turn_that_fails_out_of_view_is_told_on_the_page(ada: Visitor, provider: ScriptedProvider) -> None:
    first = await begin(ada, "Wreck", "!gate wreck")
    await provider.gates.reached("wreck")
    await ada.send("!status 403")
    await expect(ada.queue).to_contain_text("!status 403")
    # What tells of it comes when the page has nothing else to do.
    await ada.page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(one => one.name.includes('/Notifier'))"
    )
    await ada.command("waiting for")
    await expect(ada.page.get_by_role("heading", name="Waiting for you", level=1)).to_be_visible()
    provider.gates.open("wreck")
    told = ada.page.get_by_role("status").filter(has_text="A turn failed in Wreck")
    await expect(told).to_be_visible()
    await told.get_by_role("link", name="Wreck").click()
    await expect(ada.page).to_have_url(re.compile(f"/c/{first}"))
    await expect(told).to_have_count(0)
    await expect(ada.log.get_by_role("heading", name="The provider refused the request")).to_be_visible()


WATCHED = """
window.notices = [];
window.Notification = class {
  static permission = "default";
  static async requestPermission() { this.permission = "granted"; return "granted"; }
  constructor(title, options) { Object.assign(this, { title, ...options }); window.notices.push(this); }
  close() {}
};
Object.defineProperty(document, "hidden", { get: () => window.away === true });
"""
"""A browser whose system notices can be looked at: a real one shows them outside of the page."""


async def test_system_notices_are_switched_on_first_and_come_once_while_nobody_looks(
    ada: Visitor, palaver: Palaver, visitors: Visitors
) -> None:
    await ada.page.add_init_script(WATCHED)
    other = await visitors.owner(palaver.url, palaver.token)
    await ada.go("/waiting")
    await expect(ada.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()
    await ada.page.evaluate("window.away = true")
    await begin(other, "Before", "!write before.txt x", agent="careful")
    await expect(ada.page).to_have_title(re.compile(r"^\(1\)"))
    assert await ada.page.evaluate("window.notices.length") == 0

    await ada.page.get_by_role("checkbox", name="Notify me on this device").check()
    second = await begin(other, "Anchor", "!write anchor.txt x", agent="careful")
    await expect(ada.page).to_have_title(re.compile(r"^\(2\)"))
    await ada.page.wait_for_function("() => window.notices.length > 0")
    notices = await ada.page.evaluate("window.notices.map(({ title, body }) => [title, body])")
    assert notices == [["Careful waits for you", "Create anchor.txt · Anchor"]]
    await ada.page.evaluate("window.away = false; window.notices[0].onclick()")
    await expect(ada.page).to_have_url(re.compile(second))
    await ada.go("/waiting")
    for _ in range(2):
        await ada.page.get_by_role("button", name=re.compile("Deny Alt")).click()
    await expect(ada.page.get_by_role("heading", name="Nothing waits for you")).to_be_visible()


# -- messages between agents


async def test_message_and_answer_of_another_agent_are_one_block(ada: Visitor) -> None:
    root = await begin(
        ada, "Charts", letter("reviewer", "!list .\n---\n!say The chart is **right**.", session="create")
    )
    await ada.rests()
    block = ada.log.locator(".work").first
    await expect(block).to_contain_text("Wrote to Reviewer")
    await expect(block).to_contain_text("answered")
    await open_block(block)
    await expect(block.locator("strong")).to_have_text("right")
    await expect(block).to_contain_text("1 tool call")
    await block.get_by_role("button", name="Show what Reviewer did").click()
    await expect(ada.page.get_by_role("region", name="What Reviewer does")).to_contain_text("Listed")
    await block.get_by_role("link", name="Open its conversation").click()
    await expect(ada.page).not_to_have_url(re.compile(root))
    await expect(ada.log.get_by_role("link", name="Coordinator")).to_have_attribute("href", f"/c/{root}")
    await expect(ada.page.get_by_role("link", name="Asked by Charts")).to_be_visible()


async def test_answer_of_a_busy_agent_comes_back_as_its_own_and_is_joined_with_the_message(
    ada: Visitor, provider: ScriptedProvider
) -> None:
    busy = await begin(ada, "Busy", "!say Soon.\n!gate ebb", agent="reviewer")
    await provider.gates.reached("ebb")
    await begin(ada, "Flood", letter("reviewer", "!say At six.", session=busy))
    block = ada.log.locator(".work").first
    await expect(block).to_contain_text("queued: it is busy")
    await ada.rests()
    await open_block(block)
    await expect(block).to_contain_text("The answer will come back by itself")

    waiting = ada.page
    await ada.open(busy)
    await expect(ada.queue).to_contain_text("Message of Coordinator")
    await expect(ada.queue.get_by_role("button", name="Edit queued message")).to_have_count(0)
    await waiting.go_back()
    provider.gates.open("ebb")
    answer = ada.log.locator(".agent-callback")
    await expect(answer).to_contain_text("Answer of Reviewer")
    await expect(answer).to_contain_text("At six.")
    await ada.rests()
    for _ in ("as it happened", "after a reload"):
        await expect(answer).to_contain_text("At six.")
        await expect(block).to_contain_text("answered")
        await ada.page.reload()
    await expect(ada.row(re.compile("^You, "))).to_have_count(1)
    await answer.get_by_role("link", name="To the message").click()
    await expect(ada.page).to_have_url(re.compile("#m="))


async def test_idle_prompt_is_a_quiet_line_that_opens(visitors: Visitors) -> None:
    record = Record("idle")
    record.created(title="Watch")
    words = "Look at the tide table.\nSay nothing when it is as yesterday."
    record.add(MessageAdded(message="m1", content=as_content(words), event_kind="idle_prompt", turn="t1"))
    async with Player(record.lines).serving() as player:
        player.head = len(player.lines)
        visitor = await visitors.stranger(player.url)
        await visitor.open(player.conversation)
        row = visitor.row("Idle prompt")
        await expect(row).to_contain_text("Look at the tide table.")
        await expect(visitor.row(re.compile("^You"))).to_have_count(0)
        await row.get_by_role("button").press("Enter")
        await expect(row).to_contain_text("Say nothing when it is as yesterday.")
        await visitor.page.close()


# -- looks


async def everything(visitor: Visitor, provider: ScriptedProvider, gate: str) -> str:
    """Two subagents at work, one with its own, one that asks; a message that was answered. All opened."""
    deep = task("!say I count the shells on the beach, one by one.\n!list .\n---\n!say 214 shells.", "builder")
    conversation = await begin(
        visitor,
        "The harbour at night",
        letter("reviewer", "!list .\n---\n!say The plan is fine. Mind the *second* buoy.", session="create"),
        "---",
        task(f"!say First I look at what is there.\n{deep}\n---\n!say The lamp needs oil.\n!gate {gate}", "builder"),
        task("!say I would like to write that down.\n!shell echo 'oil for the lamp' >> list.txt", "careful"),
    )
    await provider.gates.reached(gate)
    await expect(visitor.approval).to_be_visible()
    await open_block(visitor.log.locator(".work").first)
    await open_block(subagent(visitor, "Builder"))
    await expect(visitor.log.get_by_text("The lamp needs oil.", exact=True)).to_be_visible()
    return conversation


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_agents_at_work_look_well_everywhere(
    visitors: Visitors, palaver: Palaver, provider: ScriptedProvider, size: str
) -> None:
    ada = await visitors.owner(palaver.url, palaver.token, *([PHONE] if size == "phone" else []))
    conversation = await everything(ada, provider, f"looks-{size}")
    strip = ada.page.get_by_role("region", name="Subagents")
    await look(ada, f"tree-{size}")
    await strip.get_by_role("button").first.click()
    await look(ada, f"strip-{size}")
    await ada.go("/waiting")
    await expect(ada.page.get_by_role("region", name="Approval needed").first).to_be_visible()
    await look(ada, f"inbox-{size}")
    await ada.page.get_by_role("button", name="Deny").first.click()
    await expect(ada.page.get_by_text("Denied · by you")).to_be_visible()
    await look(ada, f"inbox-over-{size}")
    provider.gates.open(f"looks-{size}")
    await ada.open(conversation)
    await ada.rests()
    await look(ada, f"done-{size}")


async def look(visitor: Visitor, name: str) -> None:
    for scheme in SCHEMES:
        findings = await axe_findings(visitor.page, scheme)
        await picture(visitor.page, f"together/{name}-{scheme}", scheme)
        assert not findings, f"{name}, {scheme}:\n" + "\n".join(findings)
    await fits(visitor.page)
