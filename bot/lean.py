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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

_SELDOM = 100_000
"""New objects between two searches: about 10 MB of them."""

_LATE = frozenset({"__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"})


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
    """Has the methods of data classes made when they are first called, all but `__init__`.

    We have 600 such classes, and the five methods of each are compiled from text: a quarter of the
    start, for methods of which most are never called. This takes the place of a function inside of
    the standard library; where there is no such function (Python 3.13), nothing is changed.
    """
    inside = vars(dataclasses)
    make = inside.get("_create_fn")
    if make is None:
        yield
        return
    inside["_create_fn"] = partial(_made_late, make)
    try:
        yield
    finally:
        inside["_create_fn"] = make


def _made_late(
    make: Callable[..., Callable[..., Any]], name: str, *how: Any, **more: Any
) -> Callable[..., Any]:
    if name not in _LATE:
        return make(name, *how, **more)
    made: list[Callable[..., Any]] = []

    def method(self: object, *values: object) -> Any:
        if not made:
            made.append(make(name, *how, **more))
            _put(type(self), name, made[0], in_place_of=method)
        return made[0](self, *values)

    method.__name__ = name
    return method


def _put(
    kind: type, name: str, made: Callable[..., Any], *, in_place_of: Callable[..., Any]
) -> None:
    """From now on the method itself is called, wherever the class had the late one from."""
    for owner in kind.__mro__:
        if vars(owner).get(name) is in_place_of:
            setattr(owner, name, made)
