"""The API described for programs (`/api/schema/openapi.json`) and for people (`/api/schema`).

Both are made from the routes themselves when first asked for. The page is plain HTML with one style sheet of our own: a
strict content policy forbids the usual ones, which load half of themselves from elsewhere.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

from litestar import Request, Response, Router, get
from litestar.enums import MediaType, OpenAPIMediaType
from litestar.openapi.plugins import OpenAPIRenderPlugin

from palaver.faces.http.openapi import complete

_STYLE = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
article { margin: 2rem 0; border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent) }
code { font: 0.9em ui-monospace, monospace }
h3 code { font-size: 1rem }
table { border-collapse: collapse }
td { padding: 0.1rem 1.5rem 0.1rem 0; vertical-align: top }
pre { overflow-x: auto; font-size: 0.85rem }
"""


class SchemaFile(OpenAPIRenderPlugin):
    """The document for programs."""

    def __init__(self) -> None:
        super().__init__(path="/openapi.json", media_type=OpenAPIMediaType.OPENAPI_JSON)

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        return self.render_json(request, complete(openapi_schema))


class ReferencePage(OpenAPIRenderPlugin):
    """The page for people."""

    def __init__(self) -> None:
        super().__init__(path="/", media_type=MediaType.HTML)

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        return page(complete(openapi_schema)).encode()

    def receive_router(self, router: Router) -> None:
        router.register(style)


@get("/reference.css", include_in_schema=False)
async def style() -> Response[bytes]:
    return Response(_STYLE.encode(), media_type="text/css; charset=utf-8")


def page(schema: dict[str, Any]) -> str:
    operations = [
        _operation(method, path, operation)
        for path, item in schema["paths"].items()
        for method, operation in item.items()
    ]
    shapes = [_shape(name, shape) for name, shape in sorted(schema["components"]["schemas"].items())]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<title>Palaver API</title><link rel="stylesheet" href="/api/schema/reference.css">'
        "<h1>Palaver API</h1>"
        '<p>The same for programs: <a href="/api/schema/openapi.json">openapi.json</a>. Every request but '
        "<code>GET /api/health</code> and the sign-in carries "
        "<code>Authorization: Bearer TOKEN</code> or a browser's cookie with its page key. Live events: "
        "<code>GET /api/socket</code> (WebSocket) and <code>…/events</code> (server-sent events).</p>"
        f"<h2>Routes</h2>{''.join(operations)}<h2>Shapes</h2>{''.join(shapes)}</html>"
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [
        (f"<code>{escape(parameter['name'])}</code>", escape(parameter["in"]), _kind(parameter["schema"]))
        for parameter in operation.get("parameters", ())
    ]
    rows += [("body", escape(media), _kind(body["schema"])) for media, body in _content(operation.get("requestBody"))]
    for status, response in operation["responses"].items():
        if status < "300":
            rows += [(f"answer {status}", escape(media), _kind(body["schema"])) for media, body in _content(response)]
    return (
        f"<article><h3><code>{method.upper()} {escape(path)}</code></h3>"
        f"<p>{escape(operation.get('description', ''))}</p>{_table(rows)}</article>"
    )


def _content(described: dict[str, Any] | None) -> list[tuple[str, dict[str, Any]]]:
    return list((described or {}).get("content", {}).items())


def _shape(name: str, shape: dict[str, Any]) -> str:
    required = set(shape.get("required", ()))
    rows = [
        (f"<code>{escape(field)}</code>", _kind(kind), "required" if field in required else "")
        for field, kind in shape.get("properties", {}).items()
    ]
    return f'<article id="{escape(name)}"><h3><code>{escape(name)}</code></h3>{_table(rows)}</article>'


def _kind(kind: dict[str, Any]) -> str:
    if reference := kind.get("$ref"):
        name = escape(reference.rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    if "const" in kind:
        return f"<code>{escape(repr(kind['const']))}</code>"
    if "enum" in kind:
        return " · ".join(f"<code>{escape(str(value))}</code>" for value in kind["enum"])
    if "oneOf" in kind:
        return " or ".join(_kind(one) for one in kind["oneOf"])
    if "items" in kind:
        return f"list of {_kind(kind['items'])}"
    return escape(str(kind.get("type", "anything")))


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    return f"<table>{''.join('<tr>' + ''.join(f'<td>{cell}</td>' for cell in row) + '</tr>' for row in rows)}</table>"
