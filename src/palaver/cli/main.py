"""`palaver`: where the program begins. Kept bare, for every command waits for what is imported here."""

import gc
import os
import sys

OBJECTS = 50_000
"""Made before anybody looks for garbage. What is imported is none, and looking through it took a tenth of a short command."""


def main() -> None:
    if sys.argv[1:] == ["--version"]:
        from palaver import __version__

        print(f"palaver {__version__}")
        return
    from palaver.installation import forget_working_folder

    forget_working_folder()
    gc.set_threshold(OBJECTS)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        from palaver.nonblocking_output import claim_standard_streams

        claim_standard_streams()
    if sys.stdout.isatty() or sys.stderr.isatty():
        from palaver.cli.support.terminal import guard_streams

        guard_streams()
    from palaver.cli.commands import COMPLETE, app

    if COMPLETE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined] # imported there, and meant to be

        completion_init()
    try:
        app(prog_name="palaver")
    finally:
        # Python looks through everything once more at its end, unless it is told not to.
        gc.freeze()
