"""A conversation as a file: made with its progress, saved, shared, or refused as too large with what to do instead."""

import json
from pathlib import Path

import pytest
from playwright.async_api import Locator, Route, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, Visitor, Visitors


def dialog(visitor: Visitor) -> Locator:
    return visitor.page.get_by_role("dialog", name="Export conversation")


async def offered(visitor: Visitor, text: str = "!say Rain is *wet*. <script>alert(1)</script>") -> str:
    conversation = await visitor.begin(text)
    await visitor.rests()
    await visitor.page.get_by_role("button", name="Conversation actions").click()
    await visitor.page.get_by_role("menuitem", name="Export").click()
    await expect(dialog(visitor)).to_be_visible()
    return conversation


async def saved(visitor: Visitor, folder: Path) -> Path:
    async with visitor.page.expect_download() as downloading:
        await dialog(visitor).get_by_role("link", name="Save").click()
    download = await downloading.value
    path = folder / download.suggested_filename
    await download.save_as(path)
    return path


async def test_page_of_a_conversation_is_one_file_without_scripts(
    ada: Visitor, visitors: Visitors, tmp_path: Path
) -> None:
    await offered(ada)
    await dialog(ada).get_by_role("button", name="Make the file").click()
    await expect(dialog(ada).get_by_role("status").first).to_contain_text(".html")
    path = await saved(ada, tmp_path)
    assert path.suffix == ".html"
    reader = await visitors.stranger("")
    asked: list[str] = []
    reader.page.on("request", lambda request: asked.append(request.url))
    await reader.page.goto(path.as_uri())
    await expect(reader.page.locator("em")).to_have_text("wet")
    await expect(reader.page.locator("script")).to_have_count(0)
    assert asked == [path.as_uri()]
    assert not await axe_findings(reader.page, "light")
    await picture(reader.page, "share-page")


@pytest.mark.parametrize(("format", "ending"), [("Markdown", ".md"), ("Event log", ".jsonl"), ("Trajectory", ".json")])
async def test_each_format_becomes_its_file(ada: Visitor, tmp_path: Path, format: str, ending: str) -> None:
    await offered(ada)
    await dialog(ada).get_by_role("radio", name=format).check()
    await dialog(ada).get_by_role("button", name="Make the file").click()
    path = await saved(ada, tmp_path)
    assert path.suffix == ending
    assert "Rain is" in path.read_text()
    if ending == ".jsonl":
        assert json.loads(path.read_text().splitlines()[0])["seq"] == 1


async def test_what_is_too_large_is_said_and_the_log_is_made_instead(ada: Visitor, tmp_path: Path) -> None:
    ada.complaints.expect("status of 413")
    await offered(ada)

    async def refused(route: Route) -> None:
        words = "The texts of this conversation take 70,000,000 bytes, too much for one document. Export it as `jsonl`."
        await route.fulfill(status=413, json={"code": "too_large", "message": words, "retryable": False})

    await ada.page.route("**/export?format=html", refused)
    await dialog(ada).get_by_role("button", name="Make the file").click()
    await expect(dialog(ada).get_by_role("alert")).to_contain_text("Too large for one file")
    for scheme in SCHEMES:
        await picture(ada.page, f"share-too-large-{scheme}", scheme)
        assert not await axe_findings(ada.page, scheme)
    await dialog(ada).get_by_role("button", name="Make the event log instead").click()
    assert (await saved(ada, tmp_path)).suffix == ".jsonl"


async def test_preparing_can_be_called_off(ada: Visitor) -> None:
    await offered(ada)
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)

    await ada.page.route("**/export?format=html", hold)
    await dialog(ada).get_by_role("button", name="Make the file").click()
    await expect(dialog(ada).get_by_role("status")).to_contain_text("Preparing")
    await picture(ada.page, "share-preparing")
    await dialog(ada).get_by_role("button", name="Cancel").click()
    await expect(dialog(ada).get_by_role("button", name="Make the file")).to_be_visible()


@pytest.mark.parametrize("size", [(1280, 900), PHONE], ids=["desktop", "phone"])
async def test_export_is_clean_for_axe_and_fits(palaver: Palaver, visitors: Visitors, size: tuple[int, int]) -> None:
    ada = await visitors.owner(palaver.url, palaver.token, size)
    await offered(ada)
    for step in ("choosing", "ready"):
        if step == "ready":
            await dialog(ada).get_by_role("button", name="Make the file").click()
            await expect(dialog(ada).get_by_role("link", name="Save")).to_be_visible()
        for scheme in SCHEMES:
            findings = await axe_findings(ada.page, scheme)
            await picture(ada.page, f"share-{step}-{size[0]}-{scheme}", scheme)
            assert not findings, f"{step}, {scheme}:\n" + "\n".join(findings)
        await fits(ada.page)
