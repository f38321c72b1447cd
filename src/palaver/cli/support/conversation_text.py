"""A conversation as text that a person reads in a terminal. Pure: a view in, lines of words out.

Called by `show` and `tail`. Everything that came from a model, a tool or a person is made harmless here; short form says of a
tool one line, the full form all of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

import msgspec

from palaver.cli.support.output import count_of, when
from palaver.client.safe_text import one_line, plain_output, prose, visible
from palaver.schema.view import Block, ImageBlock, Message, State, TextBlock, ThinkingBlock, ToolBlock, TurnSummary

INPUT_CHARS = 100
Style = Literal["", "bold", "dim", "red", "yellow", "green"]

OUTCOMES = {
    "input": "is being written",
    "called": "not run yet",
    "waiting": "waits for you",
    "running": "running",
    "ok": "",
    "error": "failed",
    "denied": "denied",
    "interrupted": "⚠ interrupted",
}
STATUSES = {
    "idle": "idle",
    "generating": "answering",
    "executing_tools": "using tools",
    "paused": "paused",
    "waiting_ide": "waiting for an editor",
    "waiting_user_input": "waiting for you",
    "completed": "completed",
    "error": "failed",
}


@dataclass(frozen=True, slots=True)
class Line:
    text: str
    style: Style = ""


def heading(state: State) -> Iterator[Line]:
    yield Line(one_line(state.title) or "(untitled)", "bold")
    count = state.offset + len(state.messages)
    facts = [
        state.conversation,
        f"agent {visible(state.agent)}",
        STATUSES.get(state.status, state.status),
        count_of(count, "message"),
    ]
    if state.project:
        facts.append(visible(state.project))
    if state.cost_usd:
        facts.append(f"${state.cost_usd:.4f}")
    yield Line(" · ".join(facts), "dim")


def message(one: Message, *, full: bool = False, ids: bool = False) -> Iterator[Line]:
    """Nothing for one that is not meant to be seen, unless all is wanted."""
    if one.hidden and not full:
        return
    label = f"── {speaker(one)} · {when(one.ts)}" + (f" · {one.id}" if ids else "")
    yield Line(label, "bold")
    for block in one.blocks:
        yield from _block(block, full)
    if one.status == "interrupted":
        yield Line("(interrupted)", "yellow")
    if one.ended is not None:
        yield from _end_lines(one.ended)


def speaker(one: Message) -> str:
    match one.role:
        case "user":
            who = one.origin.agent or one.origin.user if one.origin else None
            return f"{one_line(who, 60)}" if who and who != "owner" else "you"
        case "assistant":
            model = f" ({one_line(one.model, 60)})" if one.model else ""
            return f"{one_line(one.agent or 'agent', 60)}{model}"
        case "event":
            return f"event {one.event_kind or ''}".strip()
        case "system" | "plan" | "summary":
            return one.role
        case _:
            assert_never(one.role)


def tool_line(name: str, input: object, outcome: str = "") -> str:
    """A tool call in one line."""
    said = f"▸ {one_line(name, 60)} {short_input(input)}".rstrip()
    return f"{said} · {outcome}" if outcome else said


def short_input(value: object, limit: int = INPUT_CHARS) -> str:
    """What a call is about: its arguments without their names, in one line."""
    match value:
        case None:
            return ""
        case dict():
            words = " ".join(str(one) for one in value.values() if isinstance(one, (str, int, float)))
        case str():
            words = value
        case _:
            words = ""
    return one_line(" ".join(words.split()), limit)


def readable_text(text: str) -> str:
    """A finished text of an agent: a structured answer (a plan, questions) written out, all else as it is."""
    if text.lstrip().startswith("{"):
        from palaver.core.text.special_blocks import markdown, parse

        special = parse(text)
        text = text if special is None else markdown(special)
    return prose(text)


def _block(block: Block, full: bool) -> Iterator[Line]:
    match block:
        case TextBlock():
            yield Line(readable_text(block.text).strip("\n"))
        case ThinkingBlock():
            if full:
                yield Line(prose(block.text).strip("\n") or "(hidden thoughts)", "dim")
            else:
                took = f" · {block.duration_ms / 1000:.1f} s" if block.duration_ms else ""
                yield Line(f"▸ thought{took}", "dim")
        case ImageBlock():
            yield Line(f"▸ image {one_line(block.url, 80)}", "dim")
        case ToolBlock():
            yield from _tool(block, full)
        case _:
            assert_never(block)


def _tool(block: ToolBlock, full: bool) -> Iterator[Line]:
    outcome = OUTCOMES.get(block.status, block.status)
    if block.error is not None:
        outcome = f"{outcome}: {one_line(block.error.message)}"
    elif block.status == "ok" and block.output:
        outcome = count_of(block.total_lines or len(block.output.splitlines()), "line")
    if block.truncated:
        outcome = " · ".join(filter(None, (outcome, "⚠ truncated")))
    styles: dict[str, Style] = {"error": "red", "denied": "red", "interrupted": "yellow"}
    yield Line(tool_line(block.name, block.input, outcome), styles.get(block.status, "dim"))
    if not full:
        yield from _task_summary(block)
        return
    if block.input is not None:
        yield Line(_indent(visible(msgspec.json.format(msgspec.json.encode(block.input)).decode())), "dim")
    if block.output:
        yield Line(_indent(plain_output(block.output).rstrip("\n")))
    for change in block.changes:
        if change.diff:
            yield Line(_indent(prose(change.diff).rstrip("\n")))
    if block.truncated:
        yield Line("  (cut; all of it is kept on the server)", "dim")


def _task_summary(block: ToolBlock) -> Iterator[Line]:
    """What an agent said when it finished its task."""
    given = block.input.get("summary") if isinstance(block.input, dict) else None
    if block.name == "finish_task" and block.status == "ok" and isinstance(given, str):
        yield Line(prose(given).strip("\n"))


def _end_lines(ended: TurnSummary) -> Iterator[Line]:
    if ended.error is not None:
        yield Line(f"(failed: {prose(ended.error.message)})", "red")
    elif ended.outcome == "interrupted":
        yield Line(f"(stopped: {ended.stopped or 'by somebody'})", "yellow")
    elif ended.outcome == "limited":
        yield Line("(ended at a limit)", "yellow")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
