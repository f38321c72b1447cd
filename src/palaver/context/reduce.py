"""What a recorded compression means: the view's messages as a model is still shown them.

Called by `linearize` with what the log recorded, and by `compress` to weigh what it might record. Pure, and the same for
the same log: what a horizon covers never depends on what comes after it, so a prompt keeps its beginning.

Never touched: what a person said (also as the answer to a question), notes of the system, plans. A call and its result
are one block, so nothing here can part them. Secrets are struck before a text is cut: half a secret is no longer known.
"""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from palaver.schema.view import Block, Compression, Message, Plan, TextBlock, ToolBlock

Redact = Callable[[str], str]

HEAD_CHARS, TAIL_CHARS = 1_000, 600
"""Of an old result: how it began, which says what it is, and how it ended, which says what came of it."""
HARD_HEAD_CHARS, HARD_TAIL_CHARS = 240, 160
"""The same when nothing else is left to shorten."""
MARK_CHARS = 200
"""A text is only cut when that saves more than the line which says so."""
ARGUMENT_CHARS = 600
"""A longer argument is a file's content; its result says what became of it."""
ARGUMENT_HEAD_CHARS = 300
ARGUMENT_DEPTH = 6
"""Deeper arguments are replaced whole."""
ANSWER_HEAD_CHARS, ANSWER_TAIL_CHARS = 900, 300
"""Of a turn's last words, where the turn's steps are left out."""
REPEATED_CHARS = 400
"""Shorter results may repeat: a pointer would be as long."""

KEPT_TOOLS = frozenset({"plan", "ask_user"})
"""Their blocks hold a plan, or a person's own words."""
KEPT_ROLES = frozenset({"user", "system", "plan", "summary"})
PLAN_EVENTS = "plan_"
"""How the kinds of events begin that say what became of a plan."""
LEFT_OUT = "left_out"

POINTER = "[The same was read again later in this conversation; see that result.]"
REPEATED = "[The same result came again later in this conversation; see there.]"


def same_text(text: str) -> str:
    return text


class Horizons(Struct, frozen=True):
    """The furthest horizon of each stage, as seqs: what began before it is shown in the way of the stage."""

    deduplicate: int = 0
    known: int = 0
    """Repetitions count when they began before this: later ones must not change what was shown earlier."""
    shorten: int = 0
    shorten_hard: int = 0
    repair: int = 0
    limit: int = 0
    limit_hard: int = 0
    summarize: int = 0
    summary: str = ""

    @property
    def gone(self) -> int:
        """Before this, answers and events are not shown at all."""
        return max(self.limit_hard, self.summarize)

    @property
    def furthest(self) -> int:
        return max(self.deduplicate, self.shorten, self.repair, self.limit, self.gone)


def horizons_of(compressions: Sequence[Compression]) -> Horizons:
    found: dict[str, Any] = {}

    def reach(name: str, horizon: int) -> bool:
        if horizon < found.get(name, 0):
            return False
        found[name] = horizon
        return True

    for one in compressions:
        match one.stage:
            case "deduplicate":
                if reach("deduplicate", one.horizon):
                    found["known"] = one.seq
            case "shorten":
                reach("shorten", one.horizon)
                if one.strength == "high":
                    reach("shorten_hard", one.horizon)
            case "repair":
                reach("repair", one.horizon)
            case "limit":
                reach("limit", one.horizon)
                if one.strength == "high":
                    reach("limit_hard", one.horizon)
            case "summarize":
                if reach("summarize", one.horizon):
                    found["summary"] = one.summary or ""
    return Horizons(**found)


def reduce_history(
    history: Sequence[Message], horizons: Horizons, *, plan: Plan | None = None, redact: Redact = same_text
) -> Sequence[Message]:
    """The messages that are left, each as it is shown."""
    if not horizons.furthest:
        return history
    reducing = _Reducing(horizons, redact, _repetitions(history, horizons), _last_answers(history, horizons))
    shown: list[Message] = []
    noted = False
    for message in history:
        if message.seq >= horizons.furthest:
            noted = noted or _note(shown, reducing, plan, message)
            shown.append(message)
            continue
        if not noted and message.seq >= max(horizons.limit, horizons.gone):
            noted = _note(shown, reducing, plan, message)
        if (left := reducing.message(message)) is not None:
            shown.append(left)
    if not noted and history:
        _note(shown, reducing, plan, history[-1])
    return shown


def _note(shown: list[Message], reducing: "_Reducing", plan: Plan | None, at: Message) -> bool:
    """Stands where the horizon is, and says what is missing before it."""
    text = reducing.note(plan)
    if text:
        shown.append(
            Message(
                id=LEFT_OUT,
                role="summary" if reducing.horizons.summary else "event",
                event_kind=LEFT_OUT,
                seq=at.seq,
                updated_seq=at.seq,
                ts=at.ts,
                blocks=(TextBlock(index=0, text=text),),
            )
        )
    return True


class _Reducing:
    def __init__(self, horizons: Horizons, redact: Redact, repetitions: dict[int, str], last: frozenset[str]) -> None:
        self.horizons = horizons
        self._redact = redact
        self._repetitions = repetitions
        self._last_answers = last
        self._left_out = 0

    def message(self, message: Message) -> Message | None:
        horizons, seq = self.horizons, message.seq
        if message.role in KEPT_ROLES:
            # What was recalled for it is not the person's: the first thing that an old message can do without.
            outdated = message.knowledge is not None and seq < max(horizons.shorten, horizons.limit, horizons.gone)
            return replace(message, knowledge=None) if outdated else message
        if message.role == "event":
            return self._event(message)
        if seq < max(horizons.limit, horizons.gone):
            return self._limit(message)
        return self._smaller(message)

    def _event(self, message: Message) -> Message | None:
        goes = message.seq < self.horizons.limit or message.seq < self.horizons.gone
        if not goes or (message.event_kind or "").startswith(PLAN_EVENTS):
            return message
        self._left_out += 1
        return None

    def _limit(self, message: Message) -> Message | None:
        """Plans and people's answers stay; of the rest the last words of each turn, until those go too."""
        blocks: list[Block] = []
        for block in message.blocks:
            if isinstance(block, ToolBlock) and block.name in KEPT_TOOLS:
                blocks.append(block)
            elif (
                isinstance(block, TextBlock)
                and message.seq >= self.horizons.gone
                and message.id in self._last_answers
                and block.text.strip()
            ):
                text = self._cut(block.text, ANSWER_HEAD_CHARS, ANSWER_TAIL_CHARS, "this answer")
                blocks.append(replace(block, text=text, blob=None))
        if len(blocks) < len(message.blocks):
            self._left_out += 1
        return replace(message, blocks=tuple(blocks)) if blocks else None

    def _smaller(self, message: Message) -> Message:
        blocks = message.blocks
        changed: list[Block] | None = None
        for place, block in enumerate(blocks):
            if isinstance(block, ToolBlock) and block.name not in KEPT_TOOLS:
                smaller = self._tool(message.seq, block)
                if smaller is not block:
                    changed = changed or list(blocks)
                    changed[place] = smaller
        return replace(message, blocks=tuple(changed)) if changed else message

    def _tool(self, seq: int, tool: ToolBlock) -> ToolBlock:
        horizons = self.horizons
        output, given = tool.output, tool.input
        if seq < horizons.deduplicate and (pointer := self._repetitions.get(id(tool))):
            output = pointer
        elif seq < horizons.shorten_hard:
            output = self._cut(output, HARD_HEAD_CHARS, HARD_TAIL_CHARS, "this result")
        elif seq < horizons.shorten:
            output = self._cut(output, HEAD_CHARS, TAIL_CHARS, "this result")
        if seq < horizons.repair:
            given = self._argument(given, 0)
        if output is tool.output and given is tool.input:
            return tool
        return replace(tool, output=output, input=given)

    def _cut(self, text: str, head: int, tail: int, what: str) -> str:
        if len(text) <= head + tail + MARK_CHARS:
            return text
        clean = self._redact(text)
        if len(clean) <= head + tail + MARK_CHARS:
            return clean
        left_out = len(clean) - head - tail
        again = "; call the tool again to see them" if what == "this result" else ""
        return f"{clean[:head]}\n[… {left_out:,} characters of {what} are left out here to save room{again} …]\n{clean[-tail:]}"

    def _argument(self, value: Any, depth: int) -> Any:
        """Long texts cut, everything else as it was; the same object where nothing changed."""
        match value:
            case str() if len(value) > ARGUMENT_CHARS:
                clean = self._redact(value)
                return (
                    f"{clean[:ARGUMENT_HEAD_CHARS]}[… {max(0, len(clean) - ARGUMENT_HEAD_CHARS):,} more characters …]"
                )
            case dict() | list() if depth >= ARGUMENT_DEPTH and value:
                return "[…]"
            case dict():
                fitted = {key: self._argument(item, depth + 1) for key, item in value.items()}
                return fitted if any(fitted[key] is not value[key] for key in value) else value
            case list():
                items = [self._argument(item, depth + 1) for item in value]
                return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
            case _:
                return value

    def note(self, plan: Plan | None) -> str:
        horizons = self.horizons
        if not max(horizons.limit, horizons.gone) or not (self._left_out or horizons.summary):
            return ""
        parts: list[str] = []
        if horizons.summary:
            parts.append(horizons.summary)
        else:
            parts.append(
                "To save room, the agent's earlier steps are not shown before this point; files and commands can be "
                "looked at again with tools."
            )
        if plan is not None and plan.status in ("approved", "executing"):
            parts.append(plan_text(plan))
        return "\n\n".join(parts)


def plan_text(plan: Plan) -> str:
    """The plan without the state of its items: that changes, and what was shown once must not."""
    lines = [f"The plan being carried out: {plan.summary}"]
    lines += [f"- {item.title}" + (f": {item.description}" if item.description else "") for item in plan.items]
    return "\n".join(lines)


def _repetitions(history: Sequence[Message], horizons: Horizons) -> dict[int, str]:
    """Blocks (the objects: ids of calls may repeat) whose result came again later, and what stands in its place."""
    if not horizons.deduplicate:
        return {}
    repeated: dict[int, str] = {}
    seen: set[Any] = set()
    for message in reversed(history):
        if message.role != "assistant" or message.seq >= horizons.known or message.status == "superseded":
            continue
        for block in reversed(message.blocks):
            if not isinstance(block, ToolBlock) or block.status != "ok" or block.name in KEPT_TOOLS:
                continue
            long = len(block.output) >= REPEATED_CHARS
            read = _what_was_read(block)
            if long and message.seq < horizons.deduplicate:
                if read is not None and read in seen:
                    repeated[id(block)] = POINTER
                elif block.output in seen:
                    repeated[id(block)] = REPEATED
            if read is not None:
                seen.add(read)
            if long:
                seen.add(block.output)
    return repeated


def _what_was_read(tool: ToolBlock) -> tuple[str, Any, Any] | None:
    """The file and the part of it: another part is another thing."""
    if tool.name != "read" or not isinstance(tool.input, dict):
        return None
    path, offset, limit = (tool.input.get(name) for name in ("path", "offset", "limit"))
    if not isinstance(path, str) or not all(isinstance(part, int | str | None) for part in (offset, limit)):
        return None
    return path.removeprefix("./"), str(offset or 1), str(limit or "")


def _last_answers(history: Sequence[Message], horizons: Horizons) -> frozenset[str]:
    """The last message with words in each turn."""
    if not horizons.limit:
        return frozenset()
    last: dict[str, str] = {}
    for message in history:
        if message.seq >= horizons.limit:
            break
        if message.role == "assistant" and any(
            isinstance(block, TextBlock) and block.text.strip() for block in message.blocks
        ):
            last[message.turn or message.id] = message.id
    return frozenset(last.values())
