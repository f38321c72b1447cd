"""What one event may not hold is cut, and nothing that has another place is lost."""

import msgspec

from palaver.conversation.message_limits import MESSAGE_BYTES, fit
from palaver.log.memory import MemoryLog
from palaver.schema.view import Block, Message, TextBlock, ThinkingBlock, ToolBlock


def message(*blocks: Block) -> Message:
    return Message(id="m", role="assistant", seq=1, updated_seq=1, ts=1, blocks=blocks)


def tool(index: int, output: str = "", **asked: object) -> ToolBlock:
    return ToolBlock(index=index, call=f"c{index}", name="Write", status="ok", input=asked, output=output)


async def test_message_that_fits_stays_as_it_is() -> None:
    small = message(TextBlock(index=0, text="hi"), tool(1, "x" * 60_000))

    assert await fit(small, MemoryLog().blobs) is small


async def test_many_long_outputs_go_to_blobs_whole() -> None:
    log = MemoryLog()
    outputs = [str(index) * 60_000 for index in range(8)]

    made = await fit(message(*(tool(index, output) for index, output in enumerate(outputs))), log.blobs)

    assert len(msgspec.json.encode(made)) < MESSAGE_BYTES
    for block, output in zip(made.blocks, outputs, strict=True):
        assert isinstance(block, ToolBlock)
        assert block.blob is not None
        assert (block.truncated, block.total_bytes) == (True, 60_000)
        assert await log.blobs.get(block.blob.id) is not None
        assert len(block.output) < len(output)


async def test_long_arguments_and_thoughts_say_what_was_left_out() -> None:
    long = message(
        tool(0, file_path="net.txt", content="n" * 300_000, edits=[{"old": "o" * 9_000}]),
        ThinkingBlock(index=1, text="t" * 300_000, signature="s"),
    )

    made = await fit(long, MemoryLog().blobs)

    assert len(msgspec.json.encode(made)) < MESSAGE_BYTES
    written, thought = made.blocks
    assert isinstance(written, ToolBlock)
    assert isinstance(thought, ThinkingBlock)
    assert written.input["file_path"] == "net.txt"
    assert written.input["content"].endswith("(… 292,000 characters left out)")
    assert written.input["edits"][0]["old"].endswith("(… 1,000 characters left out)")
    assert (thought.text.endswith("left out)"), thought.signature) == (True, None)
