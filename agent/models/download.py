"""Fetches a GGUF file from a model hub, or from an address: resumed, checked, whole or not there.

Called by `hearthbot model pull`. Beside the file that is being fetched lies `NAME.part` with what
came so far, and `NAME.part.json`, which says of what it is a part.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from pydantic import BaseModel, TypeAdapter, ValidationError

from agent.models.client import is_here
from memory.records.errors import Permanent, Temporary

if TYPE_CHECKING:
    import httpx

HUB = "https://huggingface.co"
HUB_VARIABLE, TOKEN_VARIABLE = "HF_ENDPOINT", "HF_TOKEN"
"""What other programs of the hub read too: another address of it, and a token for closed models."""

MAGIC = b"GGUF"
SUFFIX = ".gguf"
PREFERRED = ("q4_k_m", "q4_k_s", "q4_0", "iq4_xs", "q5_k_m", "q8_0")
"""Which of several files of a model is taken: the best of those that fit a common machine."""

REDIRECTS_MAX = 5
TRIES_MAX = 5
"""In a row without a single byte more."""

PAUSES_S = (1.0, 2.0, 5.0, 10.0)
CONNECT_S, READ_S = 15.0, 60.0
LISTING_BYTES_MAX = 8_000_000
BLOCK = 1 << 20
SPARE_BYTES = 256 << 20
"""Left free on the disk for the bot itself."""

MEMORY_FACTOR = 1.1
MEMORY_MORE_BYTES = 512 << 20
"""What a model takes beside its file: the conversation, and the process."""

_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class PullRefused(Permanent):
    """Nothing is fetched, or what came is not what was asked for."""


class PullBroken(Temporary):
    """It broke off; what came is kept, and the same command goes on from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to fetch. `size` 0 and `sha256` empty where nobody said; `token` goes to the hub
    alone."""

    url: str
    file: str
    size: int = 0
    sha256: str = ""
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """A file that is whole. `fetched` is what came over the line now, in bytes."""

    path: Path
    size: int
    sha256: str
    fetched: int


Progress = Callable[[int, int], None]
"""Is told how many bytes are there, and of how many (0: nobody knows)."""

Sleep = Callable[[float], Awaitable[None]]


# --- what is meant -------------------------------------------------------------------------------


async def find(name: str, *, env: Mapping[str, str], sha256: str = "") -> Source:
    """The file that a name means: an address, `owner/model/file.gguf`, `owner/model`, or
    `owner/model:Q5_K_M`. Asks the hub which files there are. Raises PullRefused, PullBroken.
    """
    sha256 = sha256.strip().lower()
    if sha256 and not _SHA256.fullmatch(sha256):
        raise PullRefused("--sha256 takes the 64 hexadecimal digits of the file's checksum.")
    if "://" in name:
        _require_safe(name)
        file = unquote(urlsplit(name).path.rpartition("/")[2])
        return Source(url=name, file=_checked_file(file), sha256=sha256)
    hub = (env.get(HUB_VARIABLE, "").strip() or HUB).rstrip("/")
    _require_safe(hub)
    token = env.get(TOKEN_VARIABLE, "").strip()
    name, _, quant = name.strip().removeprefix("hf.co/").partition(":")
    repository, path = "/".join(name.split("/")[:2]), "/".join(name.split("/")[2:])
    if not _REPOSITORY.fullmatch(repository) or ".." in name.split("/"):
        raise PullRefused(
            f"{name!r} is no model: write owner/model, owner/model/file{SUFFIX}, or the address of "
            f"a {SUFFIX} file."
        )
    url = f"{hub}/api/models/{repository}/tree/main?recursive=true"
    wanted = await _picked(url, repository, token=token, path=path, quant=quant)
    large = wanted.lfs or _LargeFile()
    known = large.oid.removeprefix("sha256:").lower()
    return Source(
        url=f"{hub}/{repository}/resolve/main/{quote(wanted.path)}",
        file=_checked_file(wanted.path.rpartition("/")[2]),
        size=large.size or wanted.size,
        sha256=sha256 or (known if _SHA256.fullmatch(known) else ""),
        token=token,
    )


class _LargeFile(BaseModel):
    oid: str = ""
    size: int = 0


class _HubFile(BaseModel):
    """A file as the hub lists it; of a large one `lfs` knows size and checksum."""

    type: str = ""
    path: str
    size: int = 0
    lfs: _LargeFile | None = None


_LISTING = TypeAdapter(list[_HubFile])


async def _picked(url: str, repository: str, *, token: str, path: str, quant: str) -> _HubFile:
    """The file that is meant, of those that the hub lists. Raises PullRefused, and says what there
    is; PullBroken."""
    async with _answer(url, token=token) as answer:
        _require_ok(answer, repository)
        body = bytearray()
        async for piece in answer.aiter_raw():
            body += piece
            if len(body) > LISTING_BYTES_MAX:
                raise PullRefused(f"The list of files of {repository} is too long to be one.")
    try:
        listed = _LISTING.validate_json(bytes(body))
    except ValidationError as error:
        raise PullRefused(f"What {_host(url)} says of {repository} is no list of files.") from error
    files = [one for one in listed if one.type == "file" and one.path.lower().endswith(SUFFIX)]
    if not files:
        raise PullRefused(
            f"{repository} has no {SUFFIX} file. Those of most models are in a repository of their "
            "own, whose name ends in -GGUF."
        )
    whole = [file for file in files if not _SPLIT.search(file.path)]
    names = ", ".join(file.path for file in files[:12]) + (", …" if len(files) > 12 else "")
    if path:
        found = [file for file in whole if file.path == path]
    else:
        marks = (quant.lower().replace("-", "_"),) if quant else PREFERRED
        found = [] if quant else whole
        for mark in marks:
            if some := [f for f in whole if mark in f.path.lower().replace("-", "_")]:
                found = some
                break
    if len(found) == 1:
        return found[0]
    if not whole or (path and any(file.path == path for file in files)):
        raise PullRefused(f"That file is in several parts; take one that is whole of {names}.")
    what = path or quant
    problem = f"has no {what}" if what and not found else "has several files that could be meant"
    raise PullRefused(f"{repository} {problem}. Name one, as {repository}/FILE; there are: {names}")


def _checked_file(name: str) -> str:
    if not _FILE.fullmatch(name) or not name.lower().endswith(SUFFIX):
        raise PullRefused(f"{name!r} is not the name of a {SUFFIX} file.")
    if _SPLIT.search(name):
        raise PullRefused(f"{name} is one of several parts; take a file that is whole.")
    return name


# --- fetching ------------------------------------------------------------------------------------


async def pull(
    source: Source, folder: Path, *, progress: Progress, sleep: Sleep = asyncio.sleep
) -> Pulled:
    """Fetch a file into a folder, going on where a former try broke off.

    Raises PullRefused, PullBroken. The file stands there once it is whole and checked.
    """
    path = folder / source.file
    try:
        await asyncio.to_thread(folder.mkdir, 0o700, parents=True, exist_ok=True)
        if await asyncio.to_thread(path.exists):
            sha256 = await asyncio.to_thread(sha256_of, path)
            size = (await asyncio.to_thread(path.stat)).st_size
            if source.sha256 not in ("", sha256) or source.size not in (0, size):
                raise PullRefused(
                    f"{path} is there already, and is another file than {source.url}. Move it away "
                    "first."
                )
            return Pulled(path=path, size=size, sha256=sha256, fetched=0)
    except OSError as error:
        raise PullRefused(f"{folder} cannot be used ({error.strerror}).") from error
    with _PartialFile(path, source) as part:
        tries = 0
        while True:
            came = part.came
            try:
                await _fetch(source, part, folder, progress)
                break
            except PullBroken:
                tries = 1 if part.came > came else tries + 1
                if tries >= TRIES_MAX:
                    raise
            await sleep(PAUSES_S[min(tries - 1, len(PAUSES_S) - 1)])
        sha256 = await asyncio.to_thread(part.finish, path)
        return Pulled(path=path, size=part.size, sha256=sha256, fetched=part.came)


async def _fetch(source: Source, part: _PartialFile, folder: Path, progress: Progress) -> None:
    if source.size and part.size == source.size:
        return
    headers = {"Range": f"bytes={part.size}-"} if part.size else {}
    if part.size and part.etag:
        headers["If-Range"] = part.etag
    async with _answer(source.url, token=source.token, headers=headers) as answer:
        host = _host(source.url)
        if answer.status_code == 416:  # nothing comes after what is there, or it is not of this
            part.begin_anew("")
            raise PullBroken(f"{host} has nothing to add to what was fetched before.")
        _require_ok(answer, source.file)
        if answer.status_code == 206:
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", answer.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != part.size:
                part.begin_anew("")
                raise PullBroken(f"{host} sent another piece of the file than was asked for.")
            total = int(found[2])
        else:
            part.begin_anew(answer.headers.get("ETag", ""))
            length = answer.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else 0  # nobody says
        if source.size and total and source.size != total:
            raise PullRefused(
                f"{source.file} should have {source.size:,} bytes; the server has {total:,}."
            )
        missing = max(0, total - part.size)
        free = shutil.disk_usage(folder).free
        if missing + SPARE_BYTES > free:
            raise PullRefused(
                f"There is too little space in {folder}: {size_words(missing)} are still to come, "
                f"and {size_words(free)} are free. Nothing was fetched."
            )
        progress(part.size, total)
        async for piece in answer.aiter_raw():
            part.add(piece)
            progress(part.size, total)
    if total and part.size < total:
        raise PullBroken(f"{host} ended the file after {part.size:,} of {total:,} bytes.")


def sha256_of(path: Path) -> str:
    """Of a whole file; blocks for about a second a gigabyte."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()


# --- the part that is there ----------------------------------------------------------------------


class _PartialFile:
    """`NAME.part`, held for one process at a time; `NAME.part.json` says what it is a part of."""

    def __init__(self, path: Path, source: Source) -> None:
        self._path = path.with_name(f"{path.name}.part")
        self._about = path.with_name(f"{path.name}.part.json")
        self._source = source
        self._identity = {"url": source.url, "size": source.size, "sha256": source.sha256}
        self.size = self.came = 0
        self.etag = ""

    def __enter__(self) -> _PartialFile:
        """Go on with what is there only where it is of the same file."""
        self._file = self._path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise PullRefused(f"{self._path.stem} is being fetched already.") from error
        self.size = self._path.stat().st_size
        try:
            about = json.loads(self._about.read_text("utf-8"))
            self.etag = str(about.pop("etag"))
        except (OSError, ValueError, KeyError, AttributeError):
            about = None
        if about != self._identity:
            self.begin_anew("")
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def begin_anew(self, etag: str) -> None:
        """Drop what is there."""
        self._file.truncate(0)
        self.size, self.etag = 0, etag if etag.startswith('"') else ""
        self._about.write_text(json.dumps(self._identity | {"etag": self.etag}), "utf-8")

    def add(self, piece: bytes) -> None:
        """Put a piece at the end. Raises PullRefused."""
        if self.size < len(MAGIC) and not piece.startswith(MAGIC[self.size :][: len(piece)]):
            raise self._dropped("What came is not a GGUF model file.")
        try:
            self._file.write(piece)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise PullRefused(
                    f"No space is left in {self._path.parent}. What came is kept: make room, and "
                    "the same command goes on from there."
                ) from error
            raise PullRefused(
                f"{self._path.parent} cannot be written ({error.strerror})."
            ) from error
        self.size += len(piece)
        self.came += len(piece)

    def finish(self, path: Path) -> str:
        """Check it, put it under its own name in one step, and return its checksum; blocks."""
        self._file.flush()
        os.fsync(self._file.fileno())
        if self.size < len(MAGIC):
            raise self._dropped("What came is not a GGUF model file.")
        sha256 = sha256_of(self._path)
        if self._source.sha256 and sha256 != self._source.sha256:
            raise self._dropped(
                f"The checksum of what came is {sha256}, and should be {self._source.sha256}."
            )
        self._path.replace(path)
        self._about.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return sha256

    def _dropped(self, why: str) -> PullRefused:
        self._path.unlink(missing_ok=True)
        self._about.unlink(missing_ok=True)
        return PullRefused(f"{why} Nothing of it is kept.")


# --- asking a server -----------------------------------------------------------------------------


@asynccontextmanager
async def _answer(
    url: str, *, token: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[httpx.Response]:
    """The answer after all redirects; each hop is checked, and only the first host gets the token:
    the library takes it out where it goes on to another one.

    Raises PullRefused, and PullBroken also where the line breaks while the answer is read.
    """
    import httpx

    async def check(request: httpx.Request) -> None:
        _require_safe(str(request.url))

    sent = {"Accept-Encoding": "identity", **(headers or {})}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    is_plain = urlsplit(url).scheme == "http"
    try:
        async with (
            httpx.AsyncClient(
                timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
                verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else True,
                trust_env=not is_here(url),
                follow_redirects=True,
                max_redirects=REDIRECTS_MAX,
                event_hooks={"request": [check]},
            ) as client,
            client.stream("GET", url, headers=sent) as answer,
        ):
            yield answer
    except httpx.TooManyRedirects as error:
        raise PullRefused(
            f"{_host(url)} leads on and on: more than {REDIRECTS_MAX} redirects."
        ) from error
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
        reason = f"{error}" or type(error).__name__
        raise PullBroken(f"{_host(url)} cannot be reached, or broke off ({reason}).") from error


def _require_ok(answer: httpx.Response, what: str) -> None:
    status, host = answer.status_code, _host(str(answer.url))
    if status in (200, 206):
        return
    if status in (401, 403):
        raise PullRefused(
            f"{host} does not hand out {what}: it does not exist, or it wants a token "
            f"({TOKEN_VARIABLE}) of somebody who accepted its licence."
        )
    if status == 404:
        raise PullRefused(f"{host} has no {what}: is the name right?")
    if status == 429 or status >= 500:
        raise PullBroken(f"{host} has trouble of its own (HTTP {status}).")
    raise PullRefused(f"{host} refused to hand out {what} (HTTP {status}).")


def _require_safe(url: str) -> None:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host:
        raise PullRefused(f"{url!r} is not an address.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_here(url)):
        raise PullRefused(f"{url} is not a safe address: it has to begin with https://.")
    if parts.username or parts.password:
        raise PullRefused("An address with a password in it is not taken.")


def _host(url: str) -> str:
    return urlsplit(url).netloc


# --- this machine --------------------------------------------------------------------------------


def memory_bytes() -> int:
    """Of this machine, or of the container that we are in; 0 where nobody knows."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0
    with suppress(OSError, ValueError):
        limit = Path("/sys/fs/cgroup/memory.max").read_text("ascii").strip()
        if limit.isdecimal():
            found = min(found, int(limit))
    return found


def memory_warning(size: int, *, memory: int) -> str:
    """A sentence where a model of this size does not fit; empty where it does, or nobody knows."""
    wanted = int(size * MEMORY_FACTOR) + MEMORY_MORE_BYTES
    if not memory or wanted <= memory:
        return ""
    return (
        f"This machine has {size_words(memory)} of memory; the model takes about "
        f"{size_words(wanted)}. It will be very slow or not start: take a smaller one."
    )


def size_words(count: int) -> str:
    """As people say it: 4.7 GB, 93 MB."""
    if count >= 1_000_000_000:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.0f} MB" if count >= 1_000_000 else f"{count:,} bytes"
