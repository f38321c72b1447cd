"""Hidden and misleading characters written as visible signs: controls, bidi marks, zero widths, odd spaces, piled accents. Pure.

Called by the server for what it asks a person (`tools/proposal.py`) and by the terminal clients for what they show; the page's
`web/src/model/visible.ts` does the same, and `tests/golden/texts/visible.json` holds both to it. The result may be passed
through it again unchanged.
"""

import re
import unicodedata

from palaver.core.text.hidden_characters import RANGES


def _class(first: int, last: int) -> str:
    return "".join(f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in RANGES if first <= low <= last)


# In two parts: a set with code points beyond the first plane is searched range by range, for every character of a text.
HIDDEN = re.compile(f"[{_class(0, 0xFFFF)}]|(?=[\U00010000-\U0010ffff])[{_class(0x10000, 0x10FFFF)}]")

MARKS = 4
"""More marks on one letter than any script writes cover the lines around it."""
_MANY_MARKS = re.compile(f"[^\x00-\u02ff]{{{MARKS + 1},}}")
"""Where there may be too many: no mark has a lower code."""


def visible(text: str) -> str:
    """Every hidden character as a sign: what a person approves is what stands there. Newlines, tabs and plain spaces stay."""
    if text.isascii() and text.isprintable():
        return text
    return _MANY_MARKS.sub(_unpile, HIDDEN.sub(lambda found: sign(found[0]), text))


def sign(character: str) -> str:
    code = ord(character)
    # Unicode has a picture for each of the old control characters.
    return chr(0x2400 + code) if code < 0x20 else f"⟨{code:04X}⟩"


def _unpile(found: re.Match[str]) -> str:
    shown: list[str] = []
    marks = 0
    for character in found[0]:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        shown.append(sign(character) if marks > MARKS else character)
    return "".join(shown)
