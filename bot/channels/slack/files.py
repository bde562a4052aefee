"""Files that people shared in Slack: where one lies, and how it is fetched with the bot's token.

Called by `bot.channels.slack.channel`. The token goes to the workspace's own hosts and nowhere
else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

import aiohttp

from agent.files.values import FileUnavailable
from bot.channels.base import FileOut, MessagePart
from bot.channels.slack.api import Limited, NoAnswer, SaidNo, SlackAnswer, SlackTrouble, SlackWeb
from bot.channels.wire import Downloads, text_of, too_large
from memory.records.errors import Temporary
from memory.records.messages import Address, Attachment

HOST = "Slack"
FILES_ORIGIN = "https://files.slack.com"

PICTURE_BYTES_MAX = 3_000_000
"""Of a larger picture the copy of 1,024 pixels is fetched that Slack makes."""

_GONE = frozenset({"file_deleted", "file_not_found"})


class SlackFiles:
    """The files of one workspace."""

    def __init__(self, web: SlackWeb, *, token: str, base_url: str, silence_s: float) -> None:
        self._web = web
        self._token = token
        self._base_url = base_url
        self._downloads = Downloads(host=HOST, silence_s=silence_s)

    async def fetch(self, attachment: Attachment, *, bytes_max: int) -> bytes:
        """The whole file, of a large picture a smaller copy. Raises FileUnavailable, Temporary."""
        try:
            heard = await self._web.call("files.info", file=attachment.ref)
        except Limited as error:
            raise Temporary(str(error), retry_after_s=error.seconds) from error
        except SaidNo as error:
            is_gone = error.error in _GONE
            raise FileUnavailable("it was deleted in Slack" if is_gone else str(error)) from error
        except SlackTrouble as error:
            raise Temporary(str(error)) from error
        about = heard.data.get("file")
        if not isinstance(about, dict):
            raise Temporary("Slack's answer could not be read")
        size, copy = about.get("size"), None
        if isinstance(size, int) and size > PICTURE_BYTES_MAX:
            # Slack makes a smaller copy of a picture by itself: models take none much larger.
            is_picture = text_of(about, "mimetype").startswith("image/")
            copy = (about.get("thumb_1024") or None) if is_picture else None
        if copy is None and isinstance(size, int) and size > bytes_max:
            raise too_large(bytes_max)
        url = copy or about.get("url_private_download") or about.get("url_private")
        if about.get("is_external") is True or not isinstance(url, str) or not url:
            raise FileUnavailable("it lies with another service, and Slack has only a link to it")
        if not is_ours(url, self._base_url):
            raise FileUnavailable("it lies at a host that is not Slack's")
        headers = {"Authorization": f"Bearer {self._token}"}
        return await self._downloads.get(url, bytes_max=bytes_max, headers=headers)


def is_ours(url: str, base_url: str) -> bool:
    """Return whether the token may be sent there: the API's own origin, or Slack's host of
    files."""
    try:
        parts = [urlsplit(one) for one in (url, base_url, FILES_ORIGIN)]
        origins = [(one.scheme, one.hostname, one.port) for one in parts]
    except ValueError:
        return False
    return parts[0].username is None and origins[0] in origins[1:]


# --- slack uploads ------------------------------------------------------------------------------
#
# How a file goes out to Slack: the bytes first, then a call that shows them.
#
# Called by `bot.channels.slack.channel`. The library's own way does all in one go; here the file's
# id is stored in between, so that after a kill it can be looked up whether it was shown.

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
    """Return whether Slack could find an address or a name in a caption. It would open the address
    for a preview, and a caption, unlike a message, cannot tell it not to."""
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


async def show(
    web: SlackWeb, file: FileOut, caption: str, *, channel: str, to: Address
) -> SlackAnswer:
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
