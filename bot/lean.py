"""Loads what a program is made of in less time: without the extras that libraries would bring along
unasked, without looking for garbage in between, and without methods that nobody calls.

structlog loads rich for tracebacks that show local variables, secrets too; httpx loads click,
pygments and rich for a command line of its own. We use neither, and together they take a fifth of
the start.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import FrozenInstanceError
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any

_Method = Callable[..., Any]

_SELDOM = 100_000
"""New objects between two searches: about 10 MB of them."""


@contextmanager
def without_garbage_search() -> Iterator[None]:
    """For what loads and puts together: what it makes stays, and is never looked through again.

    Else the search for garbage goes through all of it time and again: a tenth of the start, and
    later a pause of 50 ms in the middle of somebody's turn.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def seldom_garbage_search() -> Iterator[None]:
    """For a command that loads most of the program when it is called, and is soon at its end.

    A quarter of its time went into looking through what it had just loaded, and into methods that
    nobody calls.
    """
    usual = gc.get_threshold()
    gc.set_threshold(_SELDOM, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


@contextmanager
def quick_end() -> Iterator[None]:
    """For what is the last of a process: the interpreter looks through all that there is when it
    ends, twice, and what we open is closed by then."""
    try:
        yield
    finally:
        gc.freeze()


def load_without(extra: str, *names: str) -> None:
    """Imports modules for which `extra` is optional. Where it is loaded already, nothing is won."""
    if extra not in sys.modules:
        sys.modules[extra] = None  # type: ignore[assignment]  # makes importing it fail
        try:
            for name in names:
                importlib.import_module(name)
        finally:
            del sys.modules[extra]


@contextmanager
def late_methods() -> Iterator[None]:
    """Has the methods of data classes made when they are first called, `__init__` too.

    We have 650 such classes, and the six methods of each are compiled from text: a third of the
    start, for methods of which most are never called. Until then all classes share one function for
    each of the five plain ones, since a thing kept for each method of each class would take more
    memory than the compiled ones do. This takes the place of functions inside of the standard
    library; where they are not (Python 3.13), nothing is changed.
    """
    inside = vars(dataclasses)
    before = {name: inside.get(name) for name in ("_create_fn", "_init_fn", "_repr_fn")}
    make, make_init, make_repr = before.values()
    if make is None or make_init is None or make_repr is None:
        yield
        return
    inside["_create_fn"] = partial(_made_late, make)
    inside["_init_fn"] = partial(_init_made_late, make_init)
    inside["_repr_fn"] = _repr_made_late
    try:
        yield
    finally:
        inside.update(before)


def _made_late(make: Callable[..., _Method], name: str, *how: Any, **more: Any) -> _Method:
    return _SHARED.get(name) or make(name, *how, **more)


def _repr_made_late(*how: Any, **more: Any) -> _Method:
    return _SHARED["__repr__"]


def _init_made_late(make: Callable[..., _Method], *how: Any, **more: Any) -> _Method:
    """Not even its text is put together before: the fields are kept anyway, texts would be more."""
    return _late("__init__", lambda kind: make(*how, **more))


def _late(name: str, make: Callable[[type], _Method]) -> _Method:
    """A method that puts what is made for a class in its own place there, and calls it."""

    def method(self: object, /, *values: object, **named: object) -> Any:
        # Two threads may both be here: what both make is alike, and the second finds no class.
        owner = next((kind for kind in type(self).__mro__ if vars(kind).get(name) is method), None)
        if owner is None:
            return getattr(self, name)(*values, **named)
        made = make(owner)
        made.__qualname__ = f"{owner.__qualname__}.{name}"
        setattr(owner, name, made)
        return made(self, *values, **named)

    method.__name__ = name
    return method


def _values(names: Sequence[str]) -> Callable[[object], tuple[object, ...]]:
    """Reads these attributes."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda thing: tuple(getattr(thing, name) for name in names)


def _repr_of(kind: type) -> _Method:
    names = [field.name for field in dataclasses.fields(kind) if field.repr]

    @recursive_repr()
    def __repr__(self: object) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({shown})"

    return __repr__


def _eq_of(kind: type) -> _Method:
    read = _values([field.name for field in dataclasses.fields(kind) if field.compare])

    def __eq__(self: object, other: object) -> bool:
        return read(self) == read(other) if type(other) is type(self) else NotImplemented

    return __eq__


def _hash_of(kind: type) -> _Method:
    fields = dataclasses.fields(kind)
    read = _values([f.name for f in fields if (f.compare if f.hash is None else f.hash)])

    def __hash__(self: object) -> int:
        return hash(read(self))

    return __hash__


def _setattr_of(kind: type[Any]) -> _Method:
    names = frozenset(field.name for field in dataclasses.fields(kind))

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    return __setattr__


def _delattr_of(kind: type[Any]) -> _Method:
    names = frozenset(field.name for field in dataclasses.fields(kind))

    def __delattr__(self: object, name: str) -> None:
        if type(self) is kind or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    return __delattr__


_SHARED: Mapping[str, _Method] = {
    "__repr__": _late("__repr__", _repr_of),
    "__eq__": _late("__eq__", _eq_of),
    "__hash__": _late("__hash__", _hash_of),
    "__setattr__": _late("__setattr__", _setattr_of),
    "__delattr__": _late("__delattr__", _delattr_of),
}
