"""Full-text search over a million messages."""

import asyncio
import random
import tempfile
import time
from pathlib import Path

from bench.logs import Writer
from bench.table import Row, Spread
from palaver.log.base import Append, Document
from palaver.log.sqlite.store import open_sqlite_log
from palaver.schema.events import ConversationCreated

MESSAGES = 1_000_000
CONVERSATIONS = 500
BATCH = 1_000
RECALLED = ("rare", "common word7", "What about word7, word99, word1234 and the rare one?", "common " * 200)
QUERIES = ("rare", "common", "common rare", "comm", "word7 word9", "nothing-like-it")


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    chance = random.Random(1)
    words = [f"word{number}" for number in range(5_000)]
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_log(Path(folder)) as log:
            await _fill(log, chance, words)
            rows: list[Row] = []
            for query in QUERIES:
                times: list[float] = []
                found = 0
                for _ in range(10):
                    begun = time.perf_counter()
                    found = len(await log.search(query, limit=20))
                    times.append((time.perf_counter() - begun) * 1000)
                spread = Spread.of(times)
                rows.append(Row(what=f"search “{query}” in 1,000,000 messages", measured=f"{spread}, {found} hits"))
            for text in RECALLED:
                times, found = [], 0
                for _ in range(10):
                    begun = time.perf_counter()
                    found = len(await log.recall(text, project=None, limit=12, but="c0"))
                    times.append((time.perf_counter() - begun) * 1000)
                spread = Spread.of(times)
                asked = text if len(text) <= 60 else f"{text[:20]}… ({len(text.split())} words)"
                rows.append(
                    Row(what=f"recall for “{asked}” in 1,000,000 messages", measured=f"{spread}, {found} found")
                )
            return rows


async def _fill(log: object, chance: random.Random, words: list[str]) -> None:
    from palaver.log.base import EventLog

    store: EventLog = log  # type: ignore[assignment]
    per = MESSAGES // CONVERSATIONS
    for number in range(CONVERSATIONS):
        writer = Writer.fresh(f"c{number}")
        await writer.append(store, [ConversationCreated(title=f"Conversation {number}")])
        for start in range(0, per, BATCH):
            lines, documents = [], []
            for place in range(BATCH):
                seq = writer.state.seq + start + place + 1
                text = " ".join(chance.choices(words, k=12)) + " common" + (" rare" if chance.random() < 0.0001 else "")
                lines.append(b'{"type":"bench.line","seq":%d}' % seq)
                documents.append(Document(f"m{seq}", seq, "user", text))
            await store.append(Append(f"c{number}", writer.state.seq + start, lines, None, documents))
