"""Profile of the test suite: wall and CPU time by phase, folder, file, test and fixture.

    .venv/bin/python -m scripts.suite_profile [--top N] ARGUMENTS-OF-PYTEST …

Runs pytest with this module as a plugin and prints the tables after pytest's own output. CPU time includes the programs a test
starts (servers, browsers, agent programs), also those that are still running when a test ends. Costs of a fixture contain those
of the fixtures it asks for first only where pytest sets them up inside it, that is never: the sums add up.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = "PALAVER_SUITE_PROFILE"
"""The environment variable that names the folder in which every pytest process leaves its records."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


def spent() -> Cost:
    """What this process and everything it started have cost so far."""
    own, ended = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime
    return Cost(time.perf_counter(), cpu + sum(map(_cpu_of, _descendants(os.getpid()))))


def _descendants(process: int) -> Iterator[int]:
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found = children.read_text().split()
        except OSError:  # It has just ended.
            continue
        for child in map(int, found):
            yield child
            yield from _descendants(child)


def _cpu_of(process: int) -> float:
    """Its own time and that of its children that have ended; those that run are counted by themselves."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS


# The plugin.


def pytest_configure(config: pytest.Config) -> None:
    if folder := os.environ.get(FOLDER):
        config.pluginmanager.register(Recorder(Path(folder)), "suite-profile-recorder")


class Recorder:
    def __init__(self, folder: Path) -> None:
        self._file = (folder / f"{os.getpid()}.jsonl").open("a", buffering=1)
        self._started = spent()
        # Until here: the interpreter, pytest and its plugins.
        self._tell("start", "", Cost(0.0, self._started.cpu))

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        with self._telling("collection", ""):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        before = spent()
        try:
            return (yield)
        finally:
            cost = spent() - before
            self._tell(
                "fixture", f"{fixturedef.baseid or '(plugin)'}::{fixturedef.argname}", cost, scope=fixturedef.scope
            )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._telling("setup", item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._telling("call", item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        with self._telling("teardown", item.nodeid):
            return (yield)

    def pytest_unconfigure(self) -> None:
        self._tell("all", "", spent() - Cost(self._started.wall))
        self._file.close()

    @contextmanager
    def _telling(self, phase: str, name: str) -> Iterator[None]:
        before = spent()
        try:
            yield
        finally:
            self._tell(phase, name, spent() - before)

    def _tell(self, phase: str, name: str, cost: Cost, **more: str) -> None:
        line = {"phase": phase, "name": name, "wall": round(cost.wall, 4), "cpu": round(cost.cpu, 4), **more}
        self._file.write(json.dumps(line) + "\n")


# The command.


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.suite_profile", description="Profile the test suite.")
    parser.add_argument("--top", type=int, default=25, help="rows of each table")
    parser.add_argument(
        "--keep", type=Path, help="a folder to keep the records in; without arguments for pytest, only read"
    )
    options, arguments = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        status = 0
        if arguments or not options.keep:
            command = [sys.executable, "-m", "pytest", "-p", "scripts.suite_profile", *arguments]
            before = spent()
            status = subprocess.call(command, env={**os.environ, FOLDER: str(folder)})
            whole = spent() - before
            print(f"\nwhole run: {whole.wall:.0f} s of wall time, {whole.cpu:.0f} s of CPU time")
        report(list(_records(folder)), options.top)
    return status


def _records(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            yield json.loads(line)


def report(records: list[dict[str, Any]], top: int) -> None:
    tests = [record for record in records if record["phase"] in ("setup", "call", "teardown")]
    _table("Phases", _sums(records, lambda record: record["phase"]), top)
    _table("Folders", _sums(tests, lambda record: "/".join(record["name"].split("/")[:2])), top)
    _table("Files", _sums(tests, lambda record: record["name"].partition("::")[0]), top)
    _table("Tests", _sums(tests, lambda record: record["name"]), top)
    _table("Fixtures", _sums((one for one in records if one["phase"] == "fixture"), lambda record: record["name"]), top)


def _sums(records: Iterable[dict[str, Any]], key: Any) -> dict[str, tuple[int, Cost]]:
    sums: dict[str, tuple[int, Cost]] = defaultdict(lambda: (0, Cost()))
    for record in records:
        count, cost = sums[key(record)]
        sums[key(record)] = count + 1, cost + Cost(record["wall"], record["cpu"])
    return sums


def _table(title: str, rows: dict[str, tuple[int, Cost]], top: int) -> None:
    print(f"\n{title}\n{'CPU s':>9} {'wall s':>9} {'records':>8}")
    ordered = sorted(rows.items(), key=lambda row: -row[1][1].cpu)
    for name, (count, cost) in ordered[:top]:
        print(f"{cost.cpu:9.1f} {cost.wall:9.1f} {count:8}  {name}")
    if len(ordered) > top:
        rest = sum((cost for _, (_, cost) in ordered[top:]), Cost())
        print(f"{rest.cpu:9.1f} {rest.wall:9.1f} {'':8}  ({len(ordered) - top} more)")


if __name__ == "__main__":
    sys.exit(main())
