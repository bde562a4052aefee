"""A loopback model server, and the client that talks to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agent.models.client import CallLimits
from agent.models.openai_compatible import OpenAICompatible
from tests.agent.models.server import ModelServer, serving

KEY = "sk-verysecret-123456"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with serving() as running:
        yield running


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[OpenAICompatible]:
    limits = CallLimits(timeout_s=20, stall_timeout_s=10)
    async with OpenAICompatible(
        "test-model", api_base=server.api_base, api_key=KEY, limits=limits
    ) as client:
        yield client
