"""Signing in and out, and whether the server lives.

A browser exchanges the one-time code of the printed link, or a token typed by hand, for a cookie and a page key, and proves
with each request that it has the key. Programs need none of this: they send their token with every request.
"""

import asyncio
from typing import Any

from litestar import Request, Response, delete, get, post
from litestar.datastructures import Cookie
from litestar.params import FromQuery, JSONBody
from msgspec import Struct

from palaver.errors import Busy, Invalid, Unauthorized
from palaver.faces.http.body import JsonBody
from palaver.faces.http.gate import connection_of, cookie_name, peer_of
from palaver.faces.server import Server
from palaver.people.authentication import CODE_LIFE_S, COOKIE_LIFE_S, ROLES, Kind, Principal
from palaver.schema.base import Shown, Wire


class Health(Shown):
    ok: bool


class About(Shown):
    name: str
    version: str


class Credentials(Struct, frozen=True, kw_only=True):
    """One of the two."""

    code: str | None = None
    token: str | None = None


class Session(Shown):
    user: str
    role: str
    roles: tuple[str, ...]
    """What the role may do: `read`, `send`, `decide`, `admin`."""
    version: str
    server: str
    full_enabled: bool
    """Whether mode `full` means anything on this server."""


class SignedIn(Session):
    key: str
    """The page key: the session's id, a dot, and a secret. Keep it in the origin's storage, and never send it anywhere."""


class Code(Wire):
    code: str
    expires_in_s: int
    role: Kind = "owner"


@get("/api/health", operation_id="health", tags=["session"])
async def health() -> Health:
    """Whether the server answers. Needs no token."""
    return Health(ok=True)


@get("/api/about", operation_id="about", tags=["session"])
async def about(server: Server) -> About:
    """Whose server this is, and its version. Whoever has to sign in first reads the same in the `details` of the refusal."""
    return About(name=server.name, version=server.version)


@post("/api/session", status_code=200, dto=JsonBody, operation_id="sign_in", tags=["session"])
async def sign_in(data: JSONBody[Credentials], request: Request[Any, Any, Any], server: Server) -> Response[SignedIn]:
    """Exchange a one-time code or a token for a cookie and its page key. Ten wrong ones a minute, then 429."""
    if (data.code is None) == (data.token is None):
        raise Invalid("Give either `code` or `token`.")
    principal = server.keys.by_code(data.code) if data.code else server.keys.by_token((data.token or "").strip())
    if principal is None:
        if server.failures.add(peer_of(request.scope)):
            raise Busy("Too many wrong tries from your address. Wait a minute.")
        if data.code:
            raise Unauthorized("This link was used before, or is older than a minute. Sign in with the token instead.")
        raise Unauthorized("That token is not this server's. It stands in the file `token` of the data directory.")
    principal = server.keys.begin_session(principal)
    assert principal.session is not None
    body = SignedIn(**_session(server, principal), key=f"{principal.session.id}.{server.keys.page_key_of(principal)}")
    return Response(body, cookies=[_cookie(request, server, principal)])


@get("/api/session", operation_id="who_am_i", tags=["session"])
async def who_am_i(request: Request[Principal, Principal, Any], server: Server) -> Response[Session]:
    """Who is signed in. A browser's cookie lives on for another month."""
    body = Session(**_session(server, request.auth))
    if request.auth.session is None:
        return Response(body)
    renewed = server.keys.renew_session(request.auth)
    return Response(body, cookies=[_cookie(request, server, renewed)])


@delete("/api/session", status_code=204, operation_id="sign_out", tags=["session"])
async def sign_out(request: Request[Principal, Principal, Any], server: Server) -> Response[None]:
    """Ends this browser's session, with its streams and sockets. A token sent by hand stays valid."""
    if request.auth.session is not None:
        server.keys.end_session(request.auth)
        if (connection := connection_of(request.scope)) is not None:
            connection.take_leave()
        server.streams.drop_strangers()
        await asyncio.to_thread(server.keys.save_signed_out)
    gone = Cookie(key=cookie_name(server.port), value="", max_age=0, path="/", httponly=True, samesite="strict")
    return Response(None, cookies=[gone])


@post("/api/session/code", status_code=201, operation_id="new_sign_in_code", tags=["session"])
async def new_code(server: Server, role: FromQuery[Kind] = "owner") -> Code:
    """A one-time code for another browser: open `/#code=…` within a minute. `role`: what it may do there."""
    return Code(code=server.keys.new_code(role), expires_in_s=int(CODE_LIFE_S), role=role)


def _session(server: Server, principal: Principal) -> dict[str, Any]:
    return {
        "user": principal.name,
        "role": principal.kind,
        "roles": tuple(sorted(ROLES[principal.kind])),
        "version": server.version,
        "server": server.name,
        "full_enabled": server.full_enabled,
    }


def _cookie(request: Request[Any, Any, Any], server: Server, principal: Principal) -> Cookie:
    return Cookie(
        key=cookie_name(server.port),
        value=server.keys.cookie_of(principal),
        max_age=COOKIE_LIFE_S,
        path="/",
        httponly=True,
        samesite="strict",
        secure=request.scope["scheme"] in ("https", "wss"),
    )


ROUTES = [health, about, sign_in, who_am_i, sign_out, new_code]
