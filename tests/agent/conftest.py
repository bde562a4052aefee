"""A house for the tests of the core."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
