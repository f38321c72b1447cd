"""Images on their way to a model: from data URLs and our own blobs only. Nothing remote is ever fetched."""

import base64
import re
from collections.abc import Awaitable, Callable, Mapping

from palaver.context.prompt import Image, Text

LoadBlob = Callable[[str], Awaitable[bytes | None]]

DATA_URL = re.compile(r"^data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/=\s]+)$")
OWN_URL = re.compile(r"/api/(?:blobs|uploads)/([A-Za-z0-9_.-]{1,128})", re.ASCII)

MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)


def blob_of(url: str) -> str | None:
    """The blob that an image lies in, if it is one of ours."""
    own = OWN_URL.fullmatch(url)
    return own[1] if own else None


def image_of(url: str, blobs: Mapping[str, bytes | None]) -> Image | Text:
    """The image, or a line that tells the model what it cannot see."""
    if inline := DATA_URL.match(url):
        return Image(mime=inline[1], base64="".join(inline[2].split()))
    blob = blob_of(url)
    if blob is None:
        return Text("[An image that is kept elsewhere; it was not fetched.]")
    data = blobs.get(blob)
    if data is None:
        return Text("[An image that is no longer stored.]")
    mime = mime_of(data)
    if mime is None:
        return Text("[A file in a format that is not an image a model can see.]")
    return Image(mime=mime, base64=base64.b64encode(data).decode())


def mime_of(data: bytes) -> str | None:
    """By its first bytes: the name that came with it is only a claim."""
    for magic, mime in MAGIC:
        if data.startswith(magic):
            return mime
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
