"""`palaver`: finds the command that was asked for and imports that one alone, so that `--help` answers at once.

A command is a function in its own file, or a typer app there when it has sub-commands; `COMMANDS` names them all.
"""

import importlib
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command lives, and what the list of commands says of it."""

    module: str
    attribute: str
    summary: str


COMMANDS = {
    "serve": Place("palaver.cli.serve", "serve", "Start the server and open its page."),
    "send": Place("palaver.cli.send", "send", "Send a message and stream the answer."),
    "list": Place("palaver.cli.list", "list_conversations", "List conversations, newest first."),
    "agents": Place("palaver.cli.agents", "app", "List the agents, or show one."),
    "export": Place("palaver.cli.export", "export", "Write conversations to files: markdown, JSON lines, HTML."),
    "import": Place(
        "palaver.cli.import_", "import_files", "Make conversations from files or another program's history."
    ),
    "token": Place("palaver.cli.token", "app", "Give tokens to others, take them back, renew your own."),
    "missions": Place("palaver.cli.missions", "app", "Set, clear and list what agents go on with by themselves."),
    "mcp": Place("palaver.cli.mcp", "mcp", "Offer a conversation's inbox to an MCP client, over standard streams."),
    "doctor": Place("palaver.cli.doctor", "doctor", "Say what was found here and what is missing."),
    "verify": Place("palaver.cli.verify", "verify", "Check every event of the log against its hash chain."),
    "backup": Place("palaver.cli.backup", "backup", "Copy everything while everything goes on."),
    "model": Place("palaver.cli.model", "app", "Install or remove the small local model."),
}


class LazyCommand(TyperCommand):
    """Stands for a command in the list. Becomes the real one, imports and all, when it is about to run."""

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(name, help=place.summary)
        self._place = place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self._load().make_context(info_name, args, parent, **extra)

    def _load(self) -> Any:
        found = getattr(importlib.import_module(self._place.module), self._place.attribute)
        if isinstance(found, typer.Typer):
            return typer.main.get_command(found)
        single = typer.Typer(add_completion=False)
        single.command(self.name)(found)
        return typer.main.get_command(single)


class LazyGroup(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        place = COMMANDS.get(cmd_name)
        return LazyCommand(cmd_name, place) if place else None


app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False)


@app.callback()
def palaver() -> None:
    """A server where people and AI agents talk, with a durable log for every conversation."""


def main() -> None:
    app()
