"""The commands of `palaver`: finds the one that was asked for and imports that one alone, so that `--help` answers at once.

A command is a function in its own file, or a typer app there when it has sub-commands; `COMMANDS` names them all. Beside it
may stand `EXAMPLES`, shown at the end of its help. Alone in a terminal, `palaver` is the terminal UI.
"""

import importlib
import os
import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from palaver.cli.support.values import read_plainly


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command lives, and what the list of commands says of it."""

    module: str
    attribute: str
    summary: str


SECTIONS = {
    "Talk": {
        "tui": Place("palaver.cli.tui", "tui", "Talk in the terminal; what `palaver` alone does."),
        "send": Place("palaver.cli.send", "send", "Send a message and stream the answer."),
        "tail": Place("palaver.cli.tail", "tail", "Show the end of a conversation, and follow it."),
        "requests": Place("palaver.cli.requests", "app", "Show what waits for a person, and answer it."),
    },
    "Look and keep": {
        "list": Place("palaver.cli.list", "list_conversations", "List conversations, newest first."),
        "show": Place("palaver.cli.show", "show", "Print a conversation to read."),
        "search": Place("palaver.cli.search", "search", "Find words in all conversations."),
        "branch": Place("palaver.cli.branch", "branch", "Go on from any message in a new conversation."),
        "export": Place("palaver.cli.export", "export", "Write conversations to files: markdown, JSON lines, HTML."),
        "import": Place(
            "palaver.cli.import_", "import_files", "Make conversations from files or another program's history."
        ),
    },
    "Agents": {
        "agents": Place("palaver.cli.agents", "app", "List the agents, or show one."),
        "backends": Place("palaver.cli.backends", "backends", "Show what runs agents here, and try it."),
        "missions": Place("palaver.cli.missions", "app", "Set, clear and list what agents go on with by themselves."),
        "projects": Place(
            "palaver.cli.projects", "app", "Show and trust the settings that agent programs read from a folder."
        ),
        "model": Place("palaver.cli.model", "app", "Install or remove the small local model."),
    },
    "The server": {
        "serve": Place("palaver.cli.serve", "serve", "Start the server and open its page."),
        "doctor": Place("palaver.cli.doctor", "doctor", "Say what was found here and what is missing."),
        "token": Place("palaver.cli.token", "app", "Give tokens to others, take them back, renew your own."),
        "verify": Place("palaver.cli.verify", "verify", "Check every event of the log against its hash chain."),
        "backup": Place("palaver.cli.backup", "backup", "Copy everything while everything goes on."),
        "salvage": Place("palaver.cli.salvage", "salvage", "Save what is readable of a damaged data directory."),
        "mcp": Place("palaver.cli.mcp", "mcp", "Offer a conversation's inbox to an MCP client, over standard streams."),
        "completion": Place("palaver.cli.completion", "completion", "Teach your shell to complete Palaver's commands."),
    },
}

COMMANDS = {name: place for section in SECTIONS.values() for name, place in section.items()}

COMPLETE = "_PALAVER_COMPLETE"
"""Set by the script of a shell that wants to know what could come next."""
HELP_COLUMNS = 110
"""Help is as wide as the terminal, up to what is still easy to read."""


class LazyCommand(TyperCommand):
    """Stands for a command in the list. Becomes the real one, imports and all, when it is about to run."""

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(name, help=place.summary, rich_markup_mode=None)
        self._place = place

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent, **extra)

    def load(self) -> Any:
        module = importlib.import_module(self._place.module)
        found = getattr(module, self._place.attribute)
        app = found
        if not isinstance(found, typer.Typer):
            app = typer.Typer(add_completion=False)
            app.command(self.name)(found)
        # Plain help: it is there in half the time.
        app.rich_markup_mode = None
        command = typer.main.get_command(app)
        read_plainly(command)
        if examples := getattr(module, "EXAMPLES", ()):
            command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
        return command


class LazyGroup(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        read_plainly(self)
        self.commands = {name: LazyCommand(name, place) for name, place in COMMANDS.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, places in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, place.summary) for name, place in places.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read has seen enough. Python would complain once more when it flushes at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": HELP_COLUMNS, "help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from palaver import __version__

        print(f"palaver {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def palaver(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A server where people and AI agents talk, with a durable log for every conversation.

    Alone in a terminal, `palaver` is the terminal UI. `palaver COMMAND --help` says more about each.
    """
    if ctx.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(ctx.get_help())
        return
    with ctx.command.commands["tui"].make_context("tui", [], parent=ctx) as tui:  # type: ignore[attr-defined]
        tui.command.invoke(tui)
