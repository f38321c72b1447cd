"""Mounts: every other name under which a file or a folder of this machine can be reached.

A folder can be mounted a second time: itself, one above it, one in it, or a single file. The sandbox hides what must not be
seen under all of its names, and no project may hold one of the data directory (`conversation/folders.py`). Read anew at each
use, for a machine mounts at any time. Where the kernel keeps no such list nothing has another name.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_ESCAPED = re.compile(rb"\\([0-7]{3})")
_PLACE: int = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Mount:
    id: int
    device: bytes
    """The file system: all its mounts have the same."""
    root: PurePosixPath
    """What of the file system is mounted, as a path within it."""
    at: Path


def read_mounts(listed: bytes | None = None) -> tuple[Mount, ...]:
    """All of this process, or those of a list that is given."""
    if listed is None:
        try:
            listed = Path("/proc/self/mountinfo").read_bytes()
        except OSError:
            return ()
    return tuple(_mount(words) for line in listed.splitlines() if len(words := line.split(b" ", 5)) > 5)


def other_names(place: Path, mounts: Sequence[Mount] | None = None) -> list[Path]:
    """Where else a file or a folder, or a part of it, can be found. `place` is free of links; what is not there has none."""
    mounts = read_mounts() if mounts is None else mounts
    own = _mount_of(place, mounts)
    if own is None or not place.is_relative_to(own.at):
        return []
    # What is mounted in a folder belongs to it: a part of the data directory may be a disk of its own.
    parts = [(place, own.device, own.root / place.relative_to(own.at))]
    parts += [(mount.at, mount.device, mount.root) for mount in mounts if _is_within(mount.at, place)]
    found = (name for part in parts for name in _names(*part, mounts))
    return [name for name in dict.fromkeys(found) if not name.is_relative_to(place)]


def _names(place: Path, device: bytes, inner: PurePosixPath, mounts: Sequence[Mount]) -> Iterator[Path]:
    for mount in mounts:
        if mount.device != device:
            continue
        if inner.is_relative_to(mount.root):
            name = mount.at / inner.relative_to(mount.root)
            # Another mount may cover it.
            if _is_same(name, place):
                yield name
        elif mount.root.is_relative_to(inner) and os.path.lexists(mount.at):
            yield mount.at


def _is_within(path: Path, folder: Path) -> bool:
    return path != folder and path.is_relative_to(folder)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - raises for what cannot be seen, as its method does
    except OSError:
        return False


def _mount_of(place: Path, mounts: Sequence[Mount]) -> Mount | None:
    """As the kernel says it: of several mounts at one place, names do not tell which is on top."""
    if not mounts:
        return None
    try:
        descriptor = os.open(place, _PLACE)
    except (OSError, ValueError):
        return None
    try:
        told = Path(f"/proc/self/fdinfo/{descriptor}").read_text()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    ids = [int(line.split()[1]) for line in told.splitlines() if line.startswith("mnt_id:")]
    return next((mount for mount in mounts if mount.id in ids), None)


def _mount(words: Sequence[bytes]) -> Mount:
    """`id parent major:minor root mount-point …`"""
    root, at = (os.fsdecode(_ESCAPED.sub(lambda code: bytes([int(code[1], 8)]), word)) for word in words[3:5])
    return Mount(int(words[0]), words[2], PurePosixPath(root), Path(at))
