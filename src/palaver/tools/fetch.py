"""The tool `fetch`: one public page, as text.

It goes only where `addresses.py` lets it, for every address and every hop. A redirect to another host is not followed but
told: a person who allowed one host did not allow another. Sizes and times are bounded; what is neither a page nor text is
refused. It sends no cookie and no credential, and goes through no proxy.
"""

import asyncio
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import msgspec
from msgspec import Meta
from yarl import URL

from palaver.backends.process import Ladder, allowed_environment, spawn
from palaver.errors import AgentError, CallerError, Forbidden, Invalid, TooLarge
from palaver.tools.addresses import Guard, GuardedResolver
from palaver.tools.arguments import decode, failed, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.output import Collector
from palaver.tools.proposal import fingerprint, visible

URL_CHARS = 4000
"""Longer addresses carry data, and most servers refuse them."""
BODY_BYTES = 5 * 1024 * 1024
"""Unpacked. A page is a hundredth of it."""
FETCH_LIMIT_S = 30.0
"""For everything together, redirects included."""
READING_LIMIT_S = 10.0
"""For making text of a page: it takes a blink, or is made to take for ever."""
CHARSET_BYTES = 1024
"""Where a page must name its encoding, by the standard."""
REDIRECTS = 5
TITLE_CHARS = 100
AGENT = "Palaver (fetches a page on a person's behalf)"
ACCEPT = "text/html,application/xhtml+xml,text/plain,application/json,text/*;q=0.9,*/*;q=0.1"

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {"application/json", "application/ld+json", "application/xml", "application/javascript", "application/yaml"}
    | {"application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonl", "application/sql"}
)
_CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?([A-Za-z0-9_-]{1,40})", re.IGNORECASE)
_MOVED = frozenset({301, 302, 303, 307, 308})


class FetchArguments(msgspec.Struct, frozen=True):
    url: Annotated[str, Meta(min_length=1, max_length=URL_CHARS, description="Address, with http:// or https://.")]


SPEC = ToolSpec(
    name="fetch",
    description=(
        "Get one public web page or text file, as text. Addresses of this machine and its own network are refused."
        " If the page has moved to another host, you are told where; fetch that then."
    ),
    parameters=parameters_of(FetchArguments),
    outside=True,
)


@dataclass(frozen=True, slots=True)
class _Page:
    url: URL
    status: int
    kind: str
    text: bytes
    """In UTF-8."""
    moved_to: URL | None = None


class Fetch:
    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard or Guard()

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            url = _address(decode(arguments, FetchArguments).url, self._guard)
        except CallerError as error:
            return failed(error)
        shown = visible(str(url))
        return Proposal(
            title=f"Fetch {shown[:TITLE_CHARS]}{' …' if len(shown) > TITLE_CHARS else ''}",
            hash=fingerprint("fetch", arguments, root, {}),
            preview=shown,
            # By its raw name: a letter that only looks like another shows there.
            risk=visible(f"{url.raw_host} is told the whole address, and what it answers is read by the agent."),
            match=url.raw_host,
            covers=visible(f"every page of {url.raw_host}"),
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        collector = Collector(place, live=False)
        try:
            url = _address(decode(arguments, FetchArguments).url, self._guard)
            async with asyncio.timeout(FETCH_LIMIT_S):
                page = await self._get(url)
            if page.moved_to is not None:
                return ToolResult(
                    ok=True,
                    output=f"{url} has moved to another host: {page.moved_to}\nFetch that address if you need it.",
                )
            text = await _readable(page, place) if page.kind in _HTML else page.text
        except TimeoutError:
            return ToolResult(ok=False, error_code="timed_out", error=f"No whole answer within {FETCH_LIMIT_S:.0f} s.")
        except CallerError as error:
            return failed(error)
        except AgentError as error:
            return ToolResult(ok=False, error_code=error.code, error=error.message)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return ToolResult(ok=False, error_code="unreachable", error=f"It could not be fetched: {_reason(error)}.")
        if page.url != url:
            await collector.feed_text(f"[moved to {page.url}]\n")
        await collector.feed(text)
        said = await collector.finish()
        if page.status >= 400:
            return said.result(error=f"The server answered {page.status}.", code="http_error")
        return said.result() if said.text else ToolResult(ok=True, output="[the page is empty]")

    async def _get(self, url: URL) -> _Page:
        begin = url
        connector = aiohttp.TCPConnector(
            resolver=GuardedResolver(self._guard),
            socket_factory=self._guard.socket_for,
            use_dns_cache=False,
            force_close=True,
            limit=1,
        )
        async with aiohttp.ClientSession(
            connector=connector, headers={"User-Agent": AGENT, "Accept": ACCEPT}, cookie_jar=aiohttp.DummyCookieJar()
        ) as session:
            for _ in range(REDIRECTS + 1):
                if _is_address(url):
                    # The resolver is not asked about what already is an address.
                    self._guard.check(str(url.host), str(url.host))
                async with session.get(url, allow_redirects=False) as answer:
                    where = answer.headers.get("Location")
                    if answer.status not in _MOVED or where is None:
                        return _Page(url, answer.status, *await _body(answer))
                    url = _address(str(url.join(URL(where))), self._guard)
                if url.host != begin.host:
                    return _Page(begin, 0, "", b"", moved_to=url)
        raise Invalid(f"{begin} moves on and on ({REDIRECTS} times); it leads nowhere.")


def _address(text: str, guard: Guard) -> URL:
    try:
        url = URL(text.strip())
        port = url.port
    except ValueError as error:
        raise Invalid(f"This is no address: {error}.") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise Invalid("Only whole addresses with http:// or https:// are fetched.")
    if url.user is not None or url.password is not None:
        raise Forbidden("An address with a name or password in it is not fetched.")
    guard.check_port(port)
    if _is_address(url):
        guard.check(str(url.host), str(url.host))
    return url.with_fragment(None)


def _is_address(url: URL) -> bool:
    host = url.host or ""
    return ":" in host or host.replace(".", "").isdigit()


async def _body(answer: aiohttp.ClientResponse) -> tuple[str, bytes]:
    """What kind of text it is, and the text."""
    kind = answer.content_type.lower() if "Content-Type" in answer.headers else ""
    if not (kind.startswith("text/") or kind in _HTML or kind in _TEXT or kind.endswith(("+json", "+xml"))):
        size = f", {answer.content_length:,} bytes" if answer.content_length is not None else ""
        raise Invalid(f"It is {kind or 'of no known kind'}{size}, not text; only pages and text are fetched.")
    data = bytearray()
    async for chunk in answer.content.iter_any():
        data += chunk
        if len(data) > BODY_BYTES:
            raise TooLarge(f"It is larger than {BODY_BYTES:,} bytes; nothing of it is shown. Use the shell.")
    charset = answer.charset
    if charset is None and kind in _HTML and (said := _CHARSET.search(data[:CHARSET_BYTES])):
        charset = said[1].decode("ascii")
    return kind, _as_utf8(bytes(data), charset)


def _as_utf8(data: bytes, charset: str | None) -> bytes:
    if charset is None or charset.lower() in ("utf-8", "utf8", "us-ascii"):
        return data
    try:
        return data.decode(charset, errors="replace").encode(errors="replace")
    except LookupError:
        return data


async def _readable(page: _Page, place: Workplace) -> bytes:
    """The page as text, made by a program that can be ended."""
    argv = [sys.executable, "-I", "-m", "palaver.tools.page", str(page.url)]
    environment = allowed_environment(place.environment)
    text = bytearray()
    try:
        async with (
            asyncio.timeout(READING_LIMIT_S),
            spawn(argv, cwd=place.root, environment=environment, stdin=True, ladder=Ladder(0, 0)) as child,
        ):
            # Nothing is written before all is read, so neither waits for the other.
            await child.write(page.text)
            child.close_stdin()
            async for line in child.lines():
                text += line + b"\n"
            if (await child.ended()).code != 0:
                raise Invalid("The page could not be read as HTML.")
    except TimeoutError:
        raise Invalid(f"No text could be made of the page within {READING_LIMIT_S:.0f} s.") from None
    return bytes(text)


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"there is no host {error.host}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host} cannot be reached ({error.os_error.strerror or error.os_error})"
    return str(error).strip().rstrip(".") or type(error).__name__
