"""What stands after an option, read without ado where it is plainly right.

Called by `commands`. Typer (0.29) reads values with pydantic, whose import takes longer than most commands do. So what a person
ordinarily types is read here; everything else goes to typer, and so does whatever it might complain about: the sentences are
its own.
"""

import os
import re
from pathlib import Path
from typing import Any, get_args, get_origin

_WHOLE = re.compile("[0-9]{1,9}")
_NUMBER = re.compile("[0-9]{1,9}([.][0-9]{1,9})?")


def read_plainly(command: Any) -> None:
    """Has the options of a command, and of all below it, read here first."""
    of_typer = command.get_params
    command.get_params = lambda ctx: [_plain(param) for param in of_typer(ctx)]
    for below in getattr(command, "commands", {}).values():
        read_plainly(below)


def _plain(param: Any) -> Any:
    if not isinstance(getattr(param.get_runtime_param, "__self__", None), _Reader):
        param.get_runtime_param = _Reader(param, param.get_runtime_param).itself
    return param


class _Reader:
    """In the place of typer's own for one option, which it asks where it does not know better."""

    def __init__(self, param: Any, careful: Any) -> None:
        self._is_list = param.multiple or param.nargs == -1
        self._described = param.type_descriptor
        self._careful = careful

    def itself(self) -> "_Reader":
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if self._is_list else None
        read = self._read(value)
        return self._careful().coerce(value, param=param, ctx=ctx) if read is NotImplemented else read

    def _read(self, value: Any) -> Any:
        kind = self._described.annotation
        if self._described.parameter_info.parser is not None:
            return NotImplemented
        if not self._is_list:
            return self._one(kind, value)
        if get_origin(kind) is not list or not isinstance(value, (list, tuple)):
            return NotImplemented
        read = [self._one(get_args(kind)[0], one) for one in value]
        return NotImplemented if any(one is NotImplemented for one in read) else read

    def _one(self, kind: Any, value: Any) -> Any:
        described = self._described
        if kind is str and isinstance(value, str):
            return value
        if kind in (int, float):
            return self._number(kind, value)
        if kind is Path and isinstance(value, (str, Path)):
            return self._path(value)
        if described.is_choice and described.case_sensitive and type(value) is str and value in described.choices:
            return value
        return NotImplemented

    def _number(self, kind: type[int | float], value: Any) -> Any:
        least, most = self._described.parameter_info.min, self._described.parameter_info.max
        form = _WHOLE if kind is int else _NUMBER
        if type(value) is not kind and not (isinstance(value, str) and form.fullmatch(value)):
            return NotImplemented
        read = kind(value)
        fits = (least is None or read >= least) and (most is None or read <= most)
        return read if fits else NotImplemented

    def _path(self, value: str | Path) -> Any:
        """What is there and can be read, or nothing where nothing need be: typer has no complaint about either."""
        about, path = self._described.parameter_info, Path(value)
        if about.exists or about.writable or about.resolve_path or about.allow_dash or about.path_type is not None:
            return NotImplemented
        is_right = (about.dir_okay and path.is_dir()) or (about.file_okay and path.is_file())
        if os.path.lexists(path) and not (is_right and os.access(path, os.R_OK)):
            return NotImplemented
        return path
