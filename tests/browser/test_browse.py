"""The session browser: every conversation with its state, filtered and looked into, renamed, put away, brought back, deleted."""

import re

import pytest
from playwright.async_api import Locator, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, Visitor, Visitors
from tests.provider.server import ScriptedProvider


def rows(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("main").locator("a[data-id]")


def row(visitor: Visitor, title: str) -> Locator:
    return rows(visitor).filter(has_text=title)


def preview(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("region", name=re.compile("^Preview of"))


async def made(visitor: Visitor, title: str, message: str, *, rests: bool = True, **fields: object) -> str:
    """A conversation with a title, by the API; its id. At rest its row stays where it is, before all that were made earlier."""
    answer = await visitor.request.post(
        f"{visitor.url}/api/conversations", data={"title": title, "message": message, **fields}
    )
    assert answer.ok, await answer.text()
    conversation = str((await answer.json())["conversation"])
    if rests:
        await visitor.has_rested(conversation)
    return conversation


async def test_conversation_is_looked_into_renamed_put_away_and_brought_back(ada: Visitor) -> None:
    await made(ada, "Heather", "!say It likes sour ground.")
    await ada.go("/conversations")
    await row(ada, "Heather").click()
    await expect(preview(ada)).to_contain_text("It likes sour ground.")
    await preview(ada).get_by_role("button", name="Actions for Heather").click()
    await ada.page.get_by_role("menuitem", name="Rename").click()
    field = preview(ada).get_by_role("textbox", name="Title")
    await field.fill("Ling")
    await field.press("Enter")
    await expect(row(ada, "Ling")).to_be_visible()
    await preview(ada).get_by_role("button", name="Undo").click()
    await expect(row(ada, "Heather")).to_be_visible()

    await preview(ada).get_by_role("button", name="Archive").click()
    await expect(row(ada, "Heather")).to_have_count(0)
    await expect(preview(ada).get_by_role("status")).to_contain_text("“Heather” was archived.")
    await preview(ada).get_by_role("button", name="Undo").click()
    await expect(row(ada, "Heather")).to_be_visible()
    await preview(ada).get_by_role("button", name="Archive").click()
    await expect(row(ada, "Heather")).to_have_count(0)
    await ada.page.get_by_label("State").select_option("archived")
    await expect(row(ada, "Heather")).to_contain_text("archived")
    await preview(ada).get_by_role("button", name="Bring back").click()
    await ada.page.get_by_label("State").select_option("open")
    await expect(row(ada, "Heather")).to_be_visible()


async def test_conversation_is_deleted_only_after_a_question(ada: Visitor) -> None:
    await made(ada, "Thistle", "!say It stings.")
    await ada.go("/conversations")
    await row(ada, "Thistle").click()
    for answer in ("Cancel", "Delete"):
        await preview(ada).get_by_role("button", name="Actions for Thistle").click()
        await ada.page.get_by_role("menuitem", name="Delete").click()
        dialog = ada.page.get_by_role("dialog", name="Delete this conversation?")
        await dialog.get_by_role("button", name=answer, exact=True).click()
        await expect(dialog).to_have_count(0)
        if answer == "Cancel":
            await expect(row(ada, "Thistle")).to_be_visible()
    await expect(row(ada, "Thistle")).to_have_count(0)
    await expect(preview(ada)).to_have_count(0)


async def test_states_and_filters_show_what_is_asked_for(
    ada: Visitor, palaver: Palaver, provider: ScriptedProvider
) -> None:
    other = palaver.folder / "other"
    other.mkdir(exist_ok=True)
    await made(ada, "Resting", "!say Done.", project=str(other))
    await made(ada, "Broken", "!status 403")
    await made(ada, "Asking", "!write seed.txt x", rests=False)
    await made(ada, "Running", "!say Soon.\n!gate bloom", rests=False)
    await provider.gates.reached("bloom")
    try:
        await ada.go("/conversations")
        await expect(row(ada, "Asking")).to_contain_text("waits for you")
        await expect(row(ada, "Running")).to_contain_text("working")
        await expect(row(ada, "Broken")).to_contain_text("failed")
        await expect(row(ada, "Resting")).to_contain_text("Done.")
        groups = ada.page.get_by_role("main").get_by_role("heading", level=2)
        await expect(groups).to_contain_text(["Waiting for you", "Active", "Today"])
        for scheme in SCHEMES:
            await picture(ada.page, f"browse-states-{scheme}", scheme)
        for state, title in (("waiting", "Asking"), ("running", "Running"), ("failed", "Broken")):
            await ada.page.get_by_label("State").select_option(state)
            await expect(rows(ada)).to_have_count(1)
            await expect(rows(ada)).to_contain_text(title)
        await ada.page.get_by_label("State").select_option("open")
        await ada.page.get_by_label("Folder").select_option(str(other))
        await expect(rows(ada)).to_have_count(1)
        await expect(rows(ada)).to_contain_text("Resting")
        await ada.page.get_by_label("Title or words").fill("nothing of the kind")
        await expect(ada.page.get_by_role("heading", name="Nothing fits these filters")).to_be_visible()
        await picture(ada.page, "browse-none")
        await ada.page.get_by_role("button", name="Clear filters").click()
        await expect(row(ada, "Broken")).to_be_visible()
    finally:
        provider.gates.open("bloom")


async def test_list_is_walked_by_keyboard_and_opened(ada: Visitor) -> None:
    await made(ada, "Alder", "!say First tree.")
    await made(ada, "Birch", "!say Second tree.")
    await ada.go("/conversations")
    await row(ada, "Birch").press("Enter")
    await expect(preview(ada)).to_contain_text("Second tree.")
    await ada.press("ArrowDown")
    await expect(preview(ada)).to_contain_text("First tree.")
    await preview(ada).get_by_role("button", name="Open", exact=True).press("Enter")
    await expect(ada.log).to_contain_text("First tree.")


async def test_conversation_opens_in_a_new_tab(ada: Visitor) -> None:
    conversation = await made(ada, "Willow", "!say By the water.")
    await ada.go(f"/conversations/{conversation}")
    async with ada.page.context.expect_page() as opening:
        await preview(ada).get_by_role("link", name="Open in a new tab").click()
    tab = await opening.value
    await expect(tab.get_by_role("log")).to_contain_text("By the water.")
    await expect(tab).to_have_url(f"{ada.url}/c/{conversation}")
    await tab.close()

    await ada.list.or_(ada.page.get_by_role("banner")).first.wait_for()
    await ada.go(f"/c/{conversation}")
    await ada.list.get_by_role("button", name="Actions for Willow").click()
    async with ada.page.context.expect_page() as opening:
        await ada.page.get_by_role("menuitem", name="Open in a new tab").click()
    tab = await opening.value
    await expect(tab.get_by_role("log")).to_contain_text("By the water.")
    await tab.close()


@pytest.mark.parametrize("size", [(1280, 900), PHONE], ids=["desktop", "phone"])
async def test_browser_is_clean_for_axe_and_fits(palaver: Palaver, visitors: Visitors, size: tuple[int, int]) -> None:
    ada = await visitors.owner(palaver.url, palaver.token, size)
    fern, moss = f"Fern {size[0]}", f"Moss {size[0]}"
    conversation = await made(ada, fern, "!markdown\n!read seed.txt")
    await made(ada, moss, "!say Soft.")
    for path in ("/conversations", f"/conversations/{conversation}"):
        await ada.go(path)
        await expect(row(ada, fern) if path == "/conversations" else preview(ada)).to_contain_text(fern)
        if path != "/conversations":
            await expect(preview(ada)).to_contain_text("Results:")
        for scheme in SCHEMES:
            findings = await axe_findings(ada.page, scheme)
            await picture(ada.page, f"browse-{path.count('/')}-{size[0]}-{scheme}", scheme)
            assert not findings, f"{path}, {scheme}:\n" + "\n".join(findings)
        await fits(ada.page)
    if size == PHONE:
        await ada.page.get_by_role("link", name="Back to the list").click()
        await expect(row(ada, moss)).to_be_visible()
