"""Runs the program `tpc` and reads its JSON."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import typing
from typing import Any, Optional, Sequence, TypeVar, Union

Value = Union[None, bool, int, float, str, os.PathLike, Sequence[Any]]
T = TypeVar("T")


class Error(Exception):
    """A command that printed no result: wrong usage, or an unreadable input.

    `status` is the exit status, and `message` the text of the diagnostics.
    """

    def __init__(self, command: Sequence[str], status: int, message: str) -> None:
        super().__init__(message.strip() or f"tpc ended with status {status}")
        self.command = list(command)
        self.status = status
        self.message = message


def program() -> str:
    """Returns the path of the program: the value of `TPC`, this package's program, or the first in `PATH`."""
    if given := os.environ.get("TPC"):
        return given
    name = "tpc.exe" if sys.platform == "win32" else "tpc"
    folders = [sysconfig.get_path("scripts"), os.path.join(sys.prefix, "bin")]
    if hasattr(sysconfig, "get_preferred_scheme"):
        folders.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is None:
        raise FileNotFoundError("the program `tpc` is missing: reinstall the package, or set TPC to its path")
    return found


def words(options: dict[str, Value]) -> list[str]:
    """Returns the options of a command line: `split_mode="tensor"` is `--split-mode tensor`. True is an option
    without a value, and None or False is no option. An option of several values is repeated."""
    out: list[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            out.append(option)
            continue
        several = isinstance(value, Sequence) and not isinstance(value, str)
        for one in value if several else [value]:
            out += [option, os.fspath(one) if isinstance(one, os.PathLike) else str(one)]
    return out


def output(command: Sequence[str]) -> Any:
    """Runs `tpc` with these words, and returns its JSON. Status 1 is a result with errors.

    Raises Error if there is no JSON.
    """
    ran = subprocess.run([program(), *command], capture_output=True, stdin=subprocess.DEVNULL, check=False)
    message = ran.stderr.decode("utf-8", "replace")
    if ran.returncode not in (0, 1):
        raise Error(command, ran.returncode, message)
    try:
        return json.loads(ran.stdout)
    except ValueError:
        raise Error(command, ran.returncode, message) from None


def decode(wanted: Any, value: Any) -> Any:
    """Converts JSON to a type: dataclasses, lists, dictionaries, optional values and unions. Unknown keys are left
    out, since later versions of tpc may add some."""
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)
    if dataclasses.is_dataclass(wanted):
        if not isinstance(value, dict):
            raise TypeError(f"{wanted.__name__} must be an object, not {value!r}")
        hints = typing.get_type_hints(wanted)
        fields = {}
        for field in dataclasses.fields(wanted):
            key = field.metadata.get("key", field.name)
            if key in value:
                fields[field.name] = decode(hints[field.name], value[key])
        return wanted(**fields)
    if origin in (list, typing.List) and isinstance(value, list):
        return [decode(inner[0], v) for v in value]
    if origin in (dict, typing.Dict) and isinstance(value, dict):
        return {k: decode(inner[1], v) for k, v in value.items()}
    if origin is Union:
        if value is None:
            return None
        for one in inner:
            if one is type(None):
                continue
            try:
                return decode(one, value)
            except (TypeError, AttributeError):
                continue
        raise TypeError(f"{value!r} has none of the types {inner}")
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(wanted, type) and not isinstance(value, wanted):
        raise TypeError(f"expected {wanted.__name__}, not {value!r}")
    return value


def typed(wanted: type[T], command: Sequence[str]) -> T:
    """Runs a command, and returns its JSON as a dataclass."""
    result: T = decode(wanted, output([*command, "--format", "json"]))
    return result


def model(path: Union[str, os.PathLike], options: dict[str, Value], devices: Optional[object]) -> list[str]:
    """Returns the words for a model, its devices and further options."""
    given = {} if devices is None else {"devices": devices}
    if isinstance(devices, Sequence) and not isinstance(devices, str):
        given = {"devices": ",".join(str(d) for d in devices)}
    return [os.fspath(path), *words({**given, **options})]
