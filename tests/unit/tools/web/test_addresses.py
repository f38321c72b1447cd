"""Which addresses are public: a long list of those that are not, however they are written."""

import asyncio
import socket
from ipaddress import ip_address

import pytest

from palaver.errors import Forbidden
from palaver.tools.web.addresses import Guard, is_public
from palaver.tools.web.visit import GuardedResolver

pytestmark = pytest.mark.anyio

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2001:4860:4860::8888"]
INSIDE = [
    *("127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::", "0.1.2.3"),
    *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fd00::1", "fc00::1"),
    *("169.254.0.1", "169.254.169.254", "fe80::1", "fe80::1%1", "fec0::1"),
    *("100.64.0.1", "100.100.100.200", "100.127.255.255"),
    *("224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1"),
    *("168.63.129.16", "192.0.0.192", "fd00:ec2::254"),
    *("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "198.18.0.1", "240.0.0.1", "255.255.255.255"),
    # an IPv4 address in IPv6 clothes: mapped, compatible, 6to4, Teredo, NAT64
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1"),
    *("2002:7f00:1::", "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:80ff:fffe"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_is_known(address: str) -> None:
    assert is_public(ip_address(address))
    Guard().check(address, address)


@pytest.mark.parametrize("address", INSIDE)
def test_address_of_the_inside_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(Forbidden):
        Guard().check(address, "host")
    place = (address.partition("%")[0], 80)
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(OSError, match="only public ones"):
        Guard().socket_for((family, socket.SOCK_STREAM, 0, "", place))


@pytest.mark.parametrize("text", ["", "localhost", "2130706433", "127.1", "0x7f.1", "017700000001"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(Forbidden):
        Guard().check(text, "host")


def test_switch_for_tests_opens_this_machine_and_nothing_else() -> None:
    guard = Guard(loopback=True)
    guard.check("127.0.0.1", "localhost")
    guard.check("::1", "localhost")
    for address in ("10.0.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "::ffff:10.0.0.1"):
        with pytest.raises(Forbidden):
            guard.check(address, "host")


@pytest.mark.parametrize("port", [22, 25, 6379, 8080, 8420, 0, None])
def test_odd_port_is_refused(port: int | None) -> None:
    with pytest.raises(Forbidden):
        Guard().check_port(port)


async def test_name_with_one_address_of_the_inside_is_refused_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    async def both(*_: object, **__: object) -> list[object]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 80)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", 80)),
        ]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both)
    with pytest.raises(Forbidden, match=r"both\.example leads to 10\.0\.0\.1"):
        await GuardedResolver(Guard()).resolve("both.example", 80)
