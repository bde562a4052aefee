"""Loading without what nobody needs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from bot.lean import load_without, without_garbage_search


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_is_put_together_is_not_looked_through_later() -> None:
    before = gc.get_freeze_count()

    with without_garbage_search():
        assert not gc.isenabled()
        made = [[number] for number in range(1_000)]

    assert gc.isenabled()
    assert gc.get_freeze_count() - before > len(made)


def test_garbage_is_looked_for_again_after_a_failure() -> None:
    with pytest.raises(ValueError, match="broken"), without_garbage_search():
        raise ValueError("broken")

    assert gc.isenabled()


def test_a_library_that_is_left_out_can_be_loaded_later() -> None:
    sys.modules.pop("this", None)

    load_without("this", "json")

    assert "this" not in sys.modules
