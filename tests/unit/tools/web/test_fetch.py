"""The tool `fetch`, over real HTTP on loopback."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.abc import ResolveResult

from palaver.approval.policy import offers
from palaver.tools.base import ToolResult
from palaver.tools.web import fetch as fetching
from palaver.tools.web.addresses import Guard
from palaver.tools.web.fetch import Fetch
from palaver.tools.web.visit import BODY_BYTES, REDIRECTS, GuardedResolver
from tests.unit.tools.workshop import Workshop

pytestmark = pytest.mark.anyio

LIMIT_S = 20.0
Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Site:
    """A web server whose answers a test sets, and what it was asked."""

    port: int
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    asked: list[web.BaseRequest] = field(default_factory=list[web.BaseRequest])

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def guard(self) -> Guard:
        return Guard(ports=frozenset({self.port}), loopback=True)

    def says(
        self, path: str, text: str | bytes, kind: str, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        async def answer(_: web.BaseRequest) -> web.Response:
            body = text.encode() if isinstance(text, str) else text
            return web.Response(body=body, status=status, headers={"Content-Type": kind, **(headers or {})})

        self.answers[path] = answer

    def moves(self, path: str, to: str) -> None:
        async def answer(_: web.BaseRequest) -> web.Response:
            return web.Response(status=302, headers={"Location": to})

        self.answers[path] = answer

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request)
        return await self.answers[request.path](request)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    listening = socket.create_server(("127.0.0.1", 0))
    site = Site(listening.getsockname()[1])
    runner = web.ServerRunner(web.Server(site.answer), handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    yield site
    await runner.cleanup()


async def fetched(workshop: Workshop, site: Site, path: str) -> ToolResult:
    async with asyncio.timeout(LIMIT_S):
        return await workshop.run(Fetch(site.guard), url=f"{site.base}{path}")


PAGE = """<!doctype html><html><head><title>A &amp; B</title><style>p{}</style><script>alert("no")</script></head>
<body><nav><a href="/home">Home</a></nav><h1>Hello</h1><p>One   <b>two</b>
three.<br>Four <a href="sub/page#x">a link</a> <img src=x alt="a picture"></p><svg><text>no</text></svg>
<ul><li>first<li>second<ol><li>inner</ol></ul><pre>  keep
   this</pre><table><tr><th>a<th>b<tr><td>1<td>2</table><noscript>no</noscript>
<a href="javascript:alert(1)">click</a><template>no</template></body></html>"""


async def test_page_becomes_text_that_can_be_read(workshop: Workshop, site: Site) -> None:
    site.says("/a/", PAGE, "text/html; charset=utf-8")
    result = await fetched(workshop, site, "/a/")
    assert result.ok, result.error
    assert result.output == (
        f"A & B\n\nHome ({site.base}/home)\n\n# Hello\n\nOne two three.\nFour a link ({site.base}/a/sub/page#x)"
        " [a picture]\n\n- first\n- second\n  1. inner\n\n  keep\n   this\n\na | b\n1 | 2\n\nclick\n"
    )


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/json", "application/problem+json", "image/svg+xml", "text/css"]
)
async def test_text_comes_as_it_is(kind: str, workshop: Workshop, site: Site) -> None:
    site.says("/a", '{"a": "<b>"}', kind)
    assert (await fetched(workshop, site, "/a")).output == '{"a": "<b>"}'


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "application/pdf", "video/mp4"])
async def test_anything_else_is_refused_by_its_name(kind: str, workshop: Workshop, site: Site) -> None:
    site.says("/a", b"\x89PNG", kind)
    result = await fetched(workshop, site, "/a")
    assert (result.ok, result.error_code) == (False, "invalid")
    assert kind in (result.error or "")


async def test_other_encodings_are_understood(workshop: Workshop, site: Site) -> None:
    site.says("/header", "é".encode("latin-1"), "text/plain; charset=iso-8859-1")
    site.says("/meta", '<meta charset="windows-1252"><p>é'.encode("cp1252"), "text/html")
    site.says("/unknown", "é", "text/plain; charset=nonsense")
    assert (await fetched(workshop, site, "/header")).output == "é"
    assert (await fetched(workshop, site, "/meta")).output == "é\n"
    assert (await fetched(workshop, site, "/unknown")).output == "é"


async def test_failure_of_the_server_is_a_result_with_what_it_said(workshop: Workshop, site: Site) -> None:
    site.says("/a", "no such page", "text/plain", status=404)
    result = await fetched(workshop, site, "/a")
    assert (result.ok, result.error_code, result.error, result.output) == (
        False,
        "http_error",
        "The server answered 404.",
        "no such page",
    )


async def test_redirect_on_the_same_host_is_followed_and_said(workshop: Workshop, site: Site) -> None:
    site.moves("/a", "/b")
    site.says("/b", "here", "text/plain")
    assert (await fetched(workshop, site, "/a")).output == f"[moved to {site.base}/b]\nhere"


async def test_redirect_to_another_host_is_told_and_not_followed(workshop: Workshop, site: Site) -> None:
    site.moves("/a", f"http://localhost:{site.port}/b")
    result = await fetched(workshop, site, "/a")
    assert result.ok
    assert f"has moved to another host: http://localhost:{site.port}/b" in result.output
    assert [request.path for request in site.asked] == ["/a"]


@pytest.mark.parametrize(
    "to",
    [
        "http://169.254.169.254/latest",
        "http://127.0.0.1:22/",
        "file:///etc/passwd",
        "http://u:p@127.0.0.1/",
        "//[::1]/",
    ],
)
async def test_redirect_to_the_inside_is_refused(to: str, workshop: Workshop, site: Site) -> None:
    site.moves("/a", to)
    result = await fetched(workshop, site, "/a")
    assert (result.ok, result.output, len(site.asked)) == (False, "", 1)
    assert result.error_code in ("forbidden", "invalid")


async def test_redirects_end(workshop: Workshop, site: Site) -> None:
    site.moves("/a", "/a")
    result = await fetched(workshop, site, "/a")
    assert (result.ok, result.error_code, len(site.asked)) == (False, "invalid", REDIRECTS + 1)


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://0.0.0.0/", "http://10.0.0.1/x"),
        *(
            "http://169.254.169.254/",
            "http://2130706433/",
            "http://127.1/",
            "http://0x7f000001/",
            "http://[::ffff:7f00:1]/",
        ),
        *("https://user:secret@1.1.1.1/", "http://1.1.1.1:22/", "http://1.1.1.1:8080/"),
        *(
            "file:///etc/passwd",
            "ftp://1.1.1.1/",
            "gopher://1.1.1.1/",
            "1.1.1.1",
            "/etc/passwd",
            "http://",
            "javascript:1",
        ),
    ],
)
async def test_address_that_may_not_be_fetched_is_refused(url: str, workshop: Workshop) -> None:
    async with asyncio.timeout(LIMIT_S):
        result = await workshop.run(Fetch(), url=url)
    assert (result.ok, result.output) == (False, "")
    assert result.error_code in ("forbidden", "invalid", "unreachable"), result


async def test_name_that_changes_its_mind_is_refused_when_connecting(
    workshop: Workshop, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lying(_: GuardedResolver, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host="127.0.0.1", port=port, family=socket.AF_INET, proto=0, flags=0)]

    monkeypatch.setattr(GuardedResolver, "resolve", lying)
    result = await workshop.run(Fetch(Guard(ports=frozenset({site.port}))), url=f"http://rebound.example:{site.port}/")
    assert (result.ok, result.error_code, site.asked) == (False, "unreachable", [])
    assert "only public ones" in (result.error or "")


async def test_body_that_is_too_large_is_refused_also_when_packed(workshop: Workshop, site: Site) -> None:
    site.says("/plain", b"a" * (BODY_BYTES + 1), "text/plain")
    site.says("/packed", gzip.compress(b"a" * (20 * BODY_BYTES)), "text/plain", headers={"Content-Encoding": "gzip"})
    for path in ("/plain", "/packed"):
        result = await fetched(workshop, site, path)
        assert (result.ok, result.error_code, result.output) == (False, "too_large", "")


async def test_long_text_is_cut_and_spilled(workshop: Workshop, site: Site) -> None:
    site.says("/a", "line\n" * 50_000, "text/plain")
    result = await fetched(workshop, site, "/a")
    assert (result.ok, result.truncated, workshop.blobs) == (True, True, [b"line\n" * 50_000])


async def test_server_that_never_ends_is_given_up(
    workshop: Workshop, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dripping(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await answer.prepare(request)
        await answer.write(b"a")
        await asyncio.Event().wait()
        return answer

    site.answers["/a"] = dripping
    monkeypatch.setattr(fetching, "FETCH_LIMIT_S", 0.2)
    result = await fetched(workshop, site, "/a")
    assert (result.ok, result.error_code) == (False, "timed_out")


async def test_page_that_no_text_can_be_made_of_is_given_up(
    workshop: Workshop, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.says("/a", "<p>hello", "text/html")
    monkeypatch.setattr(fetching, "READING_LIMIT_S", 0.0)
    result = await fetched(workshop, site, "/a")
    assert (result.ok, result.error_code) == (False, "invalid")


async def test_unreachable_server_is_a_result(workshop: Workshop, site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    fetch = Fetch(Guard(ports=frozenset({port}), loopback=True))
    result = await workshop.run(fetch, url=f"http://127.0.0.1:{port}/")
    assert (result.ok, result.error_code) == (False, "unreachable")


async def test_request_carries_nothing_of_ours(workshop: Workshop, site: Site) -> None:
    site.says("/a", "x", "text/plain", headers={"Set-Cookie": "a=b"})
    site.moves("/m", "/a")
    workshop.environment |= {"HTTP_PROXY": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1"}
    await fetched(workshop, site, "/a")
    await fetched(workshop, site, "/m")
    for request in site.asked:
        assert request.method == "GET"
        assert not {"Cookie", "Authorization", "Referer"} & set(request.headers)


async def test_secret_on_a_page_is_redacted(workshop: Workshop, site: Site) -> None:
    site.says("/a", "it is correct-horse-battery", "text/plain")
    assert (await fetched(workshop, site, "/a")).output == "it is [redacted SERVICE_TOKEN]"


def test_proposal_names_the_host_and_shows_the_whole_address(workshop: Workshop) -> None:
    proposal = workshop.propose(Fetch(), url="https://Example.com/a?b=c#part")
    assert (proposal.title, proposal.match) == ("Fetch https://example.com/a?b=c", "example.com")
    assert not proposal.reads_only
    assert offers(Fetch().spec, proposal)[0].label == "every page of example.com"
    # A letter that only looks like another shows.
    lookalike = workshop.propose(Fetch(), url="https://ex\u0430mple.com/")
    assert lookalike.match == "xn--exmple-4nf.com"
    assert "xn--exmple-4nf.com" in lookalike.title
