"""How a file goes out to Slack: the bytes first, then a call that shows them.

Called by `bot.slack`. The library's own way does all in one go; here the file's id is stored in
between, so that after a kill it can be looked up whether it was shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import aiohttp

from agent.messages import Address
from bot.channel import FileOut, MessagePart
from bot.slack_web import Heard, NoAnswer, SaidNo, SlackWeb

BYTES_A_S = 50_000
"""So slow an upload may be."""

_LINK = re.compile(r"://|\w\.\w|[<@]")
_WORDS: Mapping[str, str] = {
    "file_upload_size_restricted": "it is larger than this workspace allows",
    "storage_limit_reached": "this workspace has no space left for files",
    "restricted_action": "this workspace does not let me send files",
    "restricted_action_read_only_channel": "this channel can only be read",
    "team_access_not_granted": "this workspace does not let me send files",
    "blocked_file_type": "this workspace does not take files of this kind",
}
"""What Slack's refusals mean; the end of a sentence for the person."""


def has_link(text: str) -> bool:
    """Whether Slack could find an address or a name in a caption. It would open the address for a
    preview, and a caption, unlike a message, cannot tell it not to."""
    return _LINK.search(text) is not None


async def upload(web: SlackWeb, file: FileOut, *, usual_s: float) -> str:
    """Hands the bytes over; Slack's id of the file. Raises SlackTrouble."""
    heard = await web.call(
        "files.getUploadURLExternal", filename=file.name, length=str(len(file.content))
    )
    url, file_id = heard.data.get("upload_url"), heard.data.get("file_id")
    if not isinstance(url, str) or not isinstance(file_id, str) or not file_id:
        raise NoAnswer("Slack's answer could not be read")
    limit_s = usual_s + len(file.content) / BYTES_A_S
    try:
        async with web.session.post(
            url, data=file.content, timeout=aiohttp.ClientTimeout(total=limit_s)
        ) as answer:
            if answer.status != 200:
                raise NoAnswer(f"Slack took no bytes (HTTP status {answer.status})")
            await answer.read()
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise NoAnswer(f"the bytes did not reach Slack ({type(error).__name__})") from error
    return file_id


async def show(web: SlackWeb, file: FileOut, caption: str, *, channel: str, to: Address) -> Heard:
    """Shows an uploaded file in a conversation. Raises SlackTrouble."""
    more = {"thread_ts": to.thread_id} if to.thread_id is not None else {}
    if caption:
        more["initial_comment"] = caption
    shown = json.dumps([{"id": file.ref, "title": file.name}])
    return await web.call("files.completeUploadExternal", files=shown, channel_id=channel, **more)


def why_refused(error: SaidNo) -> str:
    """The end of a sentence for the person: why a file did not arrive."""
    if error.error == "missing_scope":
        return (
            "Slack does not let me send files yet. Whoever set me up adds the scope files:write in "
            "the Slack app under OAuth & Permissions, and reinstalls it"
        )
    return _WORDS.get(error.error, str(error))


def without_caption(parts: tuple[MessagePart, ...]) -> tuple[MessagePart, ...]:
    """The caption as a message after the file."""
    return (MessagePart(markup="", source=""), *parts)
