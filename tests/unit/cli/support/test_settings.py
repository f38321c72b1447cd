"""What `palaver.toml` says about providers."""

from pathlib import Path

import pytest

from palaver.cli.support.settings import Flags, read_config
from palaver.config import Config
from palaver.errors import ConfigurationError


def config(tmp_path: Path, text: str) -> Config:
    (tmp_path / "palaver.toml").write_text(text)
    return read_config(Flags(data=tmp_path), {}, tmp_path)


def test_providers_are_read_in_their_order(tmp_path: Path) -> None:
    read = config(
        tmp_path,
        """
        model = "gate/large"
        [providers.gate]
        kind = "openai-responses"
        base_url = "https://gate.example/v1"
        api_key_env = "GATE_KEY"
        models = ["large", "small"]
        headers = { "x-team" = "blue" }
        window_tokens = 32000
        [providers.gemini]
        kind = "google"
        """,
    )
    first, second = read.providers
    assert (read.model, first.name, first.kind, first.base_url) == (
        "gate/large",
        "gate",
        "openai-responses",
        "https://gate.example/v1",
    )
    assert (first.api_key_env, first.models, dict(first.headers), first.window_tokens) == (
        "GATE_KEY",
        ("large", "small"),
        {"x-team": "blue"},
        32_000,
    )
    assert (second.name, second.kind) == ("gemini", "google")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('[providers.x]\nkind = "telepathy"', "telepathy"),
        ('[providers.x]\nkind = "openai"\nkey = "k"', "key"),
        ('[providers.x]\nkind = "openai"\nbase_url = "host"', "base_url"),
        ('[providers."a/b"]\nkind = "openai"', "a/b"),
        ('[providers.x]\nkind = "openai"\napi_key = "k"\napi_key_env = "K"', "both"),
    ],
)
def test_provider_that_makes_no_sense_is_said_at_the_start(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        config(tmp_path, text)


def test_key_in_the_file_is_never_shown(tmp_path: Path) -> None:
    read = config(tmp_path, '[providers.x]\nkind = "openai"\napi_key = "sk-in-the-file"')
    assert read.providers[0].api_key == "sk-in-the-file"
    assert "sk-in-the-file" not in repr(read)


@pytest.mark.parametrize(
    ("text", "variable", "level"),
    [
        ("", None, "bubblewrap"),
        ('sandbox = "landlock"', None, "landlock"),
        ('sandbox = "landlock"', "none", "none"),
        ("", " Landlock ", "landlock"),
    ],
)
def test_strongest_sandbox_is_read_from_the_variable_then_the_file(
    tmp_path: Path, text: str, variable: str | None, level: str
) -> None:
    (tmp_path / "palaver.toml").write_text(text)
    environment = {"PALAVER_SANDBOX": variable} if variable else {}
    assert read_config(Flags(data=tmp_path), environment, tmp_path).sandbox == level


def test_sandbox_that_is_no_level_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="bubblewrap, landlock, none"):
        read_config(Flags(data=tmp_path), {"PALAVER_SANDBOX": "docker"}, tmp_path)
    with pytest.raises(ConfigurationError, match="sandbox"):
        config(tmp_path, 'sandbox = "docker"')
