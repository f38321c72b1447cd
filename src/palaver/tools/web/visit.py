"""The visit behind `fetch`: one page got over HTTP, every address and every hop of it judged by the guard.

Imported by `fetch` with the first call, because the HTTP client takes longer to import than a server should take to start.
It sends no cookie and no credential, and goes through no proxy.
"""

import asyncio
import re
import socket
from dataclasses import dataclass

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from palaver.errors import Forbidden, Invalid, TooLarge
from palaver.tools.web.addresses import Guard

BODY_BYTES = 5 * 1024 * 1024
"""Unpacked. A page is a hundredth of it."""
CHARSET_BYTES = 1024
"""Where a page must name its encoding, by the standard."""
REDIRECTS = 5
AGENT = "Palaver (fetches a page on a person's behalf)"
ACCEPT = "text/html,application/xhtml+xml,text/plain,application/json,text/*;q=0.9,*/*;q=0.1"

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {"application/json", "application/ld+json", "application/xml", "application/javascript", "application/yaml"}
    | {"application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonl", "application/sql"}
)
_CHARSET = re.compile(rb"<meta[^<>]+charset=[\"']?([A-Za-z0-9_-]{1,40})", re.IGNORECASE)
_MOVED = frozenset({301, 302, 303, 307, 308})


class Unreachable(Exception):
    """No answer, or none that could be read. Says why in words."""


_CHARSETS = re.compile(
    r"(?:iso[-_]?8859[-_]?\d{1,2}|latin[-_]?\d{1,2}|windows[-_]?\d{3,4}|cp[-_]?\d{3,4}|koi8[-_]?[rut]|mac[-_]?\w{1,12}"
    r"|utf[-_]?(?:16|32)(?:[-_]?[lb]e)?|shift[-_]?jis|sjis|euc[-_]?(?:jp|kr)|iso[-_]?2022[-_]?\w{2,5}|gbk?|gb2312|gb18030"
    r"|big5(?:[-_]?hkscs)?|tis[-_]?620|ks_c_5601[-_]?1987)"
)
"""Encodings of pages that are not UTF-8."""


@dataclass(frozen=True, slots=True)
class Page:
    url: URL
    status: int
    is_html: bool
    text: bytes
    """In UTF-8."""
    moved_to: URL | None = None


async def visit(url: URL, guard: Guard) -> Page:
    """Raises Unreachable, and a CallerError for what may not be fetched."""
    try:
        return await _visit(url, guard)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise Unreachable(_reason(error)) from error


async def _visit(url: URL, guard: Guard) -> Page:
    begin = url
    connector = aiohttp.TCPConnector(
        resolver=GuardedResolver(guard),
        socket_factory=guard.socket_for,
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
                guard.check(str(url.host), str(url.host))
            async with session.get(url, allow_redirects=False) as answer:
                where = answer.headers.get("Location")
                if answer.status not in _MOVED or where is None:
                    return Page(url, answer.status, *await _body(answer))
                url = address(str(url.join(URL(where))), guard)
            if url.host != begin.host:
                return Page(begin, 0, False, b"", moved_to=url)
    raise Invalid(f"{begin} moves on and on ({REDIRECTS} times); it leads nowhere.")


def address(text: str, guard: Guard) -> URL:
    """An address as somebody wrote it, if it may be fetched."""
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


async def _body(answer: aiohttp.ClientResponse) -> tuple[bool, bytes]:
    """Whether it is a page, and its text."""
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
    return kind in _HTML, _as_utf8(bytes(data), charset)


def _as_utf8(data: bytes, charset: str | None) -> bytes:
    # Python knows more encodings than pages have, some of which take quadratic time (punycode, idna) or refuse to replace.
    if charset is None or not _CHARSETS.fullmatch(charset.lower()):
        return data
    try:
        return data.decode(charset, errors="replace").encode(errors="replace")
    except (LookupError, ValueError):
        return data


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"there is no host {error.host}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{error.host} cannot be reached ({error.os_error.strerror or error.os_error})"
    return str(error).strip().rstrip(".") or type(error).__name__


class GuardedResolver(AbstractResolver):
    """Names to addresses. One address that may not be fetched from, and the name is refused."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=socket.AF_UNSPEC)
        results: list[ResolveResult] = []
        for known_family, _, protocol, _, place in found:
            known = str(place[0])
            self._guard.check(known, host)
            results.append(
                ResolveResult(
                    hostname=host,
                    host=known,
                    port=port,
                    family=known_family,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
            )
        return results

    async def close(self) -> None:
        pass
