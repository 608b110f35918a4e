"""Identity of a problem: hashes of its function, the values the function uses, and the data."""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import inspect
import itertools
import sys
import sysconfig
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from sbnn.likelihoods.model import ModelAt, ModelLikelihood

if TYPE_CHECKING:
    from sbnn.problems.problem import Problem

_known: weakref.WeakKeyDictionary[Problem, dict[str, Any]] = weakref.WeakKeyDictionary()


def problem_identity(problem: Problem) -> dict[str, Any]:
    """Configuration, data and function of a problem, in a form that can be stored and compared.

    Computed once per problem, on first use, so a function that counts its calls keeps its identity.
    """
    if problem not in _known:
        out = {
            **problem.description(),
            "prior_functions": value_hash(problem.priors),
            "data": value_hash(problem.data),
        }
        if problem.network is None:  # a network's likelihood follows from its description
            out["function"] = function_identity(problem.function)
        _known[problem] = out
    return _known[problem]


def function_identity(function: Callable) -> dict[str, Any]:
    """Name and code of a function, with hashes of the outside values it reads, by name."""
    if isinstance(function, ModelLikelihood):
        return {**function_identity(function.model), "noise": value_hash(function.likelihood)}
    if isinstance(function, ModelAt):
        return {**function_identity(function.model), "inputs": value_hash(function.x)}
    function = _unwrap(function)
    if not isinstance(function, types.FunctionType):
        return {"name": _name(function), "code": value_hash(function)}
    used = {**_outside(function), **({"attributes": vars(function)} if vars(function) else {})}
    return {
        "name": _name(function),
        "code": _hash(_code_tokens(function.__code__)),
        "uses": {name: value_hash(value) for name, value in sorted(used.items())},
    }


def fingerprint(data: Any) -> str:
    """Short hash of arrays, numbers and strings, nested in any way."""
    digest = hashlib.sha256()
    leaves, structure = jax.tree_util.tree_flatten(data)
    digest.update(str(structure).encode())
    for leaf in leaves:
        array = np.asarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.tobytes() if array.dtype != object else repr(leaf).encode())
    return digest.hexdigest()[:16]


def value_hash(value: Any) -> str:
    """Content hash of numbers, strings, arrays, containers, functions and objects.

    It is the same in every run. Objects from libraries are hashed by their pickled state, or by
    type alone if they cannot be pickled (a lock, an open file).
    """
    return _digest(value, {})


def _hash(tokens: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for token in tokens:
        digest.update(b"%d:" % len(token) + token)
    return digest.hexdigest()[:16]


def _digest(value: Any, seen: dict[int, tuple[Any, str]]) -> str:
    """`value_hash` that visits each object once; `seen` keeps objects alive so ids stay unique."""
    value = _unwrap(value)
    kind = type(value).__qualname__.encode()
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return _hash(iter([kind, repr(value).encode()]))
    if id(value) not in seen:
        seen[id(value)] = (value, "itself")  # placeholder for cycles
        tokens = _parts(value, lambda part: iter([_digest(part, seen).encode()]))
        seen[id(value)] = (value, _hash(itertools.chain([kind], tokens)))
    return seen[id(value)][1]


def _parts(value: Any, walk: Callable[[Any], Iterator[bytes]]) -> Iterator[bytes]:
    if isinstance(value, list | tuple):
        for part in value:
            yield from walk(part)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield from walk(key)
            yield from walk(value[key])
    elif isinstance(value, set | frozenset):
        yield from sorted(value_hash(part).encode() for part in value)
    elif isinstance(value, functools.partial):
        yield from walk((value.func, value.args, value.keywords))
    elif isinstance(value, types.MethodType):
        yield from walk((value.__func__, value.__self__))
    elif isinstance(value, types.FunctionType):
        yield _name(value).encode()
        if _is_users(value.__module__):
            yield from _code_tokens(value.__code__)
            yield from walk((_outside(value), vars(value)))
    elif isinstance(value, types.ModuleType):
        yield value.__name__.encode()
        file = getattr(value, "__file__", None)
        if file is not None and _is_users(value.__name__):
            yield Path(file).read_bytes()
    elif isinstance(value, type):
        yield _name(value).encode()
        if _is_users(value.__module__):
            yield from walk({k: _member(v) for k, v in vars(value).items() if k not in _NO_PART})
            yield from walk(value.__bases__)
    elif (array := _as_array(value)) is not None:
        yield f"{array.dtype}{array.shape}".encode()
        yield from walk(array.ravel().tolist()) if array.dtype.hasobject else [array.tobytes()]
    elif dataclasses.is_dataclass(value):
        state = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        yield from walk((type(value), state))
    elif _is_users(type(value).__module__):
        slots = [s for kind in type(value).__mro__ for s in getattr(kind, "__slots__", ())]
        filled = {s: getattr(value, s) for s in slots if hasattr(value, s)}
        yield from walk((type(value), {**filled, **getattr(value, "__dict__", {})}))
    else:
        yield _name(value if callable(value) else type(value)).encode()
        yield from walk(_reduced(value))


# Class attributes that do not affect how its objects behave.
_NO_PART = {
    *("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__firstlineno__"),
    *("__dataclass_fields__", "__dataclass_params__", "_abc_impl"),
}


def _member(value: Any) -> Any:
    """Hashable part of a class attribute: the functions of methods and properties, else itself."""
    if isinstance(value, property):
        return value.fget, value.fset
    if isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
        return value.__name__  # a slot
    return getattr(value, "__func__", value)


def _as_array(value: Any) -> np.ndarray | None:
    if not hasattr(value, "__array__"):
        return None
    try:
        return np.asarray(value)
    except Exception:  # libraries raise all kinds of errors here
        return None


def _reduced(value: Any) -> Any:
    """Type and state of a library's object, from the pickle protocol."""
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:
        return None
    return reduced if isinstance(reduced, str) else reduced[:3]


def _code_tokens(code: types.CodeType) -> Iterator[bytes]:
    """Instructions, names and constants, without file name, line numbers or comments."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_tokens(constant)
        else:
            yield value_hash(constant).encode()


def _outside(function: types.FunctionType) -> dict[str, Any]:
    """Values of a function's defaults, closure and globals, except those it assigns."""
    read, written = set(), set()
    for code in _nested(function.__code__):
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read.add(instruction.argval)
            elif instruction.opname in ("STORE_GLOBAL", "STORE_DEREF"):
                written.add(instruction.argval)
    out = {name: function.__globals__[name] for name in read if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            out[name] = cell.cell_contents
        except ValueError:  # not set yet
            continue
    out = {name: value for name, value in out.items() if name not in written}
    if function.__defaults__ or function.__kwdefaults__:
        out["default values"] = (function.__defaults__, function.__kwdefaults__)
    return out


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _nested(constant)


def _unwrap(value: Any) -> Any:
    """The function inside decorators such as `jax.jit`."""
    return inspect.unwrap(value) if callable(value) else value


def _name(value: Any) -> str:
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"{getattr(value, '__module__', None) or type(value).__module__}.{name}"


@functools.lru_cache(maxsize=256)
def _is_users(module: str | None) -> bool:
    """Whether a module is the user's code rather than Python or an installed package."""
    if (module or "").split(".")[0] == "sbnn":  # identified by its version instead
        return False
    found = sys.modules.get(module or "")
    if found is None:
        return True
    file = getattr(found, "__file__", None)
    if file is None:
        return module == "__main__"
    installed = [sysconfig.get_path(kind) for kind in ("stdlib", "platlib", "purelib")]
    return not any(Path(file).resolve().is_relative_to(Path(p).resolve()) for p in installed)
