"""A loopback proxy that adds a token: the conformance suite knows addresses only.

It passes everything else on as it is, foreign hosts and origins too, so that what the gate refuses is still refused.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from tests.flows.served import Served

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding"}


@asynccontextmanager
async def token_adding(served: Served) -> AsyncIterator[str]:
    """The address of the proxy."""
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        own: list[str] = []

        async def passed(request: web.Request) -> web.StreamResponse:
            def renamed(value: str) -> str:
                return value.replace(own[0], served.host)

            headers = {
                name: renamed(value) for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP
            }
            headers["Authorization"] = f"Bearer {served.token}"
            body = await request.read()
            async with session.request(
                request.method,
                f"{served.url}{request.path_qs}",
                headers=headers,
                data=body or None,
                allow_redirects=False,
            ) as answer:
                kept = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
                response = web.StreamResponse(status=answer.status, headers=kept)
                await response.prepare(request)
                async for piece in answer.content.iter_any():
                    await response.write(piece)
                await response.write_eof()
                return response

        app = web.Application(client_max_size=8 << 20)
        app.router.add_route("*", "/{path:.*}", passed)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        own.append(f"{host}:{port}")
        try:
            yield f"http://{own[0]}"
        finally:
            await runner.cleanup()
