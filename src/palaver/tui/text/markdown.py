"""Markdown of models and people as styled lines for a terminal. Pure.

Called by the drawing of rows, for settled and for growing text alike, so both look the same. Parsed by the port of the page's
own parser, with raw HTML off. Nothing in it is obeyed: a link is words with its address beside them, an image is named and
never fetched, control characters were made visible before anything is read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from palaver.tui.text.code import highlight
from palaver.tui.text.safe import limit_lines, prose
from palaver.tui.theme import Palette

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.tree import SyntaxTreeNode

LEAST_WIDTH = 8
"""Deeply nested lists in a narrow terminal still get a column to stand in."""
MOST_TABLE_COLUMNS = 24
MOST_TABLE_ROWS = 300
"""A table beyond these is no reading matter; it is shown as it was written."""
STEPS_LIMIT = 30_000
INLINE_STEPS_LIMIT = 60_000
"""Of the parser, for blocks and within them; a page of 64 KB that people write takes some 8,000 together. A text beyond them,
which would stop the terminal for seconds, is shown as it was written."""
NESTING_LIMIT = 40
"""Deeper than anybody writes."""
DEEPEST = 12
"""Quotes in quotes in quotes: from here on they are drawn without further indentation."""

_BULLETS = ("•", "◦", "▪")
_console = Console(width=200, color_system=None, force_terminal=False, legacy_windows=False)

Line = list[Segment]


@dataclass(frozen=True, slots=True)
class Ink:
    """The styles of one palette."""

    plain: Style
    soft: Style
    faint: Style
    strong: Style
    heading: Style
    emphasis: Style
    strike: Style
    code: Style
    link: Style
    panel: Style
    rule: Style
    quote: Style


@lru_cache(maxsize=4)
def ink_of(palette: Palette) -> Ink:
    return Ink(
        plain=Style(color=palette.ink),
        soft=Style(color=palette.ink_soft),
        faint=Style(color=palette.ink_faint),
        strong=Style(color=palette.ink, bold=True),
        heading=Style(color=palette.ink, bold=True),
        emphasis=Style(italic=True),
        strike=Style(strike=True),
        code=Style(color=palette.code_name, bgcolor=palette.panel),
        link=Style(color=palette.live, underline=True),
        panel=Style(color=palette.ink, bgcolor=palette.panel),
        rule=Style(color=palette.line_strong),
        quote=Style(color=palette.line_strong),
    )


@lru_cache(1)
def _parser() -> "MarkdownIt":
    # There is a prompt before there is any text: it does not wait for this.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTING_LIMIT}).enable(["table", "strikethrough"])
    parser.block.ruler.before("table", "count", _count_block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.inline.ruler.before("text", "count", _count_inline)
    return parser


class _TooMuchWork(Exception):
    """A text takes the parser more steps than any that is meant to be read."""


def _count_block(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """Matches nothing: called wherever a block may begin or go on, it counts the steps and what they brought forth."""
    state.env["steps"] = steps = state.env.get("steps", 0) + 1
    if steps + len(state.tokens) > STEPS_LIMIT:
        raise _TooMuchWork
    return False


def _count_inline(state: "StateInline", silent: bool) -> bool:
    state.env["inline"] = steps = state.env.get("inline", 0) + 1
    if steps > INLINE_STEPS_LIMIT:
        raise _TooMuchWork
    return False


def count_steps(text: str) -> int | None:
    """How much work a text makes for the parser; None: more than it is given. For tests."""
    env: dict[str, int] = {}
    try:
        _parser().parse(text, env)
    except _TooMuchWork:
        return None
    return env.get("steps", 0) + env.get("inline", 0)


def blocks_of(text: str) -> "Sequence[SyntaxTreeNode]":
    """The top-level blocks of a text that is safe already. What the parser cannot read within its bounds is one block of
    text as it was written: nothing is left out."""
    from markdown_it.tree import SyntaxTreeNode

    try:
        tokens = _parser().parse(text, {})
    except _TooMuchWork:
        tokens = [_as_written(text, 0, text.count("\n") + 1)]
    return SyntaxTreeNode(list(_without_depths(text, tokens))).children


def _without_depths(text: str, tokens: "Sequence[Token]") -> "Iterator[Token]":
    """Of what is nested deeper than its limit the parser leaves out the rest: such a block is shown as it was written."""
    begin = 0
    for at, token in enumerate(tokens):
        if token.level or token.nesting > 0:
            continue
        block = tokens[begin : at + 1]
        begin = at + 1
        if any(one.level >= NESTING_LIMIT - 1 for one in block) and block[0].map:
            yield _as_written(text, *block[0].map)
        else:
            yield from block


def _as_written(text: str, start: int, end: int) -> "Token":
    from markdown_it.token import Token

    content = "\n".join(text.split("\n")[start:end])
    return Token("fence", "code", 0, content=f"{content}\n", map=[start, end], block=True)


def safe_source(text: str) -> str:
    return limit_lines(prose(text))


def draw(text: str, width: int, palette: Palette) -> list[Line]:
    return draw_blocks(blocks_of(safe_source(text)), width, palette)


def draw_blocks(blocks: "Iterable[SyntaxTreeNode]", width: int, palette: Palette) -> list[Line]:
    return list(_space_blocks(_Pen(palette, max(LEAST_WIDTH, width)), blocks, is_tight=False))


@dataclass(frozen=True, slots=True)
class _Pen:
    palette: Palette
    width: int
    depth: int = 0
    base: Style | None = None

    @property
    def ink(self) -> Ink:
        return ink_of(self.palette)

    def narrower(self, columns: int, base: Style | None = None) -> "_Pen":
        return _Pen(self.palette, max(LEAST_WIDTH, self.width - columns), self.depth + 1, base or self.base)


def _space_blocks(pen: _Pen, blocks: "Iterable[SyntaxTreeNode]", *, is_tight: bool) -> Iterator[Line]:
    for place, block in enumerate(blocks):
        if place and not is_tight:
            yield []
        yield from _block(pen, block)


def _block(pen: _Pen, node: "SyntaxTreeNode") -> Iterator[Line]:
    match node.type:
        case "paragraph":
            yield from _wrap(pen, _inline(pen, node))
        case "heading":
            yield from _heading(pen, node)
        case "bullet_list" | "ordered_list":
            yield from _list(pen, node)
        case "blockquote":
            inner = pen.narrower(2, pen.ink.soft)
            bar = Segment("▎ ", pen.ink.quote)
            for line in _space_blocks(inner, node.children, is_tight=False):
                yield [bar, *line]
        case "fence":
            yield from fence(node.content, node.info, pen.width, pen.palette)
        case "code_block":
            yield from fence(node.content, "", pen.width, pen.palette)
        case "hr":
            yield [Segment("─" * min(pen.width, 40), pen.ink.rule)]
        case "table":
            yield from _table(pen, node)
        case _:
            yield from _wrap(pen, Text(node.content or "", pen.base or pen.ink.plain))


def _heading(pen: _Pen, node: "SyntaxTreeNode") -> Iterator[Line]:
    style = pen.ink.heading + Style(underline=node.tag == "h1", italic=node.tag not in ("h1", "h2", "h3"))
    text = _inline(pen, node)
    text.style = style
    yield from _wrap(pen, text)


def _list(pen: _Pen, node: "SyntaxTreeNode") -> Iterator[Line]:
    is_tight = all(
        child.hidden for item in node.children for child in item.children if child.type == "paragraph"
    ) and bool(node.children)
    first = int(node.attrs.get("start", 1) or 1)
    for place, item in enumerate(node.children):
        if place and not is_tight:
            yield []
        mark = f"{first + place}." if node.type == "ordered_list" else _BULLETS[pen.depth % len(_BULLETS)]
        indent = len(mark) + 1 if pen.depth < DEEPEST else 0
        inner = pen.narrower(indent)
        lines = list(_space_blocks(inner, item.children, is_tight=is_tight)) or [[]]
        for number, line in enumerate(lines):
            lead = f"{mark} " if number == 0 else " " * indent
            yield [Segment(lead[: max(indent, 0)], pen.ink.faint), *line]


def fence(source: str, info: str, width: int, palette: Palette) -> Iterator[Line]:
    """Code on a panel of its own, long lines folded."""
    ink = ink_of(palette)
    language = prose(info.split(maxsplit=1)[0]) if info.strip() else ""
    room = max(LEAST_WIDTH, width - 2)
    for line in highlight(source.rstrip("\n"), language, palette):
        for part in fold_line(line, room):
            used = sum(cell_len(segment.text) for segment in part)
            pad = Segment(" " * (room - used + 1), ink.panel)
            yield [Segment(" ", ink.panel), *part, pad]


def fold_line(line: Line, width: int) -> list[Line]:
    """Cut at the edge: in code every space counts, so nothing moves to another line than it must."""
    if sum(cell_len(segment.text) for segment in line) <= width and not any("\t" in segment.text for segment in line):
        return [line]
    text = Text.assemble(*((segment.text, segment.style or "") for segment in line), tab_size=4)
    text.expand_tabs()
    if cell_len(text.plain) <= width:
        return [_segments(text)]
    return [_segments(part) for part in text.divide(_fold_places(text.plain, width))]


def _fold_places(plain: str, width: int) -> list[int]:
    places: list[int] = []
    used = 0
    for at, character in enumerate(plain):
        cells = cell_len(character)
        if used + cells > width:
            places.append(at)
            used = 0
        used += cells
    return places


def _table(pen: _Pen, node: "SyntaxTreeNode") -> Iterator[Line]:
    rows = [list(row.children) for part in node.children for row in part.children]
    if not rows or len(rows[0]) > MOST_TABLE_COLUMNS or len(rows) > MOST_TABLE_ROWS:
        text = "\n".join(" | ".join(_inline(pen, cell).plain for cell in row) for row in rows)
        yield from fence(text, "", pen.width, pen.palette)
        return
    from rich import box
    from rich.table import Table

    drawn = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, border_style=pen.ink.rule, header_style=pen.ink.strong
    )
    for cell in rows[0]:
        align = str(cell.attrs.get("style", ""))
        justify = "right" if "right" in align else "center" if "center" in align else "left"
        drawn.add_column(_inline(pen, cell), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows[1:]:
        drawn.add_row(*(_inline(pen, cell) for cell in row))
    options = _console.options.update(width=pen.width, max_width=pen.width)
    for line in _console.render_lines(drawn, options, pad=False):
        yield [Segment(segment.text, segment.style) for segment in line if not segment.control]


def _inline(pen: _Pen, node: "SyntaxTreeNode") -> Text:
    text = Text(style=pen.base or pen.ink.plain, tab_size=4)
    for child in node.children:
        for part in child.children if child.type == "inline" else [child]:
            _append(pen, text, part, Style.null())
    return text


def _append(pen: _Pen, text: Text, node: "SyntaxTreeNode", style: Style) -> None:
    match node.type:
        case "text":
            text.append(node.content, style)
        case "softbreak":
            text.append(" ", style)
        case "hardbreak":
            text.append("\n", style)
        case "code_inline":
            text.append(node.content, style + pen.ink.code)
        case "strong":
            _append_all(pen, text, node, style + Style(bold=True))
        case "em":
            _append_all(pen, text, node, style + pen.ink.emphasis)
        case "s":
            _append_all(pen, text, node, style + pen.ink.strike)
        case "link":
            _append_link(pen, text, node, style)
        case "image":
            alternative = node.content or "".join(child.content for child in node.children)
            text.append(f"[{alternative}]", style + pen.ink.soft)
            text.append(f" {prose(str(node.attrs.get('src', '')))}", style + pen.ink.faint)
        case _:
            text.append(node.content or "", style)
            _append_all(pen, text, node, style)


def _append_all(pen: _Pen, text: Text, node: "SyntaxTreeNode", style: Style) -> None:
    for child in node.children:
        _append(pen, text, child, style)


def _append_link(pen: _Pen, text: Text, node: "SyntaxTreeNode", style: Style) -> None:
    """Where a link leads is always said: nobody follows words that only look like an address."""
    begin = len(text.plain)
    _append_all(pen, text, node, style + pen.ink.link)
    address = prose(str(node.attrs.get("href", "")))
    if text.plain[begin:] != address:
        text.append(f" ({address})", style + pen.ink.faint)


def _wrap(pen: _Pen, text: Text) -> Iterator[Line]:
    text.expand_tabs()
    for line in text.wrap(_console, pen.width, overflow="fold"):
        line.rstrip()
        yield _segments(line)


def _segments(text: Text) -> Line:
    if not text.spans:
        # Rich forgets the style of a text that has no other.
        style = text.style if isinstance(text.style, Style) else None
        return [Segment(text.plain, style)] if text.plain else []
    return [segment for segment in text.render(_console, end="") if segment.text and not segment.control]


def wrap_plain(text: str, width: int, style: Style) -> list[Line]:
    """Words without markup: only their line ends count."""
    said = Text(limit_lines(prose(text)), style, tab_size=4)
    said.expand_tabs()
    lines = []
    for line in said.wrap(_console, max(LEAST_WIDTH, width), overflow="fold"):
        line.rstrip()
        lines.append(_segments(line))
    return lines
