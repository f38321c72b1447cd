"""`palaver token`: shown once, kept as a hash, taken back by name."""

import stat
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from palaver.cli.support.exits import Exit
from palaver.cli.token import app
from palaver.clock import ManualClock
from palaver.people.authentication import Keys, Kind
from palaver.people.token_files import ensure_token, read_key_records, read_token


@pytest.fixture
def data(tmp_path: Path) -> Path:
    ensure_token(tmp_path)
    return tmp_path


def called(data: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--data", str(data)])


def keys_of(data: Path) -> Keys:
    return Keys(read_token(data), ManualClock(), read_key_records(data))


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [("owner", "admin", None), ("human", "decide", "admin"), ("agent", "send", "decide"), ("observer", "read", "send")],
)
def test_created_token_holds_its_role_and_no_more(data: Path, role: Kind, may: str, may_not: str | None) -> None:
    made = called(data, "create", "--role", role)
    holder = keys_of(data).by_token(made.stdout.strip())
    assert holder is not None
    assert (holder.kind, holder.name) == (role, f"{role}-1")
    assert holder.may(may)  # type: ignore[arg-type]
    assert may_not is None or not holder.may(may_not)  # type: ignore[arg-type]


def test_token_is_kept_as_a_hash_that_only_the_owner_can_read(data: Path) -> None:
    made = called(data, "create", "--role", "human", "--name", "Ada", "--json")
    token = msgspec.json.decode(made.stdout)["token"]
    assert token not in (data / "tokens.json").read_text()
    assert stat.S_IMODE((data / "tokens.json").stat().st_mode) == 0o600


def test_name_that_is_taken_is_refused_and_nothing_changes(data: Path) -> None:
    called(data, "create", "--role", "human", "--name", "Ada")
    before = (data / "tokens.json").read_bytes()
    again = called(data, "create", "--role", "owner", "--name", "Ada")
    assert again.exit_code == Exit.CONFLICT
    assert "Choose another --name" in again.stderr
    assert (data / "tokens.json").read_bytes() == before


def test_revoked_token_is_gone_and_the_others_stay(data: Path) -> None:
    ada, bob = (called(data, "create", "--role", "human", "--name", name).stdout.strip() for name in ("Ada", "Bob"))
    assert "Ada" in called(data, "list").stdout
    assert called(data, "revoke", "Ada").exit_code == 0
    assert keys_of(data).by_token(ada) is None
    assert keys_of(data).by_token(bob) is not None
    assert called(data, "revoke", "Ada").exit_code == Exit.NOT_FOUND


def test_rotated_owner_token_is_new_and_the_others_stay(data: Path) -> None:
    old, ada = read_token(data), called(data, "create", "--role", "human").stdout.strip()
    new = called(data, "rotate").stdout.strip()
    keys = keys_of(data)
    assert keys.by_token(old) is None
    assert keys.by_token(new) == keys.owner
    assert keys.by_token(ada) is not None


def test_directory_without_a_server_says_what_to_do(tmp_path: Path) -> None:
    refused = called(tmp_path, "create", "--role", "human")
    assert refused.exit_code == Exit.REFUSED
    assert "palaver serve" in refused.stderr
    assert not (tmp_path / "tokens.json").exists()
