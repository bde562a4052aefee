"""Other people's judges: aimock as a process, llmock as the fixture that it brings along."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager

import pytest

from agent.models.client import CallLimits
from agent.models.litellm import LiteLLM
from agent.models.openai_compatible import OpenAICompatible
from memory.records.ports import Model
from tests.judges.aimock import STRICT, Aimock, missing, says, script

REQUIRED = os.environ.get("HEARTHBOT_REQUIRE_NODE") == "1"
"""Read here, for each test has an environment without such variables."""

LIMITS = CallLimits(timeout_s=20, stall_timeout_s=10)

OpenModel = Callable[..., AbstractAsyncContextManager[Model]]
"""Called with `api_base`, and with `limits` where a test has some of its own."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "node: needs Node and what `make judges` installs")


@pytest.fixture(scope="session")
def aimock_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    """One for all tests of this worker."""
    if why := missing():
        (pytest.fail if REQUIRED else pytest.skip)(why)
    first = script(tmp_path_factory.mktemp("aimock"), says("Nobody asked yet."))
    with Aimock(first, STRICT) as running:
        yield running


@pytest.fixture
def aimock(aimock_process: Aimock) -> Aimock:
    """As new: without script, faults or journal."""
    aimock_process.reset()
    return aimock_process


@pytest.fixture(params=["direct", "litellm"])
def open_model(request: pytest.FixtureRequest) -> OpenModel:
    """A client for OpenAI's language."""

    def opened(*, api_base: str, limits: CallLimits = LIMITS) -> AbstractAsyncContextManager[Model]:
        if request.param == "direct":
            return OpenAICompatible("judged", api_base=api_base, api_key="sk-judged", limits=limits)
        return LiteLLM("openai/judged", api_base=api_base, api_key="sk-judged", limits=limits)

    return opened
