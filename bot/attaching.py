"""Puts together what opens the files of messages: where they are fetched, and how they are read.

Called by `bot.assembly`; the command `doctor` asks it about pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from agent.attached import AttachedFiles, Means
from agent.attached_pictures import PICTURE_BYTES_MAX, PICTURE_SIDE_MAX
from agent.attached_ports import AttachedOptions, Transcriber
from agent.attached_scaling import INSTALL, PillowScaler, is_installed
from agent.attached_words import size_of
from agent.budget import Budget
from agent.models.choose import beside
from agent.ports import Models
from agent.tools.workspace import Workspace
from agent.transcribing import PaidTranscriber
from bot.channel import Channel
from bot.config import Settings
from bot.fetching import ChannelFiles
from bot.options import host_zone, wanted_of
from bot.place import Workplace

if TYPE_CHECKING:
    from bot.doctor import Finding


def files_of(
    place: Workplace,
    channels: Callable[[], Mapping[str, Channel]],
    workspace: Workspace,
    models: Models,
    *,
    budget: Budget,
) -> AttachedFiles:
    """The step that opens files, by the settings."""
    wanted = place.settings.attachments
    return AttachedFiles(
        ChannelFiles(channels),
        workspace,
        models,
        clock=place.clock,
        options=AttachedOptions(
            bytes_max=int(wanted.max_mb * 1_000_000),
            text_chars_max=wanted.text_chars,
            picture_side_max=wanted.picture_side,
            host_zone=host_zone(),
        ),
        means=Means(
            transcriber=_transcriber_of(place.settings, budget),
            scaler=PillowScaler() if is_installed() else None,
        ),
    )


def pictures_check(side_max: int, *, installed: bool | None = None) -> Iterator[Finding]:
    """Whether large pictures are made smaller: a hint for `hearthbot doctor`, never a fault."""
    from bot.doctor import ok  # which a bot that runs has no need of

    if is_installed() if installed is None else installed:
        yield ok(f"larger ones are shown as copies of {side_max:,} pixels a side")
    else:
        yield ok(
            f"those of more than {size_of(PICTURE_BYTES_MAX)} or {PICTURE_SIDE_MAX:,} pixels a "
            f"side are not shown to the model; to have them made smaller: {INSTALL}"
        )


def _transcriber_of(settings: Settings, budget: Budget) -> Transcriber | None:
    """None where no model is set. Address and key are the main model's where it is of the same
    provider; else its provider's own, from the environment."""
    name = settings.llm.transcription_model.strip()
    if not name:
        return None
    from agent.models.speech import Speech

    main = wanted_of(settings)
    if "/" in main.model and "/" not in name:
        name = f"openai/{name}"  # a bare name is one of OpenAI's, or of the one server that is set
    wanted = beside(main, name)
    speech = Speech(
        name,
        api_base=wanted.api_base,
        api_key=wanted.api_key,
        timeout_s=settings.llm.timeout_s,
    )
    return PaidTranscriber(speech, budget)
