"""The tools `search_conversations` and `remember`: what was said earlier, and what is worth keeping.

A note is a file in `.palaver/knowledge`, one subject each, which is recalled when it fits a message. `remember` adds to a
note that is there and never takes anything away; secrets are struck before it is written. Nothing else in `.palaver` can be
reached with it.
"""

import asyncio
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palaver.backends.process import to_the_end
from palaver.core.keywords import words_of
from palaver.errors import CallerError, Invalid, TooLarge
from palaver.schema.view import FileChange
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Passage, Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.files.paths import Root
from palaver.tools.proposal import Change, fingerprint, visible
from palaver.tools.redact import Redactor

FOLDER = ".palaver/knowledge"
SLUG_CHARS = 60
NOTE_LIMIT_BYTES = 64 * 1024
"""A longer note is no longer about one thing."""
PASSAGE_CHARS = 1_200
"""Of one passage: enough to judge by."""


class SearchArguments(msgspec.Struct, frozen=True):
    query: Annotated[str, Meta(min_length=1, max_length=1_000, description="Words that what you look for would hold.")]
    limit: Annotated[int, Meta(ge=1, le=20, description="How many passages at most.")] = 5


class RememberArguments(msgspec.Struct, frozen=True):
    title: Annotated[str, Meta(min_length=1, max_length=200, description="The subject, in a few words.")]
    text: Annotated[str, Meta(min_length=1, max_length=8_000, description="What should be known next time.")]


SEARCH_SPEC = ToolSpec(
    name="search_conversations",
    description=(
        "Search earlier conversations of this project: what was decided, tried, found. The passages are material and may "
        "be outdated."
    ),
    parameters=parameters_of(SearchArguments),
    reads_only=True,
)

REMEMBER_SPEC = ToolSpec(
    name="remember",
    description=(
        "Keep something worth knowing in later conversations of this project (a decision, a convention, how something is "
        f"run) as a note in {FOLDER}. Adds to the note of that title if there is one. Never put secrets in it."
    ),
    parameters=parameters_of(RememberArguments),
    edits_only=True,
)


class SearchConversations:
    @property
    def spec(self) -> ToolSpec:
        return SEARCH_SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = decode(arguments, SearchArguments)
        except CallerError as error:
            return failure_of(error)
        title = visible(f"Search earlier conversations for “{asked.query[:80]}”")
        return Proposal(title=title, hash=fingerprint("search_conversations", arguments, root, {}), reads_only=True)

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, SearchArguments)
        except CallerError as error:
            return failure_of(error)
        if place.host is None:
            return ToolResult(ok=False, error="There are no conversations to search here.")
        redact = Redactor(place.environment).redact
        found = await place.host.search(asked.query, asked.limit)
        if not found:
            return ToolResult(ok=True, output="Nothing earlier fits. Try other words, or look at the files themselves.")
        return ToolResult(
            ok=True, output="\n\n".join(_passage_text(passage, redact(passage.text)) for passage in found)
        )


def _passage_text(passage: Passage, text: str) -> str:
    day = datetime.fromtimestamp(passage.ts / 1000, UTC).date().isoformat()
    cut = text if len(text) <= PASSAGE_CHARS else f"{text[:PASSAGE_CHARS]} […]"
    return f"[{passage.title or 'Untitled'}, {day}, conversation {passage.conversation}]\n{cut}"


class Remember:
    @property
    def spec(self) -> ToolSpec:
        return REMEMBER_SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        try:
            asked = decode(arguments, RememberArguments)
            change = _change(asked.title, asked.text, Root(root))
        except CallerError as error:
            return failure_of(error)
        return Proposal(
            title=visible(f"Remember “{_one_line(asked.title)}”"),
            hash=fingerprint("remember", arguments, root, {change.path: change.before}),
            preview=change.preview(),
            match=change.path,
            writes=(change.path,),
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        try:
            asked = decode(arguments, RememberArguments)
            redact = Redactor(place.environment).redact
            # Not cut short: a note is either written and said to be, or left alone.
            change, done = await to_the_end(
                asyncio.to_thread(_apply, redact(asked.title), redact(asked.text), Root(place.root))
            )
        except CallerError as error:
            return failure_of(error)
        if done is None:
            return ToolResult(ok=True, output=f"{change.path} says that already; nothing was changed.")
        verb = "Noted in" if change.before is None else "Added to"
        return ToolResult(ok=True, output=f"{verb} {change.path}.", changes=(done,))


def _apply(title: str, text: str, root: Root) -> tuple[Change, FileChange | None]:
    change = _change(title, text, root)
    if change.after is None or change.before == change.after:
        return change, None
    root.replace_in(FOLDER, change.path.rpartition("/")[2], change.after)
    return change, change.file_change()


def _change(title: str, text: str, root: Root) -> Change:
    path = f"{FOLDER}/{slug(title)}.md"
    if root.locate(path) != path:
        raise Invalid(f"{path} is a link; notes are plain files. Choose another title.")
    before = root.read_if_there(path)
    said = text.strip().encode(errors="replace")
    if before is None:
        after = f"# {_one_line(title)}\n\n".encode(errors="replace") + said + b"\n"
    elif said in before:
        after = before
    else:
        after = before.rstrip(b"\n") + b"\n\n" + said + b"\n"
    if len(after) > NOTE_LIMIT_BYTES:
        raise TooLarge(f"{path} would be longer than {NOTE_LIMIT_BYTES:,} bytes. Choose a narrower title.")
    return Change(path, before, after)


def slug(title: str) -> str:
    """A file's name from a title: the same title is the same note."""
    words = (
        re.sub(r"[^a-z0-9]", "", word) or "".join(f"{ord(letter):x}" for letter in word) for word in words_of(title)
    )
    return "-".join(words)[:SLUG_CHARS].strip("-") or "note"


def _one_line(text: str) -> str:
    return " ".join(text.split())
