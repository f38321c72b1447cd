"""Programs are found on a PATH, but none that an agent could have put there."""

import os
from pathlib import Path

import pytest

from palaver.backends.program_lookup import find_program, trusted_path


def put(folder: Path, name: str = "tool") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n")
    (folder / name).chmod(0o755)
    return folder / name


def found(*entries: str | Path, writable: Path) -> str | None:
    return find_program("tool", {"PATH": os.pathsep.join(map(str, entries))}, [writable])


def test_first_program_outside_the_project_is_taken(tmp_path: Path) -> None:
    put(tmp_path / "project/bin")
    outside = put(tmp_path / "bin")
    assert found(tmp_path / "project/bin", tmp_path / "bin", writable=tmp_path / "project") == str(outside)
    assert found(tmp_path / "project/bin", writable=tmp_path / "project") is None
    assert found(tmp_path / "project/../bin", writable=tmp_path / "project") is None, "through the project is in it"


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin", "../project/bin"])
def test_relative_entry_is_passed_over(entry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "project/bin")
    put(tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    assert found(entry, writable=tmp_path / "elsewhere") is None
    assert trusted_path({"PATH": f"{entry}:/usr/bin"}, [tmp_path]) == "/usr/bin"


@pytest.mark.parametrize("link", ["folder", "program", "way", "project"])
def test_link_into_the_project_is_passed_over(link: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    inside = put(project / "bin")
    outside = tmp_path / "outside"
    match link:
        case "folder":
            outside.symlink_to(inside.parent)
        case "program":
            outside.mkdir()
            (outside / "tool").symlink_to(inside)
        case "way":
            # Ends outside today, and wherever the link in the project says tomorrow.
            put(tmp_path / "real")
            (project / "way").symlink_to(tmp_path / "real")
            outside.symlink_to(project / "way")
        case _:
            # The project itself is named by a link.
            outside.symlink_to(inside.parent)
            (tmp_path / "named").symlink_to(project)
            project = tmp_path / "named"
    assert found(outside, writable=project) is None


def test_links_that_lead_in_circles_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert found(tmp_path / "a", writable=tmp_path / "project") is None


def test_folder_that_may_not_be_read_is_passed_over(tmp_path: Path) -> None:
    outside = put(tmp_path / "bin")
    (tmp_path / "closed").mkdir(mode=0)
    assert found(tmp_path / "closed/bin", tmp_path / "bin", writable=tmp_path / "project") == str(outside)
