"""The page on tools names every tool with its arguments, and no tool that is not there."""

import re
from pathlib import Path

from palaver.tools.agents.chat_post import ChatPost
from palaver.tools.shell.background import Processes
from palaver.tools.shell.sandbox import unsandboxed
from palaver.tools.toolbox import built_in_tools

PAGE = Path(__file__).parents[3] / "docs/tools.md"
ROW = re.compile(r"^\| `(\w+)` \|([^|]*)\|", re.MULTILINE)


def test_every_tool_is_on_its_page_with_its_arguments() -> None:
    written = {name: set(re.findall(r"`(\w+)\??`", arguments)) for name, arguments in ROW.findall(PAGE.read_text())}
    built_in = built_in_tools(unsandboxed(), Processes(lambda: "p1"), lambda: "r1", lambda _: ())
    # One more for agents that speak through it alone.
    tools = (*built_in, ChatPost())
    there = {tool.spec.name: set(tool.spec.parameters["properties"]) for tool in tools}
    assert written == there


def test_optional_arguments_are_marked_on_the_page() -> None:
    written = {name: set(re.findall(r"`(\w+)\?`", arguments)) for name, arguments in ROW.findall(PAGE.read_text())}
    for tool in built_in_tools(unsandboxed(), Processes(lambda: "p1"), lambda: "r1", lambda _: ()):
        required = set(tool.spec.parameters.get("required", ()))
        optional = set(tool.spec.parameters["properties"]) - required
        # `list` may be called without a path; the page shows it as it is meant to be called.
        assert written[tool.spec.name] == optional - ({"path"} if tool.spec.name == "list" else set()), tool.spec.name
