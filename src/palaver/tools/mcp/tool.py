"""A tool of an MCP server, as one of ours: its name, its schema, what a call would do, and what came of it.

Offered by `servers.py`. What a server says of itself is a stranger's word: names are made safe, texts are bounded and made
visible, and that a tool only reads is believed of trusted servers alone. A person is shown the exact arguments.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from palaver.errors import AgentError, CallerError
from palaver.schema.records import McpServer
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.output import Collector
from palaver.tools.proposal import fingerprint, shorten, visible
from palaver.tools.redact import Redactor
from palaver.tools.shell.command_line import command_lines, texts_in

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, ContentBlock, Tool

CALL_LIMIT_S = 300.0
"""For one call: searches and browsers take minutes, a server that hangs takes for ever."""
NAME_CHARS = 64
"""What every model service takes for a tool's name."""
DESCRIPTION_BYTES = 4096
SCHEMA_BYTES = 32 * 1024
"""A larger schema would be most of every model call; the tool is then offered without one."""
MEDIA_BYTES = 10 * 1024 * 1024
"""The largest image or file of a result that is kept (docs: bounds)."""
PROGRESS_LIMIT = 200
"""Reports of progress shown of one call."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


class Caller(Protocol):
    """The server behind a tool, started when needed."""

    @property
    def record(self) -> McpServer: ...

    async def call(
        self, tool: str, arguments: Mapping[str, Any], limit_s: float, progress: "ProgressFnT"
    ) -> "CallToolResult": ...


def safe_name(server: str, tool: str) -> str:
    """The name models know it by. Where something had to be changed a digest keeps two names apart."""
    wanted = f"mcp__{server}__{tool}"
    name = _UNSAFE.sub("_", wanted)
    if name == wanted and len(name) <= NAME_CHARS:
        return name
    digest = hashlib.sha256(wanted.encode(errors="replace")).hexdigest()[:8]
    return f"{name[: NAME_CHARS - 9]}_{digest}"


def spec_of(server: McpServer, tool: "Tool") -> ToolSpec:
    hints = tool.annotations
    said = shorten(visible(tool.description or tool.title or tool.name), DESCRIPTION_BYTES)
    return ToolSpec(
        name=safe_name(server.name, tool.name),
        description=f"{said}\n(A tool of the MCP server {server.name}.)",
        parameters=_plain_schema(tool.input_schema),
        reads_only=server.trusted and hints is not None and hints.read_only_hint is True,
        outside=True,
    )


def _plain_schema(schema: Any) -> Mapping[str, Any]:
    """The schema as it is, if it is one of an object; what only identifies it is left out."""
    try:
        encoded = msgspec.json.encode(schema)
    except (TypeError, UnicodeError, RecursionError):
        return {"type": "object"}
    if not isinstance(schema, dict) or schema.get("type") != "object" or len(encoded) > SCHEMA_BYTES:
        return {"type": "object"}
    kept = {name: value for name, value in schema.items() if name not in ("$schema", "$id", "$comment")}
    return {"properties": {}, **kept}


class McpTool:
    def __init__(self, caller: Caller, tool: "Tool") -> None:
        self._caller = caller
        self._name = tool.name
        self._title = tool.title or tool.name
        self._spec = spec_of(caller.record, tool)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            exact = msgspec.json.encode(dict(arguments), order="sorted")
        except (TypeError, UnicodeError, RecursionError):
            return ToolResult(ok=False, error_code="invalid", error="The arguments are not valid JSON text.")
        server = self._caller.record
        whole = msgspec.json.format(exact, indent=2).decode()
        return Proposal(
            title=visible(f"{server.name}: {self._title}"),
            # Bound to the server too: another program under the same name is another call.
            hash=fingerprint(self._spec.name, arguments, root, {"server": msgspec.json.encode(server, order="sorted")}),
            preview=shorten(visible(whole)),
            risk=f"It is carried out by the MCP server {server.name}, outside the sandbox.",
            reads_only=self._spec.reads_only,
            match=exact.decode(),
            commands=command_lines(arguments),
            texts=texts_in(arguments),
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        # The server's own secrets are struck from what it says, like ours.
        place = replace(place, environment={**place.environment, **_secrets(self._caller.record)})
        try:
            result = await self._caller.call(self._name, arguments, CALL_LIMIT_S, _shown_progress(place))
        except (AgentError, CallerError) as error:
            return ToolResult(ok=False, error_code=error.code, error=error.message)
        collector = Collector(place, live=False)
        for number, block in enumerate(result.content):
            await collector.feed_text("\n" if number else "")
            await collector.feed_text(await _told(block, place))
        if result.structured_content is not None and not any(block.type == "text" for block in result.content):
            await collector.feed_text(msgspec.json.format(msgspec.json.encode(result.structured_content)).decode())
        said = await collector.finish()
        if result.is_error:
            return said.result(
                error=f"{self._title} of {self._caller.record.name} reported an error.", code="mcp_error"
            )
        return said.result() if said.text else ToolResult(ok=True, output="[done; it said nothing]")


def _secrets(server: McpServer) -> dict[str, str]:
    headers = {f"{server.name}_{name}_TOKEN": value for name, value in server.headers.items()}
    bare = {f"{server.name}_{name}_KEY": value.split()[-1] for name, value in server.headers.items() if value.split()}
    return {**server.environment, **headers, **bare}


def _shown_progress(place: Workplace) -> "ProgressFnT":
    redactor = Redactor(place.environment)
    left = PROGRESS_LIMIT

    async def shown(progress: float, total: float | None, message: str | None) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            of = f"/{total:g}" if total is not None else ""
            await place.output(f"[{progress:g}{of}] {redactor.redact((message or '')[:500])}\n", "stdout")

    return shown


async def _told(block: "ContentBlock", place: Workplace) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return await _kept(block.type, block.data, block.mime_type, place)
        case "resource_link":
            return f"[resource {block.uri}: {block.title or block.name}]"
        case "resource":
            inner = block.resource
            text = getattr(inner, "text", None)
            if isinstance(text, str):
                return f"[resource {inner.uri}]\n{text}"
            return await _kept(f"resource {inner.uri}", getattr(inner, "blob", ""), inner.mime_type or "", place)


async def _kept(what: str, data: str, mime: str, place: Workplace) -> str:
    """A model is told of what is not text; people can open it."""
    kind = mime if re.fullmatch(r"[\w.+-]+/[\w.+-]+", mime) else "application/octet-stream"
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"[{what}, {kind}: damaged]"
    if len(content) > MEDIA_BYTES:
        return f"[{what}, {kind}, {len(content):,} bytes: too large to keep]"
    blob = await place.spill(content, kind)
    return f"[{what}, {kind}, {blob.size:,} bytes, kept as {blob.id}]"
