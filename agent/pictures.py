"""Reads the pictures of a conversation from the workspace, in the form in which models get them.

Called by the step `model`, each time a request is built: only where they lie is stored.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping

import structlog

from agent.errors import AssistantError
from agent.messages import RunId, TurnInput
from agent.tools.tool import Caller
from agent.tools.workspace import Workspace
from agent.transcript import Entry, Note, Picture

log = structlog.get_logger()


def caller_of(run_id: RunId, turn: TurnInput) -> Caller:
    """For whom the files of a turn's messages are kept and read."""
    return Caller(
        person_id=turn.person_id,
        role=turn.role,
        address=turn.message.address,
        conversation=turn.conversation,
        run_id=run_id,
        is_group=turn.message.is_group,
    )


class KeptPictures:
    """The pictures in a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def urls(self, entries: Iterable[Entry], caller: Caller) -> Mapping[str, str]:
        """A `data:` URL for each picture by its path; empty for one that is gone or closed."""
        notes = (entry for entry in entries if isinstance(entry, Note))
        wanted = [picture for note in notes for picture in note.pictures]
        return await asyncio.to_thread(self._all, wanted, caller) if wanted else {}

    def _all(self, wanted: list[Picture], caller: Caller) -> dict[str, str]:
        return {one.path: self._url(one, caller) for one in wanted}

    def _url(self, picture: Picture, caller: Caller) -> str:
        try:
            content = self._workspace.read(picture.path, caller)
        except AssistantError as error:
            log.info("picture.gone", why=str(error))
            return ""
        return f"data:{picture.media_type};base64,{base64.b64encode(content).decode()}"
