"""What a session lets a client choose, its mode and its model, in the three ways agents tell it. Pure.

`modes` and `models` with a method of their own (gemini-cli 0.61), or `configOptions` with one for all (opencode 1.18).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Choosable = Literal["mode", "model"]


@dataclass(frozen=True, slots=True)
class Setting:
    values: tuple[str, ...]
    current: str | None
    option: str | None = None
    """The id of its option; None where it has a method of its own."""

    def request(self, what: Choosable, session: str | None, value: str) -> tuple[str, dict[str, Any]]:
        if self.option is not None:
            return "session/set_config_option", {"sessionId": session, "configId": self.option, "value": value}
        return f"session/set_{what}", {"sessionId": session, f"{what}Id": value}


def settings_of(said: Mapping[str, Any]) -> dict[Choosable, Setting]:
    """Of the answer to a new or loaded session. What is not offered is absent."""
    found: dict[Choosable, Setting] = {}
    for what, key, name, current in (
        ("mode", "modes", "availableModes", "currentModeId"),
        ("model", "models", "availableModels", "currentModelId"),
    ):
        told = said.get(key)
        if isinstance(told, Mapping):
            values = _values(told.get(name), "id" if what == "mode" else "modelId")
            found["mode" if what == "mode" else "model"] = Setting(values, _text(told.get(current)))
    options = said.get("configOptions")
    for option in options if isinstance(options, list) else ():
        match option:
            case {"id": str(id), "category": "mode" | "model" as what, "type": "select"}:
                found[what] = Setting(_values(option.get("options"), "value"), _text(option.get("currentValue")), id)
            case _:
                pass
    return found


def _values(told: Any, name: str) -> tuple[str, ...]:
    """Options may be in groups."""
    values: list[str] = []
    for one in told if isinstance(told, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("options"), list):
            values += _values(one["options"], name)
        elif isinstance(one, Mapping) and isinstance(one.get(name), str):
            values.append(one[name])
    return tuple(values)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
