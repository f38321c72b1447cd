"""Pictures of what waits for a person, of messages that wait, and of agents that work together."""

import re

from playwright.async_api import expect

from tests.browser.gallery.harbour import Harbour
from tests.browser.gallery.shots import ALL, BOTH, HANDY, shot
from tests.browser.gallery.talking import QUESTION
from tests.browser.test_pictures import SCRIPT
from tests.browser.visitor import Visitor
from tests.provider.script import Call, Gate, Say

ASKS = "Requests"
QUEUE = "The queue"
TEAM = "Several agents"


@shot(ASKS, "An edit needs approval, with the exact lines. Alt+1, 2, 3 answer it; typing never does.", ALL)
async def approval(harbour: Harbour) -> Visitor:
    harbour.provider.script.extend(SCRIPT)
    visitor = await harbour.talks(QUESTION)
    await visitor.asked()
    await expect(visitor.approval).to_contain_text("calendar.isleap")
    return visitor


@shot(ASKS, "A command needs approval, with the exact command and its sandbox.", HANDY)
async def approval_command(harbour: Harbour) -> Visitor:
    harbour.says("The new test first.", Call(name="shell", input={"command": "python3 -m unittest -v test_tide"}))
    visitor = await harbour.talks("Does the leap year test pass?")
    await visitor.asked()
    return visitor


@shot(ASKS, "Always allow: exactly this command or its program, and the scope.")
async def approval_always(harbour: Harbour) -> Visitor:
    harbour.says("Which changes are there?", Call(name="shell", input={"command": "git fetch origin main"}))
    visitor = await harbour.talks("What is new upstream?")
    await visitor.asked()
    await visitor.approval.get_by_role("button", name="Always …").click()
    await expect(visitor.approval.get_by_role("button", name="Always allow")).to_be_visible()
    return visitor


@shot(ASKS, "Several calls of one step, answered together or one by one.", BOTH)
async def approvals_together(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Write the horn and its page at once", agent="demo")
    await visitor.asked()
    return visitor


@shot(ASKS, "A question, with choices and a text field.", ALL)
async def question(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Ask me what you need to know", agent="demo")
    card = visitor.page.get_by_role("region", name="A question for you")
    await card.get_by_role("radio", name="A table").check()
    return visitor


@shot(ASKS, "A plan needs approval: approve it, ask for changes, or reject it.", ALL)
async def plan(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Plan a horn for the fog", agent="demo")
    card = visitor.page.get_by_role("region", name="The agent proposes a plan")
    await expect(card.get_by_role("listitem")).to_have_count(4)
    await expect(card.get_by_role("button", name="Approve")).to_be_enabled()
    return visitor


@shot(ASKS, "The current plan is one line above the message box, expanded here.")
async def plan_active(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Plan a horn for the fog", agent="demo")
    card = visitor.page.get_by_role("region", name="The agent proposes a plan")
    await card.get_by_role("button", name="Approve").click()
    docked = visitor.page.get_by_role("region", name="Plan", exact=True)
    await docked.get_by_role("button").click()
    await expect(docked).to_contain_text("2 of 4 done")
    return visitor


@shot(ASKS, "A budget was reached: continue or stop.")
async def spending(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("What may it cost?", agent="demo")
    card = visitor.page.get_by_role("region", name="Spending limit reached")
    await expect(card.get_by_role("button", name="Go on")).to_be_enabled()
    return visitor


async def many_wait(harbour: Harbour) -> None:
    await harbour.begin("Plan a horn for the fog", agent="demo", project="lights")
    await harbour.begin("Ask me what you need to know", agent="demo", project="lights")
    harbour.says(Call(name="shell", input={"command": "python3 -m unittest -v test_tide"}))
    await harbour.begin("Does the leap year test pass?", agent="builder")


@shot(
    ASKS,
    "Waiting for you: all open requests of all conversations and subagents, answered in place.",
    ALL,
)
async def waiting(harbour: Harbour) -> Visitor:
    await many_wait(harbour)
    visitor = await harbour.ada()
    await visitor.go("/waiting")
    main = visitor.page.get_by_role("main")
    await expect(main.get_by_role("region", name="Approval needed")).to_be_visible()
    await expect(main.get_by_role("region", name="A question for you")).to_be_visible()
    await expect(main.get_by_role("region", name="The agent proposes a plan")).to_be_visible()
    await expect(main.locator("[aria-disabled=true]")).to_have_count(0)
    return visitor


# -- the queue


@shot(
    QUEUE,
    "Messages sent while the agent works are queued or steer the running turn; edit or remove them.",
    ALL,
)
async def queue(harbour: Harbour) -> Visitor:
    harbour.says(
        "I go through the pages one by one. The first four are done;", Gate(name="pages"), Say(text=" so is the rest.")
    )
    visitor = await harbour.talks("Check every link of the website", project="website")
    await harbour.provider.gates.reached("pages")
    here = visitor.conversation
    await harbour.command(here, type="send_message", content="Then sort the pictures by year")
    await harbour.command(here, type="send_message", content="And write down what you changed in LOG.md")
    await harbour.command(here, type="send_message", content="Leave the archive alone", delivery="boundary")
    await expect(visitor.queue).to_contain_text("Leave the archive alone")
    await expect(visitor.queue).to_contain_text("LOG.md")
    return visitor


@shot(QUEUE, "A queued message is held while you edit it.")
async def queue_editing(harbour: Harbour) -> Visitor:
    visitor = await queue(harbour)
    await visitor.queue.get_by_role("button", name="Edit queued message").last.click()
    await expect(visitor.queue.get_by_role("button", name="Save")).to_be_visible()
    return visitor


@shot(QUEUE, "Stopped, with the queue held until you release it.", ALL)
async def queue_paused(harbour: Harbour) -> Visitor:
    visitor = await queue(harbour)
    await visitor.page.get_by_role("button", name="Stop and hold the queue").click()
    await expect(visitor.queue.get_by_role("button", name="Let all go")).to_be_visible()
    return visitor


# -- agents


def task(agent: str, prompt: str) -> Call:
    return Call(name="task", input={"agent": agent, "prompt": prompt})


@shot(TEAM, "Subagents at work; answer their requests here.", ALL)
async def subagents(harbour: Harbour) -> Visitor:
    harbour.says(
        "Two things at once: the tables and a second pair of eyes.",
        task("builder", "Add the tables for 2028 and run the tests."),
        task("reviewer", "Read the tables of 2026 and say what is wrong with them."),
    )
    for when, said in (
        (
            "2028",
            (Say(text="The almanac is read."), Call(name="shell", input={"command": "python3 make_tables.py 2028"})),
        ),
        ("2026", (Say(text="The first quarter is right; the rest is under way."), Gate(name="review"))),
    ):
        harbour.says(*said, when=when)
    visitor = await harbour.talks("Get the tide tables ready for 2028", agent="pilot")
    await harbour.provider.gates.reached("review")
    await visitor.asked()
    strip = visitor.page.get_by_role("region", name="Subagents")
    await expect(strip).to_contain_text("2 subagents at work")
    line = visitor.log.locator(".work").filter(has=visitor.page.locator(".tool-verb", has_text="Reviewer")).first
    await line.locator(".tool-line").first.click()
    await expect(visitor.page.get_by_role("region", name="What Reviewer does")).to_contain_text("under way")
    return visitor


@shot(TEAM, "One agent sends a message to another: the message, the reply, and what was done for it.")
async def exchange(harbour: Harbour) -> Visitor:
    letter = {"agentId": "reviewer", "content": "Is the table of 2027 right? Two dates would do."}
    harbour.says("I ask the reviewer.", Call(name="agents_message", input=letter))
    harbour.says("1 January and 29 June agree with the almanac.")
    harbour.says("The reviewer compared two dates of 2027 with the almanac: both are right.")
    visitor = await harbour.talks("Has anybody checked 2027?", agent="pilot")
    await expect(visitor.log).to_contain_text("both are right")
    await visitor.rests()
    await visitor.log.get_by_role("button", name=re.compile("Wrote to Reviewer")).first.click()
    await expect(visitor.log).to_contain_text("29 June agree")
    return visitor
