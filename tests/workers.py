"""Parallel test run: the suite is collected once, and forked workers run it in portions of a file.

`pytest --workers N`, which is what `make test` uses. A fork has everything imported and collected already, so a worker costs
milliseconds; with a process of its own each would import and collect the whole suite again. Tests of one file stay on one
worker while they last, so that servers and browsers of a module are started once; a worker that has nothing left takes from
the file with the most left. Session fixtures live once in each worker.

Reports come back over a pipe and go through pytest's own hooks, so output, `-x`, `--lf` and exit codes are the usual ones. A
worker that dies fails the test it was running; another takes its place.
"""

import gc
import os
import random
import signal
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pytest
from _pytest._io import TerminalWriter

PORTION = 8
"""Tests handed out at once: few enough that workers end together, many enough that nobody waits for a message."""
HEAVY = ("browser", "crash", "cli")
"""Marks of the tests that take seconds each: they come first, and the small ones fill the gaps at the end."""
STOP = "stop"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--workers", type=int, default=0, metavar="N", help="run the tests in N forked workers; 0: in this process"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    config = session.config
    broken = session.testsfailed and not config.option.continue_on_collection_errors
    if config.option.workers < 1 or config.option.collectonly or broken or not hasattr(os, "fork"):
        return None  # pytest's own loop does it, or says why not.
    Run(session, config.option.workers).loop()
    return True


class Portions:
    """The tests that nobody has begun, by file."""

    def __init__(self, files: Sequence[str], heavy: Sequence[bool] = ()) -> None:
        self._left: dict[str, deque[list[int]]] = {}
        places = range(len(files))
        for place in sorted(places, key=lambda place: not heavy[place]) if heavy else places:
            portions = self._left.setdefault(files[place], deque())
            if not portions or len(portions[-1]) == PORTION:
                portions.append([])
            portions[-1].append(place)
        self._begun: set[str] = set()

    def take(self, file: str | None) -> list[int]:
        """The next of the file at hand, else of one that nobody has, else of the one with the most left; [] at the end."""
        if file not in self._left:
            fresh = (name for name in self._left if name not in self._begun)
            file = next(fresh, None) or max(self._left, key=lambda name: len(self._left[name]), default=None)
        if file is None:
            return []
        self._begun.add(file)
        portion = self._left[file].popleft()
        if not self._left[file]:
            del self._left[file]
        return portion

    def put_back(self, file: str, places: list[int]) -> None:
        if places:
            self._left.setdefault(file, deque()).appendleft(places)

    def clear(self) -> None:
        self._left.clear()


@dataclass(eq=False)
class Worker:
    """What the run knows of a worker: where it can be heard, and the tests that are its to run."""

    process: int
    pipe: Connection
    given: list[int] = field(default_factory=list)


class Run:
    """The parent's side: hands out portions and takes reports."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._files = [str(item.path) for item in session.items]
        heavy = [any(item.get_closest_marker(name) for name in HEAVY) for item in session.items]
        self._portions = Portions(self._files, heavy)
        self._count = count
        self._workers: list[Worker] = []
        self._stopped = False

    def loop(self) -> None:
        # What is there already is never garbage: the workers need not look at it, nor copy its pages by looking.
        gc.collect()
        gc.freeze()
        try:
            for _ in range(min(self._count, len(self._session.items))):
                self._start()
            while self._workers:
                for pipe in wait([worker.pipe for worker in self._workers]):
                    self._hear(next(worker for worker in self._workers if worker.pipe is pipe))
        finally:
            for worker in self._workers:
                os.kill(worker.process, signal.SIGINT)
            for worker in self._workers:
                os.waitpid(worker.process, 0)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _start(self) -> None:
        ours, theirs = Pipe()
        process = os.fork()
        if process == 0:
            for worker in self._workers:
                worker.pipe.close()
            ours.close()
            _work(self._session, theirs)
        theirs.close()
        worker = Worker(process, ours)
        self._workers.append(worker)
        self._give(worker)

    def _give(self, worker: Worker) -> None:
        at_hand = self._files[worker.given[-1]] if worker.given else None
        portion = self._portions.take(at_hand)
        worker.given += portion
        self._tell(worker, portion)

    def _tell(self, worker: Worker, what: list[int] | str) -> None:
        with suppress(BrokenPipeError):  # It has ended, which is heard next.
            worker.pipe.send(what)

    @property
    def _is_over(self) -> bool:
        """Failed often enough for `-x`, or interrupted."""
        return bool(self._session.shouldfail or self._session.shouldstop)

    def _hear(self, worker: Worker) -> None:
        try:
            word, what = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._ended(worker)
            return
        if word == "more":
            self._give(worker)
        elif word == "begun":
            item = self._session.items[what]
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        elif word == "ended":
            worker.given.remove(what)
            item = self._session.items[what]
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        else:
            hook = self._session.config.hook
            report = hook.pytest_report_from_serializable(config=self._session.config, data=what)
            hook.pytest_runtest_logreport(report=report)
            if self._is_over and not self._stopped:
                self._stopped = True
                self._portions.clear()
                for other in self._workers:
                    self._tell(other, STOP)

    def _ended(self, worker: Worker) -> None:
        self._workers.remove(worker)
        worker.pipe.close()
        _, status = os.waitpid(worker.process, 0)
        if not worker.given or self._is_over:
            return
        running, *rest = worker.given
        item = self._session.items[running]
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords={},
            outcome="failed",
            longrepr=f"The worker ended while it ran this test ({_ending(status)}).",
            when="call",
        )
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        for file in dict.fromkeys(self._files[place] for place in rest):
            self._portions.put_back(file, [place for place in rest if self._files[place] == file])
        self._start()


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


# -- in a worker


def _work(session: pytest.Session, pipe: Connection) -> None:
    """Never returns: the rest of pytest's run is the parent's."""
    code = 1
    try:
        _settle_in(session, pipe)
        _run_all(session, pipe)
        code = 0
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass  # The parent is gone, or wants us to be.
    except BaseException as failure:  # noqa: BLE001 - the parent tells of it as the failure of the test
        os.write(2, f"\nA worker failed: {failure!r}\n".encode())
    finally:
        try:
            # Ends whatever servers and browsers the fixtures still hold.
            session._setupstate.teardown_exact(None)
        finally:
            os._exit(code)


def _settle_in(session: pytest.Session, pipe: Connection) -> None:
    """What was made for one process is made anew for this one."""
    config = session.config
    # Otherwise all workers would try the same "random" ports.
    random.seed()
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture._global_capturing is not None:
        # Its files are the parent's too. It is kept, unused: at its end it would close what is not only ours.
        capture._of_the_parent, capture._global_capturing = capture._global_capturing, None
        capture.start_global_capturing()
        capture.suspend_global_capture()
    folders: Any = config._tmp_path_factory  # type: ignore[attr-defined] # pytest-xdist does the same, in the same way
    folders._basetemp = folders.getbasetemp() / f"worker-{os.getpid()}"
    folders._basetemp.mkdir(mode=0o700)
    terminal: Any = config.pluginmanager.getplugin("terminalreporter")
    terminal._tw = TerminalWriter(Path(os.devnull).open("w"))  # noqa: SIM115 - for as long as the worker lives
    config.pluginmanager.register(_Reports(config, pipe), "reports-to-the-parent")


class _Reports:
    def __init__(self, config: pytest.Config, pipe: Connection) -> None:
        self._config, self._pipe = config, pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._pipe.send(("report", data))


def _run_all(session: pytest.Session, pipe: Connection) -> None:
    waiting: deque[int] = deque(pipe.recv())
    while waiting:
        place = waiting.popleft()
        answer: list[int] | str = []
        if not waiting:
            # Asked for before the last one runs: what the next test needs is kept when this one is torn down.
            pipe.send(("more", None))
            answer = pipe.recv()
        elif pipe.poll():
            answer = pipe.recv()
        if isinstance(answer, str):
            assert answer == STOP
            waiting.clear()
        else:
            waiting.extend(answer)
        item = session.items[place]
        pipe.send(("begun", place))
        item.ihook.pytest_runtest_protocol(item=item, nextitem=session.items[waiting[0]] if waiting else None)
        pipe.send(("ended", place))
