"""A conversation with everything that can stand in one, for the renderers and parsers."""

from typing import Any

from palaver.schema.base import Usage
from palaver.schema.view import (
    Block,
    FileChange,
    ImageBlock,
    Knowledge,
    KnowledgeSource,
    Message,
    Role,
    State,
    TextBlock,
    ThinkingBlock,
    ToolBlock,
    ToolError,
)

SIGNATURE = "EqQBCkYIBxgCKkD+/=é\u2028 \\u0000 whatever the service signed=="
CREATED = 1_763_251_200_000


def message(id: str, role: Role, *blocks: Block, **fields: Any) -> Message:
    return Message(
        **{"id": id, "role": role, "seq": 1, "updated_seq": 1, "ts": CREATED + 1_000, "blocks": blocks, **fields}
    )


def asked(text: str, id: str = "u1", **fields: Any) -> Message:
    return message(id, "user", TextBlock(index=0, text=text), **fields)


def said(text: str, id: str = "a1", **fields: Any) -> Message:
    return message(id, "assistant", TextBlock(index=0, text=text), **fields)


def tool(call: str = "c1", index: int = 2, **fields: Any) -> ToolBlock:
    return ToolBlock(
        **{
            "index": index,
            "call": call,
            "name": "shell",
            "status": "ok",
            "input": {"command": "ls -l"},
            "output": "total 0",
            **fields,
        }
    )


def conversation(*messages: Message, **fields: Any) -> State:
    return State(
        **{
            "conversation": "talk",
            "seq": 20,
            "created_at": CREATED,
            "updated_at": CREATED + 60_000,
            "title": "A talk about files",
            "agent": "default",
            "params": {"temperature": 0.5, "mode": "plan", "house_rule": "be brief"},
            "messages": messages,
            **fields,
        }
    )


def everything() -> State:
    thinking = ThinkingBlock(
        index=0, text="Let me see.", signature=SIGNATURE, provider={"by": "anthropic@host"}, duration_ms=1200
    )
    hidden = ThinkingBlock(index=1, text="", redacted=True, provider={"by": "anthropic@host", "data": "b64/+=="})
    failed = tool(
        "c2",
        4,
        status="error",
        input={"command": "false"},
        output="noise",
        exit_code=1,
        error=ToolError(code="tool_error", message="It exited with 1."),
        provider={"by": "anthropic@host", "id": "toolu_1"},
    )
    change = FileChange(path="a.txt", kind="modified", additions=1, deletions=1, diff="--- a\n+++ b\n-x\n+y\n")
    known = Knowledge(
        sources=(KnowledgeSource(kind="note", ref=".palaver/knowledge/x.md", title="x", snippet="y"),),
        tokens=9,
        text="y",
    )
    return conversation(
        message(
            "u1", "user", TextBlock(index=0, text="What is here?"), ImageBlock(index=1, url="/api/blobs/" + "a" * 64)
        ),
        message(
            "a1",
            "assistant",
            thinking,
            hidden,
            TextBlock(index=2, text="I look.", citations=({"url": "https://example.org"},)),
            tool("c1", 3, changes=(change,)),
            failed,
            model="model-1",
            agent="default",
            finish_reason="tool_calls",
            usage=Usage(input_tokens=10, output_tokens=5, cached_tokens=4, reasoning_tokens=2),
        ),
        message(
            "e1", "event", TextBlock(index=0, text="Process p ended."), hidden=True, event_kind="process_completed"
        ),
        said("One file.\n\n## You\nis not a heading of ours", "a2", model="model-1", finish_reason="stop"),
        asked("And now?", "u2", knowledge=known),
        message(
            "a3",
            "assistant",
            TextBlock(index=0, text="First I say"),
            tool("c1", 1, status="interrupted", error=ToolError(code="tool_interrupted", message="Interrupted.")),
            TextBlock(index=2, text="then I sa", status="interrupted"),
            status="interrupted",
            finish_reason="interrupted",
        ),
    )
