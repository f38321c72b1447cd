"""What an MCP server writes to stderr: bounded, redacted, and never more than its share of the log."""

import json

import pytest

from palaver.tools.mcp import error_output
from palaver.tools.mcp.error_output import LINES_A_MINUTE, LOGGED_CHARS, WINDOW_S, ErrorOutput
from palaver.tools.redact import Redactor


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []

    class Lines:
        def info(self, message: str, **more: object) -> None:
            lines.append({"message": message, **more})

        warning = info

    monkeypatch.setattr(error_output, "logger", Lines())
    return lines


def test_flood_takes_its_share_and_the_rest_is_counted(logged: list[dict[str, object]]) -> None:
    output = ErrorOutput("sea", Redactor({}), lambda: 0.0)
    for number in range(100_000):
        output.take(b"line %d\n" % number)
    output.close()
    assert len(logged) == LINES_A_MINUTE + 1
    assert logged[-1]["lines"] == 100_000 - LINES_A_MINUTE


def test_next_minute_has_room_again(logged: list[dict[str, object]]) -> None:
    now = [0.0]
    output = ErrorOutput("sea", Redactor({}), lambda: now[0])
    output.take(b"x\n" * (LINES_A_MINUTE + 5))
    now[0] = WINDOW_S
    output.take(b"later\n")
    assert [line.get("lines", line.get("text")) for line in logged[-2:]] == [5, "later"]


def test_line_without_an_end_is_cut_and_costs_no_memory(logged: list[dict[str, object]]) -> None:
    output = ErrorOutput("sea", Redactor({}), lambda: 0.0)
    for _ in range(1_000):
        output.take(b"x" * 65_536)
    assert len(output._line) <= error_output.LINE_BYTES
    output.close()
    (line,) = logged
    assert len(str(line["text"])) <= LOGGED_CHARS + 2


@pytest.mark.parametrize("before", [0, 10, LOGGED_CHARS - 5, LOGGED_CHARS])
@pytest.mark.parametrize("step", [1, 7, 65_536])
def test_secret_is_redacted_wherever_it_stands_and_however_it_arrives(
    logged: list[dict[str, object]], before: int, step: int
) -> None:
    secret = "sea-secret-0123456789abcdef"
    output = ErrorOutput("sea", Redactor({"SEA_API_KEY": secret}), lambda: 0.0)
    said = b" " + b"y" * before + b" " + secret.encode() + b" end\n"
    for start in range(0, len(said), step):
        output.take(said[start : start + step])
    output.close()
    assert secret[:8] not in json.dumps(logged)
