"""`python -m tests.provider --port N --script FILE`: the scripted provider as a program."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

import msgspec

from tests.provider.script import Answer
from tests.provider.server import ScriptedProvider, serving


async def serve(port: int, script: list[Answer], strict: bool) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(ScriptedProvider(script, strict=strict), port) as provider:
        sys.stdout.write(f"listening on {provider.url}\n")
        sys.stdout.flush()
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.provider", description="A scripted model server for tests.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the address is printed")
    parser.add_argument("--script", type=Path, help="a JSON list of answers; without it the model is obedient")
    parser.add_argument("--lenient", action="store_true", help="take requests that the real service would refuse")
    options = parser.parse_args()
    script = msgspec.json.decode(options.script.read_bytes(), type=list[Answer]) if options.script else []
    asyncio.run(serve(options.port, script, not options.lenient))


if __name__ == "__main__":
    main()
