"""How many tokens something is, roughly and at once: by its characters, corrected by what the provider last counted.

Used by the history limit and by the context meter. No tokenizer: each model has its own, most are not published, and the
smallest takes longer to load than a turn takes. Compared with the tokenizer of the small local model (2026-11-16), prose
and source code come out between 0.90 and 1.22 of its count, JSON and CSS at 0.67, hexadecimal digits at 0.43, and scripts
beyond Latin, which that English model cuts into bytes, at 0.44 to 0.50. Corrected by a count, what is left of the error is
that of the newest messages alone.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from palaver.schema.view import Compression, ImageBlock, Message, TextBlock, ThinkingBlock, ToolBlock
from palaver.tools.base import ToolSpec

ASCII_CHARS = 3.7
"""Characters a token: between prose (above four) and code (about three)."""
WIDE_CHAR_TOKENS = 0.45
"""A letter beyond ASCII: Cyrillic, Greek and Arabic words are cut into twos and threes."""
WIDE_BYTE_TOKENS = 0.5
"""And for each of its UTF-8 bytes beyond two: an ideograph is about one token, an emoji more."""
IMAGE_TOKENS = 1_500
"""The most that the large services count for a picture of the size they scale to."""
FRAME_TOKENS = 4
"""What a role or a call adds around its text."""
LEAST_FACTOR, MOST_FACTOR = 0.5, 3.0
"""A count that is further off counts something else (without what was cached, say), and is not believed."""

_encoder = msgspec.json.Encoder()


def text_tokens(text: str) -> int:
    if text.isascii():
        return int(len(text) / ASCII_CHARS) + 1 if text else 0
    narrow = len(text.encode("ascii", "ignore"))
    wide = len(text) - narrow
    beyond = len(text.encode("utf-8", "surrogatepass")) - narrow - 2 * wide
    return int(narrow / ASCII_CHARS + wide * WIDE_CHAR_TOKENS + beyond * WIDE_BYTE_TOKENS) + 1


def json_tokens(value: Any) -> int:
    try:
        return int(len(_encoder.encode(value)) / ASCII_CHARS) + 1
    except (TypeError, ValueError):
        return text_tokens(str(value))


def spec_tokens(specs: Sequence[ToolSpec]) -> int:
    return sum(
        text_tokens(spec.name) + text_tokens(spec.description) + json_tokens(dict(spec.parameters)) + FRAME_TOKENS
        for spec in specs
    )


# -- a message of the view


def message_tokens(message: Message) -> int:
    """Of one message as it stands, whatever is left of it after compression."""
    tokens = FRAME_TOKENS
    for block in message.blocks:
        if isinstance(block, TextBlock):
            # Past its beginning a blob's text is only known by its size.
            tokens += text_tokens(block.text) if block.blob is None else int(block.blob.size / ASCII_CHARS)
        elif isinstance(block, ToolBlock):
            tokens += call_tokens(block) + result_tokens(block)
        elif isinstance(block, ThinkingBlock):
            tokens += text_tokens(block.text)
        elif isinstance(block, ImageBlock):
            tokens += IMAGE_TOKENS
    return tokens + text_tokens(message.knowledge.text) if message.knowledge else tokens


def call_tokens(tool: ToolBlock) -> int:
    return 2 * FRAME_TOKENS + text_tokens(tool.name) + json_tokens(tool.input)


def result_tokens(tool: ToolBlock) -> int:
    return FRAME_TOKENS + text_tokens(tool.output) + (text_tokens(tool.error.message) if tool.error else 0)


# -- what the provider counted


class Counted(msgspec.Struct, frozen=True):
    """The newest answer whose request the provider counted, in the form that the history still has."""

    seq: int
    """Of the answer; its request held everything before it."""
    input_tokens: int


def last_counted(history: Sequence[Message], compressions: Sequence[Compression], model: str) -> Counted | None:
    """None where no count fits any more: another model counts otherwise, and a compressed history is another one."""
    changed = max((compression.seq for compression in compressions), default=0)
    for message in reversed(history):
        if message.seq < changed:
            return None
        usage = message.usage
        if message.role == "assistant" and usage is not None and usage.input_tokens > 0 and message.status == "done":
            return Counted(message.seq, usage.input_tokens) if message.model in (None, model) else None
    return None


class Weight(msgspec.Struct, frozen=True):
    """How large a request is."""

    tokens: int
    factor: float = 1.0
    """By what estimates were corrected."""
    counted: bool = False
    """A provider has counted most of it."""


Known = dict[tuple[str, int], int]
"""Messages that were weighed before, by id and the seq of their last change."""


def weigh(shown: Sequence[Message], fixed_tokens: int, counted: Counted | None, known: Known | None = None) -> Weight:
    """`shown` is the history as it is shown, `fixed_tokens` an estimate of what goes before it in every request."""
    known = {} if known is None else known
    if len(known) > 2 * len(shown) + 100:
        known.clear()  # Most of it is of messages that are gone.
    until = counted.seq if counted else -1
    before = after = 0
    for message in shown:
        if message.status == "superseded":
            continue
        key = (message.id, message.updated_seq)
        tokens = known.get(key)
        if tokens is None:
            tokens = known[key] = message_tokens(message)
        if message.seq < until:
            before += tokens
        else:
            after += tokens
    estimated = fixed_tokens + before
    factor = counted.input_tokens / max(1, estimated) if counted else 0.0
    if not LEAST_FACTOR <= factor <= MOST_FACTOR:
        return Weight(estimated + after)
    return Weight(int((estimated + after) * factor), factor, counted=True)
