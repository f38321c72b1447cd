"""Histories to compress: what people and agents say, in order, and strategies for any of them."""

import asyncio
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from palaver.context.compression import Budget, Compressing
from palaver.context.linearize import linearize
from palaver.context.prompt import PromptMessage
from palaver.context.reduce import Redact, same_text
from palaver.schema.view import Block, Compression, Message, Plan, Role, TextBlock, ThinkingBlock, ToolBlock
from tests.provider.quotes import QUOTING

PROVIDER = "anthropic@host"
SECRET = "hunter2-hunter2-hunter2"


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


async def no_blobs(_: str) -> bytes | None:
    return None


def message(seq: int, role: Role, *blocks: Block, **fields: Any) -> Message:
    turn = fields.pop("turn", f"t{seq // 4}")
    return Message(id=f"m{seq}", role=role, seq=seq, updated_seq=seq, ts=seq, blocks=blocks, turn=turn, **fields)


def user(seq: int, text: str, **fields: Any) -> Message:
    return message(seq, "user", TextBlock(index=0, text=text), **fields)


def answer(seq: int, text: str, *tools: ToolBlock, **fields: Any) -> Message:
    return message(seq, "assistant", TextBlock(index=0, text=text), *tools, **fields)


def used(call: str, output: str, name: str = "read", **given: Any) -> ToolBlock:
    return ToolBlock(index=1, call=call, name=name, status="ok", input=given, output=output)


def recorded(work: Compressing, seq: int) -> tuple[Compression, ...]:
    """What the log would hold after a pass."""
    return tuple(
        Compression(
            stage=taken.stage,
            horizon=taken.horizon,
            strength=taken.strength,
            ts=0,
            seq=seq + place,
            before_tokens=taken.before_tokens,
            after_tokens=taken.after_tokens,
            summary=taken.summary,
        )
        for place, taken in enumerate(work.taken, 1)
    )


def compressed(
    history: Sequence[Message],
    limit_tokens: int,
    compressions: Sequence[Compression] = (),
    *,
    summary: str | None = None,
    redact: Redact = same_text,
    plan: Plan | None = None,
    seq: int | None = None,
) -> tuple[Compressing, tuple[Compression, ...]]:
    """A whole pass, as it is made before a model call, and all that is then on record."""
    at = seq if seq is not None else (history[-1].seq if history else 0)
    work = Compressing(history, compressions, Budget(limit_tokens, limit_tokens), seq=at, redact=redact, plan=plan)
    if not work.fits:
        work.without_model()
        material = work.material()
        if material is not None and summary is not None:
            work.add_summary(material, summary)
        work.by_force()
    return work, (*compressions, *recorded(work, at))


def shown(
    history: Sequence[Message],
    compressions: Sequence[Compression] = (),
    redact: Redact = same_text,
    plan: Plan | None = None,
) -> tuple[PromptMessage, ...]:
    return asyncio.run(
        linearize(
            history,
            provider=PROVIDER,
            load=no_blobs,
            quoting=QUOTING,
            compressions=compressions,
            redact=redact,
            plan=plan,
        )
    )


# -- any history

sizes = st.sampled_from([0, 1, 30, 900, 3_000, 9_000])
texts = st.builds(
    lambda word, size: (word * (size // len(word) + 1))[:size], st.sampled_from(["ab ", "é", "漢"]), sizes
)
secret_texts = st.builds(lambda size, text: "x" * size + SECRET + text, st.integers(0, 1_100), texts)
tools = st.builds(
    ToolBlock,
    index=st.just(1),
    call=st.sampled_from(["c1", "c2", "c3", "c4"]),
    name=st.sampled_from(["read", "read", "shell", "write", "plan", "ask_user", "bad name!"]),
    status=st.sampled_from(
        ["ok", "ok", "ok", "error", "denied", "interrupted", "called", "waiting", "running", "input"]
    ),
    input=st.one_of(
        st.builds(lambda path: {"path": path}, st.sampled_from(["a", "b", "./a"])),
        st.builds(lambda text: {"content": text, "more": {"deep": [text, 1]}}, texts | secret_texts),
        st.sampled_from([None, {}, "{bad", [1]]),
    ),
    output=texts | secret_texts,
)
spoken = st.builds(TextBlock, index=st.just(0), text=texts)
thoughts = st.builds(ThinkingBlock, index=st.just(0), text=st.just("hm"), signature=st.just("s"))


@st.composite
def histories(draw: st.DrawFn, most: int = 14) -> list[Message]:
    found: list[Message] = []
    for at in range(draw(st.integers(1, most))):
        role: Role = draw(st.sampled_from(["user", "assistant", "assistant", "assistant", "system", "event", "plan"]))
        blocks: list[Block] = draw(st.lists(spoken, max_size=1))
        if role == "assistant":
            blocks = [*draw(st.lists(thoughts, max_size=1)), *blocks, *draw(st.lists(tools, max_size=3))]
        found.append(
            message(
                at * 3 + 1,
                role,
                *blocks,
                event_kind=draw(st.sampled_from(["process_completed", "plan_approved"])) if role == "event" else None,
                status=draw(st.sampled_from(["done", "done", "done", "interrupted", "superseded"])),
            )
        )
    return found
