"""Reading a regular file: everything else is refused at once, and more than the limit too."""

import os
import socket
from pathlib import Path

import pytest

from palaver.regular_file import open_regular, read_regular


def test_file_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"content"


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "device"])
def test_what_is_no_file_is_refused_with_its_kind(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "odd"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        case _:
            path.symlink_to("/dev/zero")
    for read in (open_regular, read_regular):
        with pytest.raises(OSError, match=r"This is|No such device"):
            read(path)


@pytest.mark.parametrize(("size", "fits"), [(0, True), (1024, True), (1025, False), (1 << 40, False)])
def test_limit_is_the_most_that_is_read(tmp_path: Path, size: int, fits: bool) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(size)
    if fits:
        assert len(read_regular(path, 1024)) == size
    else:
        with pytest.raises(OSError, match="more than 1 KiB"):
            read_regular(path, 1024)
