"""Images as clients of this contract send and fetch them: by name, which is the hash of their bytes.

What a file is, is decided by its bytes; a name cannot lead anywhere, and nothing that comes out can run in a browser.
"""

import base64
import binascii
import re
from typing import Any

from litestar import Response, get, post
from litestar.params import FromPath, JSONBody
from msgspec import Struct

from palaver.conversation.attachments import ATTACHMENT_BYTES
from palaver.errors import Invalid, NotFound
from palaver.faces.http.body import JsonBody
from palaver.faces.http.openapi import operation
from palaver.faces.native.uploads import SERVED, Kept, Upload, blob_response, keep
from palaver.faces.server import Server

BASE64_BYTES = ATTACHMENT_BYTES * 4 // 3 + (64 << 10)
"""A third more than the image, and what stands around it."""

_NAME = re.compile(r"([0-9a-f]{64})(?:\.[a-z]{3,4})?", re.ASCII)
_OWN = re.compile(r"(?:https?://[^/]+)?/api/uploads/([^/?#]+)", re.ASCII)
_DATA_URL = re.compile(r"data:[\w.+/-]*;base64,", re.ASCII)


class Encoded(Struct, frozen=True, kw_only=True, rename="camel"):
    """The image as base64 or as a data URL, under one of the names that are in use."""

    data: str | None = None
    base64: str | None = None
    image: str | None = None
    filename: str | None = None
    name: str | None = None
    mime_type: str | None = None


@post(
    "/api/uploads/base64",
    dto=JsonBody,
    request_max_body_size=BASE64_BYTES,
    operation_id="upload_base64",
    tags=["stream", "uploads"],
)
async def upload_base64(data: JSONBody[Encoded], server: Server) -> Upload:
    """Keep an image that comes as text."""
    text = data.data or data.base64 or data.image or ""
    if found := _DATA_URL.match(text):
        text = text[found.end() :]
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid("`data`: this is not base64.") from None
    return await keep(server, Kept(content, data.filename or data.name or ""))


@get(
    "/api/uploads/{name:str}",
    media_type="application/octet-stream",
    operation_class=operation(answer=SERVED),
    operation_id="get_upload",
    tags=["stream", "uploads"],
)
async def fetch(name: FromPath[str], server: Server) -> Response[bytes]:
    """An image by the name it was given."""
    found = _NAME.fullmatch(name)
    kept = await server.log.blobs.get(found[1]) if found else None
    if found is None or kept is None:
        raise NotFound("There is no such upload.", name=name[:80])
    return blob_response(found[1], *kept)


def image_url(url: Any) -> str:
    """An image of a message as our own messages name it. Raises Invalid for anything remote."""
    if found := _OWN.fullmatch(url):
        name = _NAME.fullmatch(found[1])
        if name is None:
            raise Invalid("`images`: there is no such upload.", url=url[:200])
        return f"/api/blobs/{name[1]}"
    if url.startswith(("data:", "/api/blobs/")):
        return str(url)
    raise Invalid("`images`: an image is an address that an upload gave, or a data URL; nothing remote is fetched.")


def upload_url(url: str) -> str:
    """The other way round: an image of a message under the address of this contract."""
    return url.replace("/api/blobs/", "/api/uploads/", 1) if url.startswith("/api/blobs/") else url


ROUTES = [upload_base64, fetch]
