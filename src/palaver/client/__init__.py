"""A typed async client over the native face. It knows the schema and the fold, and nothing of the server."""

from palaver.client.client import Client, Followed

__all__ = ["Client", "Followed"]
