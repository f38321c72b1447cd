"""What `palaver serve` says of where it can be found."""

from pathlib import Path
from typing import Any

import pytest

from palaver.cli.serve import page_address_of
from palaver.config import Config

HERE = Path("/nowhere")
TLS = {"tls_certificate": HERE / "c", "tls_key": HERE / "k"}
REMOTE = "192.0.2.1"


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        ({}, "http://127.0.0.1:8420"),
        ({"behind_proxy": True}, "http://127.0.0.1:8420"),
        ({"behind_proxy": True, "public_hosts": ("a.example", "b.example")}, "https://a.example"),
        ({"behind_proxy": True, "public_hosts": ("a.example:8443",)}, "https://a.example:8443"),
        ({"public_hosts": ("a.example",)}, "http://127.0.0.1:8420"),
        ({"host": REMOTE, "public_hosts": ("a.example",), **TLS}, "https://a.example:8420"),
        ({"host": REMOTE, "public_hosts": ("a.example:443",), **TLS}, "https://a.example:443"),
        ({"host": REMOTE, "public_hosts": ("[2001:db8::1]",), **TLS}, "https://[2001:db8::1]:8420"),
        ({"host": REMOTE, **TLS}, f"https://{REMOTE}:8420"),
    ],
)
def test_link_is_where_a_browser_finds_the_page(settings: dict[str, Any], address: str) -> None:
    assert page_address_of(Config(data=HERE, home=HERE, port=8420, **settings)) == address


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.2", "127.0.0.2"),
        ("localhost", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("::1", "[::1]"),
        ("2001:db8::1", "[2001:db8::1]"),
    ],
)
def test_link_names_an_address_that_nobody_else_can_listen_on(host: str, address: str) -> None:
    assert page_address_of(Config(data=HERE, home=HERE, port=8420, host=host)) == f"http://{address}:8420"
