"""The journal: one line a fact for whoever runs the server, with what libraries say among it."""

import logging
from collections.abc import Iterator

import pytest

from palaver.journal import Journal, write_journal

journal = Journal("palaver.somewhere")


@pytest.fixture(autouse=True)
def _written() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("palaver")
    before = root.handlers[:], ours.level
    write_journal()
    yield
    root.handlers[:], ours.level = before
    # Which levels count is remembered by each logger.
    ours.setLevel(ours.level)


def test_line_has_the_time_the_level_the_event_and_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    journal.warning("the disk is full", free_bytes=12, path="/tmp/x", reason="no space left")

    (line,) = capsys.readouterr().err.splitlines()

    assert line[2] == line[5] == ":"
    assert line[8:] == " [warning ] the disk is full               free_bytes=12 path=/tmp/x reason='no space left'"


def test_fact_with_a_line_of_its_own_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    journal.info("a server says", text="fine\n12:00:00 [error   ] all is lost")

    assert len(capsys.readouterr().err.splitlines()) == 1


def test_exception_is_told_with_its_traceback_and_without_local_variables(capsys: pytest.CaptureFixture[str]) -> None:
    key = "correct-horse"
    try:
        raise RuntimeError(f"a key of {len(key)} letters")
    except RuntimeError:
        journal.exception("it failed", where="here")

    said = capsys.readouterr().err
    assert "RuntimeError: a key of 13 letters" in said
    assert key not in said


def test_libraries_are_heard_only_when_there_is_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("a.library").info("all is well")
    journal.debug("nobody asked")
    logging.getLogger("a.library").warning("%s is broken", "something")

    (line,) = capsys.readouterr().err.splitlines()

    assert line.endswith("[warning ] something is broken            logger=a.library")


def test_journal_written_twice_says_everything_once(capsys: pytest.CaptureFixture[str]) -> None:
    write_journal()
    journal.info("once")

    assert len(capsys.readouterr().err.splitlines()) == 1
