"""`palaver completion`: the lines that teach a shell to complete Palaver's commands, options, ids and names."""

from typing import Annotated, Literal

import typer

HOW = {
    "bash": "palaver completion bash > ~/.local/share/bash-completion/completions/palaver",
    "zsh": 'palaver completion zsh > "${fpath[1]}/_palaver"',
    "fish": "palaver completion fish > ~/.config/fish/completions/palaver.fish",
}
"""Where each shell looks. In effect from its next start."""

EXAMPLES = tuple(HOW.values())


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="bash|zsh|fish", help="Which shell.")],
) -> None:
    """Print the completion script of a shell.

    Ids of conversations and names of agents are completed from the running server.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined] # imported there, and meant to be

    from palaver.cli.commands import COMPLETE

    print(get_completion_script(prog_name="palaver", complete_var=COMPLETE, shell=shell))
