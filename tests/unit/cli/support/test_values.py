"""Values of options: read as typer reads them, and without what it reads them with where they are plainly right."""

import sys
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer

from palaver.cli.support import values


def taken(arguments: list[str], *, plainly: bool) -> tuple[list[Any], str]:
    """What a command gets, and what is said."""
    got: list[Any] = []
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command()
    def command(
        words: Annotated[list[str] | None, typer.Argument()] = None,
        count: Annotated[int, typer.Option(min=1, max=500)] = 30,
        seconds: Annotated[float | None, typer.Option(min=0.1)] = None,
        folder: Annotated[Path | None, typer.Option(file_okay=False)] = None,
        image: Annotated[list[Path] | None, typer.Option()] = None,
        colour: Annotated[Literal["dark", "light"] | None, typer.Option()] = None,
        flag: Annotated[bool, typer.Option("--flag")] = False,
    ) -> None:
        got.extend((words, count, seconds, folder, image, colour, flag))

    made = typer.main.get_command(app)
    if plainly:
        values.read_plainly(made)
    said = StringIO()
    with redirect_stderr(said), pytest.raises(SystemExit):
        made(arguments, prog_name="command")
    return got, said.getvalue()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "hello there --flag",
        "--count 7 --seconds 2.5 --colour dark",
        "--count 007 --seconds 3",
        "--count 1_0",
        "--count 0",
        "--count 501",
        "--count -1",
        "--count x",
        "--count 1.5",
        "--count ٣",
        "--count 99999999999999999999",
        "--seconds 0",
        "--seconds inf",
        "--seconds 1e3",
        "--folder .",
        "--folder /nowhere/at/all",
        "--folder /etc/passwd",
        "--image /etc/passwd --image /nowhere",
        "--colour blue",
        "--colour Dark",
        "--nothing",
        "--count",
    ],
)
def test_values_are_read_as_typer_reads_them(line: str) -> None:
    assert taken(line.split(), plainly=True) == taken(line.split(), plainly=False)


@pytest.mark.parametrize("line", ["", "a b", "--count 7 --seconds 2.5 --folder . --colour dark --image /etc/passwd"])
def test_ordinary_values_are_read_without_pydantic(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pydantic" or name == "typer._adapters"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydantic", None)
    # Typer has its own as an attribute once anything imported it.
    monkeypatch.delattr("typer._adapters", raising=False)
    got, said = taken(line.split(), plainly=True)
    assert (len(got), said) == (7, "")
