"""Names that the server answers to: addresses that it holds, names its operator declared, and the other names of loopback.

Made once by `app.py`, asked by the gate for each request. A browser's sign-in belongs to a name. Where another program could
listen on one of its addresses, the page's requests would go there: `localhost` is 127.0.0.1 and [::1], and a server on
loopback holds one of them. So a browser signs in only under names that are held; under the others only a token counts.
"""

from collections.abc import Iterable

from palaver.config import held_addresses
from palaver.errors import ConfigurationError

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_PLAIN_PORTS = (80, 443)
"""Browsers leave them out."""


class Hosts:
    """Every name is the text of a Host header in lower case."""

    def __init__(self, bound: str, port: int, public: Iterable[str] = (), *, behind_proxy: bool = False) -> None:
        """`bound`: the address that the server listens on. Raises ConfigurationError for a name that nobody can hold."""
        self._ports = (f":{port}", "") if port in _PLAIN_PORTS else (f":{port}",)
        self._addresses = held_addresses(bound)
        self._held = frozenset(address + suffix for address in self._addresses for suffix in self._ports)
        self._loopback = frozenset(name + suffix for name in _LOOPBACK for suffix in self._ports)
        self._public = frozenset(name.lower() for name in public)
        for name in self._public:
            # Who listens in front of a proxy is its operator's word.
            if _is_localhost(_without_port(name)) and not behind_proxy:
                raise ConfigurationError(
                    f"{name} cannot be a public host: another program could listen on one of its addresses. "
                    "Name 127.0.0.1 instead, with the port that browsers use."
                )

    def holds(self, name: str) -> bool:
        """Whether a browser may sign in under this name."""
        return name in self._held or name in self._public or _without_port(name) in self._public

    def knows(self, name: str) -> bool:
        """Whether the server answers to it at all."""
        return self.holds(name) or name in self._loopback

    def held_instead(self, name: str) -> str | None:
        """An address to send the browser to that asked for the page under a name which we do not hold."""
        if name not in self._loopback or not self._addresses:
            return None
        return self._addresses[0] + next(suffix for suffix in self._ports if name.endswith(suffix))


def _is_localhost(name: str) -> bool:
    return name.rstrip(".") == "localhost" or name.rstrip(".").endswith(".localhost")


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
