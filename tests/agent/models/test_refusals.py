"""Each refusal of each server becomes one of our errors, with a sentence that holds no key."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.errors import ServerLabel, refused, refused_in_stream, retry_after
from memory.records.errors import (
    AssistantError,
    AuthRefused,
    BillingRefused,
    ContentFiltered,
    ContextTooLong,
    ModelRefused,
    Overloaded,
    Permanent,
    RateLimited,
    Temporary,
)
from tests.agent.models.conftest import KEY

SERVER = ServerLabel(api_base="https://user:pw@api.test/v1", secrets=(KEY,))
NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def openai(message: str, code: Any = None, type: str = "") -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            429,
            openai(
                "Rate limit reached for model `x`. Need more tokens? Upgrade at "
                "https://console.groq.com/settings/billing",
                "rate_limit_exceeded",
                "tokens",
            ),
            RateLimited,
        ),
        (429, "", RateLimited),
        (402, openai("Insufficient Balance"), BillingRefused),
        (400, openai("Your credit balance is too low"), BillingRefused),
        (401, openai("No auth credentials found", 401), AuthRefused),
        (403, {"error": "forbidden"}, AuthRefused),
        (404, {"error": {"message": 'model "x" not found, try pulling it first'}}, ModelRefused),
        (
            400,
            openai("This model's maximum context length is 8192 tokens. However, you…"),
            ContextTooLong,
        ),
        (
            400,
            openai("Your input exceeds the context window of this model."),
            ContextTooLong,
        ),
        (
            400,
            {
                "object": "error",
                "message": "This model's maximum context length is 4096 tokens. (vLLM)",
                "code": 400,
            },
            ContextTooLong,
        ),
        (
            400,
            openai(
                "The decoder prompt (length 9) is longer than the maximum model length of 4. "
                "Make sure that `max_model_len` is no smaller"
            ),
            ContextTooLong,
        ),
        (
            400,
            {
                "error": {
                    "code": 400,
                    "message": "request (4031 tokens) exceeds the available context size (2048)",
                    "type": "exceed_context_size_error",
                }
            },
            ContextTooLong,
        ),
        (500, openai("the request exceeds the available context size"), ContextTooLong),
        (400, openai("the input length exceeds the context length"), ContextTooLong),
        (
            400,
            {
                "error": "Trying to keep the first 5000 tokens when context the overflows. However,"
                " the model is loaded with context length of only 4096 tokens"
            },
            ContextTooLong,
        ),
        (400, openai("Please reduce the length of the messages or completion."), ContextTooLong),
        (
            400,
            {
                "object": "error",
                "message": "Prompt contains 65673 tokens, too large for model with 32768 maximum "
                "context length",
            },
            ContextTooLong,
        ),
        (400, openai("This model's maximum prompt length is 131072"), ContextTooLong),
        (
            403,
            openai("Your chosen model requires moderation and your input was flagged"),
            ContentFiltered,
        ),
        (502, "<html><h1>Bad Gateway</h1></html>", Overloaded),
        (503, {"error": {"message": "Loading model", "type": "unavailable_error"}}, Overloaded),
        (529, {"type": "error", "error": {"type": "overloaded_error"}}, Overloaded),
        (
            500,
            openai("the runner requires more system memory: model requires more system memory"),
            ModelRefused,
        ),
        (422, {"detail": [{"msg": "extra fields not permitted"}]}, ModelRefused),
        (
            400,
            [{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}],
            ModelRefused,
        ),
        (301, "", ModelRefused),
    ],
)
def test_each_refusal_has_its_class(status: int, body: Any, kind: type[AssistantError]) -> None:
    error = refused(SERVER, status, body if isinstance(body, str) else json.dumps(body))

    assert type(error) is kind
    assert "api.test" in str(error)


@pytest.mark.parametrize(
    ("headers", "words", "seconds"),
    [
        ({"retry-after": "20"}, "", 20),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=12), usegmt=True)}, "", 12),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=12), usegmt=True)}, "", 0),
        (
            {
                "retry-after": format_datetime(NOW + timedelta(seconds=3612), usegmt=True),
                "date": format_datetime(NOW + timedelta(seconds=3600), usegmt=True),
            },
            "",
            12,
        ),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-3"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({}, "Please try again in 1m2.5s.", 62.5),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "no hint", None),
    ],
)
def test_the_asked_pause_is_read_in_all_its_forms(
    headers: dict[str, str], words: str, seconds: float | None
) -> None:
    assert retry_after(headers, words, now=NOW) == seconds


@given(status=st.integers(300, 599), text=st.text(max_size=2_000))
def test_any_refusal_is_an_error_of_ours_and_short(status: int, text: str) -> None:
    error = refused(SERVER, status, text + KEY)

    assert isinstance(error, Temporary | Permanent)
    assert KEY not in str(error)
    assert "pw" not in ServerLabel(api_base=SERVER.api_base).host
    assert len(str(error)) < 520


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(error=json_values, status=st.integers(400, 599))
def test_any_error_object_has_a_class(error: Any, status: int) -> None:
    assert isinstance(refused_in_stream(SERVER, {"error": error}), AssistantError)
    assert isinstance(refused(SERVER, status, json.dumps(error)), AssistantError)
