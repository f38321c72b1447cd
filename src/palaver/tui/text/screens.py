"""The words of what opens over a conversation: lists, search, inspector, diffs, inbox, palette, key help, agents, backends.

The rest is in `words`; the same words as the page's (`web/src/text*.ts`) where both have them.
"""

from typing import Final

from palaver.tui.text.words import count, number, size

CLOSE = "close"
AGAIN = "try again"
LOADING = "Looking …"
OPEN = "open"
COPY = "copy"
COPIED = "Copied"


class Listed:
    LABEL = "Conversations"
    GROUPS: Final = {
        "waiting": "Waiting for you",
        "active": "Active",
        "today": "Today",
        "older": "Older",
        "archived": "Archived",
    }
    UNTITLED = "New conversation"
    LOADING = "Loading conversations …"
    EMPTY = (
        "Nothing here yet. Press N and write a message to begin. Every conversation stays here, on every device, "
        "whatever happens to this window."
    )
    FILTER = "Filter by title or words"
    NEW = "new"
    RENAME = "rename"
    RENAME_LABEL = "New title"
    ARCHIVE = "archive"
    UNARCHIVE = "bring back"
    DELETE = "delete"
    DELETE_HEADING = "Delete this conversation?"
    DELETE_YES = "delete it"
    CANCEL = "cancel"
    BRANCH = "branch"
    SHOW_ARCHIVED = "archived too"
    HIDE_ARCHIVED = "hide archived"
    FIND = "filter"
    RUNNING = "working"
    FAILED_TURN = "failed"
    BRANCHED = "⑂"

    @staticmethod
    def none(query: str) -> str:
        return f"Nothing matches “{query}”. Esc clears the filter; Ctrl+F searches every message."

    @staticmethod
    def waits(n: int) -> str:
        return f"{n} requests wait for you" if n > 1 else "waits for you"

    @staticmethod
    def queued(n: int) -> str:
        return f"{n} queued"

    @staticmethod
    def delete_asked(title: str) -> str:
        return f"Delete “{title}”? It disappears from every device. What runs in it is stopped."


class Fresh:
    LABEL = "New conversation"
    AGENT = "Agent"
    FOLDER = "Folder"
    FOLDER_HINT = "The folder the agent works in; empty: the server's own"
    MODE = "Mode"
    MESSAGE = "Describe the task"
    BEGIN = "begin"
    NEXT = "next field"
    CREATING = "Starting …"
    NO_AGENT = "No agent is ready. Run “palaver doctor” on the server: it says what is missing and how to get it."
    FAILED = "The agents could not be loaded. The default one is used."
    NOT_READY = "not ready"


class Search:
    LABEL = "Search"
    HERE = "in this conversation"
    EVERYWHERE = "in all conversations"
    PLACEHOLDER = "Words to look for"
    SWITCH = "here or everywhere"
    TYPE = "Type words to look for. They are looked for in every message, also in those not loaded yet."
    SEARCHING = "Searching …"
    YOU = "You"
    AGENT = "Agent"
    OTHER = "Event"

    @staticmethod
    def hits(n: int, more: bool) -> str:
        return f"{'At least ' if more else ''}{count(n, 'match', 'matches')}"

    @staticmethod
    def none(query: str) -> str:
        return f"Nothing matches “{query}”. Try fewer words, or Tab to look elsewhere."


class Inspector:
    LABEL = "Events"
    LEAD = "The log as it is: every event by its number."
    FILTER = "Filter by type: text, tool., request …"
    VIEW = "view at this event"
    NOW = "view as it is now"
    FILTERED = "filter"
    LIVE = "live"
    EMPTY = "No events yet."
    GAP = "Earlier fragments were dropped once their text was whole. What follows is complete."

    @staticmethod
    def shown(n: int, of: int) -> str:
        return f"{number(n)} of {count(of, 'event')}"

    @staticmethod
    def paused(seq: int) -> str:
        return f"paused at event {number(seq)}"

    @staticmethod
    def none(query: str) -> str:
        return f"No event's type holds “{query}”. Esc clears the filter."

    @staticmethod
    def view(status: str, messages: int, queue: int, requests: int) -> str:
        return (
            f"Then: {status}, {count(messages, 'message')}, {number(queue)} queued, {count(requests, 'open request')}"
        )


class Files:
    LABEL = "Changed files"
    EMPTY = "No files were changed in this conversation. When an agent edits one, it is listed here with its changes."
    NONE = "The lines of this change are not at hand. Scroll up to the call that made it, then come back."
    TOO_LARGE = "This change is too large to be shown here. The page of the server shows it."
    COPY = "copy as patch"
    DIFF = "show its changes"
    NEXT = "next change"

    @staticmethod
    def cut(n: int) -> str:
        return f"… {count(n, 'more line')}; copy the patch to see all"


class Waiting:
    LABEL = "Waiting for you"
    LEAD = "Everything that agents ask for, in all conversations, the oldest first."
    LOADING = "Looking …"
    FAILED = "What waits could not be loaded. Trying again …"
    EMPTY = (
        "Nothing waits for you. When an agent needs an approval or an answer, it is listed here, whichever conversation or "
        "subagent it comes from."
    )
    RECENT = "Recent"
    MISSED = "Missed"
    OPEN = "open its conversation"
    SINCE_NOW = "asked just now"
    CHOOSE = "choose"

    @staticmethod
    def since(time: str) -> str:
        return f"asked {time} ago"


class Palette:
    LABEL = "Commands"
    PLACEHOLDER = "Type a command or a conversation"
    NONE = "Nothing matches."
    COMMANDS = "Commands"
    CONVERSATIONS = "Conversations"


class Actions:
    LABELS: Final = {
        "new": "New conversation",
        "list": "Show or hide the list",
        "stop": "Stop the agent",
        "hold": "Stop and hold the queue",
        "release": "Let all held messages go",
        "continue": "Continue",
        "regenerate": "Answer again",
        "edit": "Edit and resend",
        "find": "Find in conversation",
        "search": "Search all conversations",
        "end": "Go to the end",
        "start": "Go to the start",
        "plan": "Open or close the plan",
        "processes": "Go to what runs in the background",
        "trust": "Review the settings of this folder",
        "queue": "Go to the queued messages",
        "files": "Changed files",
        "inspector": "Events of this conversation",
        "export": "Export …",
        "rename": "Rename conversation",
        "branch": "Branch this conversation",
        "archive": "Archive conversation",
        "unarchive": "Bring conversation back",
        "delete": "Delete conversation",
        "mode": "Choose the mode",
        "agent": "Choose the agent",
        "waiting": "Waiting for you",
        "agents": "Agents",
        "backends": "Backends",
        "palette": "All commands",
        "keys": "Show keys",
        "theme": "Theme: light or dark",
        "copy_id": "Copy conversation id",
        "copy_answer": "Copy the last answer",
        "next_region": "Next region",
        "previous_region": "Previous region",
        "quit": "Quit",
    }


class Keys:
    LABEL = "Keyboard"
    WRITING = "Writing"
    ANSWERING = "Answering"
    MOVING = "Moving"
    ANYWHERE = "Anywhere"
    SEND = "Send, or queue while the agent works"
    NEWLINE = "New line; Shift+Enter too where the terminal tells it"
    STEER = "Steer the running turn"
    EDIT_QUEUED = "Edit the last queued message, in an empty box"
    ESCAPE = "Close what is on top, else stop the agent"
    HOLD = "Stop the agent and hold the queue"
    COMPLETE = "Take the suggested /command or @file"
    ALLOW_ONCE = "Allow once, approve, go on"
    ALLOW_SCOPE = "Allow for longer, revise"
    DENY = "Deny, reject, skip"
    INSIDE = "Into a request: note, edit, others"
    REGIONS = "Next region"
    REGIONS_BACK = "Previous region"
    NEXT_BLOCK = "Next block"
    PREVIOUS_BLOCK = "Previous block"
    OPEN_BLOCK = "Open or close the block"
    END = "To the end"
    START = "To the start"
    PAGE = "Scroll by pages"
    WRITE = "Back to the message box"
    WAITING = "In the queue, and in what runs in the background (F6)"
    CHOOSE = "Choose one"
    LET_GO = "Let a held message go; all of them"
    EDIT_ONE = "Edit it"
    REMOVE_ONE = "Remove it; put it back"
    STEER_ONE = "Steer the running turn with it"
    MOVE_ONE = "Move it up or down"
    STOP_ONE = "Stop what runs"
    WHOLE = "All of the block, when only a part is shown"
    COPY = "Copy the block"
    RESEND = "Edit your message and send it again"
    PASTE = "Paste the path of an image to attach it"
    HELP = "This list"


class WholeText:
    LOADING = "Loading …"
    SCROLL = "scroll"
    END = "to the end"
    COPY = "copy"
    TOO_MUCH = "This is too much for a clipboard. Open the conversation on the page: it can be saved there."

    @staticmethod
    def cut(shown: str, total: str) -> str:
        return f"Showing {shown} of {total}. The page of the server has all of it."


class Export:
    LABEL = "Export conversation"
    LEAD = (
        "A file of your own, to read, to send on, or to bring back with “palaver import”. Secrets that Palaver knows are taken "
        "out. Look through the file before you give it away: what was said in it is in it."
    )
    FORMATS: Final = {
        "html": ("Page", "one HTML file, to send on or to print"),
        "markdown": ("Markdown", "to read and to edit"),
        "jsonl": ("Event log (JSONL)", "every event as it is stored"),
        "trajectory": ("Trajectory (JSON)", "for other programs"),
    }
    FILE = "File on this machine"
    SAVE = "save"
    NEXT = "next field"
    THERE_ALREADY = "There is a file of that name already. Give another one."
    FAILED = "The file could not be made."

    @staticmethod
    def preparing(size_bytes: int) -> str:
        return f"Preparing, {size(size_bytes)} so far …" if size_bytes else "Preparing …"

    @staticmethod
    def saved(came_to: str, path: str) -> str:
        return f"Saved, {came_to}: {path}"

    @staticmethod
    def unwritten(why: str) -> str:
        return f"The file could not be written: {why}. Give another place."


class Agents:
    LABEL = "Agents"
    LEAD = "Who can answer here."
    CURRENT = "answers here"
    CHOOSE = "let it answer here"
    NOT_READY = "not ready"
    UNTRUSTED = "not trusted: the page of the server shows what it would be allowed"
    EMPTY = "This server has no agents. Run “palaver doctor” on it: it says what is missing."
    BACKENDS = "backends"


class Trust:
    LABEL = "Settings of this folder"
    LOADING = "Loading …"
    NOTHING = "This folder has no settings for the program of this agent."
    NO_PROGRAM = "This agent runs without a program, so no settings of the folder count."
    TOO_LARGE = "There is too much in these files to be read, so they cannot be trusted."
    UNREAD = "Read to the end before you trust it."
    TRUSTED = "These settings are trusted. They count from the next turn on."
    REVOKED = "These settings are off from the next turn on."
    TRUST = "trust"
    KEEP_OFF = "keep off"
    REVOKE = "revoke"

    @staticmethod
    def heading(program: str, folder: str) -> str:
        return f"Settings for {program} in {folder}"

    @staticmethod
    def lead(program: str) -> str:
        return (
            f"{program} would read these files of the folder. They can start programs on this machine without asking you. "
            "Trust counts for exactly what is shown, and ends with any change."
        )


class Backends:
    LABEL = "Backends"
    LEAD = "What can answer here. A try asks for one short answer; a provider may charge for it."
    TRY = "try it"
    AGAIN = "look again"
    NONE = "This server has no backends."
    STATES: Final = {
        "ready": "Ready",
        "missing": "Not installed",
        "version": "Wrong version",
        "login": "Needs login",
        "unready": "Not ready",
        "testing": "Testing",
        "failing": "Failing",
    }
    NO_AGENT = "No agent uses it, so there is none to try."
    NO_REASON = "It gave no reason."
    AGENTS = "agents"

    @staticmethod
    def used_by(names: str) -> str:
        return f"used by {names}"

    @staticmethod
    def answered(time: str) -> str:
        return f"Answered in {time}"

    @staticmethod
    def failed(why: str) -> str:
        return f"It did not answer: {why}"

    @staticmethod
    def last_error(when: str, why: str) -> str:
        return f"Last failure ({when}): {why}"


class Choose:
    MODE = "Mode of this conversation"
    TAKE = "choose"
    FULL = "Give full access?"
    FULL_BODY = (
        "The agent will run any command and change any file it can reach, without asking. Use it only on a machine you "
        "could lose."
    )
    FULL_YES = "give full access"
    RENAME = "Title of this conversation"
    SAVE = "save"
    CANCEL = "cancel"
