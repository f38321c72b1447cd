"""`palaver token`: tokens for other people, agents and programs, and a new one for the owner.

A token is shown once, when it is made; only its hash is kept. A running server notices a change within seconds and ends the
streams of tokens that are gone.
"""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from palaver.cli.connection import FAILED, complain, data_directory
from palaver.errors import ConfigurationError
from palaver.faces.keys import ROLES, KeyRecord, Kind, token_hash
from palaver.faces.token_files import new_token, read_key_records, rotate_token, write_key_records

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Tokens: who may come in, and what they may do.")

Data = Annotated[Path | None, typer.Option(help="The server's data directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def create(
    role: Annotated[
        Kind, typer.Option(help="owner: everything; human: talk and approve; agent: talk; observer: read.")
    ],
    name: Annotated[str | None, typer.Option(help="Whose it is, shown wherever they act.")] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Print a new token. It cannot be shown again."""
    directory = _existing(data)
    known = _records(directory)
    called = name or _free_name(role, known)
    if any(record.name == called for record in known):
        complain(f"There is a token “{called}” already. Choose another --name, or take that one back first.")
        raise typer.Exit(FAILED)
    token = new_token()
    _write(directory, [*known, KeyRecord(name=called, kind=role, hash=token_hash(token))])
    if json:
        print(msgspec.json.encode({"name": called, "role": role, "token": token}).decode())
        return
    print(token)
    print(f"This is “{called}”, with the role {role}. It is not kept and cannot be shown again.", file=sys.stderr)


@app.command("list")
def list_tokens(data: Data = None, json: Json = False) -> None:
    """Who has a token, beside the owner."""
    records = _records(_existing(data))
    if json:
        print(msgspec.json.encode([{"name": record.name, "role": record.kind} for record in records]).decode())
    elif not records:
        print("Only the owner's. `palaver token create --role human --name Ada` makes one for somebody else.")
    else:
        width = max(len(record.name) for record in records)
        for record in records:
            print(f"{record.name:<{width}}  {record.kind:<9} {', '.join(sorted(ROLES[record.kind]))}")


@app.command()
def revoke(name: Annotated[str, typer.Argument(help="As `palaver token list` shows it.")], data: Data = None) -> None:
    """Take a token back. Its open streams end within seconds."""
    directory = _existing(data)
    known = _records(directory)
    left = [record for record in known if record.name != name]
    if len(left) == len(known):
        complain(f"There is no token “{name}”. `palaver token list` shows them.")
        raise typer.Exit(FAILED)
    _write(directory, left)
    print(f"“{name}” can no longer come in.")


@app.command()
def rotate(data: Data = None, json: Json = False) -> None:
    """A new token for the owner. The old one, every browser it signed in, and their open streams end."""
    directory = _existing(data)
    try:
        token = rotate_token(directory)
    except OSError as failure:
        complain(f"The token in {directory} cannot be written: {failure.strerror or failure}.")
        raise typer.Exit(FAILED) from None
    print(msgspec.json.encode({"token": token}).decode() if json else token)


def _existing(data: Path | None) -> Path:
    directory = data_directory(data)
    if not (directory / "token").exists():
        complain(f"No token in {directory}. Start the server once with `palaver serve`, or name its --data.")
        raise typer.Exit(FAILED)
    return directory


def _records(directory: Path) -> list[KeyRecord]:
    try:
        return read_key_records(directory)
    except ConfigurationError as failure:
        complain(failure.message)
        raise typer.Exit(FAILED) from None


def _write(directory: Path, records: list[KeyRecord]) -> None:
    try:
        write_key_records(directory, records)
    except OSError as failure:
        complain(f"The tokens in {directory} cannot be written: {failure.strerror or failure}.")
        raise typer.Exit(FAILED) from None


def _free_name(role: Kind, known: list[KeyRecord]) -> str:
    taken = {record.name for record in known} | {"owner"}
    return next(name for number in range(1, len(taken) + 2) if (name := f"{role}-{number}") not in taken)
