"""Light and dark: the page's tokens (`web/src/style/tokens.css`) for a terminal.

Colour is information here: blue is alive, amber waits for you, red failed, green was added. Chrome is ink on paper.
Widgets take colours from the theme's variables (`$live`, `$wait`, `$bad`, `$good`, `$ink-soft`, `$ink-faint`, `$line`,
`$panel-strong`, …); what is drawn line by line takes them from the `Palette` of the theme that is on. Terminals with
fewer colours get the nearest ones they have, so no state is told by colour alone.
"""

from dataclasses import asdict, dataclass

from textual.theme import Theme

DARK_NAME = "palaver-dark"
LIGHT_NAME = "palaver-light"


@dataclass(frozen=True, slots=True, kw_only=True)
class Palette:
    """The tokens by their names on the page."""

    paper: str
    paper_side: str
    panel: str
    panel_strong: str
    raised: str
    line: str
    line_strong: str
    ink: str
    ink_soft: str
    ink_faint: str
    live: str
    live_soft: str
    wait: str
    wait_soft: str
    wait_line: str
    bad: str
    bad_soft: str
    bad_line: str
    good: str
    good_soft: str
    gold: str
    """Words of another agent."""
    code_word: str
    code_text: str
    code_number: str
    code_name: str
    code_quiet: str


DARK = Palette(
    paper="#121316",
    paper_side="#0c0e10",
    panel="#1b1d21",
    panel_strong="#27292e",
    raised="#191b1f",
    line="#2a2d31",
    line_strong="#45484e",
    ink="#e8e8e5",
    ink_soft="#bcbab6",
    ink_faint="#96989d",
    live="#7ebbfa",
    live_soft="#18273c",
    wait="#eec26d",
    wait_soft="#201b14",
    wait_line="#634f2e",
    bad="#f3958d",
    bad_soft="#291818",
    bad_line="#6a403d",
    good="#7fd497",
    good_soft="#132419",
    gold="#e2c157",
    code_word="#cdaef2",
    code_text="#95d7a2",
    code_number="#f1b77e",
    code_name="#92cbfb",
    code_quiet="#8f9299",
)
LIGHT = Palette(
    paper="#fdfdfb",
    paper_side="#f7f6f3",
    panel="#f3f2ef",
    panel_strong="#eae8e4",
    raised="#ffffff",
    line="#e0e0dc",
    line_strong="#bfbeb8",
    ink="#191c22",
    ink_soft="#42454c",
    ink_faint="#61656c",
    live="#2460b7",
    live_soft="#e8f1fc",
    wait="#8d5416",
    wait_soft="#fef9ed",
    wait_line="#e3c693",
    bad="#b12d29",
    bad_soft="#fff4f3",
    bad_line="#f3c4bf",
    good="#1f6a3b",
    good_soft="#eaf9ed",
    gold="#7e5d00",
    code_word="#663693",
    code_text="#206133",
    code_number="#933d08",
    code_name="#1a52a1",
    code_quiet="#656970",
)


def _theme(name: str, palette: Palette, *, dark: bool) -> Theme:
    tokens = {token.replace("_", "-"): colour for token, colour in asdict(palette).items()}
    return Theme(
        name=name,
        dark=dark,
        primary=palette.live,
        secondary=palette.ink_soft,
        accent=palette.live,
        warning=palette.wait,
        error=palette.bad,
        success=palette.good,
        foreground=palette.ink,
        background=palette.paper,
        surface=palette.raised,
        panel=palette.panel,
        variables={
            **tokens,
            "border": palette.line_strong,
            "border-blurred": palette.line,
            "footer-background": palette.paper_side,
            "footer-foreground": palette.ink_faint,
            "footer-key-foreground": palette.ink_soft,
            "footer-description-foreground": palette.ink_faint,
            "input-cursor-background": palette.ink,
            "input-cursor-foreground": palette.paper,
            "input-selection-background": palette.live_soft,
            "scrollbar": palette.line_strong,
            "scrollbar-hover": palette.ink_faint,
            "scrollbar-active": palette.ink_faint,
            "scrollbar-background": palette.paper,
            "scrollbar-background-hover": palette.paper,
            "scrollbar-background-active": palette.paper,
            "scrollbar-corner-color": palette.paper,
            "block-cursor-background": palette.live_soft,
            "block-cursor-foreground": palette.ink,
            "block-cursor-text-style": "bold",
            "block-cursor-blurred-background": palette.panel_strong,
            "block-cursor-blurred-foreground": palette.ink,
        },
    )


DARK_THEME = _theme(DARK_NAME, DARK, dark=True)
LIGHT_THEME = _theme(LIGHT_NAME, LIGHT, dark=False)
PALETTES = {DARK_NAME: DARK, LIGHT_NAME: LIGHT}


def palette_of(theme: str) -> Palette:
    """Of a theme by its name; of one that is not ours, the dark one's."""
    return PALETTES.get(theme, DARK)


def suits(foreground_and_background: str | None) -> str:
    """The theme for a terminal that says its colours in COLORFGBG, as some do; dark where none is said."""
    background = (foreground_and_background or "").rpartition(";")[2]
    return LIGHT_NAME if background in ("7", "15") else DARK_NAME
