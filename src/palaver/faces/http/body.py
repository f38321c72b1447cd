"""JSON bodies, decoded once and strictly: the exact type, within the bounds of all JSON, an error that names the field.

Used by the routes as their `dto`, and by the socket for its lines. Litestar's own conversion is lenient (the text "null"
may become nothing), which a message must never suffer.
"""

from collections.abc import Generator
from typing import Any, ClassVar, TypeVar

import msgspec
from litestar.dto import AbstractDTO
from litestar.dto.data_structures import DTOFieldDefinition
from litestar.openapi.spec import Reference, Schema
from litestar.typing import FieldDefinition

from palaver.core.json_bounds import DEPTH, BeyondBounds, check_bounds
from palaver.errors import Invalid

T = TypeVar("T")


def decode(body: bytes, decoder: "msgspec.json.Decoder[T]") -> T:
    try:
        check_bounds(body)
        return decoder.decode(body)
    except msgspec.ValidationError as problem:
        raise Invalid(_sentence(str(problem))) from None
    except BeyondBounds as problem:
        raise Invalid(f"The body {problem}.", limit=DEPTH) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise Invalid(f"The body is not valid JSON: {problem}.") from None


def _sentence(problem: str) -> str:
    """msgspec says "Expected `str`, got `int` - at `$.content`"; the field comes first here."""
    what, _, where = problem.partition(" - at ")
    field = where.strip("`").removeprefix("$").removeprefix(".")
    return f"`{field}`: {what}." if field else f"{what}."


class JsonBody(AbstractDTO[Any]):
    """The handler's `data`, decoded as its annotation says."""

    decoders: ClassVar[dict[str, "msgspec.json.Decoder[Any]"]] = {}
    shape: ClassVar[Any] = None
    """What the API's description shows in place of the annotation."""

    def decode_bytes(self, value: bytes) -> Any:
        return decode(value, self.decoders[self.asgi_connection.route_handler.handler_id])

    @classmethod
    def create_for_field_definition(
        cls, field_definition: FieldDefinition, handler_id: str, backend_cls: Any = None
    ) -> None:
        cls.decoders[handler_id] = msgspec.json.Decoder(field_definition.annotation)

    @classmethod
    def create_openapi_schema(
        cls, field_definition: FieldDefinition, handler_id: str, schema_creator: Any
    ) -> Reference | Schema:
        shown = field_definition if cls.shape is None else FieldDefinition.from_annotation(cls.shape)
        schema: Reference | Schema = schema_creator.for_field_definition(shown)
        return schema

    @classmethod
    def is_supported_model_type_field(cls, field_definition: FieldDefinition) -> bool:
        return False  # Answers are encoded as they are.

    @classmethod
    def generate_field_definitions(cls, model_type: type[Any]) -> Generator[DTOFieldDefinition, None, None]:
        yield from ()

    @classmethod
    def detect_nested_field(cls, field_definition: FieldDefinition) -> bool:
        return False


def json_body_like(shape: type[Any]) -> type[JsonBody]:
    """For a route that takes any object and looks at its fields itself: described by this shape."""
    return type(f"{shape.__name__}Body", (JsonBody,), {"shape": shape})
