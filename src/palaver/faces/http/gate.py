"""The door of the server: nothing is parsed, routed or answered before a request has passed it.

A plain ASGI application in front of every face, HTTP and WebSocket alike. In this order: is the Host one of our names (a
page that rebinds its own name to this address has another); does the request come from our own page or from no page at all;
does it carry a token of ours, or a cookie with a proof of its page key. Then the answer gets the headers every answer has.
Streams pass through untouched: only the first message of a response is looked at.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from palaver.errors import Busy, Forbidden, PalaverError, Unauthorized
from palaver.faces.http.connections import EXTENSION as CONNECTION
from palaver.faces.http.connections import Connection
from palaver.faces.http.errors import refuse
from palaver.faces.http.hosts import Hosts
from palaver.faces.http.page import Page
from palaver.people.authentication import Failures, Keys, Principal
from palaver.people.proofs import Proof

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "font-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)

_HEADERS: dict[bytes, bytes] = {
    b"content-security-policy": CONTENT_SECURITY_POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-frame-options": b"DENY",
    b"cache-control": b"no-store",
}

SIGN_IN = "/api/session"
OPEN = frozenset({("GET", "/api/health"), ("POST", SIGN_IN)})
"""What needs no token: whether the server lives, and the sign-in itself."""

PROOF_HEADER = b"palaver-proof"
CHALLENGE_HEADER = b"palaver-challenge"
"""The answer to every request that has the other one, if only empty, says what the next proof is to be made with."""
SUBPROTOCOL = "palaver"
PROOF_SUBPROTOCOL = "palaver.proof."
"""A browser's WebSocket has no other header of its own: the page offers `palaver` and `palaver.proof.PROOF`."""
SOCKET = "SOCKET"
"""In proofs, the method of a WebSocket's request: none of HTTP's, so that a proof for one is none for the other."""

_LOOKED_AT = frozenset(
    {
        *(b"host", b"origin", b"sec-fetch-site", b"sec-fetch-dest", b"authorization", b"cookie"),
        *(b"x-forwarded-proto", b"sec-websocket-protocol", PROOF_HEADER),
    }
)

_STREAM = b"text/event-stream"

_NO_PAGES = ("/api/", "/mcp", "/ws")
"""Where faces answer by themselves; any other address that somebody opens in a browser is answered by the page, in words."""


def cookie_name(port: int) -> str:
    """Browsers share cookies between ports of one host; two servers on one machine must not sign each other out."""
    return f"palaver_{port}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the gate needs to know of a request."""

    hosts: tuple[str, ...]
    origin: str | None
    fetch_site: str | None
    fetch_dest: str | None
    authorization: str | None
    cookie: str | None
    proof: str | None
    """None: it has no place for one. Empty: there is nothing in it."""
    scheme: str
    peer: str


class Gate:
    def __init__(
        self,
        app: ASGIApp,
        page: Page,
        keys: Keys,
        failures: Failures,
        hosts: Hosts,
        port: int,
        door: Mapping[str, str],
        *,
        behind_proxy: bool = False,
    ) -> None:
        """`door`: what the server says of itself to whoever has to sign in first."""
        self._app = app
        self._behind_proxy = behind_proxy
        self._door = door
        self._page = page
        self._keys = keys
        self._failures = failures
        self._hosts = hosts
        self._cookie = cookie_name(port)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        asked = _asked(scope, self._behind_proxy)
        challenge = self._keys.challenges.current.encode() if asked.proof is not None else None
        answer = _with_headers(scope, send, challenge)
        try:
            host = self._host(asked)
            if self._is_page(scope, asked):
                elsewhere = None if self._hosts.holds(host) else self._hosts.held_instead(host)
                page = self._page if elsewhere is None else _moved(f"{asked.scheme}://{elsewhere}")
                await page(scope, receive, answer)
                return
            _check_origin(asked)
            if scope["path"] == SIGN_IN or asked.authorization is None:
                self._check_held(host)
            if not _is_open(scope):
                scope["auth"] = scope["user"] = self._principal(scope, asked)
                answer = _with_subprotocol(scope, answer)
                _keep_connection(scope)
                receive = self._with_checked_body(scope, receive)
        except PalaverError as refusal:
            await refuse(scope, receive, answer, refusal)
            return
        await self._app(scope, receive, answer)

    def _is_page(self, scope: Scope, asked: _Asked) -> bool:
        path: str = scope["path"]
        opened = asked.fetch_dest == "document" and not path.startswith(_NO_PAGES)
        return scope.get("method") in ("GET", "HEAD") and (opened or self._page.serves(path))

    def _host(self, asked: _Asked) -> str:
        host = asked.hosts[0].lower() if len(asked.hosts) == 1 else ""
        if not self._hosts.knows(host):
            raise Forbidden(
                "This server does not answer to that name. Use the address it printed at its start, "
                "or add the name with --public-host.",
                host=host[:200],
            )
        return host

    def _check_held(self, host: str) -> None:
        if not self._hosts.holds(host):
            raise Forbidden(
                "Browsers sign in only under an address that no other program can answer to. "
                f"Open this server as {self._hosts.held_instead(host) or 'the address it printed at its start'}.",
                host=host[:200],
            )

    def _with_checked_body(self, scope: Scope, receive: Receive) -> Receive:
        """A body may take minutes. Whoever lost its right meanwhile is refused before anybody acts on it."""
        # Only an HTTP request has a method.
        if not scope.get("method"):
            return receive
        principal: Principal = scope["auth"]

        async def receiving() -> Any:
            message = await receive()
            if message["type"] == "http.request" and not self._keys.holds(principal):
                raise Unauthorized("Your token or sign-in ended before this request was complete.")
            return message

        return receiving

    def _principal(self, scope: Scope, asked: _Asked) -> Principal:
        """Whoever the token or the cookie stands for. A right secret always passes, however many wrong ones came before."""
        if asked.authorization is not None:
            scheme, _, token = asked.authorization.partition(" ")
            found = self._keys.by_token(token.strip()) if scheme.lower() == "bearer" else None
            if found is None:
                if self._failures.add(asked.peer):
                    raise Busy("Too many wrong tokens from your address. Wait a minute.")
                raise Unauthorized(
                    "That token is not this server's. It stands in the file `token` of the data directory."
                )
            return found
        cookies = _cookie_values(asked.cookie, self._cookie)
        # A wrong cookie is no guess: it is a browser that was signed out, and it must be told so.
        if (found := self._keys.by_cookie(cookies, Proof.parse(asked.proof or ""), _proven(scope, asked))) is not None:
            return found
        if cookies:
            raise Unauthorized(
                "This browser's sign-in has ended, or its page key is missing. Sign in again: with the token in the file "
                "`token` of the server's data directory, or by the link that `palaver serve` prints.",
                **self._door,
            )
        raise Unauthorized(
            "Sign in first: send `Authorization: Bearer <token>` with the text of the file `token` in the "
            "server's data directory, or open the link that `palaver serve` printed.",
            **self._door,
        )


def _moved(address: str) -> ASGIApp:
    """The page at another address of ours. A browser takes the fragment along, and with it the code of a sign-in link."""

    async def redirect(scope: Scope, _receive: Receive, send: Send) -> None:
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        location = address.encode() + target_path(scope) + query
        # Nothing more is to be said under this name.
        headers = [(b"location", location), (b"content-length", b"0"), (b"connection", b"close")]
        start: Any = {"type": "http.response.start", "status": 308, "headers": headers}
        end: Any = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(start)
        await send(end)

    return redirect


def target_path(scope: Scope) -> bytes:
    """As the request line has it."""
    raw: bytes | None = scope.get("raw_path")
    return raw or quote(scope["path"]).encode()


def peer_of(scope: Scope) -> str:
    client: Any = scope.get("client")
    return str(client[0]) if client else "local"


def _asked(scope: Scope, behind_proxy: bool) -> _Asked:
    found: dict[bytes, list[str]] = {}
    for name, value in scope["headers"]:
        if name in _LOOKED_AT:
            found.setdefault(name, []).append(value.decode("latin-1"))
    return _Asked(
        hosts=tuple(found.get(b"host", ())),
        origin=_first(found.get(b"origin")),
        fetch_site=_first(found.get(b"sec-fetch-site")),
        fetch_dest=_first(found.get(b"sec-fetch-dest")),
        authorization=_first(found.get(b"authorization")),
        cookie="; ".join(found[b"cookie"]) if b"cookie" in found else None,
        proof=_proof(scope, found),
        scheme=_scheme(scope, behind_proxy and b"x-forwarded-proto" not in found),
        peer=peer_of(scope),
    )


def _proof(scope: Scope, found: Mapping[bytes, list[str]]) -> str | None:
    # Only an HTTP request has a method.
    if scope.get("method"):
        return _first(found.get(PROOF_HEADER))
    offered = [word.strip() for value in found.get(b"sec-websocket-protocol", ()) for word in value.split(",")]
    proofs = [word for word in offered if word.startswith(PROOF_SUBPROTOCOL)]
    return proofs[0].removeprefix(PROOF_SUBPROTOCOL) if proofs else None


def _proven(scope: Scope, asked: _Asked) -> str:
    """What a proof is bound to, a line each. The host among it: no other server of the same token accepts it."""
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    target = (target_path(scope) + query).decode("latin-1")
    return f"{scope.get('method') or SOCKET}\n{asked.hosts[0].lower()}\n{target}"


def _scheme(scope: Scope, proxy_is_silent: bool) -> str:
    """As browsers see it. A proxy that was declared does TLS, unless it says otherwise."""
    return "https" if proxy_is_silent or scope["scheme"] in ("https", "wss") else "http"


def _first(values: list[str] | None) -> str | None:
    return values[0] if values else None


def _split(origin: str) -> SplitResult:
    try:
        return urlsplit(origin)
    except ValueError:
        return urlsplit("")


def _check_origin(asked: _Asked) -> None:
    """Our own page, or no page at all. `same-site` is refused too: another port of this host is another's page."""
    if asked.origin is not None:
        parts = _split(asked.origin)
        if (parts.scheme, parts.netloc.lower()) != (asked.scheme, asked.hosts[0].lower()):
            raise Forbidden("Requests from other sites are refused.", origin=asked.origin[:200])
    if asked.fetch_site is not None and asked.fetch_site not in ("same-origin", "none"):
        raise Forbidden("Requests from other sites are refused.", site=asked.fetch_site[:20])


def _is_open(scope: Scope) -> bool:
    return (scope.get("method"), scope["path"]) in OPEN


def _cookie_values(header: str | None, name: str) -> list[str]:
    # Not by the standard library, which gives up at the first odd cookie; other programs on this host set odd ones.
    pairs = (pair.partition("=") for pair in (header or "").split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _keep_connection(scope: Scope) -> None:
    """Its connection is no stranger's any more."""
    if (connection := connection_of(scope)) is not None:
        connection.authenticate(scope["auth"])
        connection.takes_leave = not scope.get("method")


def connection_of(scope: Scope) -> Connection | None:
    """Another server than ours has none."""
    extensions: Any = scope.get("extensions") or {}
    connection: Connection | None = extensions.get(CONNECTION)
    return connection


def _with_subprotocol(scope: Scope, send: Send) -> Send:
    """A browser drops a socket whose server chose none of the protocols it offered. The proof goes no further than here."""
    # Litestar's type of a scope is a union of which only the WebSocket's has this key.
    socket_scope: Any = scope
    offered: list[str] = socket_scope.get("subprotocols") or []
    if not offered:
        return send
    kept = [word for word in offered if not word.startswith(PROOF_SUBPROTOCOL)]
    others = [pair for pair in scope["headers"] if pair[0] != b"sec-websocket-protocol"]
    socket_scope["subprotocols"] = kept
    socket_scope["headers"] = [*others, (b"sec-websocket-protocol", ", ".join(kept).encode())] if kept else others
    if SUBPROTOCOL not in kept:
        return send

    def sending(message: Message) -> Awaitable[None]:
        if message["type"] == "websocket.accept" and not message.get("subprotocol"):
            message["subprotocol"] = SUBPROTOCOL
        return send(message)

    return sending


def _with_headers(scope: Scope, send: Send, challenge: bytes | None) -> Send:
    headers = _HEADERS if challenge is None else {**_HEADERS, CHALLENGE_HEADER: challenge}

    # No coroutine of its own: a stream passes here with every piece it writes.
    def sending(message: Message) -> Awaitable[None]:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            present = {name.lower() for name, _ in message["headers"]}
            added = [pair for pair in headers.items() if pair[0] not in present]
            is_stream = any(pair[0] == b"content-type" and pair[1].startswith(_STREAM) for pair in message["headers"])
            if is_stream and (connection := connection_of(scope)) is not None:
                connection.takes_leave = True
            message["headers"] = [*message["headers"], *added]
        return send(message)

    return sending
