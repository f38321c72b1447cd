"""Pictures of a conversation: what is said, what is done, how it ends."""

import re
from base64 import b64decode

from playwright.async_api import FilePayload, expect

from palaver.backends.demo.text import SUNSET
from tests.browser.gallery.harbour import Harbour
from tests.browser.gallery.shots import ALL, BOTH, HANDY, shot
from tests.browser.test_pictures import SCRIPT
from tests.browser.visitor import Visitor
from tests.provider.script import Call, Gate, Say, Status, Think

TALK = "A conversation"
TOOLS = "Tool calls"
ENDS = "Interruptions and errors"

QUESTION = "The tide table is an hour off since March. Why?"


async def at_the_end(visitor: Visitor, words: str) -> Visitor:
    """Nothing runs, and the last words are in sight."""
    await expect(visitor.log).to_contain_text(words)
    await visitor.rests()
    await visitor.log.hover()
    await visitor.page.mouse.wheel(0, 20_000)
    await expect(visitor.log.get_by_text(words).last).to_be_in_viewport()
    await visitor.page.mouse.move(2, 2)
    return visitor


async def allow_edits(visitor: Visitor) -> None:
    """For the conversation, which is what is offered first."""
    await visitor.press("Alt+2")
    await expect(visitor.approval.get_by_role("button", name="Always allow")).to_be_visible()
    await visitor.press("Enter")


async def fixed_tides(harbour: Harbour) -> Visitor:
    harbour.provider.script.extend(SCRIPT)
    visitor = await harbour.talks(QUESTION)
    await visitor.asked()
    await allow_edits(visitor)
    await expect(visitor.approval.get_by_label("Exactly what will run")).to_contain_text("unittest")
    await visitor.asked()
    await visitor.press("Alt+1")
    return await at_the_end(visitor, "no other table changes")


@shot(TALK, "A conversation: what the agent found, what it changed, and the test that now passes.", ALL)
async def conversation(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    await visitor.unfold()
    await visitor.row(re.compile("^Tool: Ran python3")).get_by_role("button").first.click()
    await expect(visitor.log).to_contain_text("OK")
    return await at_the_end(visitor, "no other table changes")


@shot(
    TALK,
    "While the agent writes, its activity and the elapsed time are shown above the message box; Stop is always there.",
    HANDY,
)
async def writing(harbour: Harbour) -> Visitor:
    harbour.says(
        Think(text="The keeper asks for the week. The log has seven pages; the lamps first, then the weather."),
        Call(name="read", input={"path": "lamp.py"}),
    )
    harbour.says(
        "Last week was quiet.\n\n- **Lamps:** two were changed, at buoys 4 and 9.\n- **Fog:** none, for the first time "
        "since September.\n- **Traffic:** 41 boats, three of them at night.\n\nThe horn was tested on Thursday and",
        Gate(name="writing"),
        Say(text=" works."),
    )
    visitor = await harbour.talks("What happened last week?", project="lights")
    await harbour.provider.gates.reached("writing")
    await expect(visitor.log).to_contain_text("tested on Thursday and")
    return visitor


@shot(TALK, "Streaming Markdown: tables, lists, code with copy and wrap.", BOTH)
async def markdown(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Show me a table", agent="demo")
    await expect(visitor.log).to_contain_text("That was the demo")
    await visitor.rests()
    return visitor


@shot(TALK, "Thinking is one line until you expand it.")
async def thinking(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Think it over: how much water do we need?", agent="demo")
    await expect(visitor.log).to_contain_text("That was the demo")
    await visitor.rests()
    await visitor.log.get_by_role("button", name=re.compile("^Thought")).click()
    await expect(visitor.log).to_contain_text("Four litres a day")
    return visitor


@shot(TALK, "Edit and resend your own message, or branch from it.")
async def edit_and_resend(harbour: Harbour) -> Visitor:
    harbour.says("Buoys **7**, **12** and **12a** have no light.")
    visitor = await harbour.talks("Which buoys have no light?", project="lights")
    await at_the_end(visitor, "have no light.")
    mine = visitor.row(re.compile("^You, "))
    await mine.hover()
    await mine.get_by_role("button", name="Message actions").click()
    await visitor.page.get_by_role("menuitem", name="Edit and resend").click()
    box = visitor.page.get_by_role("textbox", name="Edit your message")
    await box.fill("Which buoys have no light, and since when?")
    return visitor


@shot(TALK, "Scroll up while the agent works: nothing moves, and a button says how much is new.")
async def reading(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Tell me a long story", agent="demo")
    await visitor.rests()
    await harbour.command(visitor.conversation, type="send_message", content="And the long story once more")
    await expect(visitor.log).to_contain_text("once more")
    await visitor.log.hover()
    await visitor.page.mouse.wheel(0, -1500)
    await expect(visitor.page.get_by_role("button", name=re.compile(r"\d+ new"))).to_be_visible()
    return visitor


@shot(TALK, "Pasted or dropped images are attached to the message.")
async def composing(harbour: Harbour) -> Visitor:
    harbour.says("Send me the picture, and I compare it with the plan.")
    visitor = await harbour.talks("Does the new lamp house look right?", project="lights")
    await at_the_end(visitor, "compare it")
    sunset = b64decode(SUNSET.partition(",")[2])
    kind = SUNSET.partition(";")[0].removeprefix("data:")
    chosen = FilePayload(name="lamp", mimeType=kind, buffer=sunset)
    await visitor.page.locator("input[type=file]").first.set_input_files(chosen)
    await visitor.box.fill("Here it is, from the sea side.")
    await expect(visitor.page.get_by_role("button", name="Remove image")).to_be_visible()
    return visitor


# -- tools


@shot(TOOLS, "Read and search calls share one line; expanded, it shows each call and its result.", BOTH)
async def explored(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Search for the range of the light", agent="demo")
    await expect(visitor.log).to_contain_text("That was the demo")
    await visitor.rests()
    await visitor.unfold()
    await visitor.log.get_by_role("button", name=re.compile("^Explored")).click()
    await visitor.log.get_by_role("button", name=re.compile("Searched")).first.click()
    await expect(visitor.log).to_contain_text("src/fog.py:8")
    return visitor


@shot(TOOLS, "A running command: live output, standard error highlighted, elapsed time.", BOTH)
async def command_running(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Run the tests of the lamp", agent="demo")
    await visitor.log.get_by_role("button", name=re.compile("^Running pytest")).click()
    await expect(visitor.log).to_contain_text("test_night_3 PASSED")
    return visitor


@shot(TOOLS, "A failed command and a second attempt. A failed call does not end the turn.")
async def command_failed(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Does the build fail?", agent="demo")
    await expect(visitor.log).to_contain_text("That was the demo")
    await visitor.rests()
    await visitor.log.get_by_role("button", name=re.compile("^Ran make horn")).first.click()
    await expect(visitor.log).to_contain_text("expected ';'")
    return visitor


@shot(TOOLS, "Three changed files, expanded to their lines.", ALL)
async def changes(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Write the horn and its page at once", agent="demo")
    await visitor.asked()
    await visitor.approval.get_by_role("button", name="Allow all 3").click()
    changed = visitor.row("Changed 2 files")
    await changed.get_by_role("button", name="src/horn.py new").click()
    await visitor.rests()
    await changed.scroll_into_view_if_needed()
    await visitor.page.mouse.move(2, 2)
    return visitor


@shot(TOOLS, "All changes of a conversation.", BOTH)
async def changed_files(harbour: Harbour) -> Visitor:
    visitor = await fixed_tides(harbour)
    await visitor.page.get_by_role("button", name="Context and cost").click()
    await visitor.page.get_by_role("button", name="Show the changes").click()
    await expect(visitor.page.get_by_role("dialog", name="Changed files")).to_contain_text("calendar")
    return visitor


@shot(TOOLS, "Recalled knowledge is shown below the message, with its sources.")
async def recalled(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("What do you remember about the horn?", agent="demo")
    await visitor.log.get_by_role("button", name="Recalled 2 notes and 1 file").click()
    await expect(visitor.log).to_contain_text("That was the demo")
    await visitor.rests()
    return visitor


@shot(TOOLS, "A compressed context: you still see everything, and what the model is shown instead.")
async def shortened(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("How full is the context?", agent="demo")
    await expect(visitor.log).to_contain_text("That was the demo")
    await visitor.rests()
    await visitor.log.get_by_role("button", name=re.compile("shorter version")).click()
    await expect(visitor.row("Shortened for the model")).to_contain_text("summary")
    return visitor


async def with_meter(visitor: Visitor) -> None:
    opened = visitor.page.get_by_text("Project instructions")
    await expect(opened).to_have_count(0)
    await visitor.page.get_by_role("button", name="Context and cost").click()
    await expect(opened).to_be_visible()


@shot(
    TOOLS,
    "The context meter: what fills the context window, tokens, and cost.",
    HANDY,
    on_phone=with_meter,
)
async def meter(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("How full is the context?", agent="demo")
    await expect(visitor.log).to_contain_text("That was the demo")
    await visitor.rests()
    await with_meter(visitor)
    return visitor


@shot(TOOLS, "Background processes, each with a Stop button.")
async def background(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Keep the tide clock running in the background", agent="demo")
    strip = visitor.page.get_by_role("region", name="Background processes")
    await expect(strip).to_contain_text("tide-clock")
    await expect(visitor.log).to_contain_text("That was the demo")
    await visitor.rests()
    return visitor


@shot(TOOLS, "A denied call with a note: the agent is told, and continues another way.")
async def denied(harbour: Harbour) -> Visitor:
    harbour.says("I clear the old tables away first.", Call(name="shell", input={"command": "rm -r tables"}))
    harbour.says("Then I leave them, and write the new ones beside them.")
    visitor = await harbour.talks("Make room for the tables of 2028")
    await visitor.asked()
    await visitor.approval.get_by_role("button", name="More choices").click()
    await visitor.page.get_by_role("menuitem", name="Deny with a note").click()
    await visitor.approval.get_by_role("textbox").fill("Keep the old tables.")
    await visitor.approval.get_by_role("button", name="Deny and tell").click()
    await at_the_end(visitor, "beside them.")
    return visitor


# -- ends


@shot(ENDS, "Stopped: the partial answer stays and is marked, with ways to continue.", ALL)
async def interrupted(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Tell me a long story", agent="demo")
    await expect(visitor.log).to_contain_text("2.")
    await visitor.stop_button.click()
    await expect(visitor.log).to_contain_text("Interrupted by you")
    await visitor.rests()
    return visitor


@shot(ENDS, "The model service does not answer: the attempts so far, and the next one.")
async def retrying(harbour: Harbour) -> Visitor:
    harbour.says(fault=Status(503, retry_after="50", message="The service is overloaded."))
    visitor = await harbour.talks("Which buoys were painted?", project="lights")
    await expect(visitor.page.get_by_role("group", name="Activity")).to_contain_text("Retrying")
    return visitor


@shot(ENDS, "An error card: what happened and what to do.", ALL)
async def error(harbour: Harbour) -> Visitor:
    visitor = await harbour.talks("Are you offline?", agent="demo")
    await expect(visitor.log.get_by_role("heading", name="The provider is not available")).to_be_visible()
    await visitor.rests()
    return visitor


@shot(
    ENDS,
    "Offline: the last contact and the next attempt. What you write is kept and sent later.",
    HANDY,
)
async def offline(harbour: Harbour) -> Visitor:
    harbour.says("All eleven pages now say *North Head*.")
    visitor = await harbour.talks("Rename the harbour pages", project="website")
    await at_the_end(visitor, "North Head")
    harbour.visitors.complaints.expect("WebSocket", "ERR_INTERNET_DISCONNECTED", "Failed to load")
    await visitor.page.context.set_offline(True)
    await expect(visitor.page.get_by_text(re.compile("offline|No connection")).first).to_be_visible(timeout=45_000)
    await visitor.send("And the map as well, please.")
    await expect(visitor.page.get_by_text("Will send when connected")).to_be_visible()
    return visitor
