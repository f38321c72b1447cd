"""What doctor says of model providers."""

from pathlib import Path

import pytest

from palaver.cli.doctor import Finding, providers_found
from palaver.config import Config, ProviderSettings

pytestmark = pytest.mark.anyio


async def found(tmp_path: Path, *providers: ProviderSettings, file_mode: int = 0o600) -> list[Finding]:
    (tmp_path / "palaver.toml").touch()
    (tmp_path / "palaver.toml").chmod(file_mode)
    environment = {"ANTHROPIC_API_KEY": "secret-a"}
    return await providers_found(Config(data=tmp_path, home=tmp_path, environment=environment, providers=providers))


async def test_doctor_names_each_provider_and_a_missing_key(tmp_path: Path) -> None:
    lacking = ProviderSettings(name="gate", kind="openai", base_url="https://gate.example", api_key_env="GATE_KEY")
    many = ProviderSettings(name="many", kind="openai-responses", api_key="k", models=tuple("abcdefg"))
    first, second, third = await found(tmp_path, lacking, many)
    assert (first.state, first.what, first.says) == (
        "ok",
        "provider anthropic",
        "Anthropic Messages at api.anthropic.com",
    )
    assert (second.state, second.fix) == ("note", "Set GATE_KEY")
    assert third.says == "OpenAI Responses at api.openai.com: a, b, c, d, e …"


async def test_doctor_warns_of_a_key_that_others_can_read(tmp_path: Path) -> None:
    keyed = ProviderSettings(name="gate", kind="openai", base_url="https://gate.example", api_key="secret-key")
    assert (await found(tmp_path, keyed, file_mode=0o644))[-1].what == "palaver.toml"
    quiet = await found(tmp_path, keyed)
    assert quiet[-1].what == "provider gate"
    assert "secret" not in str(quiet)
