"""`make bench`: measures everything, prints one table and keeps it in `bench/results/`.

python -m bench               all of it
python -m bench append search only these; the others keep the figures of their last run
python -m bench suite         what `make test` costs, which takes ten minutes and is measured only on request
"""

import importlib
import platform
import subprocess
import sys
import time
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from bench.table import Measured, Row

NUMBERS = (
    "append",
    "fanout",
    "faces",
    "first_token",
    "lag",
    "interrupt",
    "flood",
    "crowd",
    "reopen",
    "memory",
    "start",
    "start_client",
    "recovery",
    "search",
    "context",
    "page",
    "terminal",
)
ON_REQUEST = ("suite",)
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    asked, known = sys.argv[1:], NUMBERS + ON_REQUEST
    if unknown := [name for name in asked if name not in known]:
        sys.exit(
            f"Nothing here measures {', '.join(unknown)}. There are: {', '.join(known)}. "
            f"Without a name: all but {', '.join(ON_REQUEST)}."
        )
    chosen = [name for name in known if name in asked] or list(NUMBERS)
    console = Console()
    taken: dict[str, Measured] = {}
    for name in chosen:
        with console.status(f"Measuring {name} …"):
            begun = time.monotonic()
            rows: list[Row] = importlib.import_module(f"bench.{name}").measure()
        console.print(f"[dim]{name}: {time.monotonic() - begun:.0f} s[/dim]")
        taken[name] = Measured(commit=_commit(), date=time.strftime("%Y-%m-%d"), machine=_machine(), rows=rows)
    console.print(_table([row for measured in taken.values() for row in measured.rows]))
    _keep(taken, known)


def _table(rows: list[Row]) -> Table:
    table = Table(box=None, header_style="dim")
    for heading in ("what", "measured", "floor", "ratio", "goal", ""):
        table.add_column(heading, justify="right" if heading == "ratio" else "left")
    for row in rows:
        mark = "" if row.met is None else "reached" if row.met else "[red]missed[/red]"
        table.add_row(row.what, row.measured, row.floor, _ratio(row), row.goal, mark)
    return table


def _ratio(row: Row) -> str:
    return "" if row.ratio is None else f"{row.ratio:.2f}"


def _commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, cwd=RESULTS, capture_output=True, text=True, check=False).stdout.strip()


def _machine() -> str:
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _keep(taken: dict[str, Measured], order: tuple[str, ...]) -> None:
    """The latest figures of each number, whenever it was measured: one that is measured alone renews its rows alone."""
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "latest.json"
    before = msgspec.json.decode(file.read_bytes(), type=dict[str, Measured]) if file.exists() else {}
    latest = {name: (before | taken)[name] for name in order if name in before or name in taken}
    file.write_bytes(msgspec.json.format(msgspec.json.encode(latest)) + b"\n")
    lines = [
        "| what | measured | floor | ratio | goal | | when |",
        "|---|---|---|--:|---|---|---|",
        *(
            f"| {row.what} | {row.measured} | {row.floor} | {_ratio(row)} | {row.goal} | "
            f"{'' if row.met is None else 'reached' if row.met else 'missed'} | {measured.date}, {measured.commit} |"
            for measured in latest.values()
            for row in measured.rows
        ),
        "",
        *(f"{machine}." for machine in dict.fromkeys(measured.machine for measured in latest.values())),
    ]
    (RESULTS / "latest.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
