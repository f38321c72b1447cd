"""A tiny program that goes to a folder and becomes another program there: `start_in.py FOLDER PROGRAM [ARGUMENT…]`.

Given to agent programs as the command of an MCP server, because they start servers in the project. Standard library only and
without site packages, so that it starts at once and runs nothing that lies in the folder it is called in.
"""

import os
import sys


def main() -> None:
    folder, *argv = sys.argv[1:]
    try:
        os.chdir(folder)
        os.execvp(argv[0], argv)  # noqa: S606
    except OSError as failure:
        sys.exit(f"{argv[0]} was not started: {failure}")


if __name__ == "__main__":
    main()
