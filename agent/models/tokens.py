"""Tokens of a text for one model: guessed in microseconds, counted where it matters.

Whoever builds or checks a prompt asks. The tokenizer of OpenAI's models costs 75 MB and a third of
a second, so it is loaded when a prompt comes near its limit; all other models have none on disk.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import os
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent.prompt.tokens import estimate_tokens

if TYPE_CHECKING:
    import tiktoken

log = structlog.get_logger()

NEAR = 3.0
"""A guess below a third of a limit is not counted. Measured at worst: random capitals have 3 times
the tokens that are guessed, base64 twice, running text never more than are guessed."""

FAR = 4.0
"""Nor is a guess of four times a limit: only blanks and the like have so many fewer tokens."""

PIECE_CHARS = 20_000
"""What is counted at once. The library dies of a million blanks, and each cut costs one token."""

STRANGER_FACTOR = 1.15
"""By how much more a model without a tokenizer here counts than OpenAI's, for which the estimate
was measured."""

# The names under which the library looks for its files, and what must be in them.
_FILES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
_ENCODINGS = (
    (re.compile(r"(chat)?gpt-(4o|4\.[1-9]|[5-9]|oss)|o[1-9](-|$)"), "o200k_base"),
    (re.compile(r"gpt-(4|3\.5|35)"), "cl100k_base"),
)


def encoding_of(model: str) -> str:
    """Return the name of a model's encoding, empty where it is not known or not public."""
    name = model.lower().rpartition("/")[2].removeprefix("ft:")
    return next((encoding for mark, encoding in _ENCODINGS if mark.match(name)), "")


def factor_of(model: str) -> float:
    """Return by how much a model's tokens differ from the estimate."""
    return 1.0 if encoding_of(model) else STRANGER_FACTOR


class TokenCounter:
    """Counts by the tokenizers on disk, each loaded once, off the event loop."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is for other files of the same names than those that litellm ships."""
        self._folder = folder
        self._loading = asyncio.Lock()
        self._loaded: dict[str, tiktoken.Encoding | None] = {}

    async def total(self, model: str, texts: Sequence[str], *, limit: int) -> int:
        """Return the tokens of all texts. Counted only where the guess leaves open whether they
        fit."""
        factor = factor_of(model)
        guessed = sum(math.ceil(estimate_tokens(text) * factor) for text in texts)
        # Each token stands for a byte at least.
        most = sum(len(text) if text.isascii() else 4 * len(text) for text in texts)
        if most <= limit or guessed * NEAR <= limit or guessed > limit * FAR:
            return guessed
        encoding = await self._encoding(encoding_of(model))
        return guessed if encoding is None else await asyncio.to_thread(_count, encoding, texts)

    async def _encoding(self, name: str) -> tiktoken.Encoding | None:
        """None where the file is missing or damaged; said once in the log."""
        async with self._loading:
            if name and name not in self._loaded:
                self._loaded[name] = await asyncio.to_thread(_load, name, self._folder)
        return self._loaded.get(name)


def _count(encoding: tiktoken.Encoding, texts: Sequence[str]) -> int:
    pieces = (
        text[at : at + PIECE_CHARS] for text in texts for at in range(0, len(text), PIECE_CHARS)
    )
    return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)


def _load(name: str, folder: Path | None) -> tiktoken.Encoding | None:
    file, digest = _FILES[name]
    try:
        spec = importlib.util.find_spec("litellm")
        for shipped in (spec.submodule_search_locations or ()) if spec else ():
            folder = folder or Path(shipped) / "litellm_core_utils" / "tokenizers"
        # The library would fetch a file that is missing or differs.
        if folder is None or sha256((folder / file).read_bytes()).hexdigest() != digest:
            raise ValueError("its file is not as it should be")
        import tiktoken

        # The one way to tell the library where its files are; litellm does the same.
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        return tiktoken.get_encoding(name)
    except (ImportError, ValueError, OSError) as error:
        log.warning("counting.no_tokenizer", encoding=name, why=str(error))
        return None
