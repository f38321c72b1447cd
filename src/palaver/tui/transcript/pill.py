"""The pill at the edge of the transcript's last line, while the reader is further up. Pure; drawn by the transcript."""

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from palaver.tui.text import rows
from palaver.tui.theme import Palette


def pill_of(new_count: int) -> str:
    return f" ↓ {rows.new_below(new_count)} "


def with_pill(strip: Strip, new_count: int, palette: Palette) -> Strip:
    """The line with the pill at its end; what is new stands out."""
    pill = pill_of(new_count)
    style = Style(color=palette.paper, bgcolor=palette.live, bold=True)
    if not new_count:
        style = Style(color=palette.ink_soft, bgcolor=palette.panel_strong)
    return Strip([*strip.crop(0, strip.cell_length - len(pill)), Segment(pill, style)])
