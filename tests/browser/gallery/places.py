"""Pictures of everything around a conversation: coming in, lists, settings, and the screens beside it."""

import re
from typing import Any

from playwright.async_api import expect

from tests.browser.gallery.asking import many_wait
from tests.browser.gallery.harbour import Harbour
from tests.browser.gallery.shots import ALL, BOTH, HANDY, shot
from tests.browser.gallery.talking import fixed_tides
from tests.browser.screens import SIGNED_OUT
from tests.browser.visitor import Visitor
from tests.provider.script import Gate, Status

IN = "Sign in and start"
LISTS = "Find conversations"
CHOICES = "Modes and settings"
BESIDE = "Other screens"


async def with_the_list(visitor: Visitor) -> None:
    await visitor.show_list()
    await expect(visitor.search_field).to_be_visible()


async def without_menu(visitor: Visitor) -> None:
    if await visitor.page.get_by_role("menu").count():
        await visitor.press("Escape")
    await expect(visitor.page.get_by_role("menu")).to_have_count(0)


async def with_agents(visitor: Visitor) -> None:
    await without_menu(visitor)
    await visitor.page.get_by_role("button", name="Agent: ").click()
    await expect(visitor.page.get_by_role("menu")).to_contain_text("Reviewer")


async def with_modes(visitor: Visitor) -> None:
    await without_menu(visitor)
    await visitor.page.get_by_role("button", name="Mode: ").click()
    await expect(visitor.page.get_by_role("menu")).to_be_visible()


async def with_results(visitor: Visitor) -> None:
    await visitor.show_list()
    await visitor.search_field.fill("lamp")
    await expect(visitor.page.locator("mark").first).to_be_visible()


@shot(IN, "Sign in with the printed link, or with a token.", ALL)
async def sign_in(harbour: Harbour) -> Visitor:
    harbour.visitors.complaints.expect(SIGNED_OUT)
    visitor = await harbour.stranger()
    await visitor.go()
    await expect(visitor.page.get_by_label("Access token")).to_be_visible()
    return visitor


@shot(IN, "A wrong token.")
async def sign_in_refused(harbour: Harbour) -> Visitor:
    visitor = await sign_in(harbour)
    await visitor.page.get_by_label("Access token").fill("not-the-token")
    await visitor.page.get_by_label("Access token").press("Enter")
    await expect(visitor.page.get_by_role("alert")).to_contain_text("token")
    return visitor


@shot(IN, "The server does not answer: what to check.")
async def sign_in_unreachable(harbour: Harbour) -> Visitor:
    harbour.visitors.complaints.expect("ERR_FAILED", "ERR_CONNECTION_REFUSED")
    visitor = await harbour.stranger()
    await visitor.page.route("**/api/session", lambda route: route.abort())
    await visitor.go()
    await expect(visitor.page.get_by_text("The server does not answer")).to_be_visible()
    return visitor


@shot(IN, "Home: start a conversation; choose the agent and the folder.", ALL)
async def home(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go()
    await expect(visitor.page.get_by_role("button", name="Agent: ")).to_be_visible()
    await expect(visitor.list).to_contain_text("Sum up last week")
    return visitor


@shot(IN, "A new server offers demonstrations.", ALL)
async def home_first(harbour: Harbour) -> Visitor:
    for row in (await harbour.http.get("/api/conversations")).json()["items"]:
        (await harbour.http.delete(f"/api/conversations/{row['id']}")).raise_for_status()
    visitor = await harbour.ada()
    await visitor.go()
    await expect(visitor.page.get_by_role("button", name="A plan, worked off")).to_be_visible()
    await expect(visitor.list).to_contain_text("Nothing here yet")
    return visitor


@shot(IN, "Choose an agent: the agents of this server, with their descriptions.", HANDY, on_phone=with_agents)
async def home_agents(harbour: Harbour) -> Visitor:
    visitor = await home(harbour)
    await with_agents(visitor)
    return visitor


@shot(IN, "Choose a folder: browse to it or type it.")
async def home_folder(harbour: Harbour) -> Visitor:
    visitor = await home(harbour)
    await visitor.page.get_by_role("combobox", name="Folder").fill(str(harbour.folder))
    await visitor.page.get_by_role("button", name="Choose a folder").click()
    await expect(visitor.page.get_by_role("dialog")).to_contain_text("website")
    return visitor


# -- lists


@shot(
    LISTS,
    "The list: open requests first, then running conversations; a dot marks unread ones.",
    ALL,
    on_phone=with_the_list,
)
async def conversations(harbour: Harbour) -> Visitor:
    await many_wait(harbour)
    harbour.says("I look through the log", Gate(name="log"))
    await harbour.begin("Count the boats of last week", project="lights")
    await harbour.provider.gates.reached("log")
    harbour.says(fault=Status(status=403, message="This key has no credit left."))
    await harbour.rests(await harbour.begin("Translate the landing page", project="website"))
    visitor = await home(harbour)
    await visitor.show_list()
    await expect(visitor.list).to_contain_text("failed")
    return visitor


@shot(LISTS, "Search all conversations, with matches in context.", HANDY, on_phone=with_results)
async def search(harbour: Harbour) -> Visitor:
    visitor = await home(harbour)
    await with_results(visitor)
    return visitor


@shot(LISTS, "The menu of a conversation.")
async def list_menu(harbour: Harbour) -> Visitor:
    visitor = await home(harbour)
    row = visitor.list.get_by_role("listitem").filter(has_text="Sum up last week").first
    await row.hover()
    await row.get_by_role("button", name=re.compile("^Actions for")).click()
    await expect(visitor.page.get_by_role("menu")).to_be_visible()
    return visitor


@shot(LISTS, "Find in this conversation.")
async def find(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    await visitor.press("Control+f")
    await visitor.page.get_by_role("textbox", name="Find in conversation").fill("leap")
    await expect(visitor.page.get_by_role("search", name="Find", exact=True)).to_contain_text(re.compile(r"\d of \d"))
    return visitor


@shot(LISTS, "The command palette: all commands and conversations (Ctrl+K).", ALL)
async def palette(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    await visitor.press("Control+k")
    await expect(visitor.page.get_by_role("option").first).to_be_visible()
    return visitor


@shot(LISTS, "All keyboard shortcuts (?).", BOTH)
async def keys(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    await visitor.log.focus()
    await visitor.press("?")
    await expect(visitor.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    return visitor


@shot(LISTS, "An unknown address.")
async def missing(harbour: Harbour) -> Visitor:
    harbour.visitors.complaints.expect("status of 404")
    visitor = await harbour.ada()
    await visitor.go("/c/nowhere")
    await expect(visitor.page.get_by_text("There is no such conversation")).to_be_visible()
    return visitor


# -- choices


@shot(CHOICES, "The mode of a conversation: what runs without asking.", HANDY, on_phone=with_modes)
async def modes(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    await with_modes(visitor)
    return visitor


@shot(CHOICES, "Plan mode: the agent reads and changes nothing; a banner says so.")
async def plan_mode(harbour: Harbour) -> Visitor:
    visitor = await modes(harbour)
    await visitor.page.get_by_role("menuitemradio", name="Plan only").click()
    await expect(visitor.page.get_by_role("note")).to_be_visible()
    return visitor


@shot(CHOICES, "Conversation settings: agent, model, answers, limits, and permissions.", ALL)
async def settings(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    await visitor.page.get_by_role("button", name="Agent: ").click()
    await visitor.page.get_by_role("menuitem", name="Model and settings").click()
    await expect(visitor.page.get_by_role("dialog", name="Conversation settings")).to_be_visible()
    return visitor


# -- beside


@shot(BESIDE, "The agents of this server. Each is a Markdown file; edit it here or in an editor.", ALL)
async def agents(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go("/agents")
    await expect(visitor.page.get_by_role("main")).to_contain_text("Reads what others wrote")
    return visitor


@shot(BESIDE, "One agent: its identity, permissions and budget.", HANDY)
async def agent(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go("/agents/builder")
    await expect(visitor.page.get_by_role("textbox", name="Name")).to_have_value("Builder")
    return visitor


@shot(BESIDE, "Backends: what is installed and logged in, what to do, and a test for each.", ALL)
async def backends(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go("/backends")
    await expect(visitor.page.get_by_role("main")).to_contain_text("Codex")
    return visitor


@shot(BESIDE, "A mission: the goal, its agents, how often they are woken, and the budget.", ALL)
async def missions(harbour: Harbour) -> Visitor:
    body: dict[str, Any] = {
        "text": "Keep the tide tables right: compare each new month with the almanac and mend what is off.",
        "agents": [{"agent": "reviewer"}, {"agent": "builder", "idle_prompt": "Is a month missing?"}],
        "budget_usd": 5,
    }
    answer = await harbour.http.put("/api/projects/mission", params={"project": harbour.project("tides")}, json=body)
    assert answer.is_success, answer.text
    visitor = await harbour.ada()
    await visitor.go("/missions")
    await visitor.page.get_by_role("main").get_by_role("link", name="tides").click()
    await expect(visitor.page.get_by_role("main")).to_contain_text("Look at what changed")
    return visitor


@shot(BESIDE, "Project files: mention one in your message.")
async def files(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    await visitor.press("Control+k")
    await visitor.page.keyboard.type("project files")
    await visitor.press("Enter")
    await expect(visitor.page.get_by_text("test_tide.py").last).to_be_visible()
    return visitor


@shot(BESIDE, "Running processes of all conversations.")
async def processes(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go("/processes")
    await expect(visitor.page.get_by_role("heading", name="Nothing runs")).to_be_visible()
    return visitor


@shot(BESIDE, "Import conversations from other programs: find, preview, import.")
async def imports(harbour: Harbour) -> Visitor:
    day_ms, now = 86_400_000, harbour.clock.now_ms()
    found = [
        {"program": "claude", "count": 214, "newest": now - day_ms, "size_bytes": 91_000_000},
        {"program": "codex", "count": 37, "newest": now - 5 * day_ms, "size_bytes": 12_400_000},
    ]
    visitor = await harbour.ada()
    await visitor.page.route("**/api/import/found", lambda route: route.fulfill(json={"items": found}))
    await visitor.go("/import")
    await expect(visitor.page.get_by_role("main")).to_contain_text("Claude Code")
    return visitor


@shot(BESIDE, "Settings: appearance, reading aloud, notifications, and permissions.", HANDY)
async def device_settings(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go("/settings")
    await expect(visitor.page.get_by_role("main")).to_contain_text("Read answers aloud")
    return visitor


@shot(BESIDE, "This device: install as an app, notifications, and the offline copy.")
async def device(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go("/device")
    await expect(visitor.page.get_by_role("main").get_by_role("checkbox").first).to_be_visible()
    return visitor


@shot(BESIDE, "A project's agents are inactive until you review and trust them.")
async def trust(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go()
    await visitor.page.get_by_role("combobox", name="Folder").fill(harbour.project("website"))
    await visitor.page.get_by_role("link", name="Look at what they would be allowed").click()
    allowed = visitor.page.get_by_role("main").get_by_text("What it would be allowed").first
    await allowed.click()
    last = visitor.page.get_by_role("main").get_by_role("link", name="Missions")
    await last.scroll_into_view_if_needed()
    await expect(last).to_be_in_viewport()
    return visitor


# -- the log, and files of it


@shot(LISTS, "All conversations, with filters and a preview.", BOTH)
async def all_conversations(harbour: Harbour) -> Visitor:
    visitor = await harbour.ada()
    await visitor.go("/conversations")
    main = visitor.page.get_by_role("main")
    await main.get_by_text("Which buoys have no light?").first.click()
    await expect(main).to_contain_text("Three of them")
    return visitor


@shot(LISTS, "The event inspector: the log, and the conversation as it was at any event.", ALL)
async def inspector(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    here = visitor.conversation
    await visitor.go(f"/inspect/{here}?at=40")
    await expect(visitor.page.get_by_role("status").filter(has_text="Paused at 40")).to_be_visible()
    await expect(visitor.page.get_by_role("listbox", name="Log").get_by_role("option").first).to_be_visible()
    return visitor


@shot(LISTS, "Export a conversation as a file.")
async def export(harbour: Harbour) -> Visitor:
    visitor = await list_menu(harbour)
    await visitor.page.get_by_role("menuitem", name="Export").click()
    await expect(visitor.page.get_by_role("dialog")).to_contain_text("Markdown")
    return visitor
