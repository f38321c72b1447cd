"""Program lookup on a PATH without what an agent can put there.

Used for the programs that Palaver runs on its own account in or around a project (git, bubblewrap, the commands that run
unasked). An entry of a PATH that is relative, or lies in a folder that agents write to, names whatever they put there; so does
a link into such a folder. It imports nothing of Palaver and starts nothing.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"
LINK_LIMIT = 40
"""Links one path may lead through, as many as Linux itself follows."""


def trusted_path(environment: Mapping[str, str], writable: Sequence[Path]) -> str:
    """The PATH without relative entries and without those in a writable folder, by whatever links they lead there."""
    return os.pathsep.join(_trusted_entries(environment, [folder.resolve() for folder in writable]))


def find_program(name: str, environment: Mapping[str, str], writable: Sequence[Path]) -> str | None:
    """The absolute path of a program that lies in none of the writable folders; None where there is none."""
    folders = [folder.resolve() for folder in writable]
    for entry in _trusted_entries(environment, folders):
        found = shutil.which(name, path=entry)
        # The link itself is run, not its target: some programs are many in one and go by the name they are called.
        if found is not None and not _lies_in(Path(found), folders):
            return found
    return None


def _trusted_entries(environment: Mapping[str, str], folders: Sequence[Path]) -> Iterator[str]:
    for entry in environment.get("PATH", FALLBACK_PATH).split(os.pathsep):
        if Path(entry).is_absolute() and not _lies_in(Path(entry), folders):
            yield entry


def _lies_in(path: Path, folders: Sequence[Path]) -> bool:
    """At its end or on the way there: a link in between that an agent can write leads wherever the agent wants."""
    return any(place.is_relative_to(folder) for place in _places_on_the_way(path) for folder in folders)


def _places_on_the_way(path: Path) -> Iterator[Path]:
    """Every folder, link and file through which the kernel reaches an absolute path, free of links before it."""
    waiting = list(reversed(path.parts[1:]))
    place, links = Path("/"), 0
    while waiting:
        name = waiting.pop()
        place = place.parent if name == ".." else place / name
        yield place
        # Not the method of Path: that raises where a folder on the way may not be read.
        if os.path.islink(place) and links < LINK_LIMIT:  # noqa: PTH114
            links += 1
            target = place.readlink()
            place = Path("/") if target.is_absolute() else place.parent
            waiting += [part for part in reversed(target.parts) if part != "/"]
