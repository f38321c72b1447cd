"""Scenes of the `demo` agent that show what an engine does around a model: memory, context, processes, decisions together.

Listed and played by `backend.py`. As made up as everything there.
"""

from palaver.backends.demo.text import HORN_DIFF, LIGHTHOUSE, LOG_DIFF
from palaver.backends.script.script import (
    Background,
    Boundary,
    Compress,
    Dialogue,
    Emit,
    EndBackground,
    Pause,
    Recall,
    Say,
    Tool,
    Tools,
)
from palaver.schema.base import Scope
from palaver.schema.events import ContextMeasured, ModelSwitched
from palaver.schema.view import FileChange, KnowledgeSource, Offer

WINDOW_TOKENS = 8192
"""Small, so that a few turns already move the meter."""

LASTING: tuple[Scope, ...] = ("once", "conversation", "agent", "project")

LEFT = {"messages": 130, "tool_results": 48}
"""What the summary leaves of a full context."""

CLOCK = "tide-clock --port 9180"
BUILD = "make horn"


def knowledge() -> Dialogue:
    yield Recall(
        sources=(
            KnowledgeSource(
                kind="note",
                ref=".palaver/knowledge/fog.md",
                title="fog.md",
                snippet="The horn sounds three seconds in every thirty, and never before six in the morning.",
            ),
            KnowledgeSource(
                kind="note",
                ref=".palaver/knowledge/harbour.md",
                title="harbour.md",
                snippet="The harbour master wants to be told of every change a day ahead.",
            ),
            KnowledgeSource(
                kind="file", ref="docs/tides.md", title="docs/tides.md", snippet="High water at North Head …"
            ),
        ),
        text="The horn sounds three seconds in every thirty.",
        tokens=412,
    )
    yield Say(
        "Before I answered, I was reminded of two notes and a file; the line under your message says which. A real agent "
        "finds them among the project's notes and your earlier conversations, and you can turn that off."
    )


def context() -> Dialogue:
    yield Say("A conversation outgrows what a model can take in at once. The meter shows how full it is, and of what:")
    parts = {
        "system": 610,
        "tools": 1_240,
        "instructions": 380,
        "knowledge": 412,
        "messages": 2_160,
        "tool_results": 2_618,
    }
    yield Emit(ContextMeasured(used_tokens=sum(parts.values()), window_tokens=WINDOW_TOKENS, breakdown=parts))
    yield Pause(1.0)
    yield Compress(
        stages=("deduplicate", "shorten", "summarize"),
        strength="medium",
        tokens=(7_420, 6_100, 4_300, 2_820),
        summary="The keeper wants a fog horn. The plan has four steps; the light's range stays at 19 miles.",
    )
    yield Emit(ContextMeasured(used_tokens=2_820, window_tokens=WINDOW_TOKENS, breakdown=parts | LEFT))
    yield Say("Older parts were just summed up for the model. You still see every word; only the model sees less.")
    yield Boundary()
    yield Emit(ModelSwitched(to_model="demo-small", from_model="demo-large", reason="demo-large is busy (not really)"))
    yield Say("And now I am another model: the one before was busy, so the conversation went on with a smaller one.")


def process() -> Dialogue:
    yield Say("Some things should run while we talk. I start two of them:")
    for command in (CLOCK, BUILD):
        yield Tool(
            "shell",
            {"command": command, "background": True},
            output=f"Started in the background: {command}",
            takes_s=0.2,
            effect="none",
        )
        yield Background(command)
    yield Say("They stand above the message field, with the time they have been running.")
    yield Boundary()
    yield Pause(1.5)
    yield EndBackground(BUILD, 0, f"Process ({BUILD}) ended with exit code 0.")
    yield Say(
        "The build is done: its end is told in a line of its own, and an agent that waited for it would go on now. The clock "
        "runs until you stop it. (Nothing runs: both live in this script.)"
    )


def together() -> Dialogue:
    yield Say("Three things at once. Decide on each, or on all of them together:")
    reply = yield Tools(
        (
            Tool(
                "shell",
                {"command": "git status --short"},
                live=(" M src/lighthouse.py\n", "?? src/horn.py\n"),
                asks=True,
                takes_s=0.4,
                exit_code=0,
                effect="none",
                title="git status --short",
                preview="git status --short",
                risk="This agent asks before it does more than read.",
                sandbox="bubblewrap: writes only to the project",
                scopes=LASTING,
                offers=(
                    Offer(label="exactly this command", match="git status --short"),
                    Offer(label="git status with any arguments", match="program:git status"),
                ),
            ),
            Tool(
                "write",
                {"path": "src/horn.py", "content": "ON_S = 3\nOFF_S = 27\n"},
                output="Wrote src/horn.py",
                asks=True,
                takes_s=0.3,
                effect="none",
                title="Write src/horn.py",
                preview=HORN_DIFF,
                risk="None: the demo only pretends to write.",
                scopes=LASTING,
                offers=(Offer(label="every change that write makes in the project"),),
                changes=(FileChange(path="src/horn.py", kind="created", additions=6, diff=HORN_DIFF),),
            ),
            Tool(
                "edit",
                {"path": "LOG.md", "old": "Light: 19 miles.", "new": "Light: 19 miles.\nHorn: 3 s in 30."},
                output="Edited LOG.md",
                asks=True,
                takes_s=0.3,
                effect="none",
                title="Edit LOG.md",
                preview=LOG_DIFF,
                risk="None: the demo only pretends to edit.",
                scopes=LASTING,
                offers=(Offer(label="every change that edit makes in the project"),),
                changes=(FileChange(path="LOG.md", kind="modified", additions=1, diff=LOG_DIFF),),
            ),
        ),
        together=True,
    )
    if reply.allowed:
        yield Tool("read", {"path": "src/lighthouse.py"}, output=LIGHTHOUSE, takes_s=0.2, effect="none")
        yield Say("Done, all three. The last line of this turn sums up what changed; open it to see the differences.")
    else:
        yield Say("Then only what you allowed. (Nothing was touched either way.)")
