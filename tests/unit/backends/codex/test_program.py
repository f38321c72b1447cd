"""Where Codex is, what it may see, and what doctor says of it."""

from pathlib import Path

import pytest

from palaver.backends.codex.failure import failure_of
from palaver.backends.codex.installation import codex_environment, readiness

OWN_SERVICE = """
model_provider = "own"
[model_providers.own]
base_url = "http://127.0.0.1:1/v1"
env_key = "OWN_KEY"
env_http_headers = { "X-Team" = "OWN_TEAM" }
"""

pytest.importorskip("codex_cli_bin", reason="Codex is not installed: pip install 'palaver[codex]'")


def test_nobody_logged_in_is_said_with_the_command_to_run(tmp_path: Path) -> None:
    found = readiness({"HOME": str(tmp_path)})
    assert not found.ready
    assert "nobody is logged in" in found.summary
    assert (found.fix or "").endswith("codex login")


def test_login_of_the_person_counts(tmp_path: Path) -> None:
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    found = readiness({"HOME": str(tmp_path)})
    assert found.ready
    assert "Codex 0." in found.summary


def test_service_of_ones_own_needs_its_key_and_no_login(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(OWN_SERVICE)
    home = {"CODEX_HOME": str(tmp_path)}
    assert not readiness(home).ready
    assert readiness({**home, "OWN_KEY": "k", "OWN_TEAM": "t"}).ready


def test_program_sees_the_keys_that_its_settings_name_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(OWN_SERVICE)
    ours = {"CODEX_HOME": str(tmp_path), "OWN_KEY": "k", "OPENAI_API_KEY": "secret", "PALAVER_TOKEN": "secret"}
    seen = codex_environment(ours, {"MORE": "m"})
    assert (seen["OWN_KEY"], seen["CODEX_HOME"], seen["MORE"]) == ("k", str(tmp_path), "m")
    assert "secret" not in seen.values()


def test_settings_that_cannot_be_read_are_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("= nonsense [")
    assert not readiness({"CODEX_HOME": str(tmp_path)}).ready


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"message": "no", "codexErrorInfo": "unauthorized"}, "not_logged_in"),
        (
            {"message": "x", "codexErrorInfo": {"responseTooManyFailedAttempts": {"httpStatusCode": 401}}},
            "not_logged_in",
        ),
        (
            {"message": "x", "codexErrorInfo": {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}},
            "provider_unavailable",
        ),
        ({"message": "x", "codexErrorInfo": "serverOverloaded"}, "provider_unavailable"),
        ({"message": "stream disconnected before completion", "codexErrorInfo": "other"}, "stream_cut"),
        ({"message": "x", "codexErrorInfo": "contextWindowExceeded"}, "provider_refused"),
        ({"message": "x", "codexErrorInfo": {"somethingNew": {}}}, "provider_refused"),
        ({}, "provider_refused"),
    ],
)
def test_failure_has_the_code_of_its_cause(error: dict[str, object], code: str) -> None:
    assert failure_of(error).wire().code == code
