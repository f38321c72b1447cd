"""The `demo` agent: a script that shows everything an agent can do here, with no model and no effect on the machine.

What a new user meets first. It looks for words in the message (`SCENES` is the list) and plays the scenes they name; to
anything else it answers with a short tour. Played by `script/backend.py`. Nothing it shows is real but the events themselves, and
it says so.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from palaver.backends.base import Capabilities
from palaver.backends.demo.scenes import WINDOW_TOKENS, context, knowledge, process, together
from palaver.backends.demo.text import DIFF, LIGHTHOUSE, MARKDOWN, REAL_AGENTS, STORY, SUNSET, WELCOME
from palaver.backends.script.backend import SCRIPTED, ScriptedBackend
from palaver.backends.script.script import (
    Ask,
    Boundary,
    Confirm,
    Dialogue,
    Emit,
    Fail,
    Pause,
    Prompt,
    Reply,
    Say,
    ShowPlan,
    Status,
    Step,
    Think,
    Tool,
    Tools,
)
from palaver.errors import ProviderUnavailable
from palaver.schema.events import ContextMeasured
from palaver.schema.view import FileChange, Message, Plan, PlanItem, Question, QuestionOption, Retry, TextBlock

TOKENS_PER_S = 40.0
"""The pace of a brisk model: fast enough not to bore, slow enough to see that it streams."""

SCENES_AT_ONCE = 4
"""A long message may name many scenes; nobody wants to sit through all of them unasked."""

# Images are taken, counted and shown back by the page; that no model looks at them is said in the scene.
CAPABILITIES: Capabilities = replace(SCRIPTED, images=True)


def demo_backend() -> ScriptedBackend:
    return ScriptedBackend(
        demo_script, name="demo", capabilities=CAPABILITIES, delivered=_take_note, tokens_per_s=TOKENS_PER_S
    )


def demo_script(prompt: Prompt) -> Dialogue:
    if prompt.image_count:
        yield from _describe_attachments(prompt.image_count)
    scenes = scenes_for(prompt.text)
    if not scenes and not prompt.image_count:
        yield from _tour(prompt)
    for scene in scenes:
        yield from scene.play()
        yield Boundary()
    if scenes:
        yield Say(_next_words(scenes))
    yield Boundary()
    if any(scene.play is context for scene in scenes):
        return  # It has set the meter to something worth looking at.
    yield Emit(ContextMeasured(used_tokens=prompt.history_tokens, window_tokens=WINDOW_TOKENS))


def scenes_for(text: str) -> "list[Scene]":
    """The scenes a text names, in the order it names them."""
    if _EVERYTHING.search(text):
        return [scene for scene in SCENES if scene.ends_well]
    named = [(found.start(), scene) for scene in SCENES if (found := scene.words.search(text))]
    return [scene for _, scene in sorted(named, key=lambda place: place[0])][:SCENES_AT_ONCE]


def _take_note(messages: Sequence[Message]) -> list[Step]:
    said = "\n".join(
        block.text for message in messages for block in message.blocks if isinstance(block, TextBlock)
    ).strip()
    first = said.splitlines()[0][:80] if said else "(an image)"
    return [Say(f"> {first}\n\nGot it: your message joined this turn while I was talking. Now, where was I?")]


# -- the tour


def _tour(prompt: Prompt) -> Iterator[Step]:
    if prompt.earlier_turns:
        yield Say(f"I am only a script, so I cannot answer that. But I know these words:\n\n{_menu()}")
        return
    yield Think("A new face. I shall say what I am, show the words I know, and keep it short.")
    yield Say(WELCOME)
    yield Say(f"Type one of these words, or several, in any sentence:\n\n{_menu()}")
    yield Say(REAL_AGENTS)


def _menu() -> str:
    rows = "\n".join(f"| **{scene.name}** | {scene.shows} |" for scene in SCENES)
    return f"| type | and see |\n|---|---|\n{rows}\n| **everything** | all of it, one after the other |\n"


def _next_words(seen: "Sequence[Scene]") -> str:
    left = [scene.name for scene in SCENES if scene not in seen]
    return f"*That was the demo. Next you might type* {', '.join(f'**{name}**' for name in left[:4])}."


# -- the scenes


def _think() -> Dialogue:
    yield Think(
        "The question is how much water a lighthouse keeper needs for a month. Four litres a day for drinking and cooking, "
        "ten for washing. Fourteen times thirty is four hundred and twenty. Add a tenth for leaks and visitors: about 460."
    )
    yield Say(
        "About **460 litres** for a month.\n\nThe line above this answer holds what I thought before I spoke. It stays "
        "folded until you open it, and it says how long it took."
    )


def _markdown() -> Dialogue:
    yield Say(MARKDOWN)


def _tools() -> Dialogue:
    yield Say("Let me look around first.")
    yield Tools(
        (
            Tool("list", {"path": "src"}, output="lighthouse.py\nfog.py\nkeeper.py\n", takes_s=0.3, effect="none"),
            Tool("read", {"path": "src/lighthouse.py"}, output=LIGHTHOUSE, takes_s=0.4, effect="none"),
            Tool(
                "grep",
                {"pattern": "RANGE_NM", "path": "src"},
                output="src/lighthouse.py:3:RANGE_NM = 19\nsrc/fog.py:8:from lighthouse import RANGE_NM\n",
                takes_s=0.3,
                effect="none",
            ),
        )
    )
    yield Say(
        "`RANGE_NM` is defined in `src/lighthouse.py` and used in `src/fog.py`. Looking around is folded into one line; open "
        "it to see each call. (These files exist only in this demo.)"
    )


def _shell() -> Dialogue:
    lines = [f"tests/test_light.py::test_night_{number} PASSED [{number * 12}%]\n" for number in range(1, 9)]
    yield Say("Running the tests. You can watch the output while it comes:")
    yield Tool(
        "shell",
        {"command": "pytest -v tests/test_light.py"},
        live=(
            "collected 8 items\n\n",
            *lines,
            ("stderr", "warning: the tide table ends in 2030\n"),
            "8 passed in 3.1s\n",
        ),
        takes_s=3.0,
        exit_code=0,
        effect="none",
        title="Run pytest -v tests/test_light.py",
    )
    yield Say("All eight pass. (No command ran: the output is part of the script.)")


def _edit() -> Dialogue:
    yield Say(
        "I would like to change a file, and for that I need your permission. Look at the difference, then decide."
    )
    reply = yield Tool(
        "edit",
        {"path": "src/lighthouse.py", "old": "RANGE_NM = 19", "new": "RANGE_NM = 23"},
        output="Edited src/lighthouse.py",
        asks=True,
        takes_s=0.3,
        effect="none",
        title="Edit src/lighthouse.py",
        preview=DIFF,
        risk="None: the demo only pretends to edit.",
        changes=(FileChange(path="src/lighthouse.py", kind="modified", additions=2, deletions=1, diff=DIFF),),
    )
    if reply.allowed:
        yield Say(
            "Thank you. The change is listed among the changed files, with its difference. *No file was touched: this is "
            "the demo.* A real agent's approval holds for exactly what you saw; if the file changed in between, it asks again."
        )
    else:
        reason = f" You said: “{reply.text}”." if reply.text else ""
        yield Say(f"Understood, I leave the file as it is.{reason} A declined call is a normal answer, not an error.")


def _plan() -> Dialogue:
    plan = Plan(
        summary="Give the lighthouse a fog horn",
        items=(
            PlanItem(title="Read how the light is timed"),
            PlanItem(title="Write the horn", description="Three seconds on, twenty-seven off."),
            PlanItem(title="Test it in thick fog"),
            PlanItem(title="Tell the harbour master"),
        ),
    )
    yield Say("Here is what I have in mind. I start when you approve it.")
    reply = yield ShowPlan(plan, asks=True)
    if not reply.allowed:
        yield ShowPlan(None)
        yield Say("Then not. Say what you would do differently, and a real agent would plan again.")
        return
    work = (
        Tool("read", {"path": "src/lighthouse.py"}, output=LIGHTHOUSE, takes_s=0.8, effect="none"),
        Tool(
            "write",
            {"path": "src/horn.py", "content": "ON_S = 3\n"},
            output="Wrote 9 bytes",
            takes_s=0.8,
            effect="none",
        ),
        Tool("shell", {"command": "pytest tests/fog"}, live=("2 passed\n",), takes_s=1.2, exit_code=0, effect="none"),
        Tool("agents_message", {"agent": "harbour", "message": "Mind the noise."}, output="Noted.", effect="none"),
    )
    for at, tool in enumerate(work):
        yield ShowPlan(_progress(plan, at))
        yield tool
    yield ShowPlan(_progress(plan, len(work)))
    yield Say("Every step is done. (The horn is as imaginary as the lighthouse.)")


def _progress(plan: Plan, current: int) -> Plan:
    items = tuple(
        changed(item, status="done" if at < current else "in_progress" if at == current else "pending")
        for at, item in enumerate(plan.items)
    )
    return changed(plan, items=items, status="completed" if current == len(items) else "executing")


def _question() -> Dialogue:
    yield Say("Sometimes an agent needs to know something before it goes on.")
    reply = yield Ask(
        (
            Question(
                header="Next",
                question="What shall I show you next?",
                options=(
                    QuestionOption(label="A plan", description="Four steps that wait for your approval"),
                    QuestionOption(label="A shell command", description="Output you can watch"),
                    QuestionOption(label="A table", description="Markdown as it streams in"),
                    QuestionOption(label="Nothing, thanks"),
                ),
            ),
        )
    )
    answer = _answer(reply)
    if not answer:
        yield Say("Nobody answered, so I assume nothing and go on without. An agent is told that, too.")
        return
    yield Say(f"You answered: **{answer}**.")
    yield Boundary()
    for scene in scenes_for(answer)[:1]:
        if scene.play is not _question:
            yield from scene.play()


def _answer(reply: Reply) -> str:
    chosen = [text for answer in reply.answers for text in (*answer.selected, answer.custom_text) if text]
    return ", ".join(chosen) or reply.text or ""


def _error() -> Dialogue:
    yield Say("Not everything works the first time:")
    yield Tool(
        "shell",
        {"command": "make horn"},
        live=("cc -o horn horn.c\n", ("stderr", "horn.c:12: error: expected ';' before '}' token\n")),
        takes_s=1.0,
        ok=False,
        error="The command ended with exit code 2.",
        exit_code=2,
        effect="none",
    )
    yield Say("A failed call is a result that the agent can act on:")
    yield Tool(
        "shell",
        {"command": "make horn"},
        live=("cc -o horn horn.c\n", "done\n"),
        takes_s=1.0,
        exit_code=0,
        effect="none",
    )
    yield Say(
        "A semicolon was missing. When the service behind an agent fails, it looks different: type **outage** for that."
    )


def _outage() -> Dialogue:
    yield Say("In a moment the service behind me will seem to be down. What I said until then stays.")
    for attempt in (2, 3):
        reason = "The demo pretends that its service is overloaded."
        yield Status("thinking", retry=Retry(attempt=attempt, of=3, after_s=2.0, reason=reason))
        yield Pause(2.0)
    yield Fail(
        ProviderUnavailable("The demo pretends that its service is down. Nothing is wrong: just type something else.")
    )


def _spending() -> Dialogue:
    yield Say("An agent may cost money, and a conversation may have a limit. When it is reached, I ask:")
    reply = yield Confirm(
        title="Go on beyond the spending limit of $1.00?",
        preview="This conversation has cost $1.03. A yes lets it go on up to $2.03.",
        risk="It costs money (not here: the demo is free).",
    )
    yield Say("Thank you, then I go on." if reply.allowed else "Understood: a real agent would stop here.")


def _agents() -> Dialogue:
    yield Say("I shall ask a colleague.")
    yield Tool(
        "agents_message",
        {"agent": "keeper", "message": "How is the weather at North Head?"},
        output="Fog since four, visibility two hundred metres. The horn is missed.",
        takes_s=1.5,
        effect="none",
        message_to="keeper",
    )
    yield Say("The keeper says: fog since four, and they miss the horn. (The keeper lives in this script.)")


def _image() -> Dialogue:
    yield Say(
        f"A sunset over the sea, as far as a script can paint:\n\n![A small painted sunset]({SUNSET})\n", chunk=4096
    )
    yield Say("You can send pictures too: paste one into the message field, or drop it there.")


def _describe_attachments(count: int) -> Iterator[Step]:
    what = "a picture" if count == 1 else f"{count} pictures"
    yield Say(f"You sent {what}. I am a script and cannot see, but what you sent is kept with the conversation.")


def _long() -> Dialogue:
    yield Say(
        "This answer is long on purpose. While it runs you can **stop** it, and what I said stays; **queue** a message, which "
        "waits for the end; or **steer**, and your message reaches me at the next paragraph."
    )
    for number, paragraph in enumerate(STORY, start=1):
        yield Boundary()
        yield Say(f"**{number}.** {paragraph}")
    yield Say("That is all. If you reload the page now, you find every word of it where it was.")


# -- the words


@dataclass(frozen=True, slots=True)
class Scene:
    name: str
    shows: str
    words: "re.Pattern[str]"
    play: Callable[[], Dialogue]
    ends_well: bool = True


def _scene(name: str, shows: str, words: str, play: Callable[[], Dialogue], *, ends_well: bool = True) -> Scene:
    return Scene(name, shows, re.compile(rf"\b(?:{words})", re.IGNORECASE), play, ends_well)


SCENES = (
    _scene("think", "thoughts before an answer", r"think|thought|reason", _think),
    _scene("table", "a table, a list and code", r"table|markdown|code\b|list\b", _markdown),
    _scene("tools", "how files are read and searched", r"tools?\b|read|grep|search", _tools),
    _scene("shell", "a command and its live output", r"shell|command|terminal|tests?\b", _shell),
    _scene("edit", "a change that needs your approval", r"edit|approv|permission|diff", _edit),
    _scene("plan", "a plan, approved and worked off", r"plan", _plan),
    _scene("question", "a question with choices", r"question|ask\b|choose|choice", _question),
    _scene("error", "a call that fails, and what comes of it", r"error|fail", _error),
    _scene("together", "three calls, decided at once", r"together|at once|three\b", together),
    _scene("process", "commands that run in the background", r"process|background", process),
    _scene("knowledge", "what is recalled before an answer", r"knowledge|recall|remember|notes?\b", knowledge),
    _scene("context", "the context meter, a summary and a change of model", r"context|meter|model|compress", context),
    _scene("spending", "a limit of what it may cost", r"spend|cost|money|limit", _spending),
    _scene("agents", "a message to another agent", r"agents?\b|colleague|exchange|delegate", _agents),
    _scene("image", "a picture", r"image|picture|photo|sunset", _image),
    _scene("long", "a long answer to stop or to steer", r"long|stop|steer|story", _long),
    _scene("outage", "a service that fails, with retries", r"outage|crash|offline", _outage, ends_well=False),
)

_EVERYTHING = re.compile(r"\b(?:everything|all of it|show me all)\b", re.IGNORECASE)
