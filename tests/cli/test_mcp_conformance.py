"""The MCP conformance suite at both inbox servers: what applies passes, what does not is named with its reason.

Most scenarios are about tools, prompts and resources of the suite's own example server; those cannot be at an inbox. The
page of the protocol lists them, and is held to this file.
"""

import asyncio
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.from_npm import MODULES, missing, node_folder
from tests.cli.token_adding import token_adding
from tests.flows.served import serving

SUITE = ("@modelcontextprotocol", "conformance", "dist", "index.js")
ABSENT = missing("The MCP conformance suite", *SUITE)
PAGE = Path(__file__).parents[2] / "docs/protocol/inbox.md"
LIMIT_S = 120.0

pytestmark = [pytest.mark.cli, pytest.mark.skipif(ABSENT is not None, reason=ABSENT or "")]

TOOLS_OF_THE_SUITE = {
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-with-logging",
    "tools-call-error",
    "tools-call-with-progress",
    "tools-call-sampling",
    "tools-call-elicitation",
    "json-schema-2020-12",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "http-custom-header-server-validation",
    "input-required-result-basic-elicitation",
    "input-required-result-basic-sampling",
    "input-required-result-basic-list-roots",
    "input-required-result-request-state",
    "input-required-result-multiple-input-requests",
    "input-required-result-multi-round",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "input-required-result-capability-check",
}
RESOURCES_OF_THE_SUITE = {
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
}
NOT_OFFERED = {
    "logging-set-level",
    "completion-complete",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "input-required-result-non-tool-request",
}
LEFT_OUT = TOOLS_OF_THE_SUITE | RESOURCES_OF_THE_SUITE | NOT_OFFERED

IN_PART: dict[str, set[str]] = {
    # Each needs a tool of the suite that provokes it.
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    },
    # There are no prompts.
    "caching": {"sep-2549-prompts-list-caching-hints"},
}
"""Scenarios that apply but for these checks."""


async def conformance(url: str, version: str, results: Path) -> dict[str, set[str]]:
    """By scenario: the checks that failed."""
    node = node_folder()
    assert node is not None
    process = await asyncio.create_subprocess_exec(
        *(str(node / "node"), str(MODULES.joinpath(*SUITE)), "server", "--url", url, "--suite", "all"),
        *("--spec-version", version, "--output-dir", str(results)),
        env={"PATH": f"{node}:/usr/bin:/bin", "HOME": str(results.parent)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(LIMIT_S):
        await process.wait()
    return _failed(results)


def _failed(results: Path) -> dict[str, set[str]]:
    failed: dict[str, set[str]] = defaultdict(set)
    for folder in results.iterdir():
        # server-NAME-2026-11-16T06-36-14-171Z
        name = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", folder.name).removeprefix("server-")
        checks: list[dict[str, Any]] = msgspec.json.decode((folder / "checks.json").read_bytes())
        failed[name] |= {check["id"] for check in checks if check["status"] == "FAILURE"}
    return failed


@pytest.mark.parametrize("side", ["human", "assistant"])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_inbox_passes_every_scenario_that_applies(tmp_path: Path, side: str, version: str) -> None:
    async with serving(tmp_path / "data") as served, token_adding(served) as url:
        conversation = await served.create(message="Hello")
        await served.settled(conversation)
        failed = await conformance(f"{url}/mcp/{side}/{conversation}", version, tmp_path / "results")
    assert len(failed) > 30, "the suite did not run"
    applying = {name: checks for name, checks in failed.items() if name not in LEFT_OUT}
    assert {name: checks for name, checks in applying.items() if checks} == {
        name: checks for name, checks in IN_PART.items() if name in failed
    }
    assert {name for name in LEFT_OUT if name in failed and not failed[name]} == set(), "these pass by now"


def test_page_names_every_scenario_that_is_left_out() -> None:
    page = PAGE.read_text()
    assert [name for name in sorted(LEFT_OUT | set(IN_PART)) if f"`{name}`" not in page] == []
