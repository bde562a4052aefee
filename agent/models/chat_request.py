"""Our transcript as an OpenAI chat request, and how many tokens it has.

Its bytes stay the same while history only grows. Used by both clients, and by whoever builds,
counts or compares what would be sent.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, assert_never

import structlog

from agent.prompt.templates import disarmed
from agent.prompt.tokens import estimate_tokens
from memory.records.transcript import (
    Answered,
    Context,
    Entry,
    ModelRequest,
    ModelTraits,
    Note,
    Picture,
    Said,
    ToolCall,
    ToolResult,
)

# --- tokens ---------------------------------------------------------------------------------------
#
# The tokenizer of OpenAI's models costs 75 MB and a third of a second, so it is loaded when a
# prompt comes near its limit; all other models have none on disk.


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
        name = encoding_of(model)
        async with self._loading:
            # None where there is none, or its file is missing or damaged; said once in the log.
            if name and name not in self._loaded:
                self._loaded[name] = await asyncio.to_thread(_load, name, self._folder)
        encoding = self._loaded.get(name)
        return guessed if encoding is None else await asyncio.to_thread(_count, encoding, texts)


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


# --- chat request ---------------------------------------------------------------------------------

Message = dict[str, Any]

UNSEEN = "[You cannot see pictures: say so where it matters, and do not guess what they show.]"

_NO_PICTURES: Mapping[str, str] = MappingProxyType({})

# These models take `max_completion_tokens` only, and no temperature but their own.
_REASONING_NAMES = re.compile(r"(?:^|/)(?:o[1-9]|gpt-5)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """In what a server differs from OpenAI's own.

    `plain`: content must be one string (DeepSeek, small local templates). `stream_usage`: it knows
    `stream_options`. `headers` are sent along with each call. `cache_marks`: it hands marks for a
    model's prompt cache on to those models that want them.
    """

    plain: bool = False
    stream_usage: bool = True
    cache_marks: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


def body(
    name: str, request: ModelRequest, *, traits: ModelTraits, dialect: Dialect | None = None
) -> bytes:
    """Return the whole request. Equal input gives equal bytes."""
    dialect = dialect or Dialect()
    limits: dict[str, object] = (
        {"max_completion_tokens": request.max_output_tokens}
        if _REASONING_NAMES.search(name)
        else {"temperature": request.temperature, "max_tokens": request.max_output_tokens}
    )
    data = fields(name, request, traits=traits, dialect=dialect, **limits)
    if dialect.cache_marks and takes_marks(name):
        mark(data, request.entries)
    return encode(data)


def fields(
    name: str,
    request: ModelRequest,
    *,
    traits: ModelTraits,
    dialect: Dialect | None = None,
    **limits: object,
) -> Message:
    """Return the request by its names. The messages stand last: a longer history has the bytes of
    the shorter one as its prefix."""
    dialect = dialect or Dialect()
    data: Message = {"model": name, "stream": True}
    if dialect.stream_usage:
        data["stream_options"] = {"include_usage": True}
    data |= limits
    data |= {key: request.extra[key] for key in sorted(request.extra)}
    if request.tools and traits.tools:
        functions = (
            {"name": one.name, "description": one.description, "parameters": dict(one.parameters)}
            for one in request.tools
        )
        data["tools"] = [{"type": "function", "function": one} for one in functions]
    data["messages"] = messages(
        request.system,
        request.entries,
        plain=dialect.plain or traits.demo,
        tools=traits.tools,
        pictures=request.pictures if traits.vision else None,
    )
    return data


def encode(data: object) -> bytes:
    """Return compact JSON; half a surrogate pair becomes a question mark instead of an error."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def messages(
    system: str,
    entries: Sequence[Entry],
    *,
    plain: bool = False,
    tools: bool = True,
    pictures: Mapping[str, str] | None = _NO_PICTURES,
) -> list[Message]:
    """System first, then the entries; neighbours of one role are joined, empty ones dropped.

    With `plain` each content is one string, save where a picture is shown. Without `tools` (the
    model has none, but history may hold calls of another one) calls vanish and results are told as
    text. `pictures` None: this model sees none, and is told so where one came.
    """
    found: list[Message] = []
    if system:
        found.append({"role": "system", "content": system})
    names: dict[str, str] = {}
    for entry in entries:
        if isinstance(entry, Answered):
            names |= {call.id: call.name for call in entry.calls}
            _add_answer(found, entry, tools=tools)
        elif isinstance(entry, ToolResult) and tools:
            result = {"tool_call_id": entry.call_id, "content": entry.content}
            found.append({"role": "tool", **result})
        else:
            _add_words(found, _words(entry, names), plain=plain)
        if isinstance(entry, Note) and entry.pictures:
            _add_pictures(found, entry.pictures, pictures, plain=plain)
    return found


def words_of(said: Said) -> str:
    """Return what the person said, with the quoted text before it and, in groups, their name."""
    text = said.text
    if said.sender:
        # In a group nobody may speak as somebody else, or as us: what follows a line break is set
        # in, so that each name at the beginning of a line is ours.
        indented = "\n  ".join(disarmed(said.text).splitlines())
        text = f"{' '.join(said.sender.split())}: {indented}"
    if not said.quote:
        return text
    quote = disarmed(said.quote).replace("«", "‹").replace("»", "›")
    return f"[In reply to: «{quote}»]\n{text}"


def _words(entry: Said | Context | Note | ToolResult, names: Mapping[str, str]) -> str:
    match entry:
        case Said():
            return words_of(entry)
        case Context():
            return entry.text
        case Note():
            text = f"[{entry.text}]" if entry.text else ""
            return f"{text}\n{entry.content}" if entry.content else text
        case ToolResult():
            return f"[{names.get(entry.call_id, 'tool')}: {entry.content}]"
        case _:
            assert_never(entry)


def _add_words(found: list[Message], text: str, *, plain: bool) -> None:
    if not text:
        return
    last = found[-1] if found and found[-1]["role"] == "user" else None
    if plain and last and isinstance(last["content"], str):
        last["content"] += f"\n\n{text}"
    elif plain and not last:
        found.append({"role": "user", "content": text})
    else:
        # Always parts, also for one: a message that gains a part later keeps its first bytes.
        if last is None:
            last = {"role": "user", "content": []}
            found.append(last)
        last["content"].append({"type": "text", "text": text})


def _add_pictures(
    found: list[Message],
    came: Sequence[Picture],
    pictures: Mapping[str, str] | None,
    *,
    plain: bool,
) -> None:
    """Behind the words about them."""
    if pictures is None:
        _add_words(found, UNSEEN, plain=plain)
        return
    for one in came:
        url = pictures.get(one.path)
        if url == "":
            _add_words(found, f"[The picture {one.path} is not there any more.]", plain=plain)
        if not url:
            continue
        if not found or found[-1]["role"] != "user":
            found.append({"role": "user", "content": []})
        last = found[-1]
        if isinstance(last["content"], str):
            last["content"] = [{"type": "text", "text": last["content"]}]
        last["content"].append({"type": "image_url", "image_url": {"url": url}})


def _add_answer(found: list[Message], answer: Answered, *, tools: bool) -> None:
    calls = answer.calls if tools else ()
    text = answer.text if answer.text.strip() else ""
    if not text and not calls:
        return
    last = found[-1] if found else None
    if last is None or last["role"] != "assistant" or "tool_calls" in last:
        last = {"role": "assistant"}
        found.append(last)
    if text:
        last["content"] = f"{last['content']}\n\n{text}" if "content" in last else text
    if calls:
        last["tool_calls"] = [_call(call) for call in calls]


def _call(call: ToolCall) -> Message:
    # Servers parse the arguments of earlier calls and refuse the whole request over a bad one. The
    # result beside the call tells the model what was wrong with it.
    try:
        is_read = isinstance(json.loads(call.arguments), dict)
    except ValueError:
        is_read = False
    function = {"name": call.name, "arguments": call.arguments if is_read else "{}"}
    return {"id": call.id, "type": "function", "function": function}


# --- marks --------------------------------------------------------------------------------------
#
# Marks that tell a provider up to where a prompt will be sent again, so that its cache keeps it.
# `litellm` translates them for each provider; some servers hand them on.

MARK = {"type": "ephemeral"}


def takes_marks(name: str) -> bool:
    """Return whether a model caches what is marked: Claude, wherever it runs.

    Gemini keeps prefixes without being told. Marks would make litellm create a cache there, in
    requests of its own, for each prompt that differs, and it is paid for by the hour.
    """
    return "claude" in name.lower()


def mark(arguments: Message, entries: Sequence[Entry]) -> None:
    """Marks the last tool, the system message, and the newest message that will be sent again.

    Notes at the end are for this one request. Three of the four marks that are allowed.
    """
    if arguments.get("tools"):
        arguments["tools"][-1]["cache_control"] = dict(MARK)
    for message in arguments["messages"][:1]:
        if message["role"] == "system":
            text = message["content"]
            message["content"] = [{"type": "text", "text": text, "cache_control": dict(MARK)}]
    passing = 0
    for entry in reversed(entries):
        if not isinstance(entry, Note):
            break
        passing += bool(entry.text)
    for message in reversed(arguments["messages"]):
        if message["role"] == "system":
            return
        parts = message.get("content")
        if message["role"] == "user" and isinstance(parts, list):
            if len(parts) > passing:
                parts[-1 - passing]["cache_control"] = dict(MARK)
                return
            passing -= len(parts)
        else:
            message["cache_control"] = dict(MARK)
            return
