"""What is found out about a value once, and kept with it: gone when the value goes.

A long history comes back with each request. Kept in the entries themselves, what was found needs
no bound, and nobody has to drop it when words are forgotten. Used on `agent.transcript`'s entries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar


class Keeps:
    """A frozen value with room for what was found out about it, which is no part of the value."""

    __slots__ = ("_found",)
    _found: dict[object, Any]


K = TypeVar("K", bound=Keeps)
T = TypeVar("T")


def once(find: Callable[[K], T]) -> Callable[[K], T]:
    """`find`, called once for each value. What it returns must not hold the value itself: that
    would keep both until the next search for garbage."""

    def known(value: K) -> T:
        try:
            answer: T = value._found[find]
        except AttributeError:
            object.__setattr__(value, "_found", {})
        except KeyError:
            pass
        else:
            return answer
        answer = value._found[find] = find(value)
        return answer

    return known


def changed_once(change: Callable[[K], K]) -> Callable[[K], K]:
    """As `once`, for what makes another value of its kind, and mostly gives back the value itself.

    So what is found out about the other one is kept as long as the value is.
    """

    @once
    def other(value: K) -> K | None:
        made = change(value)
        return None if made is value else made

    def changed(value: K) -> K:
        made = other(value)
        return value if made is None else made

    return changed
