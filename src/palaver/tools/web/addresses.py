"""Which addresses the server may be sent to: public ones, and nothing of this machine or its network.

Used by `fetch` and `visit`. A host's name says nothing; what it resolves to is judged, every address of it, and the one that is
connected to is judged once more in the moment of connecting, so that no name can change its mind in between.
"""

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from palaver.errors import Forbidden

if TYPE_CHECKING:
    from aiohttp import AddrInfoType

PORTS = frozenset({80, 443})
"""Where public pages are. Other ports are most often somebody's inside."""

_SPECIAL = tuple(
    map(
        ip_network,
        (
            # Public by its number, and yet not: where Azure's machines ask for their own secrets.
            "168.63.129.16/32",
            # Set apart by the standards; which of them Python knows depends on its version.
            *("192.0.0.0/24", "192.88.99.0/24", "100::/64", "2001::/23", "3fff::/20", "5f00::/16"),
        ),
    )
)
# Ways to write an IPv4 address as an IPv6 one: translators in the network (NAT64), beside those Python knows.
_TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"), ip_network("::/96"))


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address is one of the open internet. What is not known to be, is not."""
    if isinstance(address, IPv6Address):
        inner = _inner(address)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local or address.scope_id is not None:
            return False
    if (
        any(address in network for network in _SPECIAL)
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    ):
        return False
    return address.is_global and not (address.is_private or address.is_loopback or address.is_link_local)


def _inner(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that this one stands for."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in _TRANSLATED):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


@dataclass(frozen=True, slots=True)
class Guard:
    """Where a request may go."""

    ports: frozenset[int] = PORTS
    loopback: bool = False
    """For tests, which have no internet: this machine too."""

    def check_port(self, port: int | None) -> None:
        if port not in self.ports:
            allowed = " and ".join(str(one) for one in sorted(self.ports))
            raise Forbidden(f"Port {port} is not fetched from; only {allowed}. Use the shell if it must be.")

    def check(self, text: str, host: str) -> None:
        try:
            address = ip_address(text)
        except ValueError:
            raise Forbidden(f"{host} leads to {text}, which is no address.") from None
        if is_public(address) or (self.loopback and address.is_loopback):
            return
        leads = "" if text == host else f" leads to {text}, which"
        raise Forbidden(
            f"{host}{leads} is an address of this machine or its own network; only public ones are fetched."
        )

    def socket_for(self, info: "AddrInfoType") -> socket.socket:
        """The socket for one connection, or none: the last look, at the address itself."""
        family, kind, protocol, _, place = info
        try:
            self.check(str(place[0]), str(place[0]))
        except Forbidden as refusal:
            raise OSError(refusal.message) from refusal
        return socket.socket(family, kind, protocol)
