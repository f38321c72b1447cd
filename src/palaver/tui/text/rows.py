"""The words of the transcript's rows. The same as the page's (`web/src/text*.ts`); numbers, times and tools are in `words.py`."""

from palaver.schema.base import Strength
from palaver.schema.view import CompressionStage, ExchangeStatus, Stopped
from palaver.tui.text.words import Tool, count, join, join_names, number, tokens

# -- messages

YOU = "You"
EDITED = "edited"
STEERED = "steered the running turn"
SENDING = "Sending …"
WILL_SEND = "Will send when connected"
NOT_SENT = "Not sent"
IMAGE = "Attached image"
SYSTEM = "System"
SUMMARY = "Summary of earlier messages"
PLAN = "Plan"
TOLD = {
    "plan_approved": "Plan approved",
    "plan_revised": "Plan sent back with changes",
    "plan_rejected": "Plan rejected",
    "idle_prompt": "Idle prompt",
}
PROCESS_ENDED = "Process ended"
PROCESS_STOPPED = "Process stopped"
WITH_THE_SERVER = "ended with the server"
ATTEMPT = "Attempt cut off, made again"
CUT_BY_LIMIT = "Cut off: the answer reached the model's length limit."
REFUSED = "The model declined to go on."
CUT_HERE = "cut off here"
START = "Start of the conversation"
OLDER = "Older messages are above"
LOADING_OLDER = "Loading older messages …"
OLDER_FAILED = "Older messages could not be loaded. Press Home to try again."
OPENING = "Opening …"
FRESH = "What shall we work on?"
FRESH_MAKESHIFT = {
    "demo": "No model is set up here yet, so a demonstration answers.",
    "local": "A small model on this machine answers: fine for a first chat, not for real work.",
}
FRESH_TRY = "Say “edit a file”, “make a plan”, “run the tests” or “tell me a long story”."
FRESH_NOBODY = "No agent is ready. Run “palaver doctor” on the server: it says what is missing and how to get it."
FRESH_KEYS = "Ctrl+N chooses another agent, a folder or a mode."
NEW = "New since you left"
NOT_AT_HAND = "That message is not here any more."


def answers(agent: str) -> str:
    return f"{agent} answers."


def process_end(code: int | None) -> str:
    return "ended" if code is None else Tool.exit(code)


def new_below(n: int) -> str:
    return f"{number(n)} new" if n > 0 else "To the end"


def event(kind: str | None) -> str:
    return (kind or "note").replace("_", " ").capitalize()


def recalled(notes: int, conversations: int, files: int) -> str:
    said = (
        count(notes, "note") if notes else None,
        count(conversations, "conversation") if conversations else None,
        count(files, "file") if files else None,
    )
    return f"Recalled {join_names(*said)}"


def cited(n: int) -> str:
    return f"Cites {count(n, 'source')}"


def in_tokens(n: int) -> str:
    return f"{tokens(n)} tokens"


def took_over(to: str, before: str | None, reason: str) -> str:
    return join(f"{to} took over" if before is None else f"{to} took over from {before}", reason.rstrip(". \n"))


# -- thinking

THINKING = "Thinking"
THINKING_CUT = "Thinking, cut off"
THOUGHT = "Thought"
THOUGHT_IN_PRIVATE = "Thought in private"
THOUGHT_IN_PRIVATE_BODY = "The provider keeps this thinking to itself."


def thought_for(time: str) -> str:
    return f"Thought for {time}"


# -- tools

TRUNCATED = "⚠ Output truncated"
NO_OUTPUT = "No output."
NO_OUTPUT_YET = "No output yet."
WHOLE_OUTPUT = "W: Open the whole output"
ONLY_ENDS = "Only the beginning and the end are shown."
CHANGE_KINDS = {"created": "new", "modified": "", "deleted": "deleted", "renamed": "renamed"}


def more_lines(n: int) -> str:
    return f"… {count(n, 'more line')}"


def whole_text(held: str) -> str:
    """Begins with its key."""
    return f"W: Show the whole text ({held})"


def showing(shown: str, total: str) -> str:
    return f"Showing {shown} of {total}."


def took(time: str) -> str:
    return f"took {time}"


def changed_files(n: int) -> str:
    return f"Changed {count(n, 'file')}"


# -- structured answers

TASK = "Task summary"
REPORT = "Change report"


def more_files(n: int) -> str:
    return f"and {count(n, 'more file')}"


# -- the work of a turn


class Work:
    """The work of one turn in a line."""

    WORKING = "Working"
    WORKED = "Worked"
    PLANNED = "updated the plan"

    @staticmethod
    def read(n: int) -> str:
        return f"read {count(n, 'file')}"

    @staticmethod
    def edited(n: int) -> str:
        return f"edited {count(n, 'file')}"

    @staticmethod
    def ran(n: int) -> str:
        return f"ran {count(n, 'command')}"

    @staticmethod
    def searched(n: int) -> str:
        return "searched once" if n == 1 else f"searched {n} times"

    @staticmethod
    def listed(n: int) -> str:
        return f"listed {count(n, 'folder')}"

    @staticmethod
    def fetched(n: int) -> str:
        return f"fetched {count(n, 'page')}"

    @staticmethod
    def asked(n: int) -> str:
        return f"asked {count(n, 'question')}"

    @staticmethod
    def delegated(n: int) -> str:
        return f"delegated {count(n, 'task')}"

    @staticmethod
    def wrote(n: int) -> str:
        return f"wrote to {count(n, 'agent')}"

    @staticmethod
    def others(n: int) -> str:
        return f"used {count(n, 'other tool')}"

    @staticmethod
    def calls(n: int) -> str:
        return count(n, "tool call")

    @staticmethod
    def failed(n: int) -> str:
        return f"{n} failed"

    @staticmethod
    def denied(n: int) -> str:
        return f"{n} denied"

    @staticmethod
    def interrupted(n: int) -> str:
        return f"{n} interrupted"

    @staticmethod
    def open(n: int) -> str:
        return f"{n} under way"

    @staticmethod
    def waiting(n: int) -> str:
        return "1 waits for you" if n == 1 else f"{n} wait for you"


# -- how a turn ended

INTERRUPTED = "Interrupted"
STOPPED_ELSEWHERE = "from another client"
STOPPED: dict[Stopped, str] = {
    "user": "by you",
    "restart": "by a restart of the server",
    "shutdown": "by a shutdown of the server",
    "limit": "by a limit",
    "backend_exit": "because the agent's program ended",
    "storage": "because the server could not write to its disk",
    "deleted": "because the conversation was deleted",
    "parent": "because the turn that started it was stopped",
}
CONTINUE = "Ctrl+R continues"
CONTINUE_MESSAGE = "Continue."
TRY_AGAIN = "Ctrl+R tries again"


def interrupted(reason: str, when: str) -> str:
    return f"Interrupted {reason}, {when}"


ERROR_HEADINGS = {
    "not_installed": "The agent's program is not installed",
    "not_logged_in": "The agent is not signed in",
    "protocol_broken": "The agent spoke in a way Palaver does not understand",
    "timed_out": "The agent took too long",
    "exited": "The agent's program ended unexpectedly",
    "provider_refused": "The provider refused the request",
    "provider_unavailable": "The provider is not available",
    "stream_cut": "The answer broke off",
    "limit_reached": "A limit was reached",
    "storage_full": "The server's disk is full",
    "internal": "Something went wrong inside Palaver",
}
ERROR_OTHER = "The turn failed"
ERROR_ADVICE = {
    "not_installed": "Install it on the server; “palaver doctor” says how. Then try again.",
    "not_logged_in": "Sign in to it on the server; “palaver doctor” says how. Then try again.",
    "protocol_broken": "Its version may be too new or too old. “palaver doctor” shows what was found.",
    "timed_out": "Try again. If it happens often, ask for less at once.",
    "exited": "Try again. The details hold its last words.",
    "provider_refused": "Check the key and the account with the provider, or change the request.",
    "provider_unavailable": "Wait a moment, then try again.",
    "stream_cut": "What was received is kept. Try again.",
    "limit_reached": "Raise the limit in the settings, or start a smaller task.",
    "storage_full": "Make room on the server's disk. Nothing that was accepted is lost.",
    "internal": "Try again. The server's log holds the details.",
}
ERROR_OTHER_ADVICE = "Try again, or change the request."
DETAILS = "O shows the details"

# -- compression

STRENGTHS: dict[Strength, str] = {"absent": "", "low": "lightly", "medium": "medium", "high": "strongly"}
COMPRESSED_LEAD = "You still see every word. The model is shown this instead:"
STAGES: dict[CompressionStage, str] = {
    "deduplicate": "Files that were read again are shown once",
    "shorten": "Long tool results are cut to their beginning and end",
    "repair": "Broken tool calls are left out",
    "limit": "Old answers are shortened",
    "summarize": "Old messages are replaced by a summary",
}


def compressed(saved_percent: int, strength: Strength) -> str:
    how = f", {STRENGTHS[strength]}" if STRENGTHS[strength] else ""
    return f"The model sees a shorter version of what is above (\N{MINUS SIGN}{saved_percent} %{how})"


def from_to_tokens(before: int, after: int) -> str:
    return f"{tokens(before)} to {tokens(after)} tokens"


# -- other agents

SUBAGENTS = "Subagents"
SUBAGENT_STATES = {
    "starting": "starting",
    "running": "working",
    "waiting": "waits for you",
    "completed": "done",
    "failed": "failed",
    "cancelled": "stopped",
}
OPENS_CONVERSATION = "Enter opens its conversation"
EXCHANGE_STATES: dict[ExchangeStatus, str] = {
    "sent": "sent",
    "started": "waiting for its answer",
    "queued": "queued: it is busy",
    "timeout": "timed out: it goes on",
    "complete": "answered",
    "failed": "failed",
    "cancelled": "stopped",
}
AT_WORK_ON_IT = "at work on it"
EXCHANGE_NONE: dict[ExchangeStatus, str] = {
    "sent": "The answer is still to come.",
    "started": "The answer is still to come.",
    "queued": "The answer is still to come.",
    "timeout": "It did not answer in time. It goes on in its own conversation, where its answer will be.",
    "complete": "It answered without a word.",
    "failed": "",
    "cancelled": "It was stopped before it had answered.",
}
ANSWER_LATER = "The answer will come back by itself, further down."
MESSAGE = "Message"
ANSWER = "Answer"


ANSWER_OF_ANOTHER = "Answer of another agent"


def answer_of(agent: str) -> str:
    return f"Answer of {agent}"


# -- the header

NO_TITLE = "New conversation"


def as_of(seq: int) -> str:
    return f"as of event {number(seq)}"


def used_tokens(used: int) -> str:
    return f"{tokens(used)} tokens"


# -- the app itself

COPIED = "Copied."
TOO_MUCH_WAITS = "Too many messages wait to be sent. Wait until the connection is back."
SERVER_STAYED = "The server did not end in time and may still run; “palaver serve” says so when you start it again."
UNHEARD = "The server did not answer: what you wrote last was not sent or kept."
LEAVE_HEADING = "Leave Palaver?"
LEAVE_KEEP = "keep the server running"
LEAVE_STOP = "stop it"
LEAVE_STAY = "stay here"


def leave_body(at_work: int) -> str:
    lead = "The server was started for this terminal."
    if at_work:
        return f"{lead} {count(at_work, 'conversation')} at work would be interrupted when it stops."
    return f"{lead} Nothing is at work now."


def stumbled(kind: str) -> str:
    return f"Something went wrong here ({kind}). Nothing is lost: the conversation is on the server."
