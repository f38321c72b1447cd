"""What can answer, what runs, and what other programs left: three screens beside conversations, on a real server.

States that a test machine cannot be brought into are played: the answers of one route are written by the test, and the page
does not know.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.looks import SCHEMES, axe_findings, fits, picture
from tests.browser.served import Palaver, Wire, free_port
from tests.browser.visitor import DESKTOP, PHONE, WAIT_MS, Visitor
from tests.provider.server import ScriptedProvider
from tests.unit.history.programs.lines import SAMPLES

CLAUDE = "8d2f3c1e-6a0b-4c57-9b1d-2f6f0a7c1e11"
CODEX = "01a1e23b-386d-7343-90d8-2900b6be9577"
NOW_MS = 1_794_000_000_000

CAN = {
    "deltas": True,
    "thinking": True,
    "steer": True,
    "approvals": True,
    "resume": True,
    "fork": True,
    "images": True,
    "usage": True,
}


def backend(name: str, title: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": title,
        "ready": True,
        "installed": True,
        "version": None,
        "summary": "ready",
        "fix": None,
        "login": None,
        "capabilities": CAN,
        "agents": [name],
        "processes": 0,
        "last_error": None,
        **more,
    }


EVERY_STATE = [
    backend("claude", "Claude Code", version="2.1.94", summary="Claude Code 2.1.94", login="ok", processes=2),
    backend(
        "codex",
        "Codex",
        ready=False,
        version="0.98.0",
        login="missing",
        summary="Codex 0.98.0 is installed; nobody is logged in.",
        fix="codex login",
    ),
    backend(
        "pi",
        "Pi",
        ready=False,
        installed=False,
        summary="Pi is not installed.",
        fix="npm install -g @earendil-works/pi-coding-agent",
        capabilities=None,
    ),
    backend(
        "acp",
        "Agents that speak ACP",
        ready=False,
        summary="The agent answers in protocol version 0, which is too old.",
        fix="Give its record another `command`, for instance `opencode acp`.",
        capabilities={**CAN, "thinking": False, "fork": False, "usage": False},
        agents=[],
    ),
    backend(
        "api",
        "Model services",
        summary="Anthropic. Also: openai.",
        agents=["default", "demo"],
        last_error={"message": "The provider answered 529: overloaded.", "ts": NOW_MS},
    ),
]

PROCESSES = [
    {
        "kind": "program",
        "conversation": "c1",
        "title": "The tide table is an hour off",
        "agent": "claude",
        "backend": "claude",
        "pid": 4242,
        "command": "claude",
        "started_at": NOW_MS,
        "busy": True,
        "idle_s": 0,
    },
    {
        "kind": "program",
        "conversation": None,
        "title": "",
        "agent": None,
        "backend": "codex",
        "pid": 4243,
        "command": "codex app-server",
        "started_at": NOW_MS,
        "busy": False,
        "idle_s": 185.2,
    },
    {
        "kind": "background",
        "conversation": "c1",
        "title": "The tide table is an hour off",
        "agent": "default",
        "backend": "api",
        "pid": 4244,
        "command": "python3 -m http.server 8000 --directory build/site/with/a/rather/long/path/to/be/cut",
        "started_at": NOW_MS,
        "busy": True,
        "idle_s": 0,
    },
]


class AtHome(Palaver):
    """Finds only the programs that the test put there."""

    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin"}


@pytest.fixture(scope="module")
async def palaver(
    tmp_path_factory: pytest.TempPathFactory, provider: ScriptedProvider, wire: Wire
) -> AsyncIterator[Palaver]:
    """At home with somebody who used Claude Code and Codex before, has a Pi that knows no model, and an agent without its
    program."""
    served = AtHome(tmp_path_factory.mktemp("palaver"), provider.url, wire, free_port())
    pi = served.folder / "bin" / "pi"
    pi.parent.mkdir()
    pi.write_text("#!/bin/sh\necho 0.61.1\n")
    pi.chmod(0o755)
    agents = served.data / "agents"
    agents.mkdir(parents=True)
    agents.joinpath("skipper.md").write_text("---\nname: Skipper\nbackend: acp\ncommand: [skipper-of-nowhere]\n---\n")
    project = served.folder / "harbour"
    project.mkdir()
    for sample, place in (
        ("claude.jsonl", f".claude/projects/-harbour/{CLAUDE}.jsonl"),
        ("codex.jsonl", f".codex/sessions/2026/11/16/rollout-2026-11-16T02-41-34-{CODEX}.jsonl"),
    ):
        file = served.folder / place
        file.parent.mkdir(parents=True)
        file.write_text((SAMPLES / sample).read_text().replace("/home/ada/harbour", str(project)))
    try:
        await served.start()
        yield served
    finally:
        await served.stop()


IMPORT_BY_HAND = """
const real = window.fetch;
window.fetch = (address, options = {}) => {
  if (!/^.api.import.\\w+/.test(String(address)) || options.method !== "POST") return real(address, options);
  const body = new ReadableStream({ start(controller) { window.importing = controller; } });
  const { importing } = window;
  options.signal.addEventListener("abort", () => importing.error(options.signal.reason));
  return Promise.resolve(new Response(body));
};
"""
"""A stream that says what the test says, when the test says it."""


async def tell(visitor: Visitor, *lines: dict[str, Any] | None) -> None:
    """None ends the stream. There is one once the page has asked for it."""
    await visitor.page.wait_for_function("() => window.importing")
    await visitor.page.evaluate(
        """lines => {
          const { importing } = window;
          for (const line of lines) {
            if (line !== null) importing.enqueue(new TextEncoder().encode(JSON.stringify(line) + "\\n"));
            else {
              importing.close();
              window.importing = null;
            }
          }
        }""",
        list(lines),
    )


def told(done: int, of: int, outcome: str, skipped_lines: int = 0) -> dict[str, Any]:
    taken = {"conversation": f"c{done}", "outcome": outcome}
    return {"done": done, "of": of, "taken": taken, "skipped_lines": skipped_lines}


async def answering(page: Page, address: str, answer: object, status: int = 200) -> None:
    async def fulfil(route: Route) -> None:
        await route.fulfill(status=status, content_type="application/json", body=msgspec.json.encode(answer))

    await page.route(f"**{address}", fulfil)


def card(visitor: Visitor, title: str) -> Any:
    return visitor.page.get_by_role("listitem").filter(has=visitor.page.get_by_role("heading", name=title, exact=True))


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


# -- backends


async def test_backends_in_every_state_say_what_to_do(ada: Visitor) -> None:
    await answering(ada.page, "/api/backends", {"items": EVERY_STATE})
    await ada.go("/backends")

    await expect(card(ada, "Claude Code")).to_contain_text("Ready")
    await expect(card(ada, "Codex")).to_contain_text("Needs login")
    await expect(card(ada, "Codex")).to_contain_text("codex login")
    await expect(card(ada, "Pi")).to_contain_text("Not installed")
    await expect(card(ada, "Agents that speak ACP")).to_contain_text("Wrong version")
    await expect(card(ada, "Model services")).to_contain_text("529")
    await expect(ada.page).to_have_title(re.compile("Backends"))
    await looks_good(ada, "backends")


async def test_try_tells_how_long_it_runs_and_what_came_of_it(ada: Visitor) -> None:
    waiting: asyncio.Queue[Route] = asyncio.Queue()

    async def answered(answer: dict[str, Any]) -> None:
        """Once it was asked: the page says that it tests before."""
        route = await asyncio.wait_for(waiting.get(), WAIT_MS / 1000)
        await route.fulfill(json=answer)

    await answering(ada.page, "/api/backends", {"items": EVERY_STATE[:1]})
    await ada.page.route("**/api/agents/claude/test", lambda route: waiting.put_nowait(route))  # noqa: PLW0108 - a bare method is refused
    await ada.go("/backends")
    claude = card(ada, "Claude Code")

    await claude.get_by_role("button", name="Try it: Claude Code").click()
    await expect(claude).to_contain_text(re.compile(r"Testing · [1-9]\d* s"))
    failed = {"ok": False, "text": "", "duration_ms": 9, "error": {"code": "not_logged_in", "message": "No login."}}
    await answered(failed)
    await expect(claude.get_by_role("alert")).to_contain_text("No login.")
    await expect(claude).to_contain_text("Failing")

    await claude.get_by_role("button", name="Try it: Claude Code").click()
    await expect(claude).to_contain_text("Testing")
    await answered({"ok": True, "text": "Hello from here.", "duration_ms": 4200, "error": None})
    await expect(claude).to_contain_text("Answered in 4 s")
    await expect(claude).to_contain_text("Hello from here.")
    await looks_good(ada, "backend-tried")


async def test_backends_are_reached_by_the_keyboard_alone(ada: Visitor) -> None:
    await answering(ada.page, "/api/backends", {"items": EVERY_STATE[:1]})
    await ada.go()
    await expect(ada.box).to_be_focused()
    await ada.command("backends")
    await expect(ada.page.get_by_role("heading", name="Backends", level=1)).to_be_visible()
    await expect(ada.page.get_by_role("main")).to_be_focused()
    first = ada.page.get_by_role("button", name="Try it: Claude Code")
    await expect(first).to_be_visible()
    await ada.press("Tab")
    await expect(first).to_be_focused()
    await ada.page.go_back()
    await expect(ada.page.get_by_role("heading", name="What shall we work on?")).to_be_visible()


async def test_backends_that_cannot_be_loaded_are_tried_again(ada: Visitor) -> None:
    ada.complaints.expect("status of 503")
    await answering(ada.page, "/api/backends", {"code": "unavailable", "message": "Not now.", "retryable": True}, 503)
    await ada.go("/backends")
    await expect(ada.page.get_by_role("alert")).to_contain_text("Not now.")

    await ada.page.unroute("**/api/backends")
    await answering(ada.page, "/api/backends", {"items": EVERY_STATE[:1]})
    await ada.page.get_by_role("button", name="Try again").click()
    await expect(card(ada, "Claude Code")).to_be_visible()
    await expect(ada.page.get_by_role("alert")).to_have_count(0)


async def test_settings_lead_to_the_screens(ada: Visitor) -> None:
    await ada.go()
    await ada.page.get_by_role("button", name="Settings of the new conversation").click()
    await ada.page.get_by_role("dialog").get_by_role("link", name="Running processes").click()
    await expect(ada.page.get_by_role("heading", name="Running processes", level=1)).to_be_visible()
    await expect(ada.page.get_by_role("dialog")).to_have_count(0)


async def test_home_without_a_ready_agent_leads_to_what_is_missing(ada: Visitor) -> None:
    agent = {
        "id": "a",
        "name": "A",
        "description": "",
        "backend": "pi",
        "model": None,
        "ready": False,
        "note": "Pi is away.",
    }
    await answering(ada.page, "/api/agents", {"items": [agent]})
    await ada.go()
    await expect(ada.page.get_by_text("Pi is away.")).to_be_visible()
    await ada.page.get_by_role("link", name="See what each backend needs").click()
    await expect(ada.page.get_by_role("heading", name="Backends", level=1)).to_be_visible()


async def test_backends_of_a_real_server_are_told_apart_and_the_demo_answers(ada: Visitor) -> None:
    await ada.go("/backends")

    await expect(card(ada, "Skipper")).to_contain_text("Not installed")
    await expect(card(ada, "Skipper")).to_contain_text("skipper-of-nowhere was not found.")
    await expect(card(ada, "Pi")).to_contain_text("Needs login")
    await expect(card(ada, "Pi")).to_contain_text("/login")
    demo = card(ada, "Demo")
    await expect(demo).to_contain_text("Ready")
    await demo.get_by_role("button", name="Try it: Demo").click()
    await expect(demo).to_contain_text("Answered in")
    await looks_good(ada, "backends-real")


# -- processes


async def test_process_of_a_real_conversation_is_opened_from_its_entry_and_ended(ada: Visitor) -> None:
    await ada.begin("""!tool shell {"command": "sleep 300", "background": true}""")
    await ada.asked()
    await ada.press("Alt+1")
    await expect(ada.page.get_by_role("region", name="Background processes")).to_be_visible()
    await ada.rests()
    conversation = ada.conversation

    await ada.go("/processes")
    entry = ada.page.get_by_role("main").get_by_role("listitem").filter(has_text="sleep 300")
    await expect(entry).to_contain_text("in the background")
    await entry.get_by_role("link").click()
    await expect(ada.page).to_have_url(re.compile(conversation))

    await ada.page.go_back()
    await entry.get_by_role("button", name="End sleep 300").click()
    await expect(ada.page.get_by_role("heading", name="Nothing runs")).to_be_visible()
    await looks_good(ada, "processes-none")


async def test_processes_are_told_and_a_refused_end_says_why(ada: Visitor) -> None:
    ada.complaints.expect("status of 409")
    await answering(ada.page, "/api/processes", {"items": PROCESSES})
    refusal = {"code": "conflict", "message": "A turn runs in it: stop its turn first."}
    await answering(ada.page, "/api/processes/4242", refusal, 409)
    await ada.go("/processes")

    await expect(ada.page.get_by_text("idle for 3 min 05 s")).to_be_visible()
    await ada.page.get_by_role("button", name="End claude").click()
    await expect(ada.page.get_by_role("alert")).to_have_text("A turn runs in it: stop its turn first.")
    await looks_good(ada, "processes")


async def test_process_table_renews_itself_and_drops_what_ended(ada: Visitor) -> None:
    left = list(PROCESSES)

    async def listed(route: Route) -> None:
        await route.fulfill(json={"items": left})

    async def ended(route: Route) -> None:
        left.pop(1)
        await route.fulfill(status=204)

    await ada.page.route("**/api/processes", listed)
    await ada.page.route("**/api/processes/4243", ended)
    await ada.go("/processes")
    await ada.page.get_by_role("button", name="End codex app-server").click()
    await expect(ada.page.get_by_text("codex app-server")).to_have_count(0)
    await expect(ada.page.get_by_role("button", name="End claude")).to_be_visible()

    left.clear()
    await expect(ada.page.get_by_role("heading", name="Nothing runs")).to_be_visible()


# -- earlier conversations


async def test_histories_are_found_looked_at_and_brought_on_the_first_run(ada: Visitor) -> None:
    await ada.go()
    offer = ada.page.get_by_role("region", name="Bring your earlier conversations")
    await expect(offer).to_contain_text("Claude Code")
    await expect(offer).to_contain_text("Codex")
    await looks_good(ada, "import-found")

    await offer.get_by_role("button", name="Look at all").click()
    await expect(offer.get_by_text("Would add 1")).to_have_count(2)
    await looks_good(ada, "import-planned")

    await offer.get_by_role("button", name="Import all 2").click()
    await expect(offer.get_by_text("Added 1")).to_have_count(2)
    await expect(ada.list.get_by_role("link", name="Codex")).not_to_have_count(0)

    await offer.get_by_role("button", name="Look again at Codex").click()
    await expect(offer.get_by_text("Nothing new · 1 known")).to_be_visible()
    await looks_good(ada, "import-done")


async def test_import_under_way_tells_how_far_it_is_and_can_be_stopped(ada: Visitor) -> None:
    found = [{"program": "claude", "count": 412, "newest": NOW_MS, "size_bytes": 91_000_000}]
    await answering(ada.page, "/api/import/found", {"items": [*found, {**found[0], "program": "pi", "count": 37}]})
    await ada.page.add_init_script(IMPORT_BY_HAND)
    await ada.go("/import")
    region = ada.page.get_by_role("region", name="Import earlier conversations")
    claude = region.get_by_role("listitem").filter(has_text="Claude Code")

    await claude.get_by_role("button", name="Look at Claude Code").click()
    await tell(ada, *(told(at, 412, "made") for at in range(1, 399)))
    await expect(claude).to_contain_text("Looking · 398 of 412")
    await tell(ada, *(told(at, 412, "known") for at in range(399, 413)), None)
    await expect(claude).to_contain_text("Would add 398 · 14 known")

    await claude.get_by_role("button", name="Import 398 of Claude Code").click()
    await tell(ada, *(told(at, 412, "made", skipped_lines=at % 2) for at in range(1, 101)))
    await expect(claude).to_contain_text("Importing · 100 of 412")
    await expect(claude.get_by_role("progressbar")).to_have_js_property("value", 100)
    await looks_good(ada, "import-running")

    # Looking at something else meanwhile does not stop it.
    await ada.page.get_by_role("link", name="Palaver").click()
    await expect(ada.page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
    await tell(ada, told(101, 412, "made"))
    await ada.page.go_back()
    await expect(claude).to_contain_text("Importing · 101 of 412")
    await region.get_by_role("button", name="Stop").click()
    await expect(claude).to_contain_text("Stopped · Added 101 · 50 damaged lines skipped")


async def test_offer_is_dismissed_for_ever_and_still_in_the_palette(ada: Visitor) -> None:
    await ada.go()
    offer = ada.page.get_by_role("region", name="Bring your earlier conversations")
    await offer.get_by_role("button", name="Do not show this again").click()
    await expect(offer).to_have_count(0)
    await ada.page.reload()
    await expect(ada.page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
    await expect(offer).to_have_count(0)

    await ada.command("import")
    await expect(ada.page.get_by_role("region", name="Import earlier conversations")).to_contain_text("Codex")
