"""How numbers and times are said, and the words that are needed everywhere: states, modes, tools, faces.

Those of the docks are in `docks.py`, of the transcript in `rows.py`, of the other screens in `screens.py`. The same
words as the page's (`web/src/text*.ts`) where both have them.

The voice: short, plain, says what happened and what to do. Sentences end with a period, labels do not.
"""

import math
import re
from datetime import datetime
from typing import Final

SECOND_MS: Final = 1000
MINUTE_MS: Final = 60 * SECOND_MS
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

NAME = "Palaver"


# -- numbers and times


def number(value: int) -> str:
    return f"{value:,}"


def count(value: int, one: str, many: str | None = None) -> str:
    """ "1 file", "3 files"."""
    return f"{number(value)} {one if value == 1 else many or f'{one}s'}"


def duration(ms: float) -> str:
    """ "0.4 s", "12 s", "3 min 05 s", "1 h 12 min"."""
    if ms < 0:
        return "0 s"
    if ms < 950:
        tenths = max(0.1, _round(ms / 100) / 10)
        return f"{tenths:g} s"
    seconds = _round(ms / SECOND_MS)
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min {seconds % 60:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def running_time(ms: float) -> str:
    """A time that is still running: whole seconds only, so that the line does not flicker."""
    return "0 s" if ms < SECOND_MS else duration(math.floor(ms / SECOND_MS) * SECOND_MS)


def size(value: int) -> str:
    if value < 1024:
        return f"{value} B"
    if value < 1024 * 1024:
        return f"{value / 1024:.{1 if value < 10 * 1024 else 0}f} KB"
    return f"{value / 1024 / 1024:.1f} MB"


def tokens(value: int) -> str:
    """ "830", "12.4k", "1.2M": tokens are never read to the last digit."""
    if value < 1000:
        return str(value)
    if value < 1_000_000:
        return f"{value / 1000:.{1 if value < 100_000 else 0}f}k"
    return f"{value / 1_000_000:.1f}M"


def money(usd: float) -> str:
    if usd == 0:
        return "$0"
    return "< $0.01" if usd < 0.01 else f"${usd:.2f}"


def percent(share: float) -> str:
    return f"{_round(share * 100)} %"


def in_typographic_quotes(message: str) -> str:
    """A sentence of the server, which quotes names as programmers do."""
    return re.sub(r"`([^`\n]+)`", "“\\1”", message)


def clock(ts_ms: int) -> str:
    return f"{_local(ts_ms):%H:%M}"


def start_of_day(ts_ms: int) -> int:
    midnight = _local(ts_ms).replace(hour=0, minute=0, second=0, microsecond=0)
    return int(midnight.timestamp() * SECOND_MS)


def day(ts_ms: int, now_ms: int) -> str:
    """ "Today", "Yesterday", "Tuesday", "4 November", "4 November 2025"."""
    days = _round((start_of_day(now_ms) - start_of_day(ts_ms)) / DAY_MS)
    if days <= 1:
        return "Yesterday" if days == 1 else "Today"
    then = _local(ts_ms)
    if days < 7:
        return f"{then:%A}"
    return f"{then:%-d %B}" if then.year == _local(now_ms).year else f"{then:%-d %B %Y}"


def ago(ts_ms: int, now_ms: int) -> str:
    """ "now", "4 min", "3 h", "Tue", "4 Nov": for a narrow column."""
    past = now_ms - ts_ms
    if past < MINUTE_MS:
        return "now"
    if past < HOUR_MS:
        return f"{past // MINUTE_MS} min"
    if start_of_day(now_ms) == start_of_day(ts_ms):
        return f"{past // HOUR_MS} h"
    then = _local(ts_ms)
    return f"{then:%a}" if past < 6 * DAY_MS else f"{then:%-d %b}"


def join(*words: str | None) -> str:
    return " · ".join(word for word in words if word)


def join_names(*words: str | None) -> str:
    """ "a", "a and b", "a, b and c"."""
    given = [word for word in words if word]
    return given[0] if len(given) == 1 else f"{', '.join(given[:-1])} and {given[-1]}" if given else ""


def _round(value: float) -> int:
    return math.floor(value + 0.5)


def _local(ts_ms: int) -> datetime:
    return datetime.fromtimestamp(ts_ms / SECOND_MS).astimezone()


# -- the conversation


class Status:
    WORDS: Final = {
        "idle": "Ready",
        "generating": "Working",
        "executing_tools": "Running tools",
        "paused": "Needs your approval",
        "waiting_ide": "Waiting for the editor",
        "waiting_user_input": "Waiting for you",
        "completed": "Task done",
        "error": "Failed",
    }


class Modes:
    NAMES: Final = {
        "ask": "Ask first",
        "plan": "Plan only",
        "accept_edits": "Accept edits",
        "auto": "Auto in sandbox",
        "full": "Full access",
    }
    HINTS: Final = {
        "ask": "Reads freely, asks before anything else",
        "plan": "Reads and plans, changes nothing",
        "accept_edits": "Edits files without asking",
        "auto": "Runs everything inside the sandbox",
        "full": "Runs everything, asks nothing",
    }
    BANNER: Final = {
        "plan": "Plan mode: the agent looks around and proposes a plan. It changes nothing until you approve it.",
        "auto": "Auto: commands and edits run without asking, inside the sandbox.",
        "full": "Full access: everything runs without asking, on the whole machine.",
    }


class Tool:
    VERBS: Final = {
        "read": ("Read", "Reading", "Read"),
        "list": ("List", "Listing", "Listed"),
        "glob": ("Look for", "Looking for", "Looked for"),
        "grep": ("Search", "Searching", "Searched"),
        "edit": ("Edit", "Editing", "Edited"),
        "write": ("Write", "Writing", "Wrote"),
        "patch": ("Patch", "Patching", "Patched"),
        "shell": ("Run", "Running", "Ran"),
        "fetch": ("Fetch", "Fetching", "Fetched"),
        "search": ("Search the web for", "Searching the web for", "Searched the web for"),
        "plan": ("Plan", "Planning", "Planned"),
        "ask": ("Ask", "Asking", "Asked"),
        "task": ("Delegate to", "Delegating to", "Delegated to"),
        "message": ("Write to", "Writing to", "Wrote to"),
        "yield": ("Yield the turn", "Yielding the turn", "Yielded the turn"),
        "finish": ("Finish the task", "Finishing the task", "Finished the task"),
        "other": ("Use", "Using", "Used"),
    }
    """Before anything ran, while it runs, when it is over."""
    PREPARING = "preparing"
    CALLED = "about to start"
    WAITING = "waits for you"
    FAILED = "failed"
    DENIED = "denied"
    UNANSWERED = "not answered"
    INTERRUPTED = "⚠ Interrupted"
    EXPLORED = "Explored"
    EXPLORING = "Exploring"
    NOTHING = "nothing found"
    UNKNOWN = "Tool"

    @staticmethod
    def exit(code: int) -> str:
        """Below zero it is the signal that ended the program."""
        return f"killed by signal {-code}" if code < 0 else f"exit {code}"

    @staticmethod
    def lines(n: int) -> str:
        return count(n, "line")

    @staticmethod
    def matches(n: int) -> str:
        return count(n, "match", "matches")

    @staticmethod
    def files(n: int) -> str:
        return count(n, "file")

    @staticmethod
    def searches(n: int) -> str:
        return count(n, "search", "searches")

    @staticmethod
    def listings(n: int) -> str:
        return count(n, "listing")

    @staticmethod
    def failures(n: int) -> str:
        return f"{number(n)} failed"

    @staticmethod
    def placed(place: str) -> str:
        return f"in {place}"

    @staticmethod
    def stat(added: int, removed: int) -> str:
        """ "+12 -4"; nothing where there is nothing."""
        return " ".join([f"+{number(added)}"] * (added > 0) + [f"\N{MINUS SIGN}{number(removed)}"] * (removed > 0))


FACES: Final = {
    "cli": "the command line",
    "tui": "a terminal",
    "mcp": "an MCP client",
    "inbox": "an MCP client",
    "bus": "the bus",
    "socket": "a socket client",
    "stream": "a stream client",
    "chats": "an editor",
    "acp": "an editor",
}


def via(face: str) -> str:
    return f"via {face}"
