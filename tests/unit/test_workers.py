"""The parallel run of the suite: nothing is lost, run twice or hidden, whatever happens to a worker."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.workers import PORTION, Portions

ROOT = Path(__file__).parents[2]

SUITE = """
import os, signal, sys
from pathlib import Path
import pytest

with Path("collected").open("a") as file:
    file.write("once\\n")

@pytest.fixture(scope="session", autouse=True)
def whole():
    Path(f"set-up-{os.getpid()}").touch()
    yield
    Path(f"torn-down-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(40))
def test_passes(number, tmp_path):
    with Path("ran").open("a") as file:
        file.write(f"{number}\\n")
    (tmp_path / "own").mkdir()
"""

TROUBLE = """
import os, signal, sys

def test_fails():
    print("said before it failed")
    assert 1 == 2

def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)

def test_after_the_dead_one():
    pass

def test_prints():
    print("not shown")
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.workers", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_suite_is_collected_once_and_each_test_runs_once(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(SUITE)
    ended = run(tmp_path, "--workers", "3", "-q")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "40 passed" in ended.stdout
    assert (tmp_path / "collected").read_text() == "once\n"
    assert sorted(map(int, (tmp_path / "ran").read_text().split())) == list(range(40))
    # A session fixture is set up at most once in each worker, and is torn down there.
    set_up = {path.name.removeprefix("set-up-") for path in tmp_path.glob("set-up-*")}
    torn_down = {path.name.removeprefix("torn-down-") for path in tmp_path.glob("torn-down-*")}
    assert 1 < len(set_up) <= 3
    assert torn_down == set_up


def test_failures_and_dead_workers_are_told_and_the_rest_runs(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(SUITE)
    (tmp_path / "test_trouble.py").write_text(TROUBLE)
    ended = run(tmp_path, "--workers", "2")
    assert ended.returncode == 1
    assert "2 failed, 42 passed" in ended.stdout, ended.stdout
    assert "said before it failed" in ended.stdout
    assert "The worker ended while it ran this test (signal SIGKILL)." in ended.stdout
    assert "not shown" not in ended.stdout


def test_run_stops_at_the_first_failure_when_told_so(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(
        "def test_fails():\n    assert False\n" + SUITE.replace("range(40)", "range(400)")
    )
    ended = run(tmp_path, "--workers", "2", "-x", "-q")
    assert ended.returncode == 1
    found = re.search(r"1 failed(?:, (\d+) passed)?", ended.stdout)
    assert found, ended.stdout
    assert int(found.group(1) or 0) < 400


def test_file_stays_with_its_worker_and_a_free_one_helps_with_the_longest() -> None:
    portions = Portions(["short"] * PORTION + ["long"] * 3 * PORTION)
    assert portions.take(None) == list(range(PORTION))
    assert portions.take(None)[0] == PORTION
    assert portions.take("long")[0] == 2 * PORTION
    assert portions.take("short")[0] == 3 * PORTION
    assert portions.take("short") == []


def test_heavy_tests_are_handed_out_first() -> None:
    portions = Portions(["light", "light", "heavy"], [False, False, True])
    assert [portions.take(None), portions.take(None)] == [[2], [0, 1]]
