"""Standard streams that obey no escape sequence but our own colours."""

import io

import pytest

from palaver.cli.support.terminal import Guarded


def written(text: str) -> str:
    raw = io.StringIO()
    assert Guarded(raw).write(text) == len(text)
    return raw.getvalue()


@pytest.mark.parametrize(
    "text", ["plain\n\ttext", "\x1b[1mbold\x1b[0m", "\x1b[1;33mhit\x1b[0m", "\x1b[m", "\x1b[38;5;120mx"]
)
def test_text_and_colours_pass(text: str) -> None:
    assert written(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[8mhidden", "␛[8mhidden"),
        ("\x1b[1;8mhidden", "␛[1;8mhidden"),
        ("\x1b[30;40mblack", "␛[30;40mblack"),
        ("\x1b[2J\x1b[H", "␛[2J␛[H"),
        ("\x1b]52;c;ZXZpbA==\x07", "␛]52;c;ZXZpbA==␇"),
        ("safe\rrm", "safe␍rm"),
        ("a\x9b2Jb\x7f", "a⟨009B⟩2Jb⟨007F⟩"),
        ("\u202egnp.exe", "⟨202E⟩gnp.exe"),
    ],
)
def test_everything_else_is_shown(text: str, shown: str) -> None:
    assert written(text) == shown
