"""What is too large for an event goes to a blob; what was never uploaded is refused."""

import base64

import pytest

from palaver.conversation.attachments import INLINE_TEXT_BYTES, with_blobs
from palaver.errors import Invalid, NotFound, TooLarge
from palaver.log.memory import MemoryLog
from palaver.schema.content import ImagePart, ImageUrl, TextPart

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()


def image(url: str) -> tuple[ImagePart]:
    return (ImagePart(image_url=ImageUrl(url=url)),)


async def test_short_text_stays_where_it_is() -> None:
    assert await with_blobs("hello", MemoryLog().blobs) == (TextPart(text="hello"),)


async def test_long_text_keeps_its_beginning_and_goes_to_a_blob_whole() -> None:
    blobs = MemoryLog().blobs
    text = "é" * INLINE_TEXT_BYTES
    (part,) = await with_blobs(text, blobs)
    assert isinstance(part, TextPart)
    assert part.blob is not None
    assert text.startswith(part.text)
    assert await blobs.get(part.blob.id) == (text.encode(), "text/plain; charset=utf-8")
    assert await with_blobs((part,), blobs) == (part,)


async def test_picture_in_the_message_becomes_an_upload() -> None:
    blobs = MemoryLog().blobs
    (part,) = await with_blobs(image(f"data:image/png;base64,{PIXEL}"), blobs)
    assert isinstance(part, ImagePart)
    found = await blobs.get(part.image_url.url.removeprefix("/api/blobs/"))
    assert found == (b"\x89PNG\r\n\x1a\n", "image/png")
    assert await with_blobs((part,), blobs) == (part,)


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("https://example.invalid/cat.png", Invalid),
        ("data:text/html;base64,PGI+", Invalid),
        ("data:image/png;base64,!!!", Invalid),
        ("/api/blobs/" + "0" * 64, NotFound),
        ("/api/blobs/../token", Invalid),
    ],
)
async def test_anything_else_is_refused_with_words(url: str, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        await with_blobs(image(url), MemoryLog().blobs)


async def test_too_much_is_refused() -> None:
    blobs = MemoryLog().blobs
    with pytest.raises(TooLarge, match="1 MiB"):
        await with_blobs("x" * ((1 << 20) + 1), blobs)
    with pytest.raises(TooLarge, match="10 attachments"):
        await with_blobs(image(f"data:image/png;base64,{PIXEL}") * 11, blobs)
