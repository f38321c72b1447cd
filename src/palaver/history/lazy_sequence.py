"""Sequence that is read anew, one item after another, each time it is walked: messages of a file larger than memory."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence that is made anew, one item after another, each time it is walked."""

    def __init__(self, length: int, walk: Callable[[int], Iterator[T]]) -> None:
        """`walk` yields the items from a place on."""
        self._length = length
        self._walk = walk

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return self._walk(0)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(self._length))]
        at = place if place >= 0 else self._length + place
        if not 0 <= at < self._length:
            raise IndexError(place)
        return next(self._walk(at))
