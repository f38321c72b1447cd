"""`palaver backup`: a consistent copy of everything, while everything goes on."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.connection import FAILED, complain, data_directory
from palaver.errors import PalaverError

SETTINGS = ("palaver.toml", "agents")
"""What a person wrote. Tokens are left out: whoever holds a copy shall not hold the keys to the original."""


def backup(
    target: Annotated[Path, typer.Argument(help="A new directory for the copy.")],
    data: Annotated[Path | None, typer.Option(help="The data directory to copy.")] = None,
) -> None:
    """Copy the log, its blobs and the settings. The copy is a data directory of its own: serve it with --data."""
    from rich.console import Console

    from palaver.log.inspect import backup_directory

    directory = data_directory(data)
    try:
        with Console(stderr=True).status(f"Copying {directory} …"):
            backup_directory(directory, target)
    except PalaverError as error:
        complain(error.message)
        raise typer.Exit(FAILED) from None
    for name in SETTINGS:
        if (directory / name).is_dir():
            shutil.copytree(directory / name, target / name)
        elif (directory / name).exists():
            shutil.copy2(directory / name, target / name)
    print(f"Copied to {target}. Look at it with: palaver serve --data {target}", file=sys.stderr)
