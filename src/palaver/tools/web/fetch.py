"""The tool `fetch`: one public page, as text.

It goes only where `addresses.py` lets it, for every address and every hop. A redirect to another host is not followed but
told: a person who allowed one host did not allow another. Sizes and times are bounded; what is neither a page nor text is
refused. `visit.py` is who goes there.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from palaver.backends.process import Ladder, allowed_environment, spawn
from palaver.errors import AgentError, CallerError, Invalid, TooLarge
from palaver.tools.arguments import decode, failure_of, parameters_of
from palaver.tools.base import Proposal, ToolResult, ToolSpec, Workplace
from palaver.tools.output import SPILL_BYTES, Collector
from palaver.tools.proposal import fingerprint, first_line, visible
from palaver.tools.web.addresses import Guard

if TYPE_CHECKING:
    from palaver.tools.web.visit import Page

URL_CHARS = 4000
"""Longer addresses carry data, and most servers refuse them."""
FETCH_LIMIT_S = 30.0
"""For everything together, redirects included."""
READING_LIMIT_S = 10.0
"""For making text of a page: it takes a blink, or is made to take for ever."""
TITLE_CHARS = 100


class FetchArguments(msgspec.Struct, frozen=True):
    url: Annotated[str, Meta(min_length=1, max_length=URL_CHARS, description="Address, with http:// or https://.")]


SPEC = ToolSpec(
    name="fetch",
    description=(
        "Get one public web page or text file, as text. Addresses of this machine and its own network are refused."
        " If the page has moved to another host, you are told where; fetch that then."
    ),
    parameters=parameters_of(FetchArguments),
    outside=True,
)


class Fetch:
    def __init__(self, guard: Guard | None = None) -> None:
        self._guard = guard or Guard()

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    def propose(self, arguments: Mapping[str, Any], root: Path) -> Proposal | ToolResult:
        from palaver.tools.web.visit import address

        try:
            url = address(decode(arguments, FetchArguments).url, self._guard)
        except CallerError as error:
            return failure_of(error)
        shown = visible(str(url))
        return Proposal(
            title=f"Fetch {first_line(shown, TITLE_CHARS)}",
            hash=fingerprint("fetch", arguments, root, {}),
            preview=shown,
            # By its raw name: a letter that only looks like another shows there.
            risk=visible(f"{url.raw_host} is told the whole address, and what it answers is read by the agent."),
            match=url.raw_host,
            covers=visible(f"every page of {url.raw_host}"),
        )

    async def run(self, arguments: Mapping[str, Any], place: Workplace) -> ToolResult:
        from palaver.tools.web.visit import Unreachable, address, visit

        collector = Collector(place, live=False)
        try:
            url = address(decode(arguments, FetchArguments).url, self._guard)
            async with asyncio.timeout(FETCH_LIMIT_S):
                page = await visit(url, self._guard)
            if page.moved_to is not None:
                return ToolResult(
                    ok=True,
                    output=f"{url} has moved to another host: {page.moved_to}\nFetch that address if you need it.",
                )
            text = await _readable(page, place) if page.is_html else page.text
        except TimeoutError:
            return ToolResult(ok=False, error_code="timed_out", error=f"No whole answer within {FETCH_LIMIT_S:.0f} s.")
        except CallerError as error:
            return failure_of(error)
        except AgentError as error:
            return ToolResult(ok=False, error_code=error.code, error=error.message)
        except Unreachable as why:
            return ToolResult(ok=False, error_code="unreachable", error=f"It could not be fetched: {why}.")
        if page.url != url:
            await collector.feed_text(f"[moved to {page.url}]\n")
        await collector.feed(text)
        said = await collector.finish()
        if page.status >= 400:
            return said.result(error=f"The server answered {page.status}.", code="http_error")
        return said.result() if said.text else ToolResult(ok=True, output="[the page is empty]")


async def _readable(page: "Page", place: Workplace) -> bytes:
    """The page as text, made by a program that can be ended."""
    argv = [sys.executable, "-I", "-m", "palaver.tools.web.page", str(page.url)]
    environment = allowed_environment(place.environment)
    text = bytearray()
    try:
        async with (
            asyncio.timeout(READING_LIMIT_S),
            spawn(argv, cwd=place.root, environment=environment, stdin=True, ladder=Ladder(0, 0)) as child,
        ):
            # Nothing is written before all is read, so neither waits for the other.
            await child.write(page.text)
            child.close_stdin()
            async for line in child.lines():
                text += line + b"\n"
                if len(text) > SPILL_BYTES:
                    raise TooLarge(f"The page's text is larger than {SPILL_BYTES:,} bytes; nothing of it is shown.")
            if (await child.ended()).code != 0:
                raise Invalid("The page could not be read as HTML.")
    except TimeoutError:
        raise Invalid(f"No text could be made of the page within {READING_LIMIT_S:.0f} s.") from None
    return bytes(text)
