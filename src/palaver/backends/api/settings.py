"""What a conversation and its agent say about a model call: names checked, wrong values told to the person."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from palaver.errors import ProviderRefused


class Settings(Struct, frozen=True):
    model: Annotated[str, Meta(min_length=1)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    thinking_budget: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    reasoning_effort: str | None = None
    mode: str | None = None
    fallbacks: tuple[Annotated[str, Meta(min_length=1)], ...] = ()


def settings_of(params: Mapping[str, Any]) -> Settings:
    """Other parameters belong to others."""
    given = {name: params[name] for name in Settings.__struct_fields__ if params.get(name) is not None}
    try:
        return msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise ProviderRefused(
            f"A setting of this conversation does not fit. {error}. Correct it and send again."
        ) from error
