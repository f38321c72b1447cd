"""Every word of the conversation screen and its docks, and how numbers and times are said; those of the other screens are in
`words_screens`. The same words as the page's (`web/src/text.ts`, `text.later.ts`) where both have them.

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
        tenths = max(0.1, _rounded(ms / 100) / 10)
        return f"{tenths:g} s"
    seconds = _rounded(ms / SECOND_MS)
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min {seconds % 60:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


def elapsed(ms: float) -> str:
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
    return f"{_rounded(share * 100)} %"


def said(message: str) -> str:
    """A sentence of the server, which quotes names as programmers do."""
    return re.sub(r"`([^`\n]+)`", "“\\1”", message)


def clock(ts_ms: int) -> str:
    return f"{_local(ts_ms):%H:%M}"


def exact_time(ts_ms: int) -> str:
    return f"{_local(ts_ms):%A, %-d %B %Y, %H:%M:%S}"


def start_of_day(ts_ms: int) -> int:
    midnight = _local(ts_ms).replace(hour=0, minute=0, second=0, microsecond=0)
    return int(midnight.timestamp() * SECOND_MS)


def day(ts_ms: int, now_ms: int) -> str:
    """ "Today", "Yesterday", "Tuesday", "4 November", "4 November 2025"."""
    days = _rounded((start_of_day(now_ms) - start_of_day(ts_ms)) / DAY_MS)
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


def listed(*words: str | None) -> str:
    """ "a", "a and b", "a, b and c"."""
    given = [word for word in words if word]
    return given[0] if len(given) == 1 else f"{', '.join(given[:-1])} and {given[-1]}" if given else ""


def _rounded(value: float) -> int:
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
    INTERRUPTED = "interrupted"
    EXPLORED = "Explored"
    EXPLORING = "Exploring"
    NOTHING = "nothing found"
    UNKNOWN = "Tool"

    @staticmethod
    def exit(code: int) -> str:
        return f"exit {code}"

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


# -- the docks


class Answered:
    ALLOWED: Final = {
        "once": "Allowed once",
        "conversation": "Allowed in this conversation",
        "agent": "Always allowed for this agent",
        "project": "Always allowed in this project",
    }
    DENIED = "Denied"
    DENIED_STOP = "Denied and stopped"
    EXPIRED = "Expired without an answer"
    CANCELLED = "Withdrawn"
    SUPERSEDED = "Given up for a newer message"
    PLAN_APPROVED = "Plan approved"
    PLAN_REJECTED = "Plan rejected"
    PLAN_REVISED = "Changes asked for"
    QUESTION = "Answered"
    SKIPPED = "Skipped"
    BY_YOU = "by you"
    ELSEWHERE = "answered elsewhere"

    @staticmethod
    def by(name: str) -> str:
        return f"by {name}"


class Approval:
    LABEL = "Approval needed"
    KINDS: Final = {
        "shell": "run a command",
        "edit": "change a file",
        "write": "write a file",
        "patch": "change files",
        "fetch": "fetch a web page",
    }
    ONCE = "Allow once"
    ALWAYS = "Always …"
    ALWAYS_YES = "Always allow"
    ALWAYS_WHAT = "Always allow"
    ALWAYS_WHERE = "Where"
    WHERE: Final = {
        "once": "this once",
        "conversation": "in this conversation",
        "agent": "for this agent, everywhere",
        "project": "in this project",
    }
    SCOPE: Final = {
        "once": "Allow once",
        "conversation": "Allow in this conversation",
        "agent": "Always allow for this agent",
        "project": "Always allow in this project",
    }
    DENY = "Deny"
    DENY_NOTE = "Deny with a note …"
    DENY_STOP = "Deny and stop"
    EDIT = "Edit what runs …"
    EDIT_LABEL = "Change what runs"
    EDIT_SEND = "Run this"
    EDIT_BROKEN = "This is not valid JSON:"
    EDIT_KIND = "Give an object: { … }."
    NOTE_LABEL = "What should it do instead?"
    NOTE_SEND = "Deny and tell"
    BACK = "Back"
    MORE = "more"
    RESOLVING = "Sending your answer …"
    FAILED = "Your answer did not arrive. Try again."
    SPEND_LABEL = "Spending limit reached"
    SPEND_YES = "Go on"
    SPEND_NO = "Stop here"
    ALL_YES = "Allow all"
    ALL_NO = "Deny all"
    NEXT = "next request"

    @staticmethod
    def asks(agent: str, what: str) -> str:
        return f"{agent} wants to {what}"

    @staticmethod
    def cut(n: int) -> str:
        return f"… {count(n, 'more line')}. Look at the change in the page before you allow it."

    @staticmethod
    def use(tool: str) -> str:
        return f"use {tool}"

    @staticmethod
    def place(at: int, of: int) -> str:
        return f"{at} of {of}"

    @staticmethod
    def sandbox(words: str) -> str:
        return f"Sandbox: {words.replace(': ', ', ', 1)}"

    @staticmethod
    def expires(time: str) -> str:
        return f"expires in {time}"

    @staticmethod
    def for_this(agent: str) -> str:
        return f"{agent}, working for this conversation,"


class Question:
    LABEL = "A question for you"
    OTHER = "Something else"
    OTHER_LABEL = "Your own answer"
    SEND = "Answer"
    MANY = "Choose any"
    MISSING = "Choose an answer or write your own."
    SKIP = "Skip"

    @staticmethod
    def asks(agent: str) -> str:
        return f"{agent} asks"


class PlanRequest:
    LABEL = "The agent proposes a plan"
    APPROVE = "Approve"
    REVISE = "Revise …"
    REJECT = "Reject"
    MODE = "Carry it out in mode"
    REVISE_LABEL = "What should change?"
    REVISE_SEND = "Ask for changes"

    @staticmethod
    def asks(agent: str) -> str:
        return f"{agent} proposes a plan"


class Plan:
    HEADING = "Plan"
    SIGNS: Final = {"pending": "○", "in_progress": "◐", "done": "●", "skipped": "⊘"}
    OPEN = "steps"

    @staticmethod
    def progress(done: int, of: int, skipped: int) -> str:
        return f"{done} of {of} done" + (f", {skipped} skipped" if skipped else "")


class Queue:
    LABEL = "Queued messages"
    NEXT_UP = "next"
    STEERS = "steers the running turn"
    HELD = "held"
    EDIT = "edit"
    REMOVE = "remove"
    STEER = "steer now"
    MOVE = "move"
    PUT_BACK = "put back what was removed"
    EDITING = "Editing a queued message; it waits for you"
    SAVE = "save"
    CANCEL = "cancel"
    GONE = "It left the queue before your change arrived. Your words are kept here."
    IDLE = "Idle prompt"
    THEN = "Then"

    @staticmethod
    def label(n: int) -> str:
        return f"{count(n, 'message')} queued"

    @staticmethod
    def images(n: int) -> str:
        return count(n, "image")

    @staticmethod
    def answer_of(agent: str) -> str:
        return f"Answer of {agent}"

    @staticmethod
    def message_of(agent: str) -> str:
        return f"Message of {agent}"

    @staticmethod
    def more(n: int) -> str:
        return f"and {number(n)} more"


class Composer:
    PLACEHOLDER = "Message"
    PLACEHOLDER_BUSY = "Add to the queue"
    PLACEHOLDER_FRESH = "Describe the task"
    SEND = "send"
    QUEUE = "queue"
    STEER = "steer now"
    STOP = "stop"
    NEWLINE = "new line"
    COMMANDS = "commands"
    OFFLINE = "Not connected. Your message is kept and sent when the connection is back."
    PAST = "You look at an earlier moment. Esc brings you back to now."
    EDIT = "Edit and resend"
    EDIT_HINT = "What follows this message is dropped, and the agent answers again."
    EDIT_SEND = "resend"
    EDIT_GONE = "The message is not in the conversation any more. Your words are kept here."
    EDIT_BUSY = "The agent is at work. Stop it first, or wait for its answer."
    EDIT_NONE = "There is no message of yours to edit here."
    REMOVE_IMAGE = "remove image"
    IMAGE = "Attached image"
    IMAGE_TOO_LARGE = "An image may hold 10 MB."
    TOO_MANY_IMAGES = "A message may hold 10 images."

    @staticmethod
    def image_gone(label: str) -> str:
        return f"{label} cannot be read any more. Attach it again, or send the message without it."

    @staticmethod
    def too_long(held: str) -> str:
        return (
            f"A message may hold 1 MB; this one holds {held}. Put it into a file and name the file, or make it shorter."
        )

    @staticmethod
    def pasted(lines: int, held: str) -> str:
        return f"Pasted {count(lines, 'line')} ({held})"


class Activity:
    THINKING = "Thinking"
    WORKING = "Working"
    WRITING = "Writing"
    LOADING = "Loading the model"
    CALLING = "Calling a tool"
    WAITING = "Waiting for you"
    WAITING_EDITOR = "Waiting for the editor"
    STOPPING = "Stopping …"

    @staticmethod
    def retrying(seconds: int, attempt: int, of: int) -> str:
        return f"Retrying in {seconds} s ({attempt} of {of})" if seconds > 0 else f"Retrying now ({attempt} of {of})"

    @staticmethod
    def stalled(time: str) -> str:
        return f"No sign from the agent for {time}"

    @staticmethod
    def spent(input_tokens: int, output_tokens: int) -> str:
        return f"Tokens: {tokens(input_tokens)} in, {tokens(output_tokens)} out"

    @staticmethod
    def because(reason: str) -> str:
        return re.sub(r"[.\s]+$", "", reason)


class Connection:
    CONNECTING = "Connecting …"
    VERSION = "The server was updated. Start the terminal again to use the new version."
    SIGNED_OUT = "The token is not accepted any more. Start again with the one in the server's data folder."
    GONE = "This conversation was deleted. Ctrl+L shows the others."
    CATCHING_UP = "Catching up …"
    AGAIN = "Connected again"

    @staticmethod
    def reconnecting(seconds: int) -> str:
        return f"No connection. Trying again in {seconds} s" if seconds > 0 else "No connection. Trying again …"

    @staticmethod
    def last_heard(when: str, seq: int) -> str:
        return f"last heard from at {when}, event {number(seq)}"

    @staticmethod
    def catching_up(n: int) -> str:
        return f"Catching up, {count(n, 'event')} …"

    @staticmethod
    def caught_up(n: int) -> str:
        return f"Caught up, {count(n, 'event')}"
