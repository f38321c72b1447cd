"""The files that trusting a folder would switch on, as lines to be shown: all of their text, hidden characters as signs. Pure.

Called by the command line and the terminal UI; the page's `web/src/model/settingsreview.ts` shows the same. No file is left
out; one that is no text is named with its size and its hash.
"""

from collections.abc import Sequence

from palaver.client.projects import ReviewFile
from palaver.core.text.approval_text import Shown, approval_lines


def review_lines(files: Sequence[ReviewFile]) -> list[Shown]:
    """Every file beneath its name, whatever it holds."""
    return [line for file in files for line in approval_lines("", {_name_of(file): _text_of(file)})]


def _name_of(file: ReviewFile) -> str:
    return file.path if file.link is None else f"{file.path} → {file.link}"


def _text_of(file: ReviewFile) -> str:
    """Text ends with a line's end, so that it stands beneath the name of its file."""
    if file.text is None:
        told = f"no text, or too long to show ({file.size_bytes:,} bytes, SHA-256 {file.sha256})"
        return told if file.sha256 else "cannot be read"
    if not file.text.strip():
        return f"nothing but blanks ({file.size_bytes:,} bytes)"
    return file.text if file.text.endswith("\n") else f"{file.text}\n"
