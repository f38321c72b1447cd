"""Images of a message on their way to the server: read from this machine, kept there, and named in what is sent."""

import asyncio
from collections.abc import Sequence

from palaver.client.client import Client
from palaver.errors import Invalid
from palaver.schema.content import Content, ImagePart, ImageUrl, as_content
from palaver.tui.docks.attachments import Attachment
from palaver.tui.text import docks


async def with_images(client: Client, content: str | Content, images: Sequence[Attachment]) -> str | Content:
    """Raises PalaverError. An image is kept under its bytes, so trying again keeps it once."""
    if not images:
        return content
    parts = [part for part in as_content(content) if getattr(part, "text", True)]
    for image in images:
        try:
            held = await asyncio.to_thread(image.path.read_bytes)
        except OSError:
            raise Invalid(docks.Composer.image_gone(image.label)) from None
        kept = await client.upload(held, image.path.name)
        parts.append(ImagePart(image_url=ImageUrl(url=kept.url)))
    return tuple(parts)
