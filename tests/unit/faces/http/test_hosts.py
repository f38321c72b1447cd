"""Which names the server answers to, and under which of them a browser may sign in."""

import pytest

from palaver.errors import ConfigurationError
from palaver.faces.http.hosts import Hosts

PORT = 8420


@pytest.mark.parametrize(
    ("bound", "held"),
    [
        ("127.0.0.1", {"127.0.0.1:8420"}),
        ("localhost", {"127.0.0.1:8420"}),
        ("0.0.0.0", {"127.0.0.1:8420"}),
        ("::1", {"[::1]:8420"}),
        ("::", {"127.0.0.1:8420", "[::1]:8420"}),
        ("127.0.0.2", {"127.0.0.2:8420"}),
        ("192.0.2.1", {"192.0.2.1:8420"}),
        ("2001:db8::1", {"[2001:db8::1]:8420"}),
        ("box.example", set[str]()),
    ],
)
def test_server_holds_the_addresses_it_listens_on_and_no_name_that_others_may_answer_to(
    bound: str, held: set[str]
) -> None:
    hosts = Hosts(bound, PORT)
    names = ["127.0.0.1", "localhost", "[::1]", "127.0.0.2", "192.0.2.1", "[2001:db8::1]", "box.example", "0.0.0.0"]

    assert {f"{name}:{PORT}" for name in names if hosts.holds(f"{name}:{PORT}")} == held
    assert not any(hosts.holds(name) or hosts.holds(f"{name}:1") for name in names)


@pytest.mark.parametrize("bound", ["127.0.0.1", "::1", "::", "192.0.2.1", "box.example"])
def test_localhost_is_known_and_never_held(bound: str) -> None:
    hosts = Hosts(bound, PORT)

    assert hosts.knows("localhost:8420")
    assert not hosts.holds("localhost:8420")
    assert not hosts.knows("localhost:8421")
    assert not hosts.knows("localhost")
    assert not hosts.knows("evil.localhost:8420")


@pytest.mark.parametrize(
    ("bound", "port", "name", "address"),
    [
        ("127.0.0.1", PORT, "localhost:8420", "127.0.0.1:8420"),
        ("127.0.0.1", PORT, "[::1]:8420", "127.0.0.1:8420"),
        ("::1", PORT, "localhost:8420", "[::1]:8420"),
        ("::1", PORT, "127.0.0.1:8420", "[::1]:8420"),
        ("127.0.0.1", 80, "localhost", "127.0.0.1"),
        ("127.0.0.1", 80, "localhost:80", "127.0.0.1:80"),
        ("box.example", PORT, "localhost:8420", None),
    ],
)
def test_browser_under_another_name_is_sent_to_an_address_that_is_held(
    bound: str, port: int, name: str, address: str | None
) -> None:
    assert Hosts(bound, port).held_instead(name) == address


@pytest.mark.parametrize("name", ["localhost", "localhost:9000", "LOCALHOST:1", "localhost.", "palaver.localhost"])
def test_name_that_any_program_can_answer_to_is_public_only_on_a_proxys_word(name: str) -> None:
    with pytest.raises(ConfigurationError, match="another program"):
        Hosts("127.0.0.1", PORT, [name])
    assert Hosts("127.0.0.1", PORT, [name], behind_proxy=True).holds(name.lower())


def test_declared_name_is_held_with_any_port_unless_it_says_one() -> None:
    hosts = Hosts("127.0.0.1", PORT, ["Palaver.example", "other.example:8443"])

    assert hosts.holds("palaver.example")
    assert hosts.holds("palaver.example:443")
    assert hosts.holds("other.example:8443")
    assert not hosts.knows("other.example")
