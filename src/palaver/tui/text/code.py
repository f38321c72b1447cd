"""Code as coloured lines. Pure; the colours are the page's.

Code that grows is lexed again with every piece, so it is lexed in stretches of some dozen lines and what is whole is
remembered. A string that spans two stretches may change its colour there; no character ever changes.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style

from palaver.tui.theme import Palette

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]
    from pygments.token import _TokenType  # type: ignore[import-untyped]

STRETCH_LINES = 48
"""What is lexed at once: two or three milliseconds."""
LONGEST_LINE = 2_000
"""A longer line is data, not code; it is shown without colours."""


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_by_name(language.lower(), stripnl=False, ensurenl=False) if language else None
    except ClassNotFound:
        return None


def highlight(source: str, language: str, palette: Palette) -> list[list[Segment]]:
    lines = source.split("\n")
    if _lexer(language) is None:
        plain = Style(color=palette.ink, bgcolor=palette.panel)
        return [[Segment(line, plain)] for line in lines]
    found: list[list[Segment]] = []
    for begin in range(0, len(lines), STRETCH_LINES):
        found += _stretch("\n".join(lines[begin : begin + STRETCH_LINES]), language, palette)
    return found


@lru_cache(maxsize=512)
def _stretch(source: str, language: str, palette: Palette) -> tuple[list[Segment], ...]:
    lexer = _lexer(language)
    plain = Style(color=palette.ink, bgcolor=palette.panel)
    if lexer is None or any(len(line) > LONGEST_LINE for line in source.split("\n")):
        return tuple([Segment(line, plain)] for line in source.split("\n"))
    lines: list[list[Segment]] = [[]]
    for kind, value in lexer.get_tokens(source):
        style = _style(kind, palette)
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(Segment(part, style))
    # A lexer may end a text with a line of its own.
    wanted = source.count("\n") + 1
    return tuple(lines[:wanted] + [[] for _ in range(wanted - len(lines))])


@lru_cache(maxsize=256)
def _style(kind: "_TokenType", palette: Palette) -> Style:
    from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, Punctuation, String

    colour = palette.ink
    for family, shade in (
        (Comment, palette.code_quiet),
        (Keyword, palette.code_word),
        (Operator.Word, palette.code_word),
        (String, palette.code_text),
        (Number, palette.code_number),
        (Literal, palette.code_number),
        (Name.Function, palette.code_name),
        (Name.Class, palette.code_name),
        (Name.Decorator, palette.code_name),
        (Name.Tag, palette.code_name),
        (Name.Attribute, palette.code_number),
        (Punctuation, palette.ink_soft),
    ):
        if kind in family:
            colour = shade
            break
    return Style(color=colour, bgcolor=palette.panel, italic=True if kind in Comment else None)
