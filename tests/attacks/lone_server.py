"""A real server in a process of its own, for input that may crash or freeze one: `python -m tests.attacks.lone_server DATA`.

Says its address and its token on one line, and runs until its standard input ends.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

START_S = 60.0
ANSWER_S = 40.0
"""For every single answer. A server that froze never gives one."""


async def main(data: Path) -> None:
    from tests.flows.served import serving

    data.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - nothing runs yet
    async with serving(data) as server:
        sys.stdout.write(f"{server.url} {server.token}\n")
        sys.stdout.flush()
        while await asyncio.to_thread(sys.stdin.readline):
            pass


@dataclass
class LoneServer:
    http: httpx.AsyncClient
    process: asyncio.subprocess.Process

    async def run_turn(self) -> None:
        """A turn of a conversation that has nothing to do with the attack, from its message to its end."""
        made = await self.http.post("/api/conversations", json={})
        assert made.status_code == 201, made.text
        path = f"/api/conversations/{made.json()['conversation']}"
        sent = await self.http.post(f"{path}/commands", json={"type": "send_message", "content": "Hello"})
        assert sent.status_code == 202, sent.text
        async with asyncio.timeout(ANSWER_S), self.http.stream("GET", f"{path}/events?after=0") as events:
            async for line in events.aiter_lines():
                if "turn.finished" in line:
                    return
        raise AssertionError("The stream ended before the turn did.")

    async def beside(self, attack: Any) -> httpx.Response:
        """The answer to an attack, during which another conversation goes on."""
        hostile = asyncio.ensure_future(attack)
        try:
            await self.run_turn()
            answer: httpx.Response = await hostile
        finally:
            hostile.cancel()
            await asyncio.wait({hostile})
        assert self.process.returncode is None, f"The server ended with {self.process.returncode}."
        return answer


@asynccontextmanager
async def lone_server(data: Path) -> AsyncIterator[LoneServer]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.attacks.lone_server", str(data)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            url, token = (await process.stdout.readline()).decode().split()
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=ANSWER_S, verify=False) as http:
            yield LoneServer(http, process)
    finally:
        # A server that froze would not see the end of its input.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.stdin.close()
        await process.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
