"""A typed async client over the native face. It knows the schema and the fold, and nothing of the server."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from palaver.client.client import Client, Followed

__all__ = ["Client", "Followed"]


def __getattr__(name: str) -> object:
    """On first use: the command line needs the smaller parts at every start, and the HTTP library not at all."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from palaver.client import client

    return getattr(client, name)
