"""Which pastes are images to be attached."""

from pathlib import Path

import pytest

from palaver.tui.docks.attachments import IMAGE_BYTES, Attached, Attachment, images_in
from palaver.tui.text.docks import Composer


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    for name in ("a.png", "my shot.JPG", "b.webp", "c.gif", "notes.txt"):
        (tmp_path / name).write_bytes(b"x" * 10)
    return tmp_path


@pytest.mark.parametrize(
    ("pasted", "names"),
    [
        ("{0}/a.png", ["a.png"]),
        (" {0}/a.png \n", ["a.png"]),
        ("'{0}/my shot.JPG' ", ["my shot.JPG"]),
        ("{0}/my\\ shot.JPG", ["my shot.JPG"]),
        ("{0}/my shot.JPG", ["my shot.JPG"]),
        ("file://{0}/my%20shot.JPG", ["my shot.JPG"]),
        ("{0}/b.webp {0}/c.gif", ["b.webp", "c.gif"]),
        ("{0}/b.webp\n{0}/my shot.JPG", ["b.webp", "my shot.JPG"]),
        ("{0}/gone.png", []),
        ("{0}/notes.txt", []),
        ("{0}/a.png {0}/notes.txt", []),
        ("look at {0}/a.png", []),
        ("a.png", []),
        ("{0}", []),
        ("'{0}/a.png", []),
        ("{0}/a\x00.png", []),
        ("", []),
    ],
)
def test_only_paths_of_images_that_are_there_are_taken_for_images(shots: Path, pasted: str, names: list[str]) -> None:
    assert [one.path.name for one in images_in(pasted.format(shots))] == names


def test_a_message_holds_ten_images_of_ten_megabytes_each_once() -> None:
    line = Attached()
    large = Attachment(Path("/large.png"), IMAGE_BYTES + 1)
    assert line.add([Attachment(Path("/a.png"), 1), large]) == Composer.IMAGE_TOO_LARGE
    assert line.add([Attachment(Path("/a.png"), 1)]) == ""
    assert [one.path.name for one in line.images] == ["a.png"]
    assert line.add([Attachment(Path(f"/{n}.png"), 1) for n in range(12)]) == Composer.TOO_MANY_IMAGES
    assert len(line.images) == 10
    assert line.remove_last()
    assert len(line.images) == 9


def test_a_name_with_tricks_is_shown_and_not_obeyed() -> None:
    assert Attachment(Path("/a\x1b]0;x\x07.png"), 2048).label == "a␛]0;x␇.png (2.0 KB)"
