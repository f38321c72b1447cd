"""The screens of the page, each reached the way a person would, or played from a golden log where that shows more."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from playwright.async_api import expect

from tests.browser.player import Player
from tests.browser.served import Palaver
from tests.browser.visitor import Visitor, Visitors

SIGNED_OUT = "status of 401"


@dataclass
class Stage:
    visitors: Visitors
    palaver: Palaver
    stack: AsyncExitStack
    """Ends the servers that golden logs are played from."""
    size: tuple[int, int]

    async def owner(self) -> Visitor:
        return await self.visitors.owner(self.palaver.url, self.palaver.token, self.size)

    async def golden(self, name: str, to_seq: int | None = None) -> Visitor:
        player = await self.stack.enter_async_context(Player.of(name).serving())
        player.head = to_seq or len(player.lines)
        visitor = await self.visitors.stranger(player.url, self.size)
        self.stack.push_async_callback(visitor.page.close)
        await visitor.open(player.conversation)
        await expect(visitor.log.get_by_role("article").first).to_be_visible()
        return visitor


async def sign_in(stage: Stage) -> Visitor:
    """With a refusal in it."""
    stage.visitors.complaints.expect(SIGNED_OUT)
    visitor = await stage.visitors.stranger(stage.palaver.url, stage.size)
    await visitor.go()
    field = visitor.page.get_by_label("Access token")
    await field.fill("wrong")
    await field.press("Enter")
    await expect(visitor.page.get_by_role("alert")).to_contain_text("token")
    return visitor


async def empty(stage: Stage) -> Visitor:
    visitor = await stage.owner()
    await visitor.go()
    await expect(visitor.page.get_by_role("heading", name="What shall we work on?")).to_be_visible()
    await expect(visitor.page.get_by_role("button", name="Agent: ")).to_be_visible()
    return visitor


async def conversation(stage: Stage) -> Visitor:
    """Everything that can be opened is."""
    visitor = await stage.golden("long")
    closed = visitor.log.locator("[aria-expanded=false]:not([aria-haspopup])")
    while await closed.count():
        await closed.last.click()
    return visitor


async def work(stage: Stage) -> Visitor:
    return await stage.golden("work")


async def failure(stage: Stage) -> Visitor:
    visitor = await stage.owner()
    await visitor.begin("!status 403")
    await expect(visitor.log.get_by_role("heading", name="The provider refused the request")).to_be_visible()
    return visitor


async def running(stage: Stage) -> Visitor:
    """A command at work, and two messages that wait."""
    visitor = await stage.golden("long", 220)
    await expect(visitor.queue).to_be_visible()
    return visitor


async def paused(stage: Stage) -> Visitor:
    """The agent was stopped, and what waits is held."""
    visitor = await stage.golden("paused", 14)
    await expect(visitor.queue.get_by_role("status")).to_contain_text("Paused")
    return visitor


async def approval(stage: Stage) -> Visitor:
    visitor = await stage.golden("long", 126)
    await expect(visitor.approval).to_be_visible()
    return visitor


async def many_requests(stage: Stage) -> Visitor:
    visitor = await stage.golden("requests", 12)
    await expect(visitor.page.get_by_text("1 of 3")).to_be_visible()
    return visitor


async def plan(stage: Stage) -> Visitor:
    visitor = await stage.golden("long", 113)
    await expect(visitor.page.get_by_role("region", name="The agent proposes a plan")).to_be_visible()
    return visitor


async def question(stage: Stage) -> Visitor:
    visitor = await stage.golden("long", 160)
    await expect(visitor.page.get_by_role("region", name="A question for you")).to_be_visible()
    return visitor


async def engine(stage: Stage) -> Visitor:
    """Recalled notes, another model, a shortened history, changed files and two processes, all opened."""
    visitor = await stage.golden("engine", 22)
    closed = visitor.log.locator("[aria-expanded=false]:not([aria-haspopup])")
    while await closed.count():
        await closed.last.click()
    await expect(visitor.page.get_by_role("region", name="Background processes")).to_be_visible()
    return visitor


async def meter(stage: Stage) -> Visitor:
    visitor = await stage.golden("long")
    await visitor.page.get_by_role("button", name="Context and cost").click()
    await expect(visitor.page.get_by_role("heading", name="Context and cost")).to_be_visible()
    return visitor


async def changed_files(stage: Stage) -> Visitor:
    visitor = await stage.golden("engine", 22)
    await visitor.page.get_by_role("button", name="Context and cost").click()
    await visitor.page.get_by_role("button", name="Show the changes").click()
    await expect(visitor.page.get_by_role("dialog", name="Changed files")).to_be_visible()
    return visitor


async def settings(stage: Stage) -> Visitor:
    visitor = await stage.golden("engine", 22)
    await visitor.page.get_by_role("button", name="Agent: ").click()
    await visitor.page.get_by_role("menuitem", name="Model and settings").click()
    await expect(visitor.page.get_by_role("dialog", name="Conversation settings")).to_be_visible()
    return visitor


async def modes(stage: Stage) -> Visitor:
    """Plan mode is on, and full access about to be given."""
    visitor = await stage.owner()
    await visitor.may_choose_full()
    await visitor.begin("!say Ready.")
    await visitor.page.get_by_role("button", name="Mode: ").click()
    await visitor.page.get_by_role("menuitemradio", name="Plan only").click()
    await expect(visitor.page.get_by_role("note")).to_be_visible()
    await visitor.page.get_by_role("button", name="Mode: ").click()
    await visitor.page.get_by_role("menuitemradio", name="Full access").click()
    await expect(visitor.page.get_by_role("dialog", name="Give full access?")).to_be_visible()
    return visitor


async def search(stage: Stage) -> Visitor:
    visitor = await stage.owner()
    await visitor.begin("Where does the sundew grow?")
    await expect(visitor.log).to_contain_text("You said: Where does")
    await visitor.rests()
    await visitor.show_list()
    await visitor.search_field.fill("sundew")
    await expect(visitor.page.locator("mark").first).to_have_text("sundew")
    return visitor


async def find(stage: Stage) -> Visitor:
    visitor = await stage.golden("long")
    await visitor.press("Control+f")
    await visitor.page.get_by_role("textbox", name="Find in conversation").fill("beans")
    await expect(visitor.page.get_by_role("search", name="Find", exact=True)).to_contain_text("1 of")
    return visitor


async def palette(stage: Stage) -> Visitor:
    visitor = await stage.golden("long")
    await visitor.press("Control+k")
    await expect(visitor.page.get_by_role("option").first).to_be_visible()
    return visitor


async def key_help(stage: Stage) -> Visitor:
    visitor = await stage.golden("long")
    await visitor.log.focus()
    await visitor.press("?")
    await expect(visitor.page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    return visitor


async def missing(stage: Stage) -> Visitor:
    visitor = await stage.owner()
    await visitor.go("/c/nowhere")
    await expect(visitor.page.get_by_text("There is no such conversation")).to_be_visible()
    return visitor


Screen = Callable[[Stage], Awaitable[Visitor]]

SCREENS: dict[str, Screen] = {
    screen.__name__: screen
    for screen in (
        sign_in,
        empty,
        conversation,
        work,
        failure,
        running,
        paused,
        approval,
        many_requests,
        plan,
        question,
        engine,
        meter,
        changed_files,
        settings,
        modes,
        search,
        find,
        palette,
        key_help,
        missing,
    )
}
