"""Every action by name, with its key and its /word, and which of them make sense now. Pure.

Used by the palette, by the composer's /commands and by the key help. Carrying them out is the app's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from palaver.schema.view import State
from palaver.tui.docks.completion import SlashCommand
from palaver.tui.intents import ActionName
from palaver.tui.text.screens import Actions

KEYS: Final[Mapping[ActionName, str]] = {
    "new": "Ctrl+N",
    "list": "Ctrl+L",
    "stop": "Esc",
    "hold": "Ctrl+G",
    "continue": "Ctrl+R",
    "find": "Ctrl+F",
    "end": "G",
    "start": "Shift+G",
    "palette": "Ctrl+K",
    "keys": "F1",
    "next_region": "F6",
    "previous_region": "Shift+F6",
    "quit": "Ctrl+Q",
}

_EVERYWHERE: Final[tuple[ActionName, ...]] = (
    "new",
    "list",
    "waiting",
    "search",
    "agents",
    "backends",
    "theme",
    "keys",
    "next_region",
    "previous_region",
    "quit",
)
_HERE: Final[tuple[ActionName, ...]] = (
    "find",
    "files",
    "mode",
    "agent",
    "rename",
    "branch",
    "inspector",
    "export",
    "end",
    "start",
    "copy_answer",
    "copy_id",
    "delete",
)

WRITING: Final[frozenset[ActionName]] = frozenset(
    {
        "new",
        "stop",
        "hold",
        "release",
        "continue",
        "regenerate",
        "edit",
        "rename",
        "branch",
        "archive",
        "unarchive",
        "delete",
        "mode",
        "agent",
        "trust",
    }
)
"""They change something: who may only read is not offered them."""


@dataclass(frozen=True, slots=True)
class Action:
    name: ActionName
    label: str
    key: str = ""

    @property
    def word(self) -> str:
        """As it is written after a slash."""
        return self.name.replace("_", "-")


def action(name: ActionName) -> Action:
    return Action(name, Actions.LABELS[name], KEYS.get(name, ""))


def actions_for(state: State | None, *, may_write: bool = True) -> list[Action]:
    """What can be done now; `state` is of the conversation that is shown, if one is."""
    names: list[ActionName] = []
    if state is not None and state.conversation:
        names = [*_now(state), *_HERE]
    return [action(name) for name in (*names, *_EVERYWHERE) if may_write or name not in WRITING]


def _now(state: State) -> list[ActionName]:
    names: list[ActionName] = []
    outcome = state.last_turn.outcome if state.last_turn else None
    if state.turn is not None:
        names += ["stop", *(("hold",) if any(not item.held for item in state.queue) else ())]
    elif outcome in ("interrupted", "limited"):
        names.append("continue")
    if state.turn is None and state.messages:
        names += ["regenerate", "edit"]
    if state.plan is not None and state.plan.items:
        names.append("plan")
    if any(process.running for process in state.processes):
        names.append("processes")
    if state.queue:
        names += ["queue", *(("release",) if any(item.held for item in state.queue) else ())]
    names.append("unarchive" if state.archived else "archive")
    if state.project:
        names.append("trust")
    return names


def slash_commands(state: State | None, *, may_write: bool = True) -> list[SlashCommand]:
    return [SlashCommand(one.word, one.label, one.name) for one in actions_for(state, may_write=may_write)]
