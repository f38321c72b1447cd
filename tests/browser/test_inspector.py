"""The event inspector: the log as it is stored, the conversation as it stood at any event, live and held."""

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Route, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture, shown_in_passing
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, UNHURRIED_MS, Visitor, Visitors

GOLDEN = Path(__file__).parents[1] / "golden"


async def brought(visitor: Visitor, name: str) -> tuple[str, int]:
    """A golden log as a conversation of this server: its id, and how many events it has."""
    answer = await visitor.request.post(
        f"{visitor.url}/api/conversations/import?format=jsonl",
        data=(GOLDEN / f"{name}.jsonl").read_bytes(),
        headers={"content-type": "application/octet-stream"},
    )
    assert answer.ok, await answer.text()
    made = await answer.json()
    return made["conversation"], made["seq"]


async def stored(visitor: Visitor, conversation: str) -> list[str]:
    answer = await visitor.request.get(f"{visitor.url}/api/conversations/{conversation}/export?format=jsonl")
    return (await answer.text()).splitlines()


def log_of(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("listbox", name="Log")


def condition(visitor: Visitor, words: str | re.Pattern[str]) -> Locator:
    return visitor.page.get_by_role("status").filter(has_text=words)


def slider(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("slider", name="Moment")


async def inspect(visitor: Visitor, conversation: str, at: int | None = None) -> None:
    await visitor.go(f"/inspect/{conversation}" + (f"?at={at}" if at else ""))
    await expect(log_of(visitor).get_by_role("option").first).to_be_visible()
    await expect(condition(visitor, re.compile("Live|Paused"))).to_be_visible()


async def test_menu_of_a_conversation_opens_its_log_at_the_latest_event(ada: Visitor) -> None:
    await ada.begin("Which plants like shade?")
    await ada.rests()
    await ada.page.get_by_role("button", name="Conversation actions").click()
    await ada.page.get_by_role("menuitem", name="Inspect events").click()
    await expect(condition(ada, "Live")).to_be_visible()
    await expect(log_of(ada).get_by_role("option").filter(has_text="turn.finished")).to_be_visible()
    transcript = ada.page.get_by_role("region", name="Transcript")
    await expect(transcript).to_contain_text("You said: Which plants like shade?")


async def test_slider_shows_the_conversation_as_it_stood_and_reload_keeps_the_moment(ada: Visitor) -> None:
    conversation, head = await brought(ada, "long")
    lines = [json.loads(line) for line in await stored(ada, conversation)]
    answer = next(event["seq"] for event in lines if event["type"] == "text.finished")
    await inspect(ada, conversation)
    transcript = ada.page.get_by_role("region", name="Transcript")
    await slider(ada).focus()
    await ada.press("Home")
    await expect(condition(ada, f"Paused at 1 of {head}")).to_be_visible()
    await expect(transcript).to_contain_text("Nothing was said yet")
    await inspect(ada, conversation, answer)
    await expect(condition(ada, f"Paused at {answer} of {head}")).to_be_visible()
    await expect(transcript.locator(".md")).to_have_count(1)
    said = await transcript.inner_text()
    assert said
    await ada.press("F6")
    await ada.page.get_by_role("button", name="One event later").click()
    await expect(condition(ada, f"Paused at {answer + 1} of {head}")).to_be_visible()
    await ada.page.get_by_role("button", name="One event earlier").click()
    await expect(ada.page).to_have_url(re.compile(rf"at={answer}$"))
    await ada.page.reload()
    await expect(condition(ada, f"Paused at {answer} of {head}")).to_be_visible()
    await expect(transcript.locator(".md")).to_have_count(1)
    await expect(transcript).to_have_text(said, use_inner_text=True)
    await ada.page.get_by_role("button", name="Follow live").click()
    await expect(condition(ada, "Live")).to_be_visible()
    await expect(slider(ada)).to_have_attribute("aria-valuetext", re.compile(f"^Event {head} of {head}"))


async def test_type_filters_the_log_and_what_is_listed_is_copied_as_stored(ada: Visitor) -> None:
    conversation, _ = await brought(ada, "requests")
    lines = await stored(ada, conversation)
    await ada.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await inspect(ada, conversation)
    await ada.page.get_by_label("Type of event").select_option("request.")
    wanted = [line for line in lines if json.loads(line)["type"].startswith("request.")]
    await expect(log_of(ada).get_by_role("option")).to_have_count(len(wanted))
    async with shown_in_passing(ada.page, "button", "Copied"):
        await ada.page.get_by_role("button", name="Copy what is listed").click()
    assert (await ada.page.evaluate("navigator.clipboard.readText()")).splitlines() == wanted

    await log_of(ada).get_by_role("option").first.click()
    await expect(ada.page.get_by_role("button", name="Copied")).to_have_count(0)
    await ada.page.get_by_role("button", name="Event", exact=True).click()
    event = ada.page.get_by_role("region", name="Event", exact=True)
    async with shown_in_passing(ada.page, "button", "Copied"):
        await event.get_by_role("button", name="Copy this event as JSON").click()
    assert await ada.page.evaluate("navigator.clipboard.readText()") == wanted[0]


async def test_held_moment_stays_while_the_log_grows_and_live_follows_it(
    ada: Visitor, palaver: Palaver, visitors: Visitors
) -> None:
    conversation = await ada.begin("First")
    await ada.rests()
    bob = await visitors.owner(palaver.url, palaver.token)
    await inspect(bob, conversation, 3)
    await expect(condition(bob, re.compile("Paused at 3 of"))).to_be_visible()
    await ada.send("Second")
    await expect(ada.log).to_contain_text("You said: Second")
    await ada.rests()
    lines = await stored(ada, conversation)
    # At rest it may still grow by what is kept of a draft, but never lose anything.
    await bob.page.wait_for_function(
        """head => [...document.querySelectorAll("[role=status]")].some(
            one => /Paused at 3 of (\\d+)/.exec(one.textContent)?.[1] >= head)""",
        arg=len(lines),
    )
    await bob.page.get_by_role("button", name="Follow live").click()
    await expect(bob.page.get_by_role("region", name="Transcript")).to_contain_text("You said: Second")


async def test_log_walks_by_keyboard(ada: Visitor) -> None:
    conversation, head = await brought(ada, "long")
    await inspect(ada, conversation)
    await log_of(ada).focus()
    await ada.press("Home")
    await expect(condition(ada, f"Paused at 1 of {head}")).to_be_visible()
    await ada.press("ArrowDown", "ArrowDown")
    await expect(condition(ada, f"Paused at 3 of {head}")).to_be_visible()
    await ada.press("End")
    await expect(condition(ada, f"Paused at {head} of {head}")).to_be_visible()


async def test_gap_is_shown_where_events_are_missing_and_the_view_goes_on_behind_it(ada: Visitor) -> None:
    conversation, head = await brought(ada, "long")
    lines = await stored(ada, conversation)
    answer = await ada.request.get(f"{ada.url}/api/conversations/{conversation}/snapshot?tail=1000")
    cut = 40
    frames = [f"id: {seq}\ndata: {line}\n\n" for seq, line in enumerate(lines[:cut], 1)]
    snapshot = {"type": "snapshot", "conversation": conversation, "seq": head, "reason": "behind", "epoch": "e"}
    told = json.dumps({**snapshot, "state": await answer.json()})
    frames.append(f"event: snapshot\nid: {head}\ndata: {told}\n\n: caught up at {head}\n\n")

    async def with_a_gap(route: Route) -> None:
        await route.fulfill(status=200, content_type="text/event-stream", body="".join(frames))

    await ada.page.route(re.compile(r"/events\?after=0"), with_a_gap)
    await ada.go(f"/inspect/{conversation}")
    gap = log_of(ada).get_by_role("option", name=f"Events {cut + 1} to {head} are not here one by one")
    await expect(gap).to_be_visible()
    # The stream has ended, as a lost one does, and is taken up where it was.
    await expect(condition(ada, "Live")).to_be_visible()
    await picture(ada.page, "inspector-gap")
    assert not await axe_findings(ada.page, "light")
    await gap.click()
    await expect(condition(ada, f"Paused at {head} of {head}")).to_be_visible()
    await expect(ada.page.get_by_role("region", name="Transcript")).to_contain_text("Only the beans")


async def test_lost_connection_is_said_and_taken_up_again(palaver: Palaver, visitors: Visitors) -> None:
    visitors.complaints.expect("ERR_", "WebSocket connection")
    ada = await visitors.owner(palaver.url, palaver.token)
    conversation, head = await brought(ada, "work")
    await inspect(ada, conversation)
    await palaver.stop()
    await expect(condition(ada, "No connection. Trying again")).to_have_count(2)
    await picture(ada.page, "inspector-lost")
    await palaver.start()
    await expect(condition(ada, "Live")).to_be_visible(timeout=UNHURRIED_MS)
    await expect(slider(ada)).to_have_attribute("aria-valuetext", re.compile(f"^Event {head} of {head}"))


async def test_unknown_conversation_is_said_in_words(ada: Visitor) -> None:
    ada.complaints.expect("status of 404")
    await ada.go("/inspect/nowhere")
    await expect(ada.page.get_by_role("alert")).to_contain_text("There is no such conversation")


@pytest.mark.parametrize("size", [(1280, 900), PHONE], ids=["desktop", "phone"])
async def test_inspector_is_clean_for_axe_and_fits(palaver: Palaver, visitors: Visitors, size: tuple[int, int]) -> None:
    ada = await visitors.owner(palaver.url, palaver.token, size)
    conversation, head = await brought(ada, "long")
    await ada.go(f"/inspect/{conversation}?at={head // 2}")
    await expect(condition(ada, "Paused at")).to_be_visible()
    panes = ("Transcript", "State", "Event") if size != PHONE else ("Log", "Transcript", "State", "Event")
    for pane in panes:
        button = ada.page.get_by_role("group", name="What is shown").get_by_role("button", name=pane, exact=True)
        await button.click()
        await expect(button).to_have_attribute("aria-pressed", "true")
        for scheme in SCHEMES:
            findings = await axe_findings(ada.page, scheme)
            await picture(ada.page, f"inspector-{pane.lower()}-{size[0]}-{scheme}", scheme)
            assert not findings, f"{pane}, {scheme}:\n" + "\n".join(findings)
        await fits(ada.page)
