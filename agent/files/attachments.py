"""The step `files` of a turn: what came with a message is fetched, kept and opened.

Pictures go to a model that sees, documents become text from outside, a voice note becomes words.
Whatever is wrong with one file is told in a sentence, and keeps none of the others back. Called by
`agent.turn.assistant` and `agent.turn.steps.tools`; the bytes come by a
`FetchFile`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import structlog

from agent.budget.ledger import charge_of
from agent.budget.payment import NO_PAYMENT, Payment
from agent.files.extract import FileReader
from agent.files.images import PicturesShown, caller_of
from agent.files.scaler import PillowScaler
from agent.files.sniff import FileKind, signature_of
from agent.files.values import (
    AttachedOptions,
    FetchFile,
    FileUnavailable,
    as_fitted,
    called,
    file_name,
    fitting,
    size_of,
)
from agent.prompt.layers import knowledge as notes
from agent.prompt.tokens import brought_tokens, estimate_tokens
from agent.tools.tool import Caller
from agent.tools.workspace import RESULTS, WRITE_BYTES_MAX, Workspace, results_folder
from memory.records.errors import AssistantError, DocumentWrong, Temporary
from memory.records.messages import Attachment, TurnInput
from memory.records.ports import Clock, Json, Models, TurnContext
from memory.records.text import clean
from memory.records.transcript import Note, Picture, Usage, entry_from_json, to_json
from memory.records.usage import Charge

log = structlog.get_logger()

STEP = "files"

FETCH_S = 60.0
RETRY_AFTER_S = (1.0, 2.0, 5.0)
RETRY_AFTER_S_MAX = 10.0
"""How long one try may take, and how long the next ones are waited for."""

AT_ONCE = 4
"""Files that are fetched, and pictures that are made smaller, at the same time, of all chats: each
is held in memory meanwhile."""

FILES_MAX = 20
"""Of one message; more are named and left."""

PICTURES_MAX = 10
PICTURES_BYTES_MAX = 15_000_000
"""What every provider takes of the pictures of one message."""

OWN_VOICE = frozenset({"voice", "video_note"})
"""Kinds of attachments that a person speaks into their device; other sound is somebody's."""

TOKENS_A_SECOND = 10
BYTES_A_SECOND = 2_000
"""Of speech, as providers count it and as telephones record it."""

TRANSCRIPT_TOKENS_MAX = 4_000

Transcribe = Callable[[str, bytes], Awaitable[str]]
"""What is said in a recording of a name. Raises the model errors of `memory.records.errors`."""

_READ_AS_ITSELF = frozenset({"txt", "md", "csv"})
"""Documents that `read_file` reads where they lie."""


class PaidTranscriber:
    """Turns speech into text, paid for like any other call of a model."""

    def __init__(
        self, model: str, transcribe: Transcribe, *, payment: Payment = NO_PAYMENT
    ) -> None:
        self._model = model
        self._transcribe = transcribe
        self._payment = payment

    async def transcript(self, name: str, content: bytes, *, seconds: int, charge: Charge) -> str:
        """Return what is said in a recording; `seconds` is 0 where nobody knows. Raises
        SpendingRefused and the model errors of `memory.records.errors`."""
        tokens_in = (seconds or len(content) // BYTES_A_SECOND + 1) * TOKENS_A_SECOND
        async with self._payment.call(
            self._model, charge, tokens_in=tokens_in, tokens_out=TRANSCRIPT_TOKENS_MAX
        ) as call:
            text = await self._transcribe(name, content)
            usage = Usage(prompt=tokens_in, completion=max(1, estimate_tokens(text)))
            call.answered(usage, by=self._model)
        return clean(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """A message with what came of its files: a transcript is among its words, and the note stands
    before them. None: nothing came."""

    turn: TurnInput
    note: Note | None = None

    @property
    def tokens(self) -> int:
        """Estimated, of all that the files add to a request."""
        return 0 if self.note is None else brought_tokens(self.note)


async def brought(ctx: TurnContext, turn: TurnInput) -> Brought:
    """Runs the step for a message that has files."""
    if not turn.message.attachments:
        return Brought(turn=turn)
    output = await ctx.step(STEP, turn.to_json(), redo="idempotent")
    note = entry_from_json(output["note"]) if output.get("note") else None
    assert note is None or isinstance(note, Note)
    said = output.get("transcript", "")
    if said:
        text = "\n".join(part for part in (turn.message.text, said) if part)
        turn = replace(turn, message=replace(turn.message, text=text))
    return Brought(turn=turn, note=note)


async def left_alone(ctx: TurnContext, payload: Json) -> Json:
    """The step where no file is ever fetched."""
    return {}


def folder_of(caller: Caller, day: str) -> str:
    """Where the files of a chat's messages lie: only this chat can read them."""
    return "/".join((*RESULTS, results_folder(caller), day))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """A message whose files are seen to."""

    turn: TurnInput
    caller: Caller
    charge: Charge
    folder: str
    sees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileOpened:
    """What became of one: `said` about it, and what it holds. `text` is from outside, and may be
    read on at `rest`; `beside` is where a smaller copy of the picture lies; `transcript` are the
    person's own words."""

    said: str
    name: str = ""
    text: str = ""
    rest: str = ""
    picture: Picture | None = None
    picture_bytes: int = 0
    beside: str = ""
    transcript: str = ""
    kept: tuple[str, ...] = ()


class AttachedFiles:
    """Implements the step `files`."""

    def __init__(
        self,
        fetch: FetchFile,
        workspace: Workspace,
        models: Models,
        *,
        clock: Clock,
        options: AttachedOptions | None = None,
        reader: FileReader | None = None,
        transcriber: PaidTranscriber | None = None,
        scaler: PillowScaler | None = None,
    ) -> None:
        """Without a transcriber nobody listens to sound, without a scaler no picture is made
        smaller."""
        self._fetch_file = fetch
        self._workspace = workspace
        self._models = models
        self._clock = clock
        self._options = options or AttachedOptions()
        self._reader = reader or FileReader()
        self._transcriber = transcriber
        self._pictures = PicturesShown(workspace, scaler, side_max=self._options.picture_side_max)
        self._places = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, ctx: TurnContext, payload: Json) -> Json:
        """The note that stands before the message, what a voice note says, and which files are
        `kept` now: they go with a conversation of which nothing is to stay.

        May be repeated: a file is kept under a name that follows from its message, and is not
        fetched again once it is there.
        """
        turn = TurnInput.from_json(payload)
        caller = caller_of(ctx.run_id, turn)
        model = await self._models.at(turn.message.address.key, agent=turn.agent)
        # The day of the message where its person is.
        zone: tzinfo = ZoneInfo(turn.time_zone or self._options.host_zone)
        sent_ms = turn.message.sent_at_ms
        at = datetime.fromtimestamp(sent_ms / 1000, UTC) if sent_ms else self._clock.now()
        arrival = _Arrival(
            turn=turn,
            caller=caller,
            charge=charge_of(ctx.run_id, turn),
            folder=folder_of(caller, f"{at.astimezone(zone):%Y-%m-%d}"),
            sees=model.traits.vision,
        )
        came = turn.message.attachments
        files = await asyncio.gather(
            *(self._file(arrival, n, one) for n, one in enumerate(came[:FILES_MAX]))
        )
        files += [_FileOpened(said=f"{called(one)}, left alone") for one in came[FILES_MAX:]]
        log.info("turn.files", files=len(files), kinds=[one.kind for one in came])
        note = self._note(turn, files)
        said = "\n".join(one.transcript for one in files if one.transcript)
        kept = [path for one in files for path in one.kept]
        return {"note": to_json(note), "transcript": said, "kept": kept}

    # --- one file --------------------------------------------------------------------------------

    async def _file(self, arrival: _Arrival, number: int, attachment: Attachment) -> _FileOpened:
        path = f"{arrival.folder}/{file_name(arrival.turn, number, attachment)}"
        async with self._places:
            try:
                path, content = await self._content(arrival, path, attachment)
            except AssistantError as error:
                return _FileOpened(said=f"{called(attachment)}, which could not be had: {error}")
            if not content:
                return _FileOpened(said=f"{called(attachment)}, which is empty")
            found = signature_of(content)
            about = f"{called(attachment)} ({found.shown}, {size_of(len(content))}), kept as {path}"
            if found.kind is FileKind.PICTURE:
                # In its place, since one that waits to be made smaller is held in memory too.
                opened = await self._picture(arrival, path, content, about=about)
                return replace(opened, kept=_kept(path, opened.beside))
        match found.kind:
            case FileKind.DOCUMENT:
                opened = await self._document(arrival, path, content, about=about)
            case FileKind.SOUND:
                opened = await self._sound(arrival, path, attachment, content)
            case FileKind.FILM if attachment.kind in OWN_VOICE:
                opened = await self._sound(arrival, path, attachment, content)
            case _:
                opened = _FileOpened(said=f"{about}, not opened")
        return replace(opened, kept=_kept(path, opened.rest))

    async def _content(
        self, arrival: _Arrival, path: str, attachment: Attachment
    ) -> tuple[str, bytes]:
        """Where it lies, with an ending that fits it, and what it is. From the workspace if it was
        fetched before; else from the platform, and then kept."""
        bytes_max = self._options.bytes_max
        if attachment.size_bytes > bytes_max:
            raise _too_large(attachment.size_bytes, bytes_max)
        kept, content = await asyncio.to_thread(self._kept, path, arrival.caller)
        if content:
            return kept, content
        content = await self._fetched(arrival, attachment)
        if len(content) > bytes_max:
            raise _too_large(len(content), bytes_max)
        path = fitting(path, signature_of(content))
        if content:
            await asyncio.to_thread(
                self._workspace.write, path, content, arrival.caller, bytes_max=bytes_max
            )
        return path, content

    def _kept(self, path: str, caller: Caller) -> tuple[str, bytes]:
        bytes_max = self._options.bytes_max
        for one in as_fitted(path):
            if found := self._workspace.read(one, caller, bytes_max=bytes_max, missing=b""):
                return one, found
        return path, b""

    async def _fetched(self, arrival: _Arrival, attachment: Attachment) -> bytes:
        """Tried again for some seconds; a try that was slow itself is the last but one."""
        began_s = self._clock.monotonic()
        address, bytes_max = arrival.turn.message.address, self._options.bytes_max
        waits_s = list(RETRY_AFTER_S)
        while True:
            try:
                async with asyncio.timeout(FETCH_S):
                    return await self._fetch_file(address, attachment, bytes_max)
            except TimeoutError:
                error = Temporary(f"it did not come within {FETCH_S:.0f} seconds")
            except Temporary as trouble:
                error = trouble
            if not waits_s:
                raise FileUnavailable(
                    f"it could not be fetched ({error}). It may be sent again"
                ) from error
            await self._clock.sleep(
                min(max(error.retry_after_s or 0, waits_s.pop(0)), RETRY_AFTER_S_MAX)
            )
            if self._clock.monotonic() - began_s > FETCH_S / 2:
                waits_s.clear()

    async def _picture(
        self, arrival: _Arrival, path: str, content: bytes, *, about: str
    ) -> _FileOpened:
        found = signature_of(content)
        if not found.width:
            return _FileOpened(said=f"{about}. It is damaged, and cannot be shown")
        if not arrival.sees:
            about = f"{about}, {found.width} by {found.height} pixels"
            return _FileOpened(said=f"{about}. You cannot see pictures: say so, and do not guess")
        try:
            shown = await self._pictures.shown(path, content, found, arrival.caller)
        except AssistantError as error:
            return _FileOpened(said=f"{about}. It cannot be shown to you now: {error}".rstrip("."))
        return _FileOpened(
            said=about + shown.about,
            picture=shown.picture,
            picture_bytes=shown.size_bytes,
            beside=shown.beside,
        )

    async def _document(
        self, arrival: _Arrival, path: str, content: bytes, *, about: str
    ) -> _FileOpened:
        name = path.rpartition("/")[2]
        try:
            read = await self._reader.read(name, content)
            # Where the whole text can be read by lines: beside the file, if the file is no text.
            is_long = len(read.text) > self._options.text_chars_max
            if is_long and read.kind not in _READ_AS_ITSELF:
                path, text = f"{path}.txt", read.text.encode("utf-8", "replace")
                size_max = max(len(text), WRITE_BYTES_MAX)
                await asyncio.to_thread(
                    self._workspace.write, path, text, arrival.caller, bytes_max=size_max
                )
        except DocumentWrong as error:
            return _FileOpened(said=f"{about}. It was not read: {error}".rstrip("."))
        except AssistantError as error:
            return _FileOpened(said=f"{about}. It was not read now: {error}".rstrip("."))
        note = f" ({read.note})" if read.note else ""
        return _FileOpened(said=f"{about}{note}", name=name, text=read.text, rest=path)

    async def _sound(
        self, arrival: _Arrival, path: str, attachment: Attachment, content: bytes
    ) -> _FileOpened:
        about = f"{called(attachment)}, kept as {path}"
        if self._transcriber is None:
            return _FileOpened(
                said=f"{about}. Nobody wrote down what is said in it, since the owner has set no "
                "llm.transcription_model: say that you cannot listen"
            )
        name = path.rpartition("/")[2]
        try:
            said = await self._transcriber.transcript(
                name, content, seconds=attachment.seconds, charge=arrival.charge
            )
            said = said.strip()
        except AssistantError as error:
            return _FileOpened(
                said=f"{about}. What is said in it could not be written down: {error}"
            )
        if not said:
            return _FileOpened(said=f"{about}, in which nobody speaks")
        if attachment.kind in OWN_VOICE:
            return _FileOpened(
                said=f"{about}. The next message is its transcript, and may be misheard",
                transcript=said,
            )
        return _FileOpened(said=about, name=f"transcript of {name}", text=said, rest=path)

    # --- all of them -----------------------------------------------------------------------------

    def _note(self, turn: TurnInput, files: Sequence[_FileOpened]) -> Note:
        said: list[str] = []
        texts: list[str] = []
        pictures: list[Picture] = []
        room, room_bytes = self._options.text_chars_max, PICTURES_BYTES_MAX
        for one in files:
            about = one.said
            if one.picture is not None:
                room_bytes -= one.picture_bytes
                if len(pictures) < PICTURES_MAX and room_bytes >= 0:
                    pictures.append(one.picture)
                    about += ", and follows"
                else:
                    about += ", not shown: too many came at once"
            if one.text:
                shown = one.text[:room]
                room -= len(shown)
                texts += [f"[{one.name}]\n{shown}"] if shown else []
                about += (
                    "; what stands in it follows"
                    if len(shown) == len(one.text)
                    else f"; the first {len(shown):,} of {len(one.text):,} characters in it "
                    f"follow, and read_file shows them all in {one.rest}"
                )
            said.append(about)
        return Note(
            text=notes.came_along(turn.message, said),
            # Somebody gave a file its name, who need not be the one who sent it on.
            untrusted=any(
                one.name for one in turn.message.attachments if one.kind not in OWN_VOICE
            ),
            content="\n\n".join(texts),
            pictures=tuple(pictures),
        )


def _kept(path: str, beside: str) -> tuple[str, ...]:
    return (path, beside) if beside and beside != path else (path,)


def _too_large(size: int, bytes_max: int) -> FileUnavailable:
    return FileUnavailable(
        f"it is too large ({size_of(size)}; at most {size_of(bytes_max)} are fetched)"
    )
