"""Connection limits: strangers displace each other and nobody else."""

import pytest

from palaver.faces.http.connections import Connection, Connections
from palaver.people.authentication import Principal


def principal_of(key: str) -> Principal:
    return Principal(key, "owner", key)


class Peer:
    """Somebody who connects, and remembers in which order connections were closed."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.closed: list[str] = []

    def connect(self, name: str, peer: str = "10.0.0.1", key: str | None = None) -> Connection:
        connection = self._connections.admit(peer, lambda: self.closed.append(name))
        if key is not None:
            connection.authenticate(principal_of(key))
        return connection


@pytest.fixture
def peers() -> Peer:
    # A share of 8 each.
    return Peer(Connections(32))


def test_oldest_stranger_gives_way_to_a_new_one(peers: Peer) -> None:
    for number in range(10):
        peers.connect(f"c{number}")

    assert peers.closed == ["c0", "c1"]


def test_connection_with_a_token_is_never_displaced_by_strangers(peers: Peer) -> None:
    peers.connect("mine", key="k")
    for number in range(100):
        peers.connect(f"c{number}")

    assert "mine" not in peers.closed
    assert len(peers.closed) == 92


def test_flood_of_one_address_leaves_room_for_another() -> None:
    peers = Peer(Connections(65_536))
    peers.connect("other", peer="10.0.0.2")
    for number in range(1_000):
        peers.connect(f"c{number}")

    assert "other" not in peers.closed
    assert len(peers.closed) == 1_000 - 128


def test_address_of_a_proxy_may_hold_all_that_strangers_may() -> None:
    peers = Peer(Connections(65_536, trusts_peers=True))
    for number in range(600):
        peers.connect(f"c{number}")

    assert len(peers.closed) == 600 - 512


def test_token_with_too_many_connections_loses_those_it_used_longest_ago(peers: Peer) -> None:
    first = peers.connect("first", key="k")
    for number in range(7):
        peers.connect(f"k{number}", key="k")
    first.authenticate(principal_of("k"))
    peers.connect("one more", key="k")
    for number in range(8):
        peers.connect(f"c{number}")

    assert peers.closed == ["k0"]


def test_closed_connection_is_forgotten_and_stays_so(peers: Peer) -> None:
    connections = Connections(32)
    one = connections.admit("10.0.0.1", lambda: None)
    one.release()
    one.authenticate(principal_of("k"))
    one.release()

    assert connections.strangers == 0
    assert peers.closed == []


def test_relief_ends_strangers_alone(peers: Peer) -> None:
    connections = Connections(32)
    closed: list[str] = []
    connections.admit("10.0.0.1", lambda: closed.append("mine")).authenticate(principal_of("k"))
    connections.admit("10.0.0.1", lambda: closed.append("stranger"))
    connections.relieve()

    assert closed == ["stranger"]
    assert connections.strangers == 0
