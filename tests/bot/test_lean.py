"""Loading without what nobody needs."""

from __future__ import annotations

import dataclasses
import gc
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, InitVar, dataclass, field, replace
from typing import Any

import pytest

from bot.lean import (
    late_methods,
    load_without,
)


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_a_library_that_is_left_out_can_be_loaded_later() -> None:
    sys.modules.pop("this", None)

    load_without("this", "json")

    assert "this" not in sys.modules


def point() -> Any:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Point:
        x: int
        names: tuple[str, ...] = ()

    return Point


def test_classes_with_late_methods_are_as_all_others() -> None:
    with late_methods():
        late = point()
    usual = point()

    one, same, other = late(x=1), late(x=1), late(x=2, names=("a",))

    assert one == same
    assert one != other
    assert len({one, same, other}) == 2
    assert one != usual(x=1)
    assert hash(one) == hash(usual(x=1))
    assert repr(other) == repr(usual(x=2, names=("a",)))
    assert replace(other, x=1, names=()) == one
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 3
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del one.x


def family() -> tuple[type, type]:
    @dataclass
    class Parent:
        name: str
        tags: list[str] = field(default_factory=list)
        size: InitVar[int] = 1

        def __post_init__(self, size: int) -> None:
            self.long = len(self.name) * size

    @dataclass
    class Child(Parent):
        age: int = 0

    return Parent, Child


def test_a_class_made_late_takes_the_arguments_it_always_took() -> None:
    with late_methods():
        parent, child = family()

    young = child("ab", ["c"], 3, age=4)

    assert (young.name, young.tags, young.long, young.age) == ("ab", ["c"], 6, 4)
    assert child("ab").tags is not child("ab").tags
    assert (parent("ab"), parent("ab")) != (young, young)
    with pytest.raises(TypeError, match=r"missing 1 required positional argument: 'name'"):
        parent()
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        parent("ab", colour="red")


def test_an_heir_that_calls_its_parents_late_method_gets_its_parents() -> None:
    with late_methods():
        parent, _ = family()

    class Heir(parent):  # type: ignore[misc, valid-type]
        def __init__(self, name: str) -> None:
            super().__init__(name, size=5)

        def __repr__(self) -> str:
            return f"heir of {super().__repr__()}"

    heirs = [Heir("ab"), Heir("ab")]

    assert heirs[0].long == 10
    assert [repr(heir) for heir in heirs] == [repr(heirs[0])] * 2
    assert repr(heirs[0]).startswith("heir of ")
    assert "name='ab', tags=[]" in repr(heirs[0])


def test_the_standard_library_is_as_it_was_afterwards() -> None:
    before = dict(vars(dataclasses))

    with pytest.raises(ValueError, match="broken"), late_methods():
        raise ValueError("broken")

    assert vars(dataclasses) == before
