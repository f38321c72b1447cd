"""The filter of the socket guard, run as the kernel would: which calls go on, which are refused, which are decided."""

import struct
from typing import Literal

import pytest

from palaver.tools.shell import socket_guard as guard

Verdict = Literal["goes on", "refused", "missing", "decided"]
VERDICTS: dict[int, Verdict] = {
    guard.ALLOW: "goes on",
    guard.REFUSE | 13: "refused",
    guard.REFUSE | 38: "missing",
    guard.DECIDE: "decided",
}
UNIX, INET, NETLINK = 1, 2, 16
STREAM, DATAGRAM, RAW, PACKETS = 1, 2, 3, 5
CLOSE_ON_EXEC, WITHOUT_WAITING = 0o2000000, 0o4000
MACHINES = list(guard.MACHINES)


def verdict(program: bytes, architecture: int, call: int, *arguments: int) -> Verdict:
    """What a filter says to a call."""
    told = struct.pack("=IIQ6Q", call, architecture, 0, *arguments, *[0] * (6 - len(arguments)))
    instructions = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    for _ in range(len(instructions)):
        code, yes, no, operand = instructions[at]
        at += 1
        if code == guard.LOAD:
            (value,) = struct.unpack_from("=I", told, operand)
        elif code == guard.AND:
            value &= operand
        elif code == guard.EQUAL:
            at += yes if value == operand else no
        elif code == guard.AT_LEAST:
            at += yes if value >= operand else no
        else:
            assert code == guard.RETURN
            return VERDICTS[operand]
    raise AssertionError("a filter that decides nothing")


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("flags", [0, CLOSE_ON_EXEC, CLOSE_ON_EXEC | WITHOUT_WAITING])
@pytest.mark.parametrize("upper", [0, 1 << 32])
def test_sockets_are_made_by_kind(machine: str, flags: int, upper: int) -> None:
    own, (socket, _, socketpair, _), _, _ = guard.MACHINES[machine]
    supervised, closed = (guard.assemble(machine, decided) for decided in (True, False))
    expected: dict[tuple[int, int, int], tuple[Verdict, Verdict]] = {
        (socket, UNIX, STREAM): ("goes on", "refused"),
        (socket, UNIX, PACKETS): ("goes on", "refused"),
        (socket, UNIX, DATAGRAM): ("refused", "refused"),
        (socket, UNIX, RAW): ("refused", "refused"),
        (socket, INET, STREAM): ("goes on", "goes on"),
        (socket, INET, DATAGRAM): ("goes on", "goes on"),
        (socket, NETLINK, RAW): ("goes on", "goes on"),
        (socketpair, UNIX, STREAM): ("goes on", "goes on"),
        (socketpair, UNIX, PACKETS): ("goes on", "goes on"),
        (socketpair, UNIX, DATAGRAM): ("refused", "refused"),
        (socketpair, UNIX, RAW): ("refused", "refused"),
    }
    for (call, family, kind), answers in expected.items():
        # The kernel looks at the lower half of an argument that is an int.
        arguments = (family | upper, kind | flags | upper)
        assert (verdict(supervised, own, call, *arguments), verdict(closed, own, call, *arguments)) == answers


@pytest.mark.parametrize("machine", MACHINES)
def test_connections_are_decided_and_other_calls_go_on(machine: str) -> None:
    own, (_, connect, _, _), _, _ = guard.MACHINES[machine]
    supervised, closed = (guard.assemble(machine, decided) for decided in (True, False))
    assert verdict(supervised, own, connect, 3, 1 << 40, 16) == "decided"
    assert verdict(closed, own, connect, 3, 1 << 40, 16) == "goes on"
    for call in (0, 1, 5, 100, 400, 439):
        assert verdict(supervised, own, call) == verdict(closed, own, call) == "goes on"


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("decided", [True, False])
def test_no_other_numbers_lead_around_it(machine: str, decided: bool) -> None:
    own, calls, foreign, foreign_calls = guard.MACHINES[machine]
    program = guard.assemble(machine, decided)
    assert verdict(program, own, guard.IO_URING_SETUP) == "missing"
    for call in (*calls, 0, 425):
        assert verdict(program, own, guard.X32 | call, UNIX, STREAM) == "missing"
        assert verdict(program, own, 0xFFFFFFFF, UNIX, STREAM) == "missing"
        assert verdict(program, 0xDEADBEEF, call, UNIX, STREAM) == "missing"
    if foreign:
        for call in (*foreign_calls, guard.IO_URING_SETUP):
            for family in (UNIX, INET):
                assert verdict(program, foreign, call, family, STREAM) == "refused"
        assert verdict(program, foreign, 4) == "goes on", "32-bit programs run otherwise"


@pytest.mark.parametrize(
    ("path", "may"),
    [
        ("/p/socket", True),
        ("/p/within/socket", True),
        ("/p", True),
        ("/project/socket", False),
        ("/", False),
        ("/p/keys/agent", False),
        ("/p/keysmith", True),
        ("/hidden/own/socket", True),
        ("/hidden/other/socket", False),
        ("/p/socket (deleted)", True),
    ],
)
def test_sockets_are_reached_in_writable_folders_but_for_what_is_hidden_there(path: str, may: bool) -> None:
    one = guard.Guard(-1, ["/p", "/hidden/own"], ["/p/keys", "/hidden"])
    assert one._may_reach(path) == may
