"""`python -m palaver`: the command line."""

from palaver.cli.main import main

main()
