"""The layouts of the SQLite store, one file each, applied in the order of their numbers.

`user_version` says how far a database has come. Each step is one transaction with its number, so a crash in the middle of
an upgrade leaves the layout before it. A file that was released is never changed; a new one is added.
"""

from importlib.resources import files

import apsw

from palaver.errors import ConfigurationError

APPLICATION_ID = 0x50414C56
"""Marks the file as ours: "PALV"."""


def _scripts() -> dict[int, str]:
    found = (entry for entry in files(__package__).iterdir() if entry.name.endswith(".sql"))
    return {int(entry.name.split("_")[0]): entry.read_text("utf-8") for entry in found}


def migrate(connection: apsw.Connection) -> None:
    """Bring a database to this release's layout. Raises ConfigurationError for one that is not ours or newer."""
    scripts = _scripts()
    version, latest = int(connection.pragma("user_version")), max(scripts)
    if version > latest:
        raise ConfigurationError(
            f"{connection.filename} was written by a newer release of Palaver (layout {version}; this one knows "
            f"{latest}). Start that release or a newer one, or choose another data directory with --data."
        )
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").get:
        raise _foreign(connection)
    if version > 0 and connection.pragma("application_id") != APPLICATION_ID:
        raise _foreign(connection)
    for number in range(version + 1, latest + 1):
        connection.execute(
            f"BEGIN EXCLUSIVE; {scripts[number]};"
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}; COMMIT"
        )


def _foreign(connection: apsw.Connection) -> ConfigurationError:
    return ConfigurationError(
        f"{connection.filename} is a database, but not a log of Palaver. Move it away, or choose another data "
        "directory with --data."
    )
