"""`python -m palaver`: the command line."""

# ruff: noqa: PTH100, PTH120
import os
import sys

# Before anything else is imported: Python looks first in the folder it was started in, which is a project.
if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(os.path.abspath(__file__))):
    del sys.path[0]

from palaver.cli.main import main

main()
