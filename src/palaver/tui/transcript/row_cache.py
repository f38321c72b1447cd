"""Rows that were shown before, by their keys, so that what says the same stays the very same. Used by the row book alone."""

from collections.abc import Sequence
from dataclasses import fields
from typing import TypeVar

from palaver.tui.transcript.rows import Row

R = TypeVar("R", bound=Row)


class KeptRows:
    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}

    def keep(self, row: R) -> R:
        """The row shown before under this key, if it says the same."""
        known = self._rows.get(row.key)
        if known is not None and type(known) is type(row) and _says_the_same(known, row):
            return known
        self._rows[row.key] = row
        return row


def is_same(one: Sequence[object], other: Sequence[object]) -> bool:
    """Member by member the very same, looked at from the end, where changes are."""
    return len(one) == len(other) and all(a is b for a, b in zip(reversed(one), reversed(other), strict=True))


def _says_the_same(one: Row, other: Row) -> bool:
    return all(_is_equal(getattr(one, name), getattr(other, name)) for name in _names_of(type(one)))


def _is_equal(one: object, other: object) -> bool:
    if one is other:
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        return is_same(one, other)
    return isinstance(one, str | int | float) and one == other


_NAMES: dict[type[Row], tuple[str, ...]] = {}


def _names_of(kind: type[Row]) -> tuple[str, ...]:
    if kind not in _NAMES:
        _NAMES[kind] = tuple(field.name for field in fields(kind))
    return _NAMES[kind]
