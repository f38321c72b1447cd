"""Which screen an action opens, and what it is given: the one place the app asks.

if sheet := screen_for(action, Where(client, clock, state, people)):
    self.push_screen(sheet)
"""

from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path

from palaver.client.client import Client
from palaver.clock import Clock
from palaver.schema.view import State
from palaver.tui.intents import ActionName
from palaver.tui.people import People
from palaver.tui.screens.agents import AgentsScreen, BackendsScreen
from palaver.tui.screens.choose import ChooseMode, ConfirmDelete, Rename
from palaver.tui.screens.conversations import ConversationList
from palaver.tui.screens.export import ExportConversation
from palaver.tui.screens.files import ChangedFiles
from palaver.tui.screens.frame import Sheet
from palaver.tui.screens.inspector import EventInspector
from palaver.tui.screens.keyhelp import KeyHelpScreen
from palaver.tui.screens.new import NewConversation
from palaver.tui.screens.palette import CommandPalette
from palaver.tui.screens.search import SearchScreen
from palaver.tui.screens.waiting import WaitingInbox


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
            current = state.conversation if state else ""
            return ConversationList(client, clock, current=current, names=people.names, unread=where.unread)
        case "new":
            return NewConversation(client, project=(state.project if state else None) or "")
        case "palette":
            return CommandPalette(client, state, people.names, may_write=people.may_write)
        case "keys":
            return KeyHelpScreen()
        case "find":
            return SearchScreen(client, clock, state)
        case "search":
            return SearchScreen(client, clock, state, everywhere=True)
        case "waiting":
            return WaitingInbox(client, clock, people.names, may_answer=people.may_decide)
        case "backends":
            return BackendsScreen(client, clock)
        case "agents" | "agent":
            return _agents(client, state)
        case _:
            return _of_conversation(action, client, state) if state is not None else None


def _agents(client: Client, state: State | None) -> Sheet:
    if state is None:
        return AgentsScreen(client)
    return AgentsScreen(client, conversation=state.conversation, current=state.agent, project=state.project)


def _of_conversation(action: ActionName, client: Client, state: State) -> Sheet | None:
    match action:
        case "files":
            return ChangedFiles(state)
        case "inspector":
            return EventInspector(client, state.conversation)
        case "export":
            return ExportConversation(client, state, Path.cwd())
        case "mode":
            return ChooseMode(state)
        case "rename":
            return Rename(state)
        case "delete":
            return ConfirmDelete(state)
        case _:
            return None
