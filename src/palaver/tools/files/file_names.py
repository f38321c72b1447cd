"""Names of a file: as given, from the project folder, absolute, and with every link resolved.

Called where a call is proposed, before the policy sees it: a rule on a path holds under whichever of its names a file is
reached. It looks at links and reads nothing; a hard link is a file of its own.
"""

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

FILES_MOST = 1_000
"""Of one call: more than a patch changes, and few enough to look at while a turn waits."""


def file_names(project: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Each once, in the order of the paths. A path that no file can have has only the name it was given."""
    return tuple(dict.fromkeys(name for path in islice(paths, FILES_MOST) for name in _names(project, path)))


def _names(project: Path, path: str) -> Iterator[str]:
    yield path
    try:
        absolute = os.path.normpath(project / os.path.expanduser(path))  # noqa: PTH111 - a home that is unknown stays as it is
        # Links first, `..` afterwards: that is how the system goes through a path.
        resolved = os.path.realpath(project / os.path.expanduser(path))  # noqa: PTH111
        root = os.path.realpath(project)
    except (OSError, ValueError):
        return
    yield absolute
    yield resolved
    for name, folder in ((absolute, os.path.normpath(project)), (absolute, root), (resolved, root)):
        relative = os.path.relpath(name, folder)
        if not relative.startswith(os.pardir):
            yield relative
            yield os.path.join(root, relative)  # noqa: PTH118 - text, not a path to open
