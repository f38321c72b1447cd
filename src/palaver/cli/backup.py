"""`palaver backup`: a consistent copy of everything, while everything goes on."""

import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli import options
from palaver.cli.connection import data_directory, failed
from palaver.errors import PalaverError

if TYPE_CHECKING:
    from palaver.cli.output import Bar

SETTINGS = ("palaver.toml", "agents")
"""What a person wrote. Tokens are left out: whoever holds a copy shall not hold the keys to the original."""
LOOK_S = 0.2
"""How often the growing copy is looked at, to say how far it is."""

EXAMPLES = ("palaver backup /backups/monday", "palaver verify --data /backups/monday")


def backup(
    target: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new directory for the copy.")],
    data: options.Data = None,
    json: options.Json = False,
) -> None:
    """Copy the log, its blobs and the settings. The copy is a data directory of its own: serve it with --data."""
    from palaver.cli.output import print_json, progress
    from palaver.log.inspect import backup_directory

    directory = data_directory(data)
    try:
        with progress(f"Copying {directory}", quiet=json, bytes_=True) as bar, _watched(directory, target, bar):
            backup_directory(directory, target)
    except PalaverError as error:
        raise failed(error) from None
    for name in SETTINGS:
        if (directory / name).is_dir():
            shutil.copytree(directory / name, target / name)
        elif (directory / name).exists():
            shutil.copy2(directory / name, target / name)
    if json:
        print_json({"source": str(directory), "target": str(target), "size_bytes": _size(target)})
    else:
        print(f"Copied to {target}. Look at it with: palaver serve --data {target}", file=sys.stderr)


@contextmanager
def _watched(source: Path, target: Path, bar: "Bar") -> Iterator[None]:
    """Moves the bar by what has arrived: the copy is one step of SQLite, which says nothing while it works."""
    total = _size(source / "palaver.db") + _size(source / "blobs")
    done = threading.Event()

    def look() -> None:
        while not done.wait(LOOK_S):
            # It grows beside its place, under a name that begins the same.
            bar(sum(_size(path) for path in target.parent.glob(f"{target.name}*")), total)

    watcher = threading.Thread(target=look, name="watch the backup", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _size(path: Path) -> int:
    try:
        if not path.is_dir():
            return path.stat().st_size
        return sum(_size(one) for one in path.iterdir())
    except OSError:
        # Renamed or removed while it was looked at.
        return 0
