"""`palaver token`: tokens for other people, agents and programs, and a new one for the owner.

A token is shown once, when it is made; only its hash is kept. A running server notices a change within seconds and ends the
streams of tokens that are gone.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from palaver.cli.support import options
from palaver.cli.support.connection import NotSignedIn, complain, data_directory, fail
from palaver.cli.support.exits import Exit
from palaver.cli.support.output import cell, print_json, print_table
from palaver.errors import ConfigurationError
from palaver.people.authentication import ROLES, KeyRecord, Kind, token_hash
from palaver.people.token_files import new_token, read_key_records, rotate_token, write_key_records

app = options.group("Tokens: who may come in, and what they may do.")

EXAMPLES = (
    "palaver token create --role human --name Ada",
    "palaver token list",
    "palaver token revoke Ada",
    "palaver token rotate",
)


@app.command()
def create(
    role: Annotated[
        Kind, typer.Option(help="owner: everything; human: talk and approve; agent: talk; observer: read.")
    ],
    name: Annotated[str | None, typer.Option(help="Whose it is, shown wherever they act.")] = None,
    data: options.Data = None,
    json: options.Json = False,
) -> None:
    """Print a new token. It cannot be shown again."""
    directory = _existing(data)
    known = _records(directory)
    called = name or _free_name(role, known)
    if any(record.name == called for record in known):
        complain(f"There is a token “{called}” already. Choose another --name, or take that one back first.")
        raise typer.Exit(Exit.CONFLICT)
    token = new_token()
    _write(directory, [*known, KeyRecord(name=called, kind=role, hash=token_hash(token))])
    if json:
        print_json({"name": called, "role": role, "token": token})
        return
    print(token)
    print(f"This is “{called}”, with the role {role}. It is not kept and cannot be shown again.", file=sys.stderr)


@app.command("list")
def list_tokens(data: options.Data = None, json: options.Json = False) -> None:
    """Who has a token, beside the owner."""
    records = _records(_existing(data))
    if json:
        print_json([{"name": record.name, "role": record.kind} for record in records])
    elif not records:
        print("Only the owner's. `palaver token create --role human --name Ada` makes one for somebody else.")
    else:
        rows = [(cell(one.name, "bold"), cell(one.kind), cell(", ".join(sorted(ROLES[one.kind])))) for one in records]
        print_table(("name", "role", "may"), rows)


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As `palaver token list` shows it.")],
    data: options.Data = None,
    json: options.Json = False,
) -> None:
    """Take a token back. Its open streams end within seconds."""
    directory = _existing(data)
    known = _records(directory)
    left = [record for record in known if record.name != name]
    if len(left) == len(known):
        complain(f"There is no token “{name}”. `palaver token list` shows them.")
        raise typer.Exit(Exit.NOT_FOUND)
    _write(directory, left)
    if json:
        print_json({"name": name, "revoked": True})
    else:
        print(f"“{name}” can no longer come in.")


@app.command()
def rotate(data: options.Data = None, json: options.Json = False) -> None:
    """A new token for the owner. The old one, every browser it signed in, and their open streams end."""
    directory = _existing(data)
    try:
        token = rotate_token(directory)
    except OSError as failure:
        complain(f"The token in {directory} cannot be written: {failure.strerror or failure}.")
        raise typer.Exit(Exit.FAILED) from None
    if json:
        print_json({"token": token})
    else:
        print(token)


def _existing(data: Path | None) -> Path:
    directory = data_directory(data)
    if not (directory / "token").exists():
        raise fail(
            NotSignedIn(f"No token in {directory}. Start the server once with `palaver serve`, or name its --data.")
        )
    return directory


def _records(directory: Path) -> list[KeyRecord]:
    try:
        return read_key_records(directory)
    except ConfigurationError as failure:
        raise fail(failure) from None


def _write(directory: Path, records: list[KeyRecord]) -> None:
    try:
        write_key_records(directory, records)
    except OSError as failure:
        complain(f"The tokens in {directory} cannot be written: {failure.strerror or failure}.")
        raise typer.Exit(Exit.FAILED) from None


def _free_name(role: Kind, known: list[KeyRecord]) -> str:
    taken = {record.name for record in known} | {"owner"}
    return next(name for number in range(1, len(taken) + 2) if (name := f"{role}-{number}") not in taken)
