"""What Pi's backend says of failures and of its own readiness, without Pi."""

from pathlib import Path

import pytest

from palaver.backends.pi.backend import EXTENSION, PiBackend, failure_of
from palaver.backends.pi.installation import PACKAGE, readiness
from palaver.clock import SystemClock
from palaver.errors import AgentError, NotInstalled, NotLoggedIn, ProviderRefused, ProviderUnavailable
from palaver.schema.records import AgentRecord
from tests.provider.turn import MemoryTurn, drive


@pytest.mark.parametrize(
    ("told", "kind", "words"),
    [
        ('400 {"type": "error", "error": {"message": "bad thing"}}', ProviderRefused, "bad thing"),
        ('401 {"error": {"message": "invalid key"}}', NotLoggedIn, "invalid key"),
        ("Pi refused: No API key found for anthropic.", NotLoggedIn, "/login"),
        ('529 {"error": {"message": "Overloaded"}}', ProviderUnavailable, "Overloaded"),
        ("terminated", ProviderUnavailable, "terminated"),
        ("something odd", ProviderRefused, "something odd"),
    ],
)
def test_failure_is_told_apart_and_in_words(told: str, kind: type[AgentError], words: str) -> None:
    failure = failure_of(told)
    assert type(failure) is kind
    assert words in failure.message


async def test_missing_program_is_said_with_what_to_do(tmp_path: Path) -> None:
    backend = PiBackend(SystemClock(), {"PATH": str(tmp_path), "HOME": str(tmp_path)})
    agent = AgentRecord(id="pi", name="Pi", backend="pi")
    turn = await drive(backend, MemoryTurn("hello", project=tmp_path, agent=agent))
    await backend.close()
    assert isinstance(turn.error, NotInstalled)
    assert PACKAGE in turn.error.message


def test_readiness_names_what_is_missing(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    missing = readiness(environment)
    assert (missing.ready, missing.fix) == (False, f"npm install -g {PACKAGE}")

    package = tmp_path / "lib" / "pi"
    package.mkdir(parents=True)
    (package / "package.json").write_text(f'{{"name": "{PACKAGE}", "version": "1.2.3"}}')
    (package / "cli.js").write_text("#!/bin/sh\n")
    (package / "cli.js").chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pi").symlink_to(package / "cli.js")
    without_login = readiness(environment)
    assert not without_login.ready
    assert "/login" in (without_login.fix or "")

    (tmp_path / ".pi" / "agent").mkdir(parents=True)
    (tmp_path / ".pi" / "agent" / "auth.json").write_text("{}")
    assert readiness(environment).summary == "Pi 1.2.3 is ready."


def test_permission_extension_is_shipped() -> None:
    assert EXTENSION.is_file()
