"""The reference of commands: it says what the commands do, and every command keeps the rules of the house."""

import pytest

from palaver.cli.commands import COMMANDS
from palaver.cli.support import reference
from palaver.cli.support.json_output import PRINTED, WITHOUT

ALL = dict(reference.commands())
ALONE = [words for words, command in ALL.items() if reference.is_alone(command)]


def test_page_is_what_the_commands_say() -> None:
    page = reference.PAGE.read_text(encoding="utf-8")
    assert reference.write_page(page) == page, "run: python -m palaver.cli.support.reference"


def test_page_that_fell_behind_is_noticed() -> None:
    page = reference.PAGE.read_text(encoding="utf-8")
    assert reference.write_page(page.replace("| 9 | waiting |", "| 9 | asleep |")) == page


@pytest.mark.parametrize("words", ALONE)
def test_command_prints_json_under_names_that_are_written_down(words: str) -> None:
    options = {option for parameter in ALL[words].params for option in parameter.opts}
    assert ("--json" in options) == (words not in WITHOUT)
    assert (words in PRINTED) == (words not in WITHOUT)


def test_nothing_is_written_down_that_is_no_command() -> None:
    assert {*PRINTED, *WITHOUT} == set(ALONE)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "tui"])
def test_command_shows_examples_that_begin_with_its_name(name: str) -> None:
    epilog = ALL[name].epilog
    assert epilog is not None
    assert f"palaver {name}" in epilog


@pytest.mark.parametrize("words", ALONE)
def test_every_option_and_argument_says_what_it_is_for(words: str) -> None:
    assert ALL[words].help
    for parameter in ALL[words].params:
        assert getattr(parameter, "help", None), parameter.name
