"""The page and the description of the API, as a browser gets them."""

import os
import re
from pathlib import Path

import pytest

from palaver.faces.http.page import SCREENS, Page
from tests.flows.served import Served

pytestmark = pytest.mark.anyio


async def fetch(page: Page, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """What the page's own ASGI application answers."""
    sent: list[dict[str, object]] = []

    async def send(message: object) -> None:
        assert isinstance(message, dict)
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await page({"path": path, "method": method, "headers": raw}, None, send)  # type: ignore[arg-type]
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}  # type: ignore[attr-defined]
    return sent[0]["status"], found, b"".join(message["body"] for message in sent[1:])  # type: ignore[return-value, misc]


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<title>one</title>")
    (tmp_path / "icon.svg").write_text("<svg/>")
    (tmp_path / "assets/index-abc.js").write_text("1")
    return tmp_path


async def test_index_answers_the_root_and_every_conversation_and_is_asked_for_again(built: Path) -> None:
    page = Page(built)

    answers = [await fetch(page, path) for path in ("/", "/c/anything", "/index.html")]

    assert [(status, body) for status, _, body in answers] == [(200, b"<title>one</title>")] * 3
    assert {headers["cache-control"] for _, headers, _ in answers} == {"no-cache"}


async def test_hashed_files_are_kept_for_ever_and_others_by_their_type(built: Path) -> None:
    page = Page(built)

    _, script, _ = await fetch(page, "/assets/index-abc.js")
    _, icon, _ = await fetch(page, "/icon.svg")

    assert (script["content-type"], script["cache-control"]) == (
        "text/javascript; charset=utf-8",
        "public, max-age=31536000, immutable",
    )
    assert icon["content-type"] == "image/svg+xml"


async def test_unchanged_index_is_not_sent_twice(built: Path) -> None:
    page = Page(built)
    _, headers, _ = await fetch(page, "/")

    status, _, body = await fetch(page, "/", if_none_match=headers["etag"])

    assert (status, body) == (304, b"")


async def test_newly_built_page_is_served_without_a_restart(built: Path) -> None:
    page = Page(built)
    index = built / "index.html"
    index.write_text("<title>two</title>")
    # Some file systems are too coarse to tell the two writings apart.
    os.utime(index, ns=(0, index.stat().st_mtime_ns + 1_000_000_000))

    _, _, body = await fetch(page, "/")

    assert body == b"<title>two</title>"


async def test_only_the_pages_own_files_are_served(built: Path) -> None:
    (built.parent / "secret").write_text("secret")
    page = Page(built)

    assert not page.serves("/../secret")
    assert not page.serves("/secret")
    assert (await fetch(page, "/assets/../../secret"))[0] == 404
    assert (await fetch(page, "/c/../../secret"))[2] == b"<title>one</title>"


async def test_every_screen_of_the_page_has_an_address(built: Path) -> None:
    source = Path(__file__).parents[2] / "web/src/view/screens.ts"
    words = re.findall(r"^  (\w+): screen\(", source.read_text(), re.MULTILINE)

    assert {"c", *words} == SCREENS
    for word in words:
        assert (await fetch(Page(built), f"/{word}"))[2] == b"<title>one</title>"
        assert Page(built).serves(f"/{word}/and/more")
    assert not Page(built).serves("")


async def test_browser_at_an_address_with_nothing_gets_the_page_and_programs_get_a_refusal(server: Served) -> None:
    opened = {"Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
    async with server.browser() as page:
        shown = [await page.get(path, headers=opened) for path in ("/nowhere", "/c/a/b")]
        others = [
            await page.get("/nowhere"),
            await page.get("/api/nowhere", headers=opened),
            await page.post("/nowhere", headers=opened),
        ]

    assert [(answer.status_code, answer.headers["content-type"]) for answer in shown] == [
        (404, "text/html; charset=utf-8"),
        (200, "text/html; charset=utf-8"),
    ]
    assert [answer.status_code for answer in others] == [401, 401, 401]


async def test_page_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    status, _, body = await fetch(Page(tmp_path), "/")

    assert status == 200
    assert b"make web" in body


async def test_head_has_no_body(built: Path) -> None:
    status, headers, body = await fetch(Page(built), "/", method="HEAD")

    assert (status, headers["content-length"], body) == (200, "18", b"")


# -- the description of the API


async def test_api_is_described_with_our_error_shape(server: Served) -> None:
    schema = (await server.http.get("/api/schema/openapi.json")).json()

    assert schema["openapi"].startswith("3.1")
    operation = schema["paths"]["/api/conversations/{conversation}/commands"]["post"]
    assert operation["responses"]["404"]["content"]["application/json"]["schema"]["$ref"].endswith("/Error")
    assert "202" in operation["responses"]
    assert schema["components"]["schemas"]["SendMessage"]["properties"]["type"]["const"] == "send_message"


async def test_reference_page_names_every_route_and_loads_nothing_from_elsewhere(server: Served) -> None:
    schema = (await server.http.get("/api/schema/openapi.json")).json()
    answer = await server.http.get("/api/schema")
    style = await server.http.get("/api/schema/reference.css")

    assert answer.headers["content-type"].startswith("text/html")
    assert all(f"<code>{path}" in answer.text or f" {path}</code>" in answer.text for path in schema["paths"])
    assert "://" not in answer.text
    assert not any(part in answer.text for part in ("<script", "<style", "style="))
    assert style.headers["content-type"].startswith("text/css")
