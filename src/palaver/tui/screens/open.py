"""Which screen an action opens, and what it is given: the one place the app asks.

if sheet := screen_for(action, Where(client, clock, state, people)):
    self.push_screen(sheet)

A screen is imported when it is first wanted: the prompt must not wait for what few will open.
"""

from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from palaver.client.client import Client
from palaver.clock import Clock
from palaver.schema.view import State
from palaver.tui.intents import ActionName
from palaver.tui.people import People
from palaver.tui.screens.frame import Sheet


@dataclass(frozen=True, slots=True)
class Where:
    """What is on the screen when something is asked for."""

    client: Client
    clock: Clock
    state: State | None = None
    """Of the conversation that is shown, if one is."""
    people: People = field(default_factory=People)
    unread: Set[str] = frozenset()
    """Conversations with something that was not seen here."""


def screen_for(action: ActionName, where: Where) -> Sheet | None:
    """None: this action opens nothing, or nothing that makes sense without a conversation."""
    sheet = _sheet(action, where)
    if sheet is not None:
        sheet.may_write = where.people.may_write
    return sheet


def _sheet(action: ActionName, where: Where) -> Sheet | None:
    client, clock, people = where.client, where.clock, where.people
    state = where.state if where.state is not None and where.state.conversation else None
    match action:
        case "list":
            from palaver.tui.screens.conversations import ConversationList

            current = state.conversation if state else ""
            return ConversationList(client, clock, current=current, names=people.names, unread=where.unread)
        case "new":
            from palaver.tui.screens.new import NewConversation

            return NewConversation(client, project=(state.project if state else None) or "")
        case "palette":
            from palaver.tui.screens.palette import CommandPalette

            return CommandPalette(client, state, people.names, may_write=people.may_write)
        case "keys":
            from palaver.tui.screens.keyhelp import KeyHelpScreen

            return KeyHelpScreen()
        case "find" | "search":
            from palaver.tui.screens.search import SearchScreen

            return SearchScreen(client, clock, state, everywhere=action == "search")
        case "waiting":
            from palaver.tui.screens.requests import WaitingInbox

            return WaitingInbox(client, clock, people)
        case "backends":
            from palaver.tui.screens.agents import BackendsScreen

            return BackendsScreen(client, clock)
        case "agents" | "agent":
            return _agents(client, state)
        case _:
            return _of_conversation(action, client, state) if state is not None else None


def _agents(client: Client, state: State | None) -> Sheet:
    from palaver.tui.screens.agents import AgentsScreen

    if state is None:
        return AgentsScreen(client)
    return AgentsScreen(client, conversation=state.conversation, current=state.agent, project=state.project)


def _of_conversation(action: ActionName, client: Client, state: State) -> Sheet | None:
    match action:
        case "files":
            from palaver.tui.screens.files import ChangedFiles

            return ChangedFiles(state)
        case "inspector":
            from palaver.tui.screens.inspector import EventInspector

            return EventInspector(client, state.conversation)
        case "export":
            from palaver.tui.screens.export import ExportConversation

            return ExportConversation(client, state, Path.cwd())
        case "trust":
            from palaver.tui.screens.trust import TrustScreen

            return TrustScreen(client, state) if state.project else None
        case "mode" | "rename" | "delete":
            from palaver.tui.screens import choose

            sheets = {"mode": choose.ChooseMode, "rename": choose.Rename, "delete": choose.ConfirmDelete}
            return sheets[action](state)
        case _:
            return None
