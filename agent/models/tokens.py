"""Tokens of a text for one model: guessed in microseconds, counted where it matters.

Whoever builds or checks a prompt asks. The tokenizer of OpenAI's models costs 75 MB and a third of
a second, so it is loaded when a prompt comes near its limit, or when somebody asks for it; all
other models have none on disk, and their guess is corrected by what they report.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import math
import os
import re
from collections.abc import Iterable, Sequence
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

WAIT_CHARS_MAX = 50_000
"""A longer text is not counted while others wait (2 ms); its guess must do."""

KEPT_MAX = 4_096
LEARNED_TOKENS_MIN = 500
FACTOR_MIN, FACTOR_MAX = 0.4, 2.5
STRANGER_FACTOR = 1.15
"""Until a model without a tokenizer here has reported: others of its kind count so much more than
OpenAI's, for which the estimate was measured."""

_STEP = 0.3

# The names under which the library looks for its files, and what must be in them. It would fetch a
# file that is missing or differs, so that is found out before.
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
    """The name of a model's encoding, empty where it is not known or not public."""
    name = model.lower().rpartition("/")[2].removeprefix("ft:")
    return next((encoding for mark, encoding in _ENCODINGS if mark.match(name)), "")


def bound(text: str) -> int:
    """Never less than the tokens of a text: each stands for a byte at least."""
    return len(text) if text.isascii() else 4 * len(text)


class Encodings:
    """The tokenizers on disk, each loaded once, off the event loop. Shared by all counters."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` is for other files of the same names than those that litellm ships."""
        self._folder = folder
        self._loading = asyncio.Lock()
        self._loaded: dict[str, tiktoken.Encoding | None] = {}

    def loaded(self, name: str) -> tiktoken.Encoding | None:
        """What is in memory already."""
        return self._loaded.get(name)

    async def load(self, name: str) -> tiktoken.Encoding | None:
        """None where the file is missing or damaged; said once in the log."""
        async with self._loading:
            if name not in self._loaded:
                self._loaded[name] = await asyncio.to_thread(_load, name, self._folder)
        return self._loaded[name]


class TokenCounter:
    """Counts for one model."""

    def __init__(
        self, model: str, *, encodings: Encodings | None = None, factor: float | None = None
    ) -> None:
        """`factor` is what an earlier counter of this model had learned."""
        self._name = encoding_of(model)
        self._encodings = encodings or Encodings()
        self._factor = factor or (1.0 if self._name else STRANGER_FACTOR)
        self._kept: dict[tuple[int, int], int] = {}

    @property
    def factor(self) -> float:
        """By how much this model's tokens differ from the estimate."""
        return self._factor

    @property
    def is_exact(self) -> bool:
        """Whether `count` counts now, rather than guesses."""
        return self._encodings.loaded(self._name) is not None

    def guess(self, text: str) -> int:
        """The estimate, corrected by what the model reported: 4 µs for 1,000 characters."""
        return math.ceil(estimate_tokens(text) * self._factor)

    def count(self, text: str) -> int:
        """Exact once the tokenizer is loaded, save for very long texts; else the guess."""
        encoding = self._encodings.loaded(self._name)
        if encoding is None or len(text) > WAIT_CHARS_MAX:
            return self.guess(text)
        key = (len(text), hash(text))
        if key not in self._kept:
            if len(self._kept) >= KEPT_MAX:
                self._kept.clear()
            self._kept[key] = _count(encoding, text)
        return self._kept[key]

    async def prepare(self) -> bool:
        """Loads the tokenizer; False where there is none for this model."""
        return bool(self._name) and await self._encodings.load(self._name) is not None

    async def total(self, texts: Sequence[str], *, limit: int) -> int:
        """Tokens of all texts. Counted only where the guess leaves open whether they fit."""
        guessed = sum(self.guess(text) for text in texts)
        if sum(bound(text) for text in texts) <= limit or guessed * NEAR <= limit:
            return guessed
        if guessed > limit * FAR or not await self.prepare():
            return guessed
        encoding = self._encodings.loaded(self._name)
        return guessed if encoding is None else await asyncio.to_thread(_sum, encoding, texts)

    def learn(self, guessed: int, reported: int) -> None:
        """After a call: the sum of `guess` over what was sent, and the prompt tokens reported.

        Small prompts teach nothing, as what a provider adds to each message weighs too much there.
        """
        if guessed < LEARNED_TOKENS_MIN or reported < LEARNED_TOKENS_MIN:
            return
        learned = self._factor * (reported / guessed) ** _STEP
        self._factor = min(FACTOR_MAX, max(FACTOR_MIN, learned))


def _sum(encoding: tiktoken.Encoding, texts: Iterable[str]) -> int:
    return sum(_count(encoding, text) for text in texts)


def _count(encoding: tiktoken.Encoding, text: str) -> int:
    pieces = (text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))
    return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)


def shipped() -> Path | None:
    """The folder of the tokenizers that litellm ships, found without importing it."""
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        return Path(folder) / "litellm_core_utils" / "tokenizers"
    return None


def _load(name: str, folder: Path | None) -> tiktoken.Encoding | None:
    folder = folder or shipped()
    if folder is None or not _is_whole(folder, name):
        log.warning("counting.no_tokenizer", encoding=name)
        return None
    try:
        import tiktoken

        # The one way to tell the library where its files are; litellm does the same.
        os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
        return tiktoken.get_encoding(name)
    except (ImportError, ValueError, OSError) as error:
        log.warning("counting.no_tokenizer", encoding=name, why=str(error))
        return None


def _is_whole(folder: Path, name: str) -> bool:
    file, digest = _FILES[name]
    try:
        return hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest
    except OSError:
        return False
