"""What is known of models by their names alone: how much they read, and which settings they refuse.

Used by the adapters, the route and the context meter. Pure and without imports: it stands before the first word of every
answer. Names this release does not know get the habits of their family, or none: then a service is asked as it stands.
"""

import re

_CLAUDE = re.compile(r"claude-(?:(?P<family>[a-z]+)-)?(?P<major>\d)(?:[-.](?P<minor>\d{1,2})(?!\d))?")
_OPENAI = re.compile(r"(?:^|/)(?:gpt-(?P<gpt>\d+(?:\.\d+)?)|o(?P<o>[1-9]))(?P<rest>.*)")

_WINDOWS: tuple[tuple[str, int], ...] = (
    ("gpt-oss", 131_072),
    ("gpt-3.5", 16_385),
    ("gpt-4.1", 1_000_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4o", 128_000),
    ("chatgpt-4o", 128_000),
    ("gpt-4", 8_192),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("gemini-1.0", 32_768),
    ("gemini-", 1_000_000),
    ("deepseek-v4", 1_000_000),
    ("deepseek-", 128_000),
    ("grok-4-fast", 2_000_000),
    ("grok-4-1-fast", 2_000_000),
    ("grok-3", 131_072),
    ("grok-", 256_000),
    ("mistral-large", 131_072),
    ("mistral-medium", 131_072),
    ("mistral-small", 131_072),
    ("codestral", 256_000),
    ("devstral", 131_072),
    ("command-", 128_000),
    ("kimi-k2", 131_072),
)
"""By family, the smallest of its members where they differ. Models that people run themselves are left out: there the
server's own setting counts, not the name."""


def window_tokens(model: str) -> int | None:
    """What the model can read at once, prompt and answer together; None when nobody here knows."""
    name = bare(model)
    if (version := claude_version(name)) is not None:
        return 1_000_000 if version >= 4.6 else 200_000
    for family, tokens in _WINDOWS:
        if name.startswith(family):
            return tokens
    if known := _OPENAI.match(name):
        if known["o"]:
            return 200_000
        small = known["rest"].startswith(("-mini", "-nano", "-codex", "-chat"))
        return 1_000_000 if float(known["gpt"]) >= 5.4 and not small else 128_000 if "-chat" in name else 400_000
    return None


def bare(model: str) -> str:
    """The model's own name: what gateways put before it is about them."""
    return model.rsplit("/", 1)[-1].lower()


def is_sold_only(model: str) -> bool:
    """Nobody but its maker's service runs it, whatever stands in between: so it has a price wherever it is asked."""
    name = bare(model)
    if name.startswith("gpt-oss"):
        return False
    return claude_version(name) is not None or _OPENAI.match(name) is not None or name.startswith("gemini-")


# -- Anthropic


def claude_version(model: str) -> float | None:
    found = _CLAUDE.search(bare(model))
    return float(f"{found['major']}.{found['minor'] or 0}") if found else None


def takes_budget(model: str) -> bool:
    """A thinking budget in tokens. From 4.7 on the model decides itself, and a budget is refused."""
    version = claude_version(model)
    return version is None or version < 4.7


def takes_effort(model: str) -> bool:
    """How hard to think, in a word. Before 4.6 there is only the budget."""
    version = claude_version(model)
    return version is None or version >= 4.6


def takes_sampling(model: str) -> bool:
    """`temperature` and `top_p`. Left out where the service would refuse the whole request for them."""
    if (version := claude_version(model)) is not None:
        return version < 4.7
    return not reasons(model)


def takes_both_samplings(model: str) -> bool:
    """From 4.5 on a request may name `temperature` or `top_p`, not both."""
    version = claude_version(model)
    return version is None or version < 4.5


# -- OpenAI


def reasons(model: str) -> bool:
    """A model of OpenAI's that thinks before it answers: takes an effort, refuses sampling."""
    name = bare(model)
    if name.startswith("gpt-oss") or "-chat" in name:
        return False
    known = _OPENAI.match(name)
    return known is not None and (known["o"] is not None or float(known["gpt"]) >= 5)
