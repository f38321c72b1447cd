"""Takes the pictures that were made into the documentation: small, unchanged where nothing changed, each with its caption.

`python -m tests.browser.gallery.publish FOLDER`, after `test_gallery.py` has filled the folder; `scripts/pictures.sh` does both.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageChops

from tests.browser.gallery.album import ALBUM, SECTIONS
from tests.browser.gallery.shots import Look, Shot

DOCS = Path(__file__).parents[3] / "docs"
PICTURES = DOCS / "pictures"
COLOURS = 128
"""Enough for a page of few colours and smooth letters; a third of the size."""
DESKTOP_PX = 1280
FINE = ("conversation", "approval", "home")
"""Shown large at the front: they keep all their pixels."""
SAME_PX = 150
"""A duration that came out a tenth longer is no news; a changed word is."""
APART = 24
"""Of 255: less is the same colour to the eye."""

HEADINGS: dict[Look, str] = {"light": "Light", "dark": "Dark", "phone": "On a phone"}


def small(raw: Path, shot: Shot, look: Look) -> Image.Image:
    image: Image.Image = Image.open(raw).convert("RGB")
    if look != "phone" and shot.name not in FINE and image.width > DESKTOP_PX:
        height = round(image.height * DESKTOP_PX / image.width)
        image = image.resize((DESKTOP_PX, height), Image.Resampling.LANCZOS)
    return image.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def is_news(image: Image.Image, published: Path) -> bool:
    if not published.exists():
        return True
    before: Image.Image = Image.open(published).convert("RGB")
    if before.size != image.size:
        return True
    difference = ImageChops.difference(before, image.convert("RGB")).convert("L")
    return sum(difference.histogram()[APART:]) > SAME_PX


def gallery() -> Iterator[str]:
    yield "# Pictures"
    yield ""
    yield "Every screen of the page, taken from a real server by `make pictures`. The people, boats and answers are made up: a"
    yield "scripted model speaks. What each element does: [the page](page.md)."
    for section in SECTIONS:
        yield f"\n## {section}"
        for shot in (shot for shot in ALBUM.values() if shot.section == section):
            yield f"\n**{shot.caption}**\n"
            yield f'<img src="pictures/{shot.name}-light.png" width="820" alt="{shot.caption}">'
            others = [look for look in shot.looks if look != "light"]
            if others:
                yield ""
            for look in others:
                width = 560 if look == "dark" else 200
                alt = f"The same, {'dark' if look == 'dark' else 'on a phone'}"
                yield f'<img src="pictures/{shot.name}-{look}.png" width="{width}" alt="{alt}">'


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main(folder: Path) -> None:
    PICTURES.mkdir(exist_ok=True)
    changed, size_bytes = 0, 0
    for shot in ALBUM.values():
        for look in shot.looks:
            name = f"{shot.name}-{look}.png"
            if not (folder / name).exists():
                say(f"not taken: {name}")
                continue
            image = small(folder / name, shot, look)
            if is_news(image, PICTURES / name):
                image.save(PICTURES / name, optimize=True)
                changed += 1
            size_bytes += (PICTURES / name).stat().st_size
    wanted = {f"{shot.name}-{look}.png" for shot in ALBUM.values() for look in shot.looks}
    for left_over in PICTURES.glob("*.png"):
        if left_over.name not in wanted:
            left_over.unlink()
            say(f"removed: {left_over.name}")
    (DOCS / "gallery.md").write_text("\n".join(gallery()) + "\n")
    say(f"{len(wanted)} pictures, {size_bytes / 1e6:.1f} MB, {changed} of them new or changed.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
