"""`python -m tests.cli.matrix`: writes into docs/backends.md what is tested with which program, read off the tests themselves.

A row is a test; a cell says whether it runs with that program, and a note why not. Which programs a test is for is in its
decorator, and why one is left out in that program's `Subject`, so the table cannot promise more than they do.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from palaver.agents.programs import program_sources
from palaver.backends.base import Capabilities
from palaver.clock import SystemClock
from palaver.tools.toolbox import Toolbox
from tests.cli.rig import Subject
from tests.cli.subjects import SUBJECTS
from tests.cli.test_delegating import BOSSES

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "backends.md"
BEGIN = "<!-- tested: written by `python -m tests.cli.matrix` -->"
END = "<!-- tested: end -->"
EVERYBODY = frozenset(subject.name for subject in SUBJECTS)


@dataclass(frozen=True, slots=True)
class Scenario:
    title: str
    programs: frozenset[str]
    """Those it is meant for."""
    needs: str | None = None
    """What a program may lack, and is then left out."""

    def cell(self, subject: Subject, notes: list[str]) -> str:
        if subject.name not in self.programs:
            return ""
        if self.needs is None or self.needs not in subject.lacks:
            return "yes"
        why = subject.lacks[self.needs]
        if why not in notes:
            notes.append(why)
        return f"no ({notes.index(why) + 1})"


def capabilities() -> dict[str, Capabilities]:
    """Of each backend that drives a program, by its name. None is started."""
    sources = program_sources({}, SystemClock(), Toolbox(tools={}))
    return {name: source.make().capabilities for name, source in sources.items()}


def scenarios() -> Iterator[Scenario]:
    for file in ("test_conformance.py", "test_together.py", "test_delegating.py"):
        for node in ast.parse((HERE / file).read_text()).body:
            if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test_"):
                yield _scenario(node)


def _scenario(test: ast.AsyncFunctionDef) -> Scenario:
    title = test.name.removeprefix("test_").replace("_", " ")
    for mark in test.decorator_list:
        match mark:
            case ast.Name(id="every_program" | "every_start"):
                return Scenario(title, EVERYBODY)
            case ast.Call(func=ast.Name(id="able"), args=[ast.Constant(value=str(needs))]):
                return Scenario(title, EVERYBODY, needs)
            case _:
                pass
    if any(argument.arg == "boss" for argument in test.args.args):
        return Scenario(title, frozenset(boss.subject.name for boss in BOSSES))
    # Not for each program but for some, which it names as constants.
    named = {node.id.lower() for node in ast.walk(test) if isinstance(node, ast.Name) and node.id.isupper()}
    return Scenario(title, EVERYBODY & named)


def table() -> str:
    notes: list[str] = []
    lines = [
        "| tested | " + " | ".join(subject.agent.name for subject in SUBJECTS) + " |",
        "|---" * (len(SUBJECTS) + 1) + "|",
    ]
    for scenario in scenarios():
        cells = (scenario.cell(subject, notes) for subject in SUBJECTS)
        lines.append(f"| {scenario.title} | {' | '.join(cells)} |")
    told = [f"{number}. {text}" for number, text in enumerate(notes, 1)]
    return "\n".join([*lines, *(["", *told] if told else [])])


def written(page: str) -> str:
    """The page with the table as it is now."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{PAGE.name} has lost the comments between which the table stands.")
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
