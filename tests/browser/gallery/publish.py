"""Takes the pictures that were made into the documentation: small, unchanged where nothing changed, each with its caption.

`python -m tests.browser.gallery.publish FOLDER`, after `taking.py` has filled the folder; `scripts/pictures.sh` does both.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageChops, ImageDraw, ImageFont, ImageSequence

from tests.browser.gallery.album import ALBUM, SECTIONS
from tests.browser.gallery.film import FRAMES, WINDOW, Frame
from tests.browser.gallery.shots import Look
from tests.browser.gallery.terminal import TERMINAL_SHOTS

DOCS = Path(__file__).parents[3] / "docs"
PICTURES = DOCS / "pictures"
FILM = PICTURES / "palaver.webp"
CAPTION_PX = 52
INK, PAPER = "#16181d", "#f4f4f1"
COLOURS = 128
"""Enough for a page of few colours and smooth letters; a third of the size. Chosen to cover what there is, so that a small green
mark among greys stays green."""
DESKTOP_PX = 1280
FINE = ("conversation", "approval", "home")
"""Shown large at the front: they keep all their pixels."""
SAME_PX = 150
"""A duration that came out a tenth longer is no news; a changed word is."""
APART = 24
"""Of 255: less is the same colour to the eye."""


def small(raw: Path, *, is_fine: bool) -> Image.Image:
    image: Image.Image = Image.open(raw).convert("RGB")
    if image.width > DESKTOP_PX and not is_fine:
        height = round(image.height * DESKTOP_PX / image.width)
        image = image.resize((DESKTOP_PX, height), Image.Resampling.LANCZOS)
    return image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)


def is_news(image: Image.Image, published: Path) -> bool:
    return not published.exists() or differs(image, Image.open(published))


def differs(image: Image.Image, before: Image.Image) -> bool:
    if before.size != image.size:
        return True
    difference = ImageChops.difference(before.convert("RGB"), image.convert("RGB")).convert("L")
    return sum(difference.histogram()[APART:]) > SAME_PX


# -- the film


def framed(raw: Path, frame: Frame) -> Image.Image:
    """The picture in the middle of the window, and what it shows beneath."""
    width, height = WINDOW
    image = Image.new("RGB", (width, height + CAPTION_PX), INK)
    shown = Image.open(raw).convert("RGB")
    shown.thumbnail(WINDOW, Image.Resampling.LANCZOS)
    image.paste(shown, ((width - shown.width) // 2, (height - shown.height) // 2))
    words = ImageDraw.Draw(image)
    words.text((24, height + CAPTION_PX // 2), frame.caption, PAPER, ImageFont.load_default(20), anchor="lm")
    return image


def publish_film(folder: Path) -> None:
    raws = [folder / f"{frame.name}.png" for frame in FRAMES]
    if not all(raw.exists() for raw in raws):
        return
    images = [framed(raw, frame) for raw, frame in zip(raws, FRAMES, strict=True)]
    if FILM.exists():
        before = [image.convert("RGB") for image in ImageSequence.Iterator(Image.open(FILM))]
        if len(before) == len(images) and not any(map(differs, images, before)):
            return
    shown_ms = [frame.shown_ms for frame in FRAMES]
    images[0].save(FILM, save_all=True, append_images=images[1:], duration=shown_ms, loop=0, lossless=True, method=6)
    say(f"{FILM.name}: {FILM.stat().st_size / 1e6:.2f} MB.")


def gallery() -> Iterator[str]:
    yield "# Pictures"
    yield ""
    yield "Every screen of the page and of the terminal, taken from a real server by `make pictures`. People, boats and answers"
    yield "are fictional: a scripted model answers. For explanations see [the page](page.md) and [the terminal](terminal.md)."
    for section in SECTIONS:
        yield f"\n## {section}"
        for shot in (shot for shot in ALBUM.values() if shot.section == section):
            yield f"\n**{shot.caption}**\n"
            yield f'<img src="pictures/{shot.name}-light.png" width="820" alt="{shot.caption}">'
            others: list[Look] = [look for look in shot.looks if look != "light"]
            if others:
                yield ""
            for look in others:
                width = 560 if look == "dark" else 200
                alt = f"The same, {'dark' if look == 'dark' else 'on a phone'}"
                yield f'<img src="pictures/{shot.name}-{look}.png" width="{width}" alt="{alt}">'
    yield "\n## The terminal"
    for terminal in TERMINAL_SHOTS.values():
        yield f"\n**{terminal.caption}**\n"
        yield f'<img src="pictures/{terminal.name}.png" width="820" alt="{terminal.caption}">'


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def names() -> Iterator[tuple[str, bool]]:
    """Every picture, and whether it keeps all its pixels."""
    yield from ((f"{shot.name}-{look}.png", shot.name in FINE) for shot in ALBUM.values() for look in shot.looks)
    yield from ((f"{name}.png", False) for name in TERMINAL_SHOTS)


def main(folder: Path) -> None:
    PICTURES.mkdir(exist_ok=True)
    wanted, changed, size_bytes = dict(names()), 0, 0
    for name, is_fine in wanted.items():
        if (folder / name).exists():
            image = small(folder / name, is_fine=is_fine)
            if is_news(image, PICTURES / name):
                image.save(PICTURES / name, optimize=True)
                changed += 1
        elif not (PICTURES / name).exists():
            say(f"not taken: {name}")
            continue
        size_bytes += (PICTURES / name).stat().st_size
    for left_over in PICTURES.glob("*.png"):
        if left_over.name not in wanted:
            left_over.unlink()
            say(f"removed: {left_over.name}")
    publish_film(folder)
    (DOCS / "gallery.md").write_text("\n".join(gallery()) + "\n")
    say(f"{len(wanted)} pictures, {size_bytes / 1e6:.1f} MB, {changed} of them new or changed.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
