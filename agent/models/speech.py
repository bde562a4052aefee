"""Speech to text, by whatever provider litellm reaches. Built by `bot`, called by
`agent.files.attachments`; the library is loaded with the first recording.
"""

from __future__ import annotations

import asyncio
from typing import Any

from agent.models.errors import CallProgress, ServerLabel, failure
from agent.models.litellm import load_transcription
from memory.records.errors import BrokenAnswer, ModelTimeout

TEXT_CHARS_MAX = 100_000
"""An hour of speech has some 50,000."""


class Speech:
    """One model by its litellm name, such as `whisper-1` or `groq/whisper-large-v3`."""

    def __init__(
        self, name: str, *, api_base: str = "", api_key: str = "", timeout_s: float = 120.0
    ) -> None:
        """An empty `api_base` is the provider's own, an empty `api_key` is left to the library,
        which knows each provider's variable."""
        # Without a provider the library would look for one by the name alone.
        self.name = name if "/" in name else f"openai/{name}"
        self._api_base = api_base
        self._api_key = api_key
        self._timeout_s = timeout_s
        host = api_base or f"https://{self.name.partition('/')[0]}"
        self._server = ServerLabel(api_base=host, secrets=(api_key,))

    async def text(self, name: str, content: bytes) -> str:
        """What is said in a recording of this name, whose ending tells its form. Raises the model
        errors of `memory.records.errors`."""
        arguments: dict[str, Any] = {
            "model": self.name,
            "file": (name, content),
            "timeout": self._timeout_s,
            "max_retries": 0,
        }
        if self._api_base:
            arguments["api_base"] = self._api_base
        if self._api_key:
            arguments["api_key"] = self._api_key
        try:
            async with asyncio.timeout(self._timeout_s):
                transcription = await asyncio.to_thread(load_transcription)
                heard = await transcription(**arguments)
        except TimeoutError as error:
            raise ModelTimeout(f"{self._server.host} did not answer in time") from error
        except Exception as error:  # it raises whatever the libraries below it raise
            raise failure(error, CallProgress(server=self._server, name=self.name)) from error
        text = getattr(heard, "text", None)
        if not isinstance(text, str):
            raise BrokenAnswer(f"The answer of {self._server.host} has no text")
        return text[:TEXT_CHARS_MAX]
