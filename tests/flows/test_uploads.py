"""Images in, blobs out: known by their bytes, bounded, and never anything a browser would run."""

import base64
from typing import Any

import pytest

from tests.flows.served import Served

pytestmark = pytest.mark.anyio

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def upload(shared: Served, content: bytes, name: str = "picture.png", kind: str = "image/png") -> Any:
    return await shared.http.post("/api/uploads", files={"file": (name, content, kind)})


async def test_image_goes_up_and_comes_back(shared: Served) -> None:
    answer = await upload(shared, PNG, "../../picture.png")

    kept = answer.json()
    back = await shared.http.get(kept["url"])
    assert answer.status_code == 201
    assert kept == {
        "id": kept["id"],
        "url": f"/api/blobs/{kept['id']}",
        "mime": "image/png",
        "size": len(PNG),
        "name": "picture.png",
        "success": True,
        "data": {
            "id": kept["id"],
            "filename": "picture.png",
            "mimeType": "image/png",
            "size": len(PNG),
            "url": f"/api/uploads/{kept['id']}.png",
        },
    }
    assert (back.content, back.headers["content-type"]) == (PNG, "image/png")
    assert back.headers["content-disposition"] == "inline"
    assert "sandbox" in back.headers["content-security-policy"]
    assert back.headers["x-content-type-options"] == "nosniff"


async def test_uploaded_image_is_sent_with_a_message(shared: Served) -> None:
    conversation = await shared.create()
    url = (await upload(shared, PNG)).json()["url"]

    await shared.command(
        conversation,
        type="send_message",
        content=[{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}],
    )

    blocks = (await shared.state(conversation))["messages"][0]["blocks"]
    assert [block["type"] for block in blocks] == ["text", "image"]
    assert blocks[1]["url"] == url


@pytest.mark.parametrize(
    ("content", "mime"),
    [
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
async def test_kind_of_an_image_is_read_off_its_bytes(shared: Served, content: bytes, mime: str) -> None:
    answer = await upload(shared, content, "misnamed.txt", "text/plain")

    assert answer.json()["mime"] == mime


@pytest.mark.parametrize(
    ("content", "status", "part"),
    [
        (b"<script>alert(1)</script>", 400, "PNG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 400, "PNG"),
        (b"", 400, "PNG"),
        (PNG + b"\0" * (10 << 20), 413, "10 MiB"),
        (PNG + b"\0" * (11 << 20), 413, "large"),
    ],
    ids=["html", "svg", "empty", "just over ten mebibytes", "eleven mebibytes"],
)
async def test_what_is_no_fitting_image_is_refused(shared: Served, content: bytes, status: int, part: str) -> None:
    answer = await upload(shared, content)

    assert answer.status_code == status, answer.text
    assert part in answer.json()["message"]


async def test_form_without_a_file_is_refused_by_name(shared: Served) -> None:
    missing = await shared.http.post("/api/uploads", files={"other": ("a.png", PNG, "image/png")})
    text = await shared.http.post("/api/uploads", data={"file": "just text"})

    assert [answer.status_code for answer in (missing, text)] == [400, 400]
    assert "file" in missing.json()["message"]


@pytest.mark.parametrize("mime", ["text/html", "image/svg+xml", "application/javascript", "text/html; charset=utf-8"])
async def test_what_a_browser_could_run_is_a_download(shared: Served, mime: str) -> None:
    blob = (await shared.app.log.blobs.put(b"<script>alert(1)</script>", mime)).id

    answer = await shared.http.get(f"/api/blobs/{blob}")

    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")


async def test_long_text_is_shown_as_plain_text(shared: Served) -> None:
    blob = (await shared.app.log.blobs.put("täxt".encode(), "text/plain; charset=utf-8")).id

    answer = await shared.http.get(f"/api/blobs/{blob}")

    assert (answer.text, answer.headers["content-type"]) == ("täxt", "text/plain; charset=utf-8")
