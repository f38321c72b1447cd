"""`palaver backup`: a consistent copy of everything, while everything goes on."""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import data_directory, fail
from palaver.errors import LogUnavailable, PalaverError
from palaver.regular_file import read_regular
from palaver.tools.files.atomic_file import replace_file

if TYPE_CHECKING:
    from palaver.cli.support.output import Bar

SETTINGS = ("palaver.toml", "agents")
"""What a person wrote. Tokens are left out: whoever holds a copy shall not hold the keys to the original."""
LOOK_S = 0.2
"""How often the growing copy is looked at, to say how far it is."""

EXAMPLES = ("palaver backup /backups/monday", "palaver verify --data /backups/monday")


def backup(
    target: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new directory for the copy.")],
    with_secrets: Annotated[
        bool,
        typer.Option("--with-secrets", help="Copy everything in the settings that may be a secret, too."),
    ] = False,
    data: options.Data = None,
    json: options.Json = False,
) -> None:
    """Copy the log, its blobs and the settings. The copy is a data directory of its own: serve it with --data.

    Only you can read it. Tokens are never in it; secrets of the settings only with --with-secrets.
    """
    from palaver.cli.support.output import print_json, progress
    from palaver.log.sqlite.inspect import backup_directory

    directory = data_directory(data)
    try:
        with progress(f"Copying {directory}", quiet=json, bytes_=True) as bar, _show_progress(directory, target, bar):
            backup_directory(directory, target)
    except PalaverError as error:
        raise fail(error) from None
    try:
        copied = _copy_settings(directory, target, with_secrets=with_secrets)
    except OSError as error:
        raise fail(LogUnavailable(f"The settings could not be copied: {error}. The log and its blobs are.")) from None
    from palaver.client.safe_text import visible

    if json:
        report = {"source": str(directory), "target": str(target), "size_bytes": _size(target)}
        print_json(
            {**report, "without_secrets": list(copied.struck), "fields": copied.struck, "left_out": copied.left_out}
        )
        return
    shown = visible(str(target))
    print(f"Copied to {shown}. Look at it with: palaver serve --data {shown}", file=sys.stderr)
    if copied.with_secrets:
        print(
            f"It holds secrets as plain text, in {_list_names(copied.with_secrets)}. Keep it private.", file=sys.stderr
        )
    if copied.struck:
        print(
            f"What may be a secret is left out of {_list_names(list(copied.struck))}. Put it in after a restore, or copy it with "
            "--with-secrets.",
            file=sys.stderr,
        )
        for name, fields in copied.struck.items():
            print(f"  {_list_names([name])}: {_list_names(fields)}", file=sys.stderr)
    if copied.left_out:
        print(
            f"Not copied, because it may hold secrets that cannot be told apart: {_list_names(copied.left_out)}. Copy it with "
            "--with-secrets.",
            file=sys.stderr,
        )


@dataclass(slots=True)
class _Copied:
    struck: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Files, and the fields of each that are left out."""
    left_out: list[str] = field(default_factory=list[str])
    with_secrets: list[str] = field(default_factory=list[str])


def _copy_settings(source: Path, target: Path, *, with_secrets: bool) -> _Copied:
    """Each file readable by its owner alone, whatever the original's mode is."""
    from palaver.agents.settings_secrets import without_secrets
    from palaver.tools.redact import Redactor

    redactor = Redactor(os.environ)
    copied = _Copied()
    for path in (path for name in SETTINGS for path in _files(source / name)):
        name = str(path.relative_to(source))
        data = read_regular(path)
        try:
            struck = without_secrets(name, data.decode(), redactor)
        except UnicodeDecodeError:
            struck = None
        if with_secrets:
            if struck is None or struck.fields:
                copied.with_secrets.append(name)
        elif struck is None:
            copied.left_out.append(name)
            continue
        elif struck.text.encode() != data:
            copied.struck[name] = list(struck.fields) or ["comments"]
            data = struck.text.encode()
        (target / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(target / name, data)
    return copied


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(one for one in path.rglob("*") if one.is_file())
    elif path.is_file():
        yield path


def _list_names(names: Sequence[str]) -> str:
    from palaver.client.safe_text import one_line

    return ", ".join(map(one_line, names))


@contextmanager
def _show_progress(source: Path, target: Path, bar: "Bar") -> Iterator[None]:
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
