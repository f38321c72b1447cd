"""Tells mypy that a msgspec struct is as frozen as the struct it derives from.

msgspec passes `frozen=True` on to subclasses; the typing rules for such libraries (PEP 681) know no passing on, so mypy
would ask for the word on every class, and without it would let fields be assigned.
"""

from collections.abc import Callable

from mypy.nodes import NameExpr, TypeInfo
from mypy.plugin import ClassDefContext, Plugin


class StructPlugin(Plugin):
    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        return _inherit_frozen


def _inherit_frozen(context: ClassDefContext) -> None:
    bases = [base for base in context.cls.info.mro[1:] if base.has_base("msgspec.Struct")]
    if "frozen" not in context.cls.keywords and any(_is_frozen(base) for base in bases):
        true = NameExpr("True")
        true.fullname = "builtins.True"
        context.cls.keywords["frozen"] = true


def _is_frozen(struct: TypeInfo) -> bool:
    # A struct of a module that mypy took from its cache has no keywords any more, only what was concluded from them.
    keyword = struct.defn.keywords.get("frozen")
    written = isinstance(keyword, NameExpr) and keyword.name == "True"
    return written or bool(struct.metadata.get("dataclass", {}).get("frozen"))


def plugin(version: str) -> type[Plugin]:
    return StructPlugin
