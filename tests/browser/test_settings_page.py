"""The settings of a device: they hold at once, outlive a reload, and what is always allowed can be taken back."""

import re

from playwright.async_api import Request, Route, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, Visitor, Visitors


async def looks(ada: Visitor, **wanted: str | None) -> None:
    html = ada.page.locator("html")
    for name, value in wanted.items():
        if value is None:
            await expect(html).not_to_have_attribute(f"data-{name}", re.compile(""))
        else:
            await expect(html).to_have_attribute(f"data-{name}", value)


async def test_looks_hold_at_once_and_after_a_reload(ada: Visitor) -> None:
    await ada.go("/settings")
    for choice in ("Dark", "Compact", "None"):
        await ada.page.get_by_role("radio", name=choice, exact=True).check()
    await looks(ada, theme="dark", density="compact", motion="less")
    await ada.page.reload()
    await expect(ada.page.get_by_role("radio", name="Compact")).to_be_checked()
    await looks(ada, theme="dark", density="compact", motion="less")
    await ada.page.get_by_role("radio", name="Roomy").check()
    await ada.page.get_by_role("radio", name="Light").check()
    await looks(ada, theme="light", density=None, motion="less")


async def test_what_is_always_allowed_is_taken_back(ada: Visitor) -> None:
    await ada.begin("!shell touch always.txt")
    await ada.asked()
    await ada.approval.get_by_role("button", name="Always").click()
    await ada.page.get_by_role("radio", name="for this agent, everywhere").check()
    await ada.page.get_by_role("button", name="Always allow").click()
    await ada.rests()
    await ada.go("/settings")
    grant = ada.page.get_by_role("main").get_by_role("listitem").filter(has_text="touch always.txt")
    await expect(grant).to_contain_text("for the agent")
    await grant.get_by_role("button", name=re.compile("^Ask again before")).click()
    await expect(grant).to_have_count(0)
    await expect(ada.page.get_by_text("Nothing. When you answer")).to_be_visible()


# A browser without a window has no voice; this one notes what it is told to say.
VOICE = """
window.said = [];
Object.defineProperty(window, "speechSynthesis", {
  value: {
    speak(utterance) {
      window.said.push(utterance.text);
      setTimeout(() => utterance.onend());
    },
    cancel() {},
  },
});
"""


async def test_answers_are_read_aloud_once_that_is_switched_on(ada: Visitor) -> None:
    asked: list[str] = []

    async def no_voice(route: Route, request: Request) -> None:
        body = request.post_data_json
        assert body is not None
        asked.append(body["text"])
        await route.fulfill(status=404, json={"code": "not_found", "message": "Nothing can speak."})

    await ada.page.add_init_script(VOICE)
    await ada.page.route("**/api/speech", no_voice)
    ada.complaints.expect("status of 404")
    await ada.begin("!say Not this one.")
    await ada.rests()
    await ada.command("read answers aloud")
    await expect(ada.page.locator(".aloud")).to_be_attached()
    await ada.send("!say First **sentence**. Second one!\\n\\n```sh\\nrm nothing\\n```\\n\\nThe end")
    await ada.rests()
    await ada.page.wait_for_function("() => window.said.length === 3")
    assert await ada.page.evaluate("window.said") == ["First sentence.", "Second one!", "The end"]
    # Asked once, the server is known to have no voice.
    assert asked == ["First sentence."]

    await ada.page.reload()
    await expect(ada.row(re.compile("^Agent")).last).to_contain_text("The end")
    # It is loaded after the first picture, and reads what comes from then on.
    await expect(ada.page.locator(".aloud")).to_be_attached()
    await ada.send("!say Again.")
    await ada.page.wait_for_function("() => window.said.includes('Again.')")
    await ada.command("stop reading")
    await expect(ada.page.locator(".aloud")).to_have_count(0)
    await ada.send("!say Silence.")
    await expect(ada.row(re.compile("^Agent")).last).to_contain_text("Silence.")
    await ada.rests()
    assert await ada.page.evaluate("window.said") == ["Again."]


async def test_settings_have_no_barriers(visitors: Visitors, palaver: Palaver) -> None:
    for name, size in (("wide", (1280, 900)), ("phone", PHONE)):
        visitor = await visitors.owner(palaver.url, palaver.token, size)
        await visitor.go("/settings")
        await expect(visitor.page.get_by_role("heading", name="Always allowed")).to_be_visible()
        await fits(visitor.page)
        for scheme in SCHEMES:
            assert await axe_findings(visitor.page, scheme) == []
            await picture(visitor.page, f"settings-page-{name}-{scheme}", scheme)
