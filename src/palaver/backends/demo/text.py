"""What the demo agent shows: its texts, an imaginary source file, and a picture. Used by `backend.py` alone."""

import base64
import struct
import zlib

WELCOME = """\
**Welcome to Palaver.** I am the demo agent: a script, not a model. I can show you everything an agent can do in a \
conversation, and nothing I do touches your machine.
"""

REAL_AGENTS = """\
When you would rather talk to somebody real, run `palaver doctor` in a terminal: it lists the agents found on this machine \
and says what each of the others needs. `palaver model install tiny` fetches a small model that needs no account.
"""

MARKDOWN = """\
### Three lights of one coast

| light | built | range | keeper |
|---|---:|---:|---|
| North Head | 1851 | 19 nm | Ada |
| Gull Rock | 1874 | 14 nm | Bertrand |
| The Needle | 1902 | 23 nm | *none since 1988* |

Each flashes in its own rhythm:

1. **North Head**: one long flash every ten seconds.
2. **Gull Rock**: two short ones, then dark for six.
3. **The Needle**: three, and a red sector
   - over the shoals to the east,
   - and over the harbour bar.

```python
def flashes(pattern: str, seconds: int) -> int:
    \"\"\"How often a light flashes in a time: "*" is a flash, "." a dark second.\"\"\"
    full, rest = divmod(seconds, len(pattern))
    return full * pattern.count("*") + pattern[:rest].count("*")
```

> The text is shown as it comes, and looks the same when you load the page again.
"""

LIGHTHOUSE = """\
\"\"\"The light itself.\"\"\"

RANGE_NM = 19
PATTERN = "*........."


def is_lit(second: int) -> bool:
    return PATTERN[second % len(PATTERN)] == "*"
"""

DIFF = """\
--- a/src/lighthouse.py
+++ b/src/lighthouse.py
@@ -3,2 +3,3 @@
-RANGE_NM = 19
+# The new lens carries further.
+RANGE_NM = 23
 PATTERN = "*........."
"""

HORN_DIFF = """\
--- /dev/null
+++ b/src/horn.py
@@ -0,0 +1,6 @@
+\"\"\"When the fog horn sounds.\"\"\"
+
+ON_S = 3
+OFF_S = 27
+QUIET_UNTIL_H = 6
+PITCH_HZ = 110
"""

LOG_DIFF = """\
--- a/LOG.md
+++ b/LOG.md
@@ -2,3 +2,4 @@
 ## North Head
 Light: 19 miles.
+Horn: 3 s in 30.
 Keeper: on leave until May.
"""

STORY = """\
Everything in a conversation is written to a log before anyone sees it: your messages, my words, each call of a \
tool and its result, each question and who answered it. The log only ever grows, and each entry has a number.

What you see on the page is that log, read from the beginning. A second browser, a phone or a terminal reads the \
same log and therefore shows the same. Nobody has to ask the others what happened.

When a connection breaks, the page remembers the number of the last entry it saw and asks for what came after. \
Nothing is lost in a tunnel, and nothing arrives twice.

When the server itself stops in the middle of a word, the half sentence is kept and marked as interrupted. A tool \
that was running is marked too: its effect is unknown, so it is never quietly run again.

A stop is an entry like any other. It ends the model's answer and every process that the turn has started, and your \
message after it begins a new turn on solid ground.

A permission is an entry as well. It waits for you, here and on every device, through restarts; the first answer \
counts, and everyone else is told who gave it.

Messages you send while I work stand in a queue that you can see, change and reorder. Once you remove one, it is \
gone for good and will not be sent.

So an agent may be exchanged for another in the middle of a conversation: the next one reads the same log, and goes \
on where the last one stopped.
""".strip().split("\n\n")


def _sunset(width: int = 96, height: int = 48) -> str:
    """A picture as a data URL, painted here so that no file and no network is needed."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        for x in range(width):
            in_sun = (x - width // 2) ** 2 + (y - height // 2) ** 2 < (height // 4) ** 2 and y < height // 2
            warmth = 255 * y // height
            rows += bytes(
                (255, 236, 150) if in_sun else (250 - y, 120 + y, 90) if y < height // 2 else (20, 70, warmth)
            )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


SUNSET = _sunset()
