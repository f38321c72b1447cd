"""A tool's arguments: one struct says what a model is told, what is accepted, and what is wrong.

Used by every built-in tool. Unknown arguments are ignored; a number sent as text is taken for the number.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from palaver.errors import CallerError, Invalid
from palaver.tools.base import ToolResult

T = TypeVar("T", bound=msgspec.Struct)


@cache
def parameters_of(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The JSON Schema of a tool's arguments, in the plain words that every model service takes: no references, no null."""
    _, components = msgspec.json.schema_components([kind])
    schema: dict[str, Any] = _plain(components[kind.__name__], components)
    return schema


def _plain(schema: Any, components: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_plain(part, components) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _plain(components[schema["$ref"].rpartition("/")[2]], components)
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        # What may be null may as well be left out, and only that is said.
        return _plain(choices[0], components)
    # A field may be called "title" too; the schema's own title is the name of a class of ours.
    return {
        name: _plain(value, components)
        for name, value in schema.items()
        if name != "title" or not isinstance(value, str)
    }


def decode(arguments: Mapping[str, Any], kind: type[T]) -> T:
    try:
        msgspec.json.encode(arguments)
    except (TypeError, UnicodeError) as error:
        raise Invalid("The arguments are not valid JSON text.") from error
    try:
        return msgspec.convert(arguments, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Invalid(f"The arguments do not fit: {error}.") from error


def failure_of(error: CallerError) -> ToolResult:
    """What went wrong, as a result that the model can act on."""
    return ToolResult(ok=False, error_code=error.code, error=error.message)
