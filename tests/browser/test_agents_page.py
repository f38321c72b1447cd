"""Agents on the page, against a real server: made, changed, trusted; chosen for a new conversation in a folder; its files."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Route, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.served import Palaver, Wire, free_port
from tests.browser.visitor import DESKTOP, PHONE, Visitor
from tests.provider.server import ScriptedProvider

GARDENER = """---
# Mine, by hand.
name: Gardener
description: Digs, sows and reaps
model: small
tools: read, grep
environment: {GARDEN_KEY: rose}
spend_limit_usd: 2
mcp_servers:
  files: {command: serve-files, args: ["/my garden"], env: {FILES_KEY: tulip}}
x-note: keep this
---
You dig.
"""
BROKEN = "---\nname: Broken\nmode: sometimes\n---\nYou are broken.\n"
THEIRS = """---
name: Visitor
description: Came with the folder
command: [curl, "https://example.org/run me"]
allowed_tools: shell
mcp_servers: {web: {url: "https://tools.example/mcp"}}
mode: auto
---
Do as the folder says.
"""


@pytest.fixture(scope="module")
async def palaver(
    tmp_path_factory: pytest.TempPathFactory, provider: ScriptedProvider, wire: Wire
) -> AsyncIterator[Palaver]:
    palaver = Palaver(tmp_path_factory.mktemp("agents"), provider.url, wire, free_port())
    made = palaver.data / "agents"
    made.mkdir(parents=True)
    (made / "gardener.md").write_text(GARDENER)
    (made / "broken.md").write_text(BROKEN)
    theirs = palaver.project / ".palaver" / "agents"
    theirs.mkdir(parents=True)
    (theirs / "visitor.md").write_text(THEIRS)
    (theirs / "visitor-two.md").write_text(THEIRS.replace("Visitor", "Second visitor"))
    (palaver.project / "src" / "deep").mkdir(parents=True)
    (palaver.project / "src" / "deep" / "tide.py").write_text("high = 3\n")
    (palaver.project / "my notes.md").write_text("Notes.\n")
    (palaver.project / "ignored.log").write_text("x")
    (palaver.project / ".gitignore").write_text("*.log\n")
    (palaver.project / "out").symlink_to("/etc")
    try:
        await palaver.start()
        yield palaver
    finally:
        await palaver.stop()


@pytest.fixture
async def worked_in(ada: Visitor, palaver: Palaver) -> str:
    """The folder is known: a conversation was about it."""
    body = {"title": "Earlier", "agent": "gardener"}
    answer = await ada.request.post(f"{ada.url}/api/conversations", data=body)
    assert answer.ok, await answer.text()
    return str((await answer.json())["conversation"])


def card(visitor: Visitor, name: str) -> Locator:
    return visitor.page.get_by_role("listitem").filter(
        has=visitor.page.get_by_role("heading", name=name, exact=True, level=3)
    )


def record(palaver: Palaver, agent: str) -> Path:
    return palaver.data / "agents" / f"{agent}.md"


async def edit(visitor: Visitor, agent: str) -> None:
    await visitor.go(f"/agents/{agent}")
    await expect(visitor.page.get_by_label("Name", exact=True).first).to_be_visible()


async def save(visitor: Visitor, button: str = "Save") -> None:
    await visitor.page.get_by_role("button", name=button, exact=True).click()


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


# -- the list


async def test_agents_are_told_apart_by_source_readiness_and_what_is_wrong(ada: Visitor, worked_in: str) -> None:
    await ada.go("/agents")

    gardener = card(ada, "Gardener")
    await expect(gardener).to_contain_text("Digs, sows and reaps")
    await expect(gardener).to_contain_text("Ready")
    await expect(gardener).to_contain_text("small")
    broken = card(ada, "broken")
    await expect(broken).to_contain_text("Cannot be used")
    await expect(broken).to_contain_text("broken.md cannot be used")
    await expect(broken).to_contain_text("plan, ask, accept_edits, auto")
    built_in = ada.page.get_by_role("region", name="Built in")
    await expect(built_in.get_by_role("link", name="Edit").first).to_be_visible()
    await expect(built_in.get_by_role("heading", name="Gardener")).to_have_count(0)
    await expect(card(ada, "Visitor")).to_contain_text("Not trusted")
    await expect(ada.page).to_have_title(re.compile("Agents"))
    await looks_good(ada, "agents")


async def test_agents_are_reached_and_walked_by_the_keyboard_alone(ada: Visitor) -> None:
    await ada.go()
    await expect(ada.box).to_be_focused()
    await ada.command("agents")
    await expect(ada.page.get_by_role("heading", name="Agents", level=1)).to_be_visible()
    await expect(card(ada, "Gardener")).to_be_visible()
    link = card(ada, "Gardener").get_by_role("link", name="Edit Gardener")
    await link.focus()
    await ada.press("Enter")
    await expect(ada.page.get_by_label("System prompt")).to_have_value("You dig.")


# -- making and changing


async def test_agent_is_made_and_talked_to(ada: Visitor, palaver: Palaver) -> None:
    ada.complaints.expect("status of 400", "status of 409")
    await ada.go("/agents?new")
    make = ada.page.get_by_role("button", name="Make it")
    await expect(ada.page.get_by_label("Name", exact=True)).to_be_focused()
    await ada.page.get_by_label("Description").fill("Keeps the light")
    await make.click()
    await expect(ada.page.get_by_text("Give it a name.")).to_be_visible()
    await expect(ada.page.get_by_label("Name", exact=True)).to_be_focused()

    await ada.page.get_by_label("Name", exact=True).fill("Keeper")
    await ada.page.get_by_label("Id", exact=True).fill("not an id")
    await make.click()
    await expect(ada.page.get_by_label("Id", exact=True)).to_have_attribute("aria-invalid", "true")
    await expect(ada.page.get_by_text("“not an id” is no id for an agent")).to_be_visible()
    await looks_good(ada, "agent-refused")

    await ada.page.get_by_label("Id", exact=True).fill("")
    await ada.page.get_by_label("System prompt").fill("You keep the light.")
    await ada.page.get_by_label("Mode", exact=True).select_option("plan")
    await make.click()
    await expect(card(ada, "Keeper")).to_contain_text("Keeps the light")
    assert "You keep the light." in record(palaver, "keeper").read_text()

    await card(ada, "Keeper").get_by_role("button", name="Actions for Keeper").click()
    await ada.page.get_by_role("menuitem", name="New conversation with it").click()
    await expect(ada.page.get_by_role("button", name="Agent: Keeper")).to_be_visible()
    await ada.send("!say Lit.")
    await expect(ada.log).to_contain_text("Lit.")
    # Whom one chose last is offered first, also in a browser that has never been here.
    await ada.page.evaluate(
        "for (const name of Object.keys(localStorage)) if (name !== 'palaver.key') localStorage.removeItem(name)"
    )
    await ada.go()
    await expect(ada.page.get_by_role("button", name="Agent: Keeper")).to_be_visible()


async def test_change_sends_one_thing_and_leaves_the_rest_of_the_file(ada: Visitor, palaver: Palaver) -> None:
    sent: list[Any] = []
    ada.page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "PATCH" else None)
    await edit(ada, "gardener")
    await expect(ada.page.get_by_text("Nothing changed")).to_be_visible()
    await looks_good(ada, "agent-form")
    await ada.page.get_by_label("Model", exact=True).fill("large")
    await ada.page.get_by_label("Ask before spending more than").fill("")
    await save(ada)
    await expect(card(ada, "Gardener")).to_contain_text("large")
    assert sent == [{"model": "large", "spend_limit_usd": None}]
    kept = record(palaver, "gardener").read_text()
    assert "# Mine, by hand." in kept
    assert "x-note: keep this" in kept
    assert "rose" in kept
    assert "spend_limit_usd" not in kept


async def test_secrets_are_written_and_never_shown(ada: Visitor, palaver: Palaver) -> None:
    bodies: list[str] = []

    async def listen(route: Route) -> None:
        answer = await route.fetch()
        bodies.append(await answer.text())
        await route.fulfill(response=answer)

    await ada.page.route("**/api/agents**", listen)
    await edit(ada, "gardener")
    environment = ada.page.get_by_role("group", name="Environment").first
    await expect(environment).to_contain_text("GARDEN_KEY")
    await expect(environment).to_contain_text("set")
    await environment.get_by_role("button", name="Replace GARDEN_KEY").click()
    value = environment.get_by_label("Value of GARDEN_KEY", exact=True)
    await expect(value).to_be_focused()
    await value.fill("lily")
    await environment.get_by_role("button", name="Add a variable").click()
    await environment.get_by_label("Name", exact=True).fill("EXTRA")
    await environment.get_by_label("Value of EXTRA", exact=True).fill("daisy")
    files = ada.page.get_by_role("region", name="files")
    await files.get_by_label("Command").fill("serve-files --fast '/my garden'")
    await looks_good(ada, "agent-secrets")
    await save(ada)
    await expect(card(ada, "Gardener")).to_be_visible()
    kept = record(palaver, "gardener").read_text()
    assert "lily" in kept
    assert "daisy" in kept
    assert "rose" not in kept
    assert "tulip" in kept
    assert "--fast" in kept

    await edit(ada, "gardener")
    await environment.get_by_role("button", name="Clear EXTRA").click()
    await save(ada)
    await expect(card(ada, "Gardener")).to_be_visible()
    assert "daisy" not in record(palaver, "gardener").read_text()
    await ada.page.unroute_all(behavior="wait")
    assert bodies
    assert not any(secret in body for body in bodies for secret in ("rose", "lily", "tulip", "daisy"))


async def test_refusal_of_the_server_is_shown_at_its_field(ada: Visitor) -> None:
    ada.complaints.expect("status of 400")
    await edit(ada, "gardener")
    tools = ada.page.get_by_label("Tools that run without asking")
    await tools.fill("Bash(git:*)")
    await save(ada)
    await expect(tools).to_have_attribute("aria-invalid", "true")
    await expect(tools).to_be_focused()
    await expect(ada.page.get_by_text("is no tool's name")).to_be_visible()
    await tools.fill("grep")
    await expect(ada.page.get_by_text("is no tool's name")).to_have_count(0)
    await save(ada)
    await expect(card(ada, "Gardener")).to_be_visible()


async def test_unsaved_changes_are_not_lost_by_leaving(ada: Visitor) -> None:
    await ada.go("/agents")
    await card(ada, "Gardener").get_by_role("link", name="Edit Gardener").click()
    prompt = ada.page.get_by_label("System prompt")
    await prompt.fill("You dig deeper.")
    question = ada.page.get_by_role("dialog", name="Leave without saving?")

    await ada.page.go_back()
    await expect(question).to_be_visible()
    await looks_good(ada, "agent-leaving")
    await ada.press("Escape")
    await expect(question).to_have_count(0)
    await expect(prompt).to_have_value("You dig deeper.")
    await ada.list.get_by_role("button", name="New conversation").click()
    await question.get_by_role("button", name="Keep editing").click()
    await expect(prompt).to_have_value("You dig deeper.")

    await ada.page.get_by_role("link", name="All agents").click()
    await question.get_by_role("button", name="Leave").click()
    await expect(card(ada, "Gardener")).to_be_visible()
    await edit(ada, "gardener")
    await expect(prompt).to_have_value("You dig.")


async def test_agent_is_duplicated_and_the_copy_deleted(ada: Visitor, palaver: Palaver) -> None:
    await ada.go("/agents")
    await card(ada, "Gardener").get_by_role("button", name="Actions for Gardener").click()
    await ada.page.get_by_role("menuitem", name="Duplicate").click()
    await expect(ada.page.get_by_label("Name", exact=True).first).to_have_value("Gardener (copy)")
    assert "# Mine, by hand." in record(palaver, "gardener-copy").read_text()

    await ada.page.get_by_role("link", name="All agents").click()
    copy = card(ada, "Gardener (copy)")
    await copy.get_by_role("button", name="Actions for").click()
    await ada.page.get_by_role("menuitem", name="Delete").click()
    question = ada.page.get_by_role("dialog", name="Delete Gardener (copy)?")
    await question.get_by_role("button", name="Cancel").click()
    await expect(copy).to_be_visible()
    await copy.get_by_role("button", name="Actions for").click()
    await ada.page.get_by_role("menuitem", name="Delete").click()
    await question.get_by_role("button", name="Delete").click()
    await expect(copy).to_have_count(0)
    assert not record(palaver, "gardener-copy").exists()


# -- a project's own


async def test_project_agent_is_inert_until_trusted_and_again_after_its_file_changed(
    ada: Visitor, palaver: Palaver, worked_in: str
) -> None:
    ada.complaints.expect("status of 409")
    await ada.go("/agents")
    visitor = card(ada, "Visitor")
    await expect(visitor).to_contain_text("does nothing until you trust it")
    await visitor.get_by_text("What it would be allowed").click()
    for words in ("curl 'https://example.org/run me'", "https://tools.example/mcp", "shell", "Auto in sandbox"):
        await expect(visitor).to_contain_text(words)
    await expect(visitor).to_contain_text("Do as the folder says.")
    await expect(visitor).to_contain_text(re.compile(r"exactly as it is now \([0-9a-f]{12}\)"))
    await visitor.scroll_into_view_if_needed()
    await looks_good(ada, "agent-untrusted")

    # What is trusted is what was shown, not what the file has become.
    file = palaver.project / ".palaver" / "agents" / "visitor.md"
    file.write_text(THEIRS + "And one thing more.\n")
    await visitor.get_by_role("button", name="Trust this agent").click()
    await expect(visitor.get_by_role("alert")).to_contain_text("changed meanwhile")
    await expect(visitor).to_contain_text("And one thing more.")
    await visitor.get_by_role("button", name="Trust this agent").click()
    await expect(visitor).not_to_contain_text("Not trusted")
    await expect(visitor.get_by_role("button", name="Take the trust back")).to_be_visible()

    # It is offered in that folder, and nowhere else.
    await ada.go()
    await ada.page.get_by_role("button", name="Agent: ").click()
    await expect(ada.page.get_by_role("menuitemradio", name="Gardener")).to_be_visible()
    await expect(ada.page.get_by_role("menuitemradio", name="Visitor")).to_have_count(0)
    await ada.press("Escape")
    await ada.page.get_by_label("Folder", exact=True).fill(str(palaver.project))
    await expect(ada.page.get_by_text("This folder holds an agent that you have not trusted.")).to_be_visible()
    await ada.page.get_by_role("button", name="Agent: ").click()
    await expect(ada.page.get_by_role("menuitemradio", name="Visitor", exact=False).first).to_be_visible()
    await ada.press("Escape")

    file.write_text(THEIRS + "And another.\n")
    await ada.go("/agents")
    await expect(visitor).to_contain_text("Not trusted")


# -- a new conversation


async def test_new_conversation_begins_in_a_folder_that_was_walked_to(
    ada: Visitor, palaver: Palaver, worked_in: str
) -> None:
    await ada.go()
    await ada.page.get_by_role("button", name="Choose a folder").click()
    picker = ada.page.get_by_role("dialog", name="Choose a folder")
    await expect(picker).to_contain_text(str(palaver.project))
    await picker.get_by_role("button", name="Open src").click()
    await expect(picker.get_by_role("button", name="Open deep")).to_be_visible()
    await looks_good(ada, "folder-picker")
    await picker.get_by_role("button", name="Folder above").click()
    await picker.get_by_role("button", name="Open src").click()
    await picker.get_by_role("button", name="Choose this folder").click()
    await expect(ada.page.get_by_label("Folder", exact=True)).to_have_value(str(palaver.project / "src"))
    await ada.page.get_by_role("button", name="Mode: ").click()
    await ada.page.get_by_role("menuitemradio", name="Plan only").click()
    await looks_good(ada, "home-folder")
    await ada.send("!say Here.")
    await expect(ada.log).to_contain_text("Here.")
    await expect(ada.page.get_by_role("button", name="Mode: Plan only")).to_be_visible()
    view = await ada.request.get(f"{ada.url}/api/conversations/{ada.conversation}")
    assert (await view.json())["project"] == str(palaver.project / "src")


async def test_refused_folder_is_said_before_anything_is_sent(ada: Visitor) -> None:
    ada.complaints.expect("status of 400")
    await ada.go()
    await ada.page.get_by_label("Folder", exact=True).fill("/nowhere/at/all")
    await expect(ada.page.get_by_role("alert")).to_have_text(
        "/nowhere/at/all is no folder on the server. Give the whole path of one."
    )
    await looks_good(ada, "home-refused")
    await ada.send("!say Where?")
    await expect(ada.page.get_by_role("alert").last).to_contain_text("no folder")
    await expect(ada.box).to_have_value("!say Where?")


# -- files


async def test_file_of_the_project_is_mentioned_in_the_message(ada: Visitor, palaver: Palaver, worked_in: str) -> None:
    await ada.open(worked_in)
    await ada.box.fill("Look at")
    await ada.page.get_by_role("button", name="Conversation actions").click()
    await ada.page.get_by_role("menuitem", name="Project files").click()
    tree = ada.page.get_by_role("dialog", name="Files of project")
    await expect(tree.get_by_role("button", name="my notes.md")).to_contain_text("7 B")
    await expect(tree).not_to_contain_text("ignored.log")
    await expect(tree.get_by_text("leads out of the folder")).to_be_visible()
    await expect(tree.get_by_role("button", name="out")).to_have_count(0)

    # Folders come first: the one above this is where Palaver keeps what it knows of the project.
    await tree.locator("summary", has_text=".palaver").focus()
    await ada.press("ArrowDown", "ArrowRight")
    await expect(tree.locator("summary", has_text="deep")).to_be_visible()
    await tree.locator("summary", has_text="deep").focus()
    await ada.press("ArrowRight")
    await expect(tree.get_by_role("button", name="tide.py")).to_be_visible()
    await looks_good(ada, "files")
    await tree.locator("summary", has_text="deep").focus()
    await ada.press("ArrowDown", "Enter")
    await expect(tree).to_have_count(0)
    await expect(ada.box).to_have_value("Look at @src/deep/tide.py ")
    await expect(ada.box).to_be_focused()


async def test_file_beside_conversations_begins_a_message(ada: Visitor, palaver: Palaver, worked_in: str) -> None:
    await ada.go(f"/files?project={palaver.project}")
    await ada.page.get_by_role("button", name="my notes.md").click()
    await expect(ada.box).to_have_value('@"my notes.md" ')
    await expect(ada.page.get_by_label("Folder", exact=True)).to_have_value(str(palaver.project))
