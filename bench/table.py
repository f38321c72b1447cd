"""A measured number, and the table of all of them."""

from dataclasses import dataclass

from msgspec import Struct


class Row(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`goal` is written as it was promised; `met` is None where nothing was promised."""

    what: str
    measured: str
    floor: str = ""
    ratio: float | None = None
    goal: str = ""
    met: bool | None = None


class Measured(Struct, frozen=True, kw_only=True):
    """The rows that one run of a benchmark gave, and where and when it ran."""

    commit: str
    date: str
    machine: str
    rows: list[Row]


@dataclass(frozen=True, slots=True)
class Spread:
    """Values of one kind, in the order of their size."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: list[float]) -> "Spread":
        return cls(tuple(sorted(values)))

    def at(self, share: float) -> float:
        return self.values[min(len(self.values) - 1, int(share * len(self.values)))]

    @property
    def median(self) -> float:
        return self.at(0.5)

    def __str__(self) -> str:
        return f"p50 {self.at(0.5):.2f} ms, p99 {self.at(0.99):.2f} ms"
