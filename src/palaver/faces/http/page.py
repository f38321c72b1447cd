"""The built page: a handful of files, read once and served from memory.

The gate hands over every GET of a page address before anything else happens, because the page must load before anybody is
signed in. It holds no secrets. Files under `assets/` carry the hash of their content in their name and are kept by browsers
for ever; everything else is asked for again.
"""

import mimetypes
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from litestar.types import Receive, Scope, Send

IMMUTABLE = b"public, max-age=31536000, immutable"
REVALIDATE = b"no-cache"

SCREENS = frozenset(
    {
        "c",
        "backends",
        "processes",
        "import",
        "waiting",
        "agents",
        "missions",
        "files",
        "conversations",
        "device",
        "inspect",
        "settings",
    }
)
"""The first words of the page's addresses: a conversation's, and those of web/src/view/screens.ts."""

_NOT_BUILT = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Palaver</title>
<h1>The page is not built</h1>
<p>The server runs and its API works. To build the page, run <code>make web</code> in the source folder, then reload.</p>
"""

# Named here because what a machine's own table says about them varies.
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    etag: bytes
    media_type: bytes
    caching: bytes


class Page:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index = _file(Path("index.html"), _NOT_BUILT)
        self._files: dict[str, _File] = {}
        self._stamp = 0
        self._refresh()

    def serves(self, path: str) -> bool:
        word = path[1:].partition("/")[0]
        return path == "/" or word in SCREENS or path.startswith("/assets/") or path in self._files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """An ASGI application for what `serves` claims. An asset that is not there is a 404, never the index.

        Any other address gets the index too, as a 404: it says in words what is missing.
        """
        path: str = scope["path"]
        if path.startswith("/assets/"):
            found = self._files.get(path)
        else:
            self._refresh()
            found = self._files.get(path, self._index)
        if found is None:
            await _send(send, 404, b"text/plain; charset=utf-8", REVALIDATE, b"", b"There is no such file.", scope)
            return
        known = self.serves(path)
        unchanged = known and any(name == b"if-none-match" and found.etag in value for name, value in scope["headers"])
        body = b"" if unchanged else found.body
        await _send(
            send, 304 if unchanged else 200 if known else 404, found.media_type, found.caching, found.etag, body, scope
        )

    def _refresh(self) -> None:
        """Reads the folder again when the page was built anew, so that a reload in the browser is all it takes."""
        try:
            stamp = (self._folder / "index.html").stat().st_mtime_ns
        except OSError:
            return
        if stamp == self._stamp:
            return
        self._stamp = stamp
        paths = [path for path in sorted(self._folder.rglob("*")) if path.is_file()]
        self._files = {
            f"/{path.relative_to(self._folder).as_posix()}": _file(path.relative_to(self._folder), path.read_bytes())
            for path in paths
        }
        self._index = self._files["/index.html"]


def _file(path: Path, body: bytes) -> _File:
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    etag = b'"%s"' % blake2b(body, digest_size=12).hexdigest().encode()
    return _File(body, etag, kind.encode(), IMMUTABLE if path.parts[0] == "assets" else REVALIDATE)


async def _send(
    send: Send, status: int, media_type: bytes, caching: bytes, etag: bytes, body: bytes, scope: Scope
) -> None:
    headers = [(b"content-type", media_type), (b"cache-control", caching)]
    if etag:
        headers.append((b"etag", etag))
    if status != 304:
        headers.append((b"content-length", str(len(body)).encode()))
    start: Any = {"type": "http.response.start", "status": status, "headers": headers}
    shown = b"" if scope.get("method") == "HEAD" else body
    end: Any = {"type": "http.response.body", "body": shown, "more_body": False}
    await send(start)
    await send(end)
