"""Attacks through a second mount of the data directory: of itself, a folder above it or in it, a single file.

The rule is `tools/shell/mounts.py`: what is hidden is hidden under all of its names, and no project is, holds or lies in one.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from palaver.tools.shell.mounts import other_names, read_mounts
from palaver.tools.shell.sandbox_level import Level

WHAT = ("itself", "a folder above", "a folder in it", "a single file", "a part on a disk of its own")
ROOT = Path(__file__).parents[2]
LIMIT_S = 90


@functools.cache
def namespace() -> tuple[str, ...] | None:
    """How a mount namespace is made here: as root, or as an ordinary user in a user namespace."""
    ways = (("unshare", "-m"),) if os.geteuid() == 0 else (("unshare", "-Urm"),)
    for way in ways:
        tried = subprocess.run(
            [*way, "mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True, timeout=LIMIT_S
        )
        if tried.returncode == 0:
            return way
    return None


@pytest.mark.parametrize("where", ["inside", "outside"])
@pytest.mark.parametrize("what", WHAT)
def test_data_that_is_mounted_twice_is_out_of_reach(level: Level, what: str, where: str, outside_tmp: Path) -> None:
    way = namespace()
    if way is None:
        pytest.skip("no mount namespace can be made here")
    argv = [*way, sys.executable, "-m", "tests.attacks.mounted_data", level, str(outside_tmp), what, where]
    ended = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=LIMIT_S, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout.splitlines()[-1])
    assert found["accepted"] == ["beside"]
    if level != "none":
        # Without a sandbox nothing is hidden from a command, and the words say so.
        assert found["read"] == []
    assert found["works"] == "x\n"


LISTED = rb"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 8:1 /home /home rw - ext4 /dev/sda1 rw
23 21 8:2 /a\040b /mnt/with\040space\134 rw master:1 - ext4 /dev/sda2 rw
short line
"""


def test_list_of_mounts_is_read_as_the_kernel_writes_it() -> None:
    mounts = read_mounts(LISTED)
    assert [(mount.id, mount.device, mount.root, mount.at) for mount in mounts] == [
        (21, b"8:1", PurePosixPath("/"), Path("/")),
        (22, b"8:1", PurePosixPath("/home"), Path("/home")),
        (23, b"8:2", PurePosixPath("/a b"), Path("/mnt/with space\\")),
    ]


@pytest.mark.parametrize("listed", [b"", b"\n\n", b"1 2 3", b"a b c d e f"[:9]])
def test_list_of_mounts_that_says_nothing_gives_no_names(listed: bytes, tmp_path: Path) -> None:
    assert other_names(tmp_path, read_mounts(listed)) == []


def test_ordinary_folder_and_what_is_not_there_have_no_other_name(outside_tmp: Path) -> None:
    assert other_names(outside_tmp) == []
    assert other_names(outside_tmp / "gone") == []
