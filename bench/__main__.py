"""`make bench`: measures everything, prints one table and keeps it in `bench/results/`.

python -m bench               all of it
python -m bench append search only these
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

from bench.table import Row

NUMBERS = (
    "append",
    "fanout",
    "faces",
    "first_token",
    "lag",
    "interrupt",
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
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    asked = sys.argv[1:]
    if unknown := [name for name in asked if name not in NUMBERS]:
        sys.exit(
            f"Nothing here measures {', '.join(unknown)}. There are: {', '.join(NUMBERS)}. Without a name: all of them."
        )
    chosen = [name for name in NUMBERS if name in asked] or list(NUMBERS)
    console = Console()
    rows: list[Row] = []
    for name in chosen:
        with console.status(f"Measuring {name} …"):
            begun = time.monotonic()
            found: list[Row] = importlib.import_module(f"bench.{name}").measure()
        console.print(f"[dim]{name}: {time.monotonic() - begun:.0f} s[/dim]")
        rows.extend(found)
    console.print(_table(rows))
    _keep(rows, whole=len(chosen) == len(NUMBERS))


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


def _keep(rows: list[Row], whole: bool) -> None:
    RESULTS.mkdir(exist_ok=True)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=RESULTS, capture_output=True, text=True, check=False
    ).stdout.strip()
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    record = {"commit": commit, "date": time.strftime("%Y-%m-%d"), "machine": machine, "rows": rows}
    name = "latest.json" if whole else "partial.json"
    (RESULTS / name).write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    if whole:
        lines = [
            f"Measured {record['date']} at {commit} on {machine}.",
            "",
            "| what | measured | floor | ratio | goal | |",
            "|---|---|---|--:|---|---|",
            *(
                f"| {row.what} | {row.measured} | {row.floor} | {_ratio(row)} | {row.goal} | "
                f"{'' if row.met is None else 'reached' if row.met else 'missed'} |"
                for row in rows
            ),
        ]
        (RESULTS / "latest.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
