"""Checks that values read from JSON have the types a dataclass declares."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from typing import Any


def check_fields(found: Any, kind: type, where: str = "") -> None:
    """Raise a ValueError that names the first entry whose type is not the declared one.

    A number may be an integer where a float is declared. It may be null, which stands for NaN, in
    lists and objects, and in fields whose default is NaN. Fields with a default may be absent.

    Parameters
    ----------
    found : dict
        The fields of a dataclass, as JSON holds them.
    kind : type
        The dataclass.
    where : str
        Name of the entry, for the message.

    Examples
    --------
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     names: list[str]
    >>> check_fields({"x": 1, "names": ["a"]}, Point)
    >>> check_fields({"x": 1, "names": ["a", 2]}, Point)
    Traceback (most recent call last):
    ...
    ValueError: 'names' must hold text, not 2
    """
    if not isinstance(found, dict):
        raise ValueError(f"{where!r} must be an object, not {_short(found)}")
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        name = f"{where}.{field.name}" if where else field.name
        if field.name in found:
            unknown = isinstance(field.default, float) and math.isnan(field.default)
            if found[field.name] is None and hints[field.name] is float and not unknown:
                raise ValueError(f"{name!r} must hold a number, not None")
            _check(found[field.name], hints[field.name], name)
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{name!r} is missing")


def _check(value: Any, hint: Any, where: str) -> None:
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return
    if origin in (types.UnionType, typing.Union):
        if value is None and types.NoneType in inside:
            return
        (hint,) = (h for h in inside if h is not types.NoneType)
        _check(value, hint, where)
    elif origin is list:
        _expect(isinstance(value, list), "a list", value, where)
        for item in value:
            _check(item, inside[0], where)
    elif origin is dict:
        _expect(isinstance(value, dict), "an object", value, where)
        for item in value.values():
            _check(item, inside[1], where)
    elif dataclasses.is_dataclass(hint):
        check_fields(value, typing.cast(type, hint), where)
    elif hint is bool:
        _expect(isinstance(value, bool), "true or false", value, where)
    elif hint in (int, float):
        number = isinstance(value, int if hint is int else int | float | None)
        _expect(number and not isinstance(value, bool), "a number", value, where)
    elif hint is str:
        _expect(isinstance(value, str), "text", value, where)


def _expect(right: bool, expected: str, value: Any, where: str) -> None:
    if not right:
        raise ValueError(f"{where!r} must hold {expected}, not {_short(value)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 30 else f"{text[:27]}..."
