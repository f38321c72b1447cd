"""A model that does what the user's text says: each line that begins with `!` is an order, in this order.

| order | the model |
|---|---|
| `!say TEXT` | says the text |
| `!think TEXT` | thinks the text first (a short thought without one) |
| `!long N` | says N numbered words |
| `!markdown` | says headings, a list, a table and a code block |
| `!slow SECONDS` | waits so long between its chunks |
| `!gate NAME` | waits until the gate is opened |
| `!shell COMMAND`, `!read PATH`, `!list PATH`, `!glob PATTERN`, `!grep PATTERN`, `!fetch URL` | calls that tool |
| `!write PATH TEXT`, `!edit PATH OLD => NEW` | calls that tool (`\\n` in the text is a line break) |
| `!tool NAME {json}` | calls any tool, known or not |
| `!obey` | takes the orders it finds in the results so far (a file's text, say), as if the user had given them |
| `!status N`, `!cut BYTES`, `!hang BYTES` | misbehaves |

Several tools in a row are one batch of calls. A line `---` ends a step: what follows it is done after the results of the
calls before it have come. When nothing is left to do it reports the results, and without any order it repeats what was
said. Both begin with fixed words ("Results:", "You said:") that a test can look for. The record that a program is given of what
was said elsewhere holds no orders: they were carried out then.
"""

import re
import shlex
from typing import Any

import msgspec

from palaver.context.handover import OPENING
from tests.provider.script import Answer, Block, Call, Cut, Fault, Gate, Hang, Say, Status, Think
from tests.provider.wire import Asked

ONE_ARGUMENT = {
    "shell": "command",
    "read": "path",
    "list": "path",
    "glob": "pattern",
    "grep": "pattern",
    "fetch": "url",
}

MARKDOWN = """# A heading

Some *text* with `code` and a [link](https://example.invalid/).

- one
- two

| a | b |
|---|---|
| 1 | 2 |

```python
def answer() -> int:
    return 42
```
"""

_ORDER = re.compile(r"![a-z]+ .*$", re.MULTILINE)
RECORD = re.compile(rf"{re.escape(OPENING)}.*?\[quote ([0-9a-f]{{32}}) from .*?\[end of quote \1\]", re.DOTALL)

RESULT_CHARS = 400
"""Of each result in the final report: enough to recognise it."""


def obey(asked: Asked) -> Answer:
    steps = [step.strip() for step in RECORD.sub("", asked.text).split("\n---\n")]
    orders = (
        [line for line in steps[asked.steps].splitlines() if line.startswith("!")] if asked.steps < len(steps) else []
    )
    if "!obey" in orders:
        # Wherever in a line: tools put numbers and names in front of what a file says.
        orders = [found[0] for result in asked.results for found in _ORDER.finditer(result)]
    if not orders:
        return Answer.of(_report(asked), chunk_chars=12)
    blocks: list[Block] = []
    fault: Fault | None = None
    delay_s = 0.0
    for order in orders:
        word, _, rest = order[1:].partition(" ")
        match word:
            case "slow":
                delay_s = float(rest)
            case "status":
                fault = Status(status=int(rest))
            case "cut":
                fault = Cut(after_bytes=int(rest))
            case "hang":
                fault = Hang(after_bytes=int(rest) if rest else None)
            case _:
                blocks.append(_block(word, rest))
    if not any(isinstance(block, Say | Call) for block in blocks):
        blocks.append(Say(text=_report(asked)))
    return Answer(blocks=tuple(blocks), chunk_chars=12, delay_s=delay_s, fault=fault)


def _block(word: str, rest: str) -> Block:
    match word:
        case "say":
            return Say(text=_lines(rest))
        case "think":
            return Think(text=rest or "Let me see what is asked of me.")
        case "long":
            return Say(text=" ".join(f"word{number}" for number in range(1, int(rest) + 1)))
        case "markdown":
            return Say(text=MARKDOWN)
        case "gate":
            return Gate(name=rest)
        case "write":
            path, _, content = rest.partition(" ")
            return Call(name="write", input={"path": path, "content": _lines(content)})
        case "edit":
            path, _, change = rest.partition(" ")
            old, _, new = change.partition(" => ")
            return Call(name="edit", input={"path": path, "old": _lines(old), "new": _lines(new)})
        case "tool":
            name, _, arguments = rest.partition(" ")
            return Call(name=name, input=_json(arguments))
        case _ if word in ONE_ARGUMENT:
            return Call(name=word, input={ONE_ARGUMENT[word]: rest})
        case _:
            return Say(text=f"I do not know the order !{shlex.quote(word)}.")


def _report(asked: Asked) -> str:
    if asked.results:
        return "Results: " + " | ".join(result[:RESULT_CHARS] for result in asked.results)
    return f"You said: {asked.text}"


def _lines(text: str) -> str:
    return text.replace("\\n", "\n")


def _json(text: str) -> Any:
    return msgspec.json.decode(text) if text.strip() else {}
