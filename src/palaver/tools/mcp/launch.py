"""How a program that is an MCP server is started, by us or by an agent program: outside the project.

A server runs with all rights of its person, in no sandbox. npx, uvx, `python -m` and node run what they find in the folder they
start in (`node_modules/.bin`, a module, `.npmrc`), and in a project an agent can put anything there. So a server starts in
an empty folder of ours, with a PATH without project folders, and is told the project by the variable PALAVER_PROJECT and by
`{project}` in its arguments. Not by the roots of the protocol: the reference file server takes them in place of the folders
that it was given.

Called by `connection.py` and by the backends whose programs start servers themselves. Must never let a server start in a folder
that an agent can write.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from palaver.backends.process import allowed_environment
from palaver.backends.program_lookup import ProgramLookup
from palaver.errors import ProtocolBroken
from palaver.installation import BARE_INTERPRETER
from palaver.schema.records import McpServer

PROJECT = "PALAVER_PROJECT"
PLACEHOLDER = "{project}"
_START_IN = Path(__file__).with_name("start_in.py")


def prepare_server(
    server: McpServer, project: Path, environment: Mapping[str, str], programs: ProgramLookup
) -> tuple[tuple[str, ...], dict[str, str], Path]:
    """Command, environment and working folder of a server that we start. Blocking; raises NotInstalled or ProtocolBroken."""
    seen = allowed_environment(environment, {**server.environment, PROJECT: str(project)})
    argv, environment = programs.prepare(_arguments(server, project), seen)
    return argv, environment, programs.empty_folder()


def started_elsewhere(
    server: McpServer, project: Path, environment: Mapping[str, str], programs: ProgramLookup
) -> McpServer:
    """A server for an agent program that would start it in the project: the same, started in the empty folder. One with an
    address is returned as it is. `environment` is the agent program's. Blocking; raises ProtocolBroken."""
    if not server.command:
        return server
    seen = {**environment, **server.environment}
    name, *arguments = _arguments(server, project)
    # What is not found is looked up once more by the server's start, on a PATH that leads into no project, and is missed there.
    found = name if os.sep in name else programs.find(name, seen) or name
    start = (BARE_INTERPRETER, "-I", "-S", "-E", str(_START_IN), str(programs.empty_folder()))
    told = {**server.environment, "PATH": programs.trusted_path(seen), PROJECT: str(project)}
    return replace(server, command=(*start, found, *arguments), environment=told)


def _arguments(server: McpServer, project: Path) -> tuple[str, ...]:
    program, *arguments = server.command
    for argument in arguments:
        if argument in (".", "..") or argument.startswith(("./", "../")):
            raise ProtocolBroken(
                f"The MCP server {server.name} was not started: its argument `{argument}` is relative, and servers do not "
                f"start in the project. For the project write `{PLACEHOLDER}`, else a whole path."
            )
    return (program, *(argument.replace(PLACEHOLDER, str(project)) for argument in arguments))
