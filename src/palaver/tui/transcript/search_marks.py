"""The words that were looked for, marked in the lines of the message they were found in. Pure."""

import re
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip


@dataclass(frozen=True, slots=True)
class LookedFor:
    """What was looked for, and the message it was found in."""

    message: str
    pattern: re.Pattern[str] | None

    def is_in(self, text: str) -> bool:
        return self.pattern is not None and self.pattern.search(text) is not None


NOTHING = LookedFor("", None)


def pattern_of(words: str) -> re.Pattern[str] | None:
    """Any of the words, in capitals or not; None when there are none."""
    wanted = sorted({word for word in words.lower().split() if word}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, wanted)), re.IGNORECASE) if wanted else None


def mark_found(strip: Strip, wanted: re.Pattern[str], style: Style) -> Strip:
    """The line with what was looked for on a ground of its own; the very same line when nothing of it is there."""
    text = strip.text
    places = [(cell_len(text[: found.start()]), cell_len(text[: found.end()])) for found in wanted.finditer(text)]
    if not places:
        return strip
    cuts = sorted({at for place in places for at in place if at} | {strip.cell_length})
    parts, begin = [], 0
    for part, end in zip(strip.divide(cuts), cuts, strict=False):
        parts.append(_on(part, style) if any(a <= begin and end <= b for a, b in places) else part)
        begin = end
    return Strip.join(parts)


def _on(strip: Strip, style: Style) -> Strip:
    """The style over those that the parts have, which have a ground already."""
    return Strip([Segment(part.text, (part.style or Style.null()) + style) for part in strip], strip.cell_length)
