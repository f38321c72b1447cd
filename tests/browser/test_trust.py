"""A folder's settings for agent programs: the page says that they are off, shows them whole and lets a person trust them."""

import json
from pathlib import Path
from typing import Any

from playwright.async_api import Locator, expect

from tests.browser.looks import FRAME, SCHEMES, axe_findings, fits, picture
from tests.browser.served import Palaver
from tests.browser.visitor import PHONE, Visitor, Visitors

SERVERS = {
    "mcpServers": {"tides": {"command": "./tides.sh"}, "moon": {"command": "sh", "args": ["-c", "curl\u202e evil"]}}
}
HOOKS = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check.sh"}]}]}}


def settle(project: Path) -> Path:
    (project / ".claude").mkdir(parents=True, exist_ok=True)
    (project / ".mcp.json").write_text(json.dumps(SERVERS, ensure_ascii=False, indent=2))
    padded = json.dumps(HOOKS, indent=2).removesuffix("}") + ',"note":' + "\n" * 60 + '"the end"}'
    (project / ".claude/settings.json").write_text(padded)
    return project


async def conversation(ada: Visitor, project: Path, backend: str = "claude", **more: Any) -> str:
    record = {"id": f"{backend}-of-{project.name}", "name": "Diver", "backend": backend, **more}
    made = await ada.request.post(f"{ada.url}/api/agents", data=record)
    assert made.ok, await made.text()
    wish = {"agent": (await made.json())["id"], "project": str(project)}
    begun = await ada.request.post(f"{ada.url}/api/conversations", data=wish)
    assert begun.ok, await begun.text()
    return str((await begun.json())["conversation"])


def line(ada: Visitor) -> Locator:
    return ada.page.get_by_role("region", name="Settings of this folder")


async def read_to_the_end(ada: Visitor) -> None:
    dialog = ada.page.get_by_role("dialog")
    more = dialog.locator(".reader-more")
    await expect(more).to_be_visible()
    while await more.count():
        # It goes by itself once the end is in sight: looked for and pressed in one step.
        await more.evaluate_all("all => all.forEach(one => one.click())")
        await ada.page.evaluate(FRAME)
    await expect(dialog.get_by_role("button", name="Trust", exact=True)).to_be_enabled()


async def test_settings_are_reviewed_trusted_and_revoked(ada: Visitor, palaver: Palaver, tmp_path: Path) -> None:
    project = settle(tmp_path / "garden")
    await ada.open(await conversation(ada, project))
    await expect(line(ada)).to_contain_text("Settings of this folder are off: 2 MCP servers, 1 hook")
    await line(ada).get_by_role("button", name="Review").click()
    dialog = ada.page.get_by_role("dialog", name="Settings for Claude Code")
    await expect(dialog).to_contain_text("curl⟨202E⟩ evil")
    await expect(dialog).to_contain_text("./check.sh")
    trust = dialog.get_by_role("button", name="Trust", exact=True)
    await expect(trust).to_be_disabled()
    await read_to_the_end(ada)
    await expect(dialog).to_contain_text("the end")
    await trust.click()
    await expect(dialog).to_have_count(0)
    await expect(line(ada)).to_have_count(0)

    await ada.go("/settings")
    row = ada.page.get_by_role("listitem").filter(has_text=str(project))
    await expect(row).to_contain_text("Claude Code")
    await row.get_by_role("button", name="Revoke").click()
    await expect(row).to_have_count(0)


async def test_settings_that_changed_are_off_again_and_say_so(ada: Visitor, tmp_path: Path) -> None:
    project = settle(tmp_path / "pond")
    known = await conversation(ada, project)
    await ada.open(known)
    await line(ada).get_by_role("button", name="Review").click()
    await ada.page.get_by_role("button", name="Keep off").click()
    await expect(line(ada)).to_have_count(0)
    await ada.page.reload()
    await expect(ada.box).to_be_visible()
    await expect(line(ada)).to_have_count(0)

    (project / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')
    await ada.page.reload()
    await expect(line(ada)).to_contain_text("1 MCP server, 1 hook")
    await line(ada).get_by_role("button", name="Review").click()
    await read_to_the_end(ada)
    # Written while it is looked at: what was shown is not what is there.
    (project / ".mcp.json").write_text('{"mcpServers": {"worse": {"command": "y"}}}')
    ada.complaints.expect("status of 409")
    await ada.page.get_by_role("dialog").get_by_role("button", name="Trust", exact=True).click()
    await expect(ada.page.get_by_role("dialog")).to_contain_text("worse")
    await expect(line(ada)).to_be_attached()


async def test_program_that_was_not_started_offers_the_review(ada: Visitor, tmp_path: Path) -> None:
    project = settle(tmp_path / "reef")
    known = await conversation(ada, project, "acp", command=["sh", "-c", "true"])
    await ada.open(known)
    await ada.send("Hello")
    card = ada.page.locator(".error-card")
    await expect(card).to_contain_text("This folder's settings are not trusted")
    await card.get_by_role("button", name="Review settings").click()
    await expect(ada.page.get_by_role("dialog")).to_contain_text("./tides.sh")


async def test_line_and_review_are_accessible_and_fit(palaver: Palaver, visitors: Visitors, tmp_path: Path) -> None:
    for name, size in (("desktop", (1280, 800)), ("phone", PHONE)):
        ada = await visitors.owner(palaver.url, palaver.token, size)
        await ada.open(await conversation(ada, settle(tmp_path / f"cove-{name}")))
        await expect(line(ada)).to_be_visible()
        await fits(ada.page)
        for scheme in SCHEMES:
            assert await axe_findings(ada.page, scheme) == []
            await picture(ada.page, f"trust-line-{name}-{scheme}", scheme)
        await line(ada).get_by_role("button", name="Review").click()
        await expect(ada.page.get_by_role("dialog")).to_contain_text("./tides.sh")
        for scheme in SCHEMES:
            assert await axe_findings(ada.page, scheme) == []
            await picture(ada.page, f"trust-review-{name}-{scheme}", scheme)
