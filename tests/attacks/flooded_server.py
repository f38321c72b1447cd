"""A real server in a process of its own with few descriptors, for floods: `python -m tests.attacks.flooded_server DATA LIMIT`.

Says its address and its token. Then each line of its standard input is an order: `exhaust` takes every descriptor that is
left, `release` gives them back, and each is answered by the same word. It runs until its input ends.
"""

import asyncio
import contextlib
import os
import resource
import sys
from pathlib import Path


async def main(data: Path) -> None:
    from tests.flows.served import serving

    taken: list[int] = []
    async with serving(data) as server:
        say(f"{server.url} {server.token}")
        while order := (await asyncio.to_thread(sys.stdin.readline)).strip():
            if order == "exhaust":
                with contextlib.suppress(OSError):
                    while True:
                        taken.append(os.open(os.devnull, os.O_RDONLY))
            else:
                while taken:
                    os.close(taken.pop())
            say(order)


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    limit = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    factory = None
    with contextlib.suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main(Path(sys.argv[1])))
