"""A plan read off an answer: what a model in plan mode proposes when it simply answers instead of calling the tool.

Used by the loop at the end of a turn in plan mode. Pure. The first heading is the summary, numbered or dashed lines are
the items, and the whole answer is kept as its text: nothing is lost by reading it wrongly.
"""

import re

from palaver.schema.view import Plan, PlanItem

SUMMARY_CHARS = 200
TITLE_CHARS = 200
ITEMS = 50
"""A longer plan is nobody's plan."""

_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(.+?)\s*#*\s*$")
_ITEM = re.compile(r"^(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.+)$")
_MARKS = re.compile(r"[*_`]+")


def plan_of(answer: str) -> Plan | None:
    """None for an answer that says nothing."""
    lines = [line.rstrip() for line in answer.splitlines()]
    said = [line.strip() for line in lines if line.strip()]
    if not said:
        return None
    heading = next((found.group(1) for line in lines if (found := _HEADING.match(line))), said[0])
    titles = [found.group(1) for line in _outside_code(lines) if (found := _ITEM.match(line))]
    items = tuple(PlanItem(title=_plain(title)[:TITLE_CHARS]) for title in titles[:ITEMS])
    return Plan(summary=_plain(heading)[:SUMMARY_CHARS], items=items, text=answer)


def _outside_code(lines: list[str]) -> list[str]:
    found: list[str] = []
    fenced = False
    for line in lines:
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            found.append(line)
    return found


def _plain(text: str) -> str:
    return _MARKS.sub("", text).strip()
