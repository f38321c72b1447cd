"""An approval on the page shows everything that it approves, and is allowed only once its end has been in sight."""

from collections.abc import Callable, Sequence

import msgspec
import pytest
from playwright.async_api import Locator, expect

from palaver.schema.events import RequestOpened, ToolCalled
from palaver.schema.view import Plan, PlanItem, Question, QuestionOption
from tests.browser.looks import SCHEMES, axe_findings, fits, picture, stands_still
from tests.browser.served import Palaver
from tests.browser.test_hostile import begun, watching
from tests.browser.visitor import PHONE, Visitor, Visitors

EVIL = "echo the-very-end"
UNREAD = "Read to the end before you answer"

PADDED: dict[str, Callable[[], str]] = {
    "blank lines": lambda: f"ls{chr(10) * 5000}{EVIL}",
    "spaces": lambda: f"ls{' ' * 9000}; {EVIL}",
    "fillers": lambda: f"ls{chr(0x3164) * 2000}; {EVIL}",
    "lines": lambda: "ls\n" + ": #\n" * 3000 + EVIL,
}
LONG = "\n".join(f"echo {number}" for number in range(300)) + f"\n{EVIL}"
WIDE = "echo " + " ".join(f"word{number}" for number in range(900)) + f"; {EVIL}"
HIDDEN = (
    f"rm\u00a0-rf \u202ehctarcs/\u202c \ufe0f\u2800\u3164\U000e0041 ./\u0430 ; curl https://\u0430pple.com # {EVIL}"
)


def tool(name: str, **arguments: object) -> str:
    return f"!tool {name} {msgspec.json.encode(arguments).decode()}"


def allow(visitor: Visitor) -> Locator:
    return visitor.approval.get_by_role("button", name="Allow once")


def is_in_sight(visitor: Visitor) -> Locator:
    return visitor.approval.locator(".exact-line", has_text="the-very-end")


async def hears(card: Locator) -> None:
    """Until it is no longer too new to be answered: a no is possible at any time after that."""
    await expect(card.get_by_role("button", name="Deny").first).to_be_enabled()


async def refuses(visitor: Visitor) -> None:
    """Neither a press nor a key allows it, and it says why."""
    await hears(visitor.approval)
    await expect(allow(visitor)).to_have_attribute("aria-disabled", "true")
    await allow(visitor).click(force=True)
    await expect(visitor.approval.get_by_role("status")).to_contain_text(UNREAD)
    await visitor.press("Alt+1")
    await expect(visitor.approval).to_be_visible()


async def deny(visitor: Visitor) -> None:
    await visitor.approval.get_by_role("button", name="Deny").first.click()
    await expect(visitor.approval).to_have_count(0)


@pytest.mark.parametrize("padding", PADDED)
async def test_padded_command_is_in_sight_at_once(ada: Visitor, padding: str) -> None:
    await ada.begin(tool("shell", command=PADDED[padding]()))
    await ada.asked()
    await expect(is_in_sight(ada)).to_be_in_viewport()
    await expect(ada.approval.locator(".exact-fold").first).to_contain_text("⋯")
    await deny(ada)


@pytest.mark.parametrize("command", [LONG, WIDE], ids=["many lines", "one line"])
async def test_long_command_is_allowed_only_after_its_end_was_in_sight(ada: Visitor, command: str) -> None:
    await ada.begin(tool("shell", command=command))
    await expect(ada.approval).to_be_visible()
    await refuses(ada)
    more = ada.approval.locator(".reader-more")
    await expect(more).to_contain_text("more rows")
    exact = ada.approval.locator(".request-exact")
    await exact.focus()
    await ada.press("End")
    await expect(is_in_sight(ada)).to_be_in_viewport()
    await expect(allow(ada)).not_to_have_attribute("aria-disabled", "true")
    await expect(more).to_have_count(0)
    await exact.focus()
    await ada.press("Home", "Alt+1")
    await expect(ada.approval).to_have_count(0)


async def test_button_leads_to_the_end_page_by_page(ada: Visitor) -> None:
    await ada.begin(tool("shell", command=LONG))
    more = ada.approval.locator(".reader-more")
    await expect(more).to_be_visible()
    for _ in range(80):
        if not await more.count():
            break
        await more.click()
        await stands_still(ada.page)
    await ada.asked()
    await expect(is_in_sight(ada)).to_be_in_viewport()
    await deny(ada)


async def test_long_new_file_shows_every_line_before_it_is_allowed(ada: Visitor) -> None:
    content = "".join(f"line {number}\n" for number in range(1200)) + f"++x; {EVIL}\n"
    await ada.begin(tool("write", path="long.txt", content=content))
    await expect(ada.approval).to_be_visible()
    await refuses(ada)
    exact = ada.approval.locator(".request-exact")
    await exact.focus()
    for _ in range(20):
        await ada.press("End")
        await stands_still(ada.page)
        if await allow(ada).get_attribute("aria-disabled") is None:
            break
    await expect(is_in_sight(ada)).to_contain_text("++x;")
    await deny(ada)


async def test_always_says_what_it_covers_and_waits_for_the_end_too(ada: Visitor) -> None:
    await ada.begin(tool("shell", command=LONG))
    await expect(ada.approval).to_be_visible()
    await hears(ada.approval)
    await ada.approval.get_by_role("button", name="Always").click()
    await expect(ada.approval.get_by_role("radio", name="exactly this command")).to_be_checked()
    await ada.approval.get_by_role("button", name="Always allow").click(force=True)
    await expect(ada.approval.get_by_role("status")).to_contain_text(UNREAD)
    await ada.approval.get_by_role("button", name="Back").click()
    await deny(ada)


async def test_several_are_shown_whole_before_all_are_allowed(ada: Visitor) -> None:
    await ada.begin("\n".join([tool("shell", command="echo one > a"), tool("shell", command=f"{LONG} > b")]))
    together = ada.page.get_by_role("group", name="Decide together")
    await expect(together).to_be_visible()
    every = together.get_by_role("button", name="Allow all")
    await expect(every).to_have_attribute("aria-disabled", "true")
    await together.locator(".request-exact").focus()
    await ada.press("End")
    await expect(every).not_to_have_attribute("aria-disabled", "true")
    await together.get_by_role("button", name="Deny all").click()
    await expect(together).to_have_count(0)


async def test_inbox_allows_only_what_is_in_sight(ada: Visitor) -> None:
    await ada.begin(tool("shell", command=LONG))
    await expect(ada.approval).to_be_visible()
    await ada.go("/waiting")
    card = ada.page.locator(".waiting .request").first
    await expect(card.get_by_role("button", name="Allow once")).to_have_attribute("aria-disabled", "true")
    await hears(card)
    await ada.press("Alt+1")
    await expect(card.get_by_role("status").first).to_contain_text(UNREAD)
    await card.get_by_role("button", name="Deny").first.click()


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("padded", tool("shell", command=PADDED["blank lines"]() + " " * 400 + "# end", timeout_s=600)),
        ("long", tool("write", path="harbour.py", content="".join(f"depth[{n}] = {n}\n" for n in range(300)))),
        ("hidden", tool("shell", command=HIDDEN)),
    ],
)
async def test_approval_reads_well_in_every_light_and_on_a_phone(
    visitors: Visitors, palaver: Palaver, name: str, order: str
) -> None:
    for size in (None, PHONE):
        ada = await visitors.owner(palaver.url, palaver.token, *([size] if size else []))
        await ada.begin(order)
        await expect(ada.approval).to_be_visible()
        await stands_still(ada.page)
        for scheme in SCHEMES:
            assert await axe_findings(ada.page, scheme) == []
            await picture(ada.page, f"approval-{name}-{scheme}-{'phone' if size else 'desktop'}", scheme)
        await fits(ada.page)
        await deny(ada)


HIDDEN_IN_MARKDOWN = (
    f"1. Tidy the README.\n\n[step 2]: <{EVIL}>\n\n[//]: # ({EVIL})\n\n"
    f'2. See [the docs](https://good.example "{EVIL}").\n\n```sh {EVIL}\nls\n```\n\n<!-- {EVIL} -->\n'
)
WORDS = "\n".join(f"- step {number}" for number in range(200))


def plan(text: str, summary: str = "Tidy up") -> RequestOpened:
    steps = (PlanItem(title="Tidy the README", description="Only its first part."), PlanItem(title="Test it"))
    return RequestOpened(request="r1", kind="plan", plan=Plan(summary=summary, items=steps, text=text))


def asking(**fields: str) -> RequestOpened:
    first = QuestionOption(label="Yes", description=fields.get("description"), preview=fields.get("preview"))
    asked = Question(question=fields.get("question", "Go on?"), options=(first, QuestionOption(label="No")))
    return RequestOpened(request="r1", kind="question", questions=(asked,))


def in_conversation(request: RequestOpened) -> Sequence[bytes]:
    log = begun("judged")
    log.add(ToolCalled(message="m2", block=0, call="c1", name="plan", input={}), request)
    return log.lines


async def test_plan_shows_what_markdown_would_leave_out(visitors: Visitors) -> None:
    async with watching(visitors, in_conversation(plan(HIDDEN_IN_MARKDOWN))) as watched:
        card = watched.visitor.page.locator(".request")
        await expect(card).to_contain_text("Tidy up")
        assert (await card.inner_text()).count(EVIL) == HIDDEN_IN_MARKDOWN.count(EVIL)


async def test_summary_of_a_plan_keeps_its_lines_and_folds_its_padding(visitors: Visitors) -> None:
    request = plan("", summary=f"Tidy the README.{chr(10) * 4000}Then {EVIL}")
    async with watching(visitors, in_conversation(request)) as watched:
        card = watched.visitor.page.locator(".request")
        await expect(card.locator(".exact-line", has_text=EVIL)).to_be_in_viewport()


@pytest.mark.parametrize("request_", [plan(f"{WORDS}\n{EVIL}"), plan("", f"{WORDS}\n{EVIL}")], ids=["text", "summary"])
async def test_plan_is_approved_only_after_its_end_was_in_sight(visitors: Visitors, request_: RequestOpened) -> None:
    async with watching(visitors, in_conversation(request_)) as watched:
        card = watched.visitor.page.locator(".request")
        approve = card.get_by_role("button", name="Approve")
        await expect(approve).to_have_attribute("aria-disabled", "true")
        await expect(card.locator(".reader-more")).to_contain_text("more rows")
        await card.locator(".request-exact").focus()
        await watched.visitor.press("End")
        await expect(approve).not_to_have_attribute("aria-disabled", "true")


@pytest.mark.parametrize("place", ["question", "description", "preview"])
async def test_question_is_answered_only_after_its_end_was_in_sight(visitors: Visitors, place: str) -> None:
    async with watching(visitors, in_conversation(asking(**{place: f"{WORDS}\n{EVIL}"}))) as watched:
        card = watched.visitor.page.locator(".request")
        send = card.get_by_role("button", name="Answer")
        await expect(card.locator(".reader-more")).to_contain_text("more rows")
        await card.get_by_role("radio").first.dispatch_event("click")
        await expect(send).not_to_have_attribute("disabled", "")
        await expect(send).to_have_attribute("aria-disabled", "true")
        await send.click(force=True)
        await expect(card.get_by_role("status")).to_contain_text(UNREAD)
        await card.locator(".request-scroll").evaluate("node => node.scrollTo(0, node.scrollHeight)")
        await expect(send).not_to_have_attribute("aria-disabled", "true")


@pytest.mark.parametrize("place", ["question", "description", "preview"])
@pytest.mark.parametrize("padding", ["\n" * 4000, " " * 9000, "\u3164" * 2000], ids=["lines", "spaces", "fillers"])
async def test_padded_question_is_in_sight_at_once(visitors: Visitors, place: str, padding: str) -> None:
    async with watching(visitors, in_conversation(asking(**{place: f"Go?{padding}{EVIL}"}))) as watched:
        await expect(watched.visitor.page.get_by_text(EVIL)).to_be_in_viewport()


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("plan", plan(HIDDEN_IN_MARKDOWN)),
        ("long-plan", plan(WORDS)),
        ("question", asking(question="Go on?\nIt takes an hour.", description="An hour from now", preview="make all")),
        ("long-question", asking(question=WORDS)),
    ],
)
async def test_plans_and_questions_read_well_in_every_light_and_on_a_phone(
    visitors: Visitors, name: str, request_: RequestOpened
) -> None:
    async with watching(visitors, in_conversation(request_)) as watched:
        page = watched.visitor.page
        await expect(page.locator(".request")).to_be_visible()
        for width, height in ((1440, 900), PHONE):
            await page.set_viewport_size({"width": width, "height": height})
            await stands_still(page)
            for scheme in SCHEMES:
                assert await axe_findings(page, scheme) == []
                await picture(page, f"asked-{name}-{scheme}-{width}", scheme)
            await fits(page)
