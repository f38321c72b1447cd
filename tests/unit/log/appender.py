"""`python -m tests.unit.log.appender DIRECTORY`: appends for ever and says so, until somebody kills it.

Each line of output is an acknowledgement: conversation and seq. Four conversations write at once, so a kill finds commits
in every stage.
"""

import asyncio
import sys
from pathlib import Path

from palaver.log.base import Append, Claim
from palaver.log.sqlite.store import open_sqlite_log
from tests.unit.log.stores import lines, row

CONVERSATIONS = ("a", "b", "c", "d")


async def main(directory: Path) -> None:
    async with open_sqlite_log(directory) as log, asyncio.TaskGroup() as group:

        async def owner(name: str) -> None:
            head = await log.head(name)
            seq = head.seq if head else 0
            while True:
                claim = Claim(f"request-{seq}", "hash")
                done = await log.append(Append(name, seq, lines(name, seq, 3), row(name, seq=seq + 3), claims=[claim]))
                seq = done.last
                print(name, seq, flush=True)  # noqa: T201 - this is what the test reads

        for name in CONVERSATIONS:
            group.create_task(owner(name))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
