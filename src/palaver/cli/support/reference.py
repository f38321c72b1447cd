"""Writes the generated parts of `docs/cli.md`: the commands, their options and examples, the exit codes, the names in JSON.

`python -m palaver.cli.support.reference` writes them; with `--check` it only says whether they are as they should be, which is
how `make lint` keeps the page true. What stands outside the marks is written by hand and left alone.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from palaver.cli.commands import COMMANDS, SECTIONS, LazyCommand
from palaver.cli.support.exits import MEANINGS
from palaver.cli.support.json_output import PRINTED, WITHOUT, Printed

PAGE = Path(__file__).parents[4] / "docs" / "cli.md"
FORMS = {"document": "one object", "list": "one array of objects", "lines": "one object a line"}
END = "<!-- end -->"
COMMON = ("data", "url", "token", "json")
"""Options that mean the same everywhere; the page says them once."""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its words (`requests answer`), as the command line has it."""
    for name, place in COMMANDS.items():
        command = LazyCommand(name, place).load()
        yield name, command
        for inner, sub in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", sub


def is_alone(command: Any) -> bool:
    """Whether it does something by its own name, not only through its sub-commands."""
    return not hasattr(command, "commands") or command.invoke_without_command


def exit_codes() -> Iterator[str]:
    yield "| code | name | |"
    yield "|---|---|---|"
    for code, meaning in MEANINGS.items():
        yield f"| {int(code)} | {code.name.lower().replace('_', ' ')} | {_cell(meaning)} |"


def command_list() -> Iterator[str]:
    known = dict(commands())
    for heading, places in SECTIONS.items():
        yield f"### {heading}"
        yield ""
        for name in places:
            yield from _command(name, known[name])
            for words in (one for one in known if one.startswith(f"{name} ")):
                yield from _command(words, known[words])
            yield from _examples(known[name])


def _command(words: str, command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=f"palaver {words}")
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"#### `palaver {words}`"
    yield ""
    yield _paragraphs(command.help or "")
    yield ""
    yield f"```\npalaver {words} {usage}".rstrip() + "\n```"
    yield ""
    if rows := [row for parameter in command.params if (row := _row(parameter)) is not None]:
        yield "| | |"
        yield "|---|---|"
        yield from rows
        yield ""
    if is_alone(command):
        yield _json(words)
        yield ""


def _row(parameter: Any) -> str | None:
    if parameter.name in COMMON or parameter.name == "help" or getattr(parameter, "hidden", False):
        return None
    about = _cell(getattr(parameter, "help", None) or "")
    if parameter.param_type_name == "argument":
        return f"| `{_cell(parameter.metavar or parameter.name)}` | {about} |"
    return f"| {', '.join(f'`{name}`' for name in (*parameter.opts, *parameter.secondary_opts))} | {about} |"


def _cell(words: str) -> str:
    return words.replace("|", "\\|")


def _json(words: str) -> str:
    if reason := WITHOUT.get(words):
        return f"No `--json`: {reason}."
    printed = PRINTED[words]
    says = f" {_sentence(printed)}" if printed.says else ""
    names = ", ".join(f"`{name}`" for name in printed.names)
    return f"`--json`: {FORMS[printed.form]}: {names}.{says}"


def _sentence(printed: Printed) -> str:
    return printed.says[0].upper() + printed.says[1:] + "."


def _examples(command: Any) -> Iterator[str]:
    if command.epilog:
        lines = command.epilog.removeprefix("\b\nExamples:\n").splitlines()
        yield "\n".join(("```sh", *(line.strip() for line in lines), "```"))
        yield ""


def _paragraphs(help: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in help.replace("\b", "").split("\n\n"))


PARTS = {"exit codes": exit_codes, "commands": command_list}


def write_page(page: str) -> str:
    """The page with its generated parts as they should be."""
    for name, lines in PARTS.items():
        begin = f"<!-- generated: {name} -->"
        before, mark, rest = page.partition(begin)
        _, end, after = rest.partition(END)
        if not (mark and end):
            raise SystemExit(f"{PAGE.name} has no place for the {name}: put “{begin}” and “{END}” into it.")
        body = "\n".join(lines()).strip()
        page = f"{before}{begin}\n\n{body}\n\n{END}{after}"
    return page


def main(arguments: list[str]) -> int:
    before = PAGE.read_text(encoding="utf-8")
    after = write_page(before)
    if before == after:
        return 0
    if "--check" in arguments:
        print(
            f"docs/{PAGE.name} is not what the commands say. Run: python -m palaver.cli.support.reference",
            file=sys.stderr,
        )
        return 1
    PAGE.write_text(after, encoding="utf-8")
    print(f"Wrote docs/{PAGE.name}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
