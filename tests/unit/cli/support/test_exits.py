"""The exit codes: numbers that scripts rely on."""

import pytest

from palaver import errors
from palaver.cli.support.connection import NotSignedIn
from palaver.cli.support.exits import MEANINGS, Exit, exit_of
from palaver.client.connection import Unreachable


def test_numbers_stay_what_they_are() -> None:
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0,
        "FAILED": 1,
        "USAGE": 2,
        "UNREACHABLE": 3,
        "STOPPED": 4,
        "REFUSED": 5,
        "NOT_FOUND": 6,
        "CONFLICT": 7,
        "TIMED_OUT": 8,
        "WAITING": 9,
        "INTERRUPTED": 130,
    }
    assert MEANINGS.keys() == set(Exit)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Invalid("x"), Exit.FAILED),
        (errors.Unauthorized("x"), Exit.REFUSED),
        (NotSignedIn("x"), Exit.REFUSED),
        (errors.Forbidden("x"), Exit.REFUSED),
        (errors.NotFound("x"), Exit.NOT_FOUND),
        (errors.Gone("x"), Exit.NOT_FOUND),
        (errors.Conflict("x"), Exit.CONFLICT),
        (errors.TooLarge("x"), Exit.FAILED),
        (errors.Busy("x"), Exit.FAILED),
        (errors.LogUnavailable("x"), Exit.UNREACHABLE),
        (errors.StorageFull("x"), Exit.FAILED),
        (errors.TimedOut("x"), Exit.TIMED_OUT),
        (errors.ConfigurationError("x"), Exit.FAILED),
        (Unreachable("x"), Exit.UNREACHABLE),
        (errors.PalaverError("x"), Exit.FAILED),
    ],
)
def test_every_kind_of_error_has_its_code(error: errors.PalaverError, code: Exit) -> None:
    assert exit_of(error) == code
