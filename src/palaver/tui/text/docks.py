"""What stands in the docks: requests and how they ended, plans, the queue, the composer, the activity, the connection.

Words of `words.py`'s voice, the same as the page's where both have them; `screens.py` has those of the screens.
"""

import re
from typing import Final

from palaver.tui.text.words import count, number, tokens


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
    NOT_YOURS = "Somebody who may decide must answer this: you are signed in with fewer rights."
    UNREAD = "Read to the end before you answer:"
    NOT_SHOWN = "It is not on the screen yet. Press again."
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
    def unread(n: int) -> str:
        return f"{Approval.UNREAD} {count(n, 'more row')}. F6, then PgDn or End." if n else Approval.NOT_SHOWN

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
    SIGNS: Final = {"pending": "○", "in_progress": "◐", "done": "●", "skipped": "⊘", "stopped": "◇"}
    STOPPED = "stopped"
    STOPPED_HERE = "stopped here"

    @staticmethod
    def progress(done: int, of: int, skipped: int) -> str:
        return f"{done} of {of} done" + (f", {skipped} skipped" if skipped else "")


class Queue:
    NEXT_UP = "next"
    STEERS = "steers the running turn"
    HELD = "held back"
    LET_GO = "let it go"
    LET_ALL_GO = "let all go"
    PAUSED = "Paused: you stopped the agent."
    PAUSED_ELSEWHERE = "Paused: the agent was stopped from another client."
    HELD_ALL = "Held back until you let them go."
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
    def images(n: int) -> str:
        return count(n, "image")

    @staticmethod
    def paused_by(name: str) -> str:
        return f"Paused: {name} stopped the agent."

    @staticmethod
    def answer_of(agent: str) -> str:
        return f"Answer of {agent}"

    @staticmethod
    def message_of(agent: str) -> str:
        return f"Message of {agent}"


class Processes:
    RUNNING = "running"
    STOPPING = "stopping …"
    STOP = "stop it"


class Trust:
    OFF = "Settings of this folder are off"
    REVIEW = "/trust to review"
    REVIEW_KEY = "review"


class Regions:
    BLOCK = "block"
    OPEN = "open or close"
    ENTER = "open"
    WHOLE = "all of it"
    COPY = "copy"
    EDIT = "edit"
    CHOOSE = "choose"


def more(n: int) -> str:
    """Of a list that is cut."""
    return f"and {number(n)} more"


class Composer:
    PLACEHOLDER = "Message"
    PLACEHOLDER_BUSY = "Add to the queue"
    PLACEHOLDER_FRESH = "Describe the task"
    SEND = "send"
    QUEUE = "queue"
    STEER = "steer now"
    STOP = "stop"
    HOLD = "stop and hold"
    NEWLINE = "new line"
    COMMANDS = "commands"
    WRITE = "write"
    KEYS = "all keys"
    OFFLINE = "Not connected. Your message is kept and sent when the connection is back."
    PAST = "You look at an earlier moment. Esc brings you back to now."
    READ_ONLY = "You may read here. To write, start with a token that may send."
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
    COMPACTING = "Shortening the history for the model"
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
