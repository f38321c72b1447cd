"""Effects of the built-in tools: one table of what each may do, and in which modes that runs without asking anybody.

Held against the tools themselves whenever they are put together, so a tool that is new or says more of itself keeps the
server from starting until it has its row. `policy.py` decides each call; `tests/attacks/test_tool_effects.py` holds its
decisions to this table for every tool and mode.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from palaver.approval.policy import Mode
from palaver.errors import ConfigurationError
from palaver.tools.base import ToolSpec

Effect = Literal["reads", "edits", "runs", "reaches"]
"""`reads` in the project, or talks to people; `edits` files of the project; `runs` programs or other agents, which a sandbox
holds; `reaches` beyond any sandbox."""

EFFECTS: Mapping[str, Effect] = {
    "read": "reads",
    "list": "reads",
    "glob": "reads",
    "grep": "reads",
    "edit": "edits",
    "write": "edits",
    "patch": "edits",
    "shell": "runs",
    "shell_output": "reads",
    "shell_stop": "reads",
    "fetch": "reaches",
    "search_conversations": "reads",
    "remember": "edits",
    "plan": "reads",
    "ask_user": "reads",
    "loop_yield_turn": "reads",
    "finish_task": "reads",
    "task": "runs",
    "agents_message": "runs",
}

UNASKED: Mapping[Effect, frozenset[Mode]] = {
    "reads": frozenset({"plan", "ask", "accept_edits", "auto", "full"}),
    "edits": frozenset({"accept_edits", "auto", "full"}),
    "runs": frozenset({"auto", "full"}),
    "reaches": frozenset({"full"}),
}
"""Where a call runs without asking, by the mode alone: `auto` where a sandbox works, `full` where the server allows it. In
`plan` everything else is denied."""


def effect_of(spec: ToolSpec) -> Effect:
    """What a tool says of itself."""
    if spec.reads_only:
        return "reads"
    if spec.edits_only:
        return "edits"
    return "reaches" if spec.outside else "runs"


def check_effects(specs: Iterable[ToolSpec]) -> None:
    """Raises ConfigurationError for a built-in tool that has no row, or does other things than its row says."""
    for spec in specs:
        if EFFECTS.get(spec.name) != effect_of(spec):
            raise ConfigurationError(
                f"tools/effects.py does not say of the tool “{spec.name}” that it {effect_of(spec)}."
            )
