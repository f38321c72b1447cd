"""Development server for the page examples: serves one folder, and forwards /api and /ws to Palaver with the token.

    python examples/serve_page.py examples/bus_page [--server URL] [--port PORT]

Palaver refuses pages of other origins, so a page and its calls must come from one. This server is that origin; for the
same reason it refuses others itself, for whoever reaches it acts with your token. It listens on this machine alone.
"""

import argparse
import asyncio
import mimetypes
import os
from pathlib import Path
from urllib.parse import urlsplit

FORWARDED = ("/api/", "/ws")
REPLACED = ("host", "origin", "authorization", "cookie", "connection")


class PageServer:
    def __init__(self, folder: Path, server: str, token: str) -> None:
        self.folder = folder.resolve()
        self.upstream = urlsplit(server)
        self.token = token

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request; every answer ends its connection."""
        try:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = [
                (name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])
            ]
            target = lines[0].split(" ")[1]
            if not is_own(dict(headers), writer.get_extra_info("sockname")[1]):
                respond(writer, "403 Forbidden", b"another origin")
            elif target.startswith(FORWARDED):
                await self.forward(lines[0], headers, reader, writer)
            else:
                self.send_file(target, writer)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the browser left, or Palaver is not running
        finally:
            writer.close()

    def send_file(self, target: str, writer: asyncio.StreamWriter) -> None:
        path = (self.folder / (urlsplit(target).path.lstrip("/") or "index.html")).resolve()
        if path.is_relative_to(self.folder) and path.is_file():
            respond(writer, "200 OK", path.read_bytes(), mimetypes.guess_type(path.name)[0] or "text/plain")
        else:
            respond(writer, "404 Not Found", b"no such file")

    async def forward(
        self, request: str, headers: list[tuple[str, str]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        upgrade = "upgrade" in dict(headers)
        sent = [(name, value) for name, value in headers if name and name not in REPLACED]
        sent += [("host", self.upstream.netloc), ("authorization", f"Bearer {self.token}")]
        sent += [("connection", "upgrade" if upgrade else "close")]
        answers, asks = await asyncio.open_connection(self.upstream.hostname, self.upstream.port)
        asks.write("\r\n".join([request, *(f"{name}: {value}" for name, value in sent), "", ""]).encode("latin-1"))
        asking = asyncio.create_task(copy(reader, asks))
        try:
            await copy(answers, writer)
        finally:
            asking.cancel()
            asks.close()


async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(65_536):
        sink.write(piece)
        await sink.drain()


def is_own(headers: dict[str, str], port: int) -> bool:
    host = headers.get("host", "")
    return (
        host in (f"127.0.0.1:{port}", f"localhost:{port}")
        and headers.get("origin", f"http://{host}") == f"http://{host}"
        and headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    )


def respond(writer: asyncio.StreamWriter, status: str, body: bytes, kind: str = "text/plain") -> None:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode() + body)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Development server for the page examples")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--server", default="http://127.0.0.1:8420")
    parser.add_argument("--port", type=int, default=8080)
    options = parser.parse_args()
    token = os.environ.get("PALAVER_TOKEN") or (Path.home() / ".palaver/token").read_text()
    pages = PageServer(options.folder, options.server, token.strip())
    async with await asyncio.start_server(pages.serve, "127.0.0.1", options.port) as listener:
        print(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", flush=True)
        await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
