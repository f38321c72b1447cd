"""Run by `test_import_memory.py` in a process of its own: imports a history in one way, and says how much memory that took.

Prints the peak of this process's memory in bytes as its last line.
"""

import asyncio
import sys
from pathlib import Path

from palaver.client import Client
from palaver.history.programs.foreign import PROGRAMS, ForeignConversation
from palaver.history.programs.places import files_since, places_of, read_all
from palaver.history.programs.scratch import Scratch
from tests.flows.served import serving

LIMIT_S = 110.0


def peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def tell(*values: object) -> None:
    sys.stdout.write(" ".join(map(str, values)) + "\n")


def read(home: Path) -> None:
    """Every message of every session, one after another, as an import reads them."""
    places = places_of({"HOME": str(home)})
    with Scratch(home) as scratch:
        for program in PROGRAMS:
            for one in read_all(files_since(program, places), {}, scratch):
                assert isinstance(one, ForeignConversation), one
                tell(program, sum(1 for _ in one.messages))


async def serve(home: Path) -> None:
    """The server reads the files itself."""
    async with asyncio.timeout(LIMIT_S), serving(home / "data", environment={"HOME": str(home)}) as server:
        answer = await server.http.post("/api/import/claude", timeout=LIMIT_S)
        tell(answer.status_code, answer.text)


async def receive(home: Path) -> None:
    """The server is sent what this process wrote to a file before."""
    async with asyncio.timeout(LIMIT_S), serving(home / "data") as server:
        with (home / "lines.jsonl").open("rb") as body:
            async with Client.connect(server.url, server.token) as client:
                tell(await client.take_over(body))


def main(way: str, home: Path) -> None:
    match way:
        case "read":
            read(home)
        case "serve":
            asyncio.run(serve(home))
        case _:
            asyncio.run(receive(home))
    tell(peak_bytes())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
