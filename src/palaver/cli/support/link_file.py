"""Redirect files: how a link with a one-time code reaches a browser without standing in any command line.

Every user of a machine sees the arguments of every process. So the browser is given the name of a file that only its owner
can read, and that file leads on to the link. Called by `palaver serve`.
"""

import html
import os
import secrets
from contextlib import suppress
from pathlib import Path

_PATTERN = "open-*.html"


def write_redirect(folder: Path, link: str) -> Path:
    """A page that leads to the link at once. Raises OSError."""
    address = html.escape(link)
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0; url={address}"><title>Palaver</title>'
        f'<p><a href="{address}">Open Palaver</a></p></html>\n'
    )
    path = folder / _PATTERN.replace("*", secrets.token_hex(8))
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(page)
    return path


def remove_redirects(folder: Path) -> None:
    """Those of this server, and of one that was killed. Their codes are used or void by then."""
    for path in folder.glob(_PATTERN):
        with suppress(OSError):
            path.unlink()
