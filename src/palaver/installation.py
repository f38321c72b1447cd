"""The server's own installation: the interpreter, packages and source that it runs outside every sandbox.

A project may hold it: `.venv` of the folder that a server is started in, or a checkout of Palaver that is worked on with
Palaver. What an agent changes there the server would run at its next import or child process. So nobody writes there for an
agent: the sandbox mounts it read-only, file tools refuse it, agent programs have to ask. It can be read.

Asked by the sandbox, the file tools, the backends and doctor. It imports nothing of Palaver.
"""

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

BARE_INTERPRETER = os.path.realpath(sys.executable)
"""For programs of the standard library alone. An environment's interpreter is a link, which may lie in a project; this is what
it led to when we started."""
LINK_LIMIT = 40
"""Links one path may lead through, as many as Linux itself follows."""


def forget_working_folder() -> None:
    """Takes the folder that we were started in off the module path (PYTHONPATH may name it), unless Palaver itself lies there:
    it is a project, and modules that are imported later would be looked for in it."""
    own = Path(__file__).parents[1]
    sys.path[:] = [entry for entry in sys.path if entry and (Path(entry) != Path.cwd() or Path(entry) == own)]


@cache
def installed_places() -> tuple[Path, ...]:
    """Files and folders, free of links, none within another."""
    found = {place.resolve() for place in _places() if place.exists()}
    return tuple(sorted(place for place in found if not found & set(place.parents)))


def places_in(folder: Path) -> list[Path]:
    """Those of them that lie in a folder free of links; the folder itself where it lies in one of them."""
    if is_installed(folder):
        return [folder]
    return [place for place in installed_places() if place.is_relative_to(folder)]


def is_installed(path: Path) -> bool:
    """Whether a path free of links is, or lies in, a part of the installation."""
    return any(path.is_relative_to(place) for place in installed_places())


def _places() -> Iterator[Path]:
    yield Path(__file__).parent
    for link in _interpreters():
        yield link.parent
    yield Path(sys.prefix, "pyvenv.cfg")
    for entry in map(Path, sys.path):
        if entry.is_absolute():
            # What is not there yet would be searched as soon as somebody makes it.
            yield entry if entry.exists() else entry.parent


def _interpreters() -> Iterator[Path]:
    """The interpreter, and what it leads to link by link."""
    place = Path(sys.executable)
    for _ in range(LINK_LIMIT):
        place = place.parent.resolve() / place.name
        yield place
        if not place.is_symlink():
            return
        place = place.parent / place.readlink()
