"""Images in, and everything kept beside the events out.

What a file is, is decided by its bytes, never by its name. Nothing that comes out of here may run in a browser as ours: an
allow-list of types is shown, all else is a download, and a policy of its own puts every answer in a sandbox.
"""

from dataclasses import dataclass
from typing import Annotated

from litestar import Response, get, post
from litestar.datastructures import UploadFile
from litestar.enums import RequestEncodingType
from litestar.params import Body, PathParameter

from palaver.conversation.attachments import ATTACHMENT_BYTES
from palaver.errors import Invalid, NotFound, TooLarge
from palaver.faces.http.openapi import BYTES, operation
from palaver.faces.server import Server, ServerParts
from palaver.schema.base import ID_PATTERN, Shown

FORM_SLACK_BYTES = 64 << 10
"""What the form around a file of full size may take."""
NAME_CHARS = 200

BLOB_POLICY = "default-src 'none'; sandbox; frame-ancestors 'none'"
SHOWN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "text/plain")
SERVED = dict.fromkeys((*SHOWN_TYPES, "application/octet-stream"), BYTES)


@dataclass(frozen=True, slots=True)
class Form:
    file: UploadFile


@dataclass(frozen=True, slots=True)
class Kept:
    """A file as it came in. Its name is only told back."""

    content: bytes
    name: str


class UploadData(Shown, rename="camel"):
    """The same in the words of the `stream` contract."""

    id: str
    filename: str
    mime_type: str
    size: int
    url: str


class Upload(Shown):
    id: str
    url: str
    """What an image part of a message names."""
    mime: str
    size: int
    name: str
    success: bool
    data: UploadData


@post(
    "/api/uploads",
    request_max_body_size=ATTACHMENT_BYTES + FORM_SLACK_BYTES,
    operation_id="upload",
    tags=["uploads"],
)
async def upload(data: Annotated[Form, Body(media_type=RequestEncodingType.MULTI_PART)], server: Server) -> Upload:
    """Keep an image (PNG, JPEG, GIF or WebP, at most 10 MiB), sent as the form field `file`."""
    return await keep(server, Kept(await data.file.read(), data.file.filename or ""))


async def keep(server: ServerParts, file: Kept) -> Upload:
    if len(file.content) > ATTACHMENT_BYTES:
        raise TooLarge("An attachment may hold 10 MiB.", limit_bytes=ATTACHMENT_BYTES, size_bytes=len(file.content))
    mime = image_type(file.content)
    if mime is None:
        raise Invalid("`file`: images may be PNG, JPEG, GIF or WebP; this is none of them.")
    kept = await server.log.blobs.put(file.content, mime)
    name = file.name.replace("\\", "/").rpartition("/")[2][:NAME_CHARS]
    stored = f"{kept.id}.{mime.rpartition('/')[2]}"
    told = UploadData(id=kept.id, filename=name or stored, mime_type=mime, size=kept.size, url=f"/api/uploads/{stored}")
    return Upload(
        id=kept.id, url=f"/api/blobs/{kept.id}", mime=mime, size=kept.size, name=name, success=True, data=told
    )


@get(
    "/api/blobs/{blob:str}",
    media_type="application/octet-stream",
    operation_class=operation(answer=SERVED),
    operation_id="get_blob",
    tags=["uploads"],
)
async def blob(blob: Annotated[str, PathParameter(pattern=ID_PATTERN)], server: Server) -> Response[bytes]:
    """A payload by its id. Its content never changes."""
    found = await server.log.blobs.get(blob)
    if found is None:
        raise NotFound("There is nothing under this id.", blob=blob)
    return blob_response(blob, *found)


def blob_response(blob: str, content: bytes, mime: str) -> Response[bytes]:
    """Shown if it can do no harm, else a download; in either case in a sandbox of its own."""
    kind = mime.partition(";")[0].strip().lower()
    shown = kind in SHOWN_TYPES
    headers = {
        "Content-Security-Policy": BLOB_POLICY,
        "Cache-Control": "private, max-age=31536000, immutable",
        "Content-Disposition": "inline" if shown else f'attachment; filename="{blob[:16]}"',
    }
    return Response(content, media_type=kind if shown else "application/octet-stream", headers=headers)


def image_type(content: bytes) -> str | None:
    """What the first bytes say it is."""
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if content.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return None


ROUTES = [upload, blob]
