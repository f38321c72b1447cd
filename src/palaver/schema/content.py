"""What a person sends: text and images, in the shape OpenAI's clients already use.

Images are data URLs or our own upload URLs; nothing remote is ever fetched.
"""

from msgspec import Struct

from palaver.schema.base import BlobRef


class _Part(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


class TextPart(_Part, tag="text"):
    """Text. When it outgrew an event, `text` holds its beginning and `blob` all of it."""

    text: str
    blob: BlobRef | None = None
    mime: str | None = None
    """What kind of text, where whoever wrote it said so; else it is Markdown."""


class ImageUrl(Struct, frozen=True, kw_only=True, omit_defaults=True):
    url: str
    detail: str | None = None


class ImagePart(_Part, tag="image_url"):
    image_url: ImageUrl


Part = TextPart | ImagePart
Content = tuple[Part, ...]


def as_content(content: str | Content) -> Content:
    """A bare string is one text part."""
    return (TextPart(text=content),) if isinstance(content, str) else content


def plain_text(content: Content) -> str:
    """The text of a message, for titles, previews and search."""
    return "\n".join(part.text for part in content if isinstance(part, TextPart))
