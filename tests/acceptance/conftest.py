"""Stand-ins and a home for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.rig import Home, Model, Slack, Telegram


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    stand_in = Telegram()
    yield stand_in
    stand_in.close()


@pytest.fixture
def slack() -> Iterator[Slack]:
    stand_in = Slack()
    yield stand_in
    stand_in.close()


@pytest.fixture
def model() -> Iterator[Model]:
    stand_in = Model()
    yield stand_in
    stand_in.close()


@pytest.fixture
def bare_home(tmp_path: Path) -> Iterator[Home]:
    """A home with nothing configured."""
    home = Home(tmp_path)
    yield home
    home.close()


@pytest.fixture
def home(bare_home: Home, telegram: Telegram, model: Model) -> Home:
    """A home that is served by the stand-ins."""
    bare_home.serve_with(telegram, model)
    return bare_home
